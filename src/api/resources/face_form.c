#include "api/resources/face_form.h"

#include "api/compat/v1.h"
#include "face/rest_error.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define API_VERSION "x-supabase-api-version"
#define FIRST_WITH_CODES "2024-01-01"

/* ---- /auth/v1 ---- */

/* Codes that the auth service calls otherwise; the name of any other code is its own in lower case. */
static const struct auth_code {
    const char *code, *name;
    int status; /* 0: stays */
    const char *prefix;
} auth_codes[] = {
    { "VALIDATION_ERROR", "validation_failed", 0, "" },        { "INVALID_JSON", "bad_json", 0, "" },
    { "MALFORMED_JWT", "bad_jwt", 403, "invalid JWT: " },      { "JWT_SIGNATURE", "bad_jwt", 403, "invalid JWT: " },
    { "JWT_EXPIRED", "bad_jwt", 403, "invalid JWT: " },        { "JWT_NOT_YET", "bad_jwt", 403, "invalid JWT: " },
    { "SESSION_NOT_FOUND", "session_not_found", 403, "" },     { "USER_NOT_FOUND", "user_not_found", 403, "" },
    { "RATE_LIMIT", "over_request_rate_limit", 0, "" },        { "BUDGET_EXCEEDED", "over_request_rate_limit", 0, "" },
    { "FACE_PART_MISSING", "feature_not_supported", 422, "" }, /* the client repeats what fails with 5xx */
    { "INTERNAL_ERROR", "unexpected_failure", 0, "" },
};

static struct auth_code auth_code_of(const char *code, char lower[sizeof(((struct err *)0)->code)])
{
    size_t n = strlen(code);

    for (size_t i = 0; i < ARRAY_SIZE(auth_codes); i++)
        if (strcmp(auth_codes[i].code, code) == 0)
            return auth_codes[i];
    for (size_t i = 0; i <= n; i++)
        lower[i] = (char)tolower((unsigned char)code[i]);
    return (struct auth_code){ code, lower, 0, "" };
}

/* Since this version of its interface the service tells the code as text; before, the status (error_code has the text).
 */
static bool wants_codes(struct http_exchange *x)
{
    const char *version = http_header(&x->request, API_VERSION);

    if (!version || strcmp(version, FIRST_WITH_CODES) < 0)
        return false;
    http_response_header(x, API_VERSION, FIRST_WITH_CODES);
    return true;
}

/* The gateway in front of the service refuses keys, in a form of its own. */
static void write_gateway(struct json_writer *w, const struct err *e)
{
    json_add_string(w, "message", e->text);
    json_add_string(w, "hint", "Send a key of `hearth backend keys` in the header apikey.");
    v1_write_error_details(w, e);
}

static void write_weakness(struct json_writer *w)
{
    static const char *const reasons[] = { "length" };

    json_begin_object_as(w, "weak_password");
    json_add_strings(w, "reasons", reasons, 1);
    json_end(w);
}

static int write_auth(struct json_writer *w, struct http_exchange *x, int status, const struct err *e)
{
    char lower[sizeof(e->code)], text[sizeof(e->text)];
    struct auth_code code;

    if (strcmp(e->code, "INVALID_FACE_KEY") == 0) {
        write_gateway(w, e);
        return status;
    }
    code = auth_code_of(e->code, lower);
    status = code.status ? code.status : status;
    snprintf(text, sizeof(text), "%s%.600s", code.prefix, e->text);
    if (wants_codes(x)) {
        json_add_string(w, "code", code.name);
        json_add_string(w, "message", text);
    } else {
        json_add_int(w, "code", status);
        json_add_string(w, "error_code", code.name);
        json_add_string(w, "msg", text);
    }
    if (strcmp(e->code, "WEAK_PASSWORD") == 0)
        write_weakness(w);
    v1_write_error_details(w, e);
    return status;
}

static const struct field auth_error_shape[] = {
    SHAPE_ANY("code", .flags = FIELD_OPTIONAL, .help = "invalid_credentials, ...; the status without " API_VERSION),
    SHAPE_STRING("message", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("error_code", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("msg", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("hint", .flags = FIELD_OPTIONAL),
    SHAPE_OBJECT("weak_password", NULL, .flags = FIELD_OPTIONAL),
    SHAPE_STRING("hearth_code", .help = "as in errors of other routes"),
    SHAPE_LIST("errors", v1_violation_shape, .flags = FIELD_OPTIONAL),
    FIELD_END,
};

const struct error_form face_auth_error = { .name = "AuthError", .answer = auth_error_shape, .write = write_auth };

/* ---- /rest/v1 ---- */

static const struct field rest_error_shape[] = {
    SHAPE_STRING("code", .flags = FIELD_OPTIONAL,
                 .help = "PostgREST's or PostgreSQL's; absent when the key is refused"),
    SHAPE_STRING("message"),
    SHAPE_STRING("details", .flags = FIELD_OPTIONAL | FIELD_NULLABLE),
    SHAPE_STRING("hint", .flags = FIELD_OPTIONAL | FIELD_NULLABLE),
    SHAPE_STRING("hearth_code", .help = "as in errors of other routes"),
    FIELD_END,
};

static const char *extra_of(const struct err *e, const char *key)
{
    for (unsigned i = 0; i < MIN(e->n_extras, (unsigned)ERR_MAX_EXTRAS); i++)
        if (strcmp(e->extras[i].key, key) == 0)
            return e->extras[i].value;
    return NULL;
}

/* A refused key is the gateway's answer, which has no code. */
static int write_rest(struct json_writer *w, struct http_exchange *x, int status, const struct err *e)
{
    const struct rest_error *known = rest_error_of(e->code);
    const char *sqlstate = extra_of(e, "sqlstate");

    if (strcmp(e->code, "INVALID_FACE_KEY") == 0) {
        json_add_string(w, "message", e->text);
        json_add_string(w, "hint", "Send a key of `hearth backend keys` in the header apikey.");
        json_add_string(w, "hearth_code", e->code);
        return status;
    }
    json_add_string(w, "code", sqlstate ? sqlstate : known ? known->foreign : e->code);
    json_add_string(w, "message", known && known->message ? known->message : e->text);
    json_add_string(w, "details", extra_of(e, "details"));
    json_add_string(w, "hint", extra_of(e, "hint"));
    json_add_string(w, "hearth_code", e->code);
    return known ? known->status : status;
}

const struct error_form face_rest_error = { .name = "RestError", .answer = rest_error_shape, .write = write_rest };

/* ---- parts that are not there ---- */

/* The clients of files, of functions and of GraphQL look for the text in different members. */
static int write_missing(struct json_writer *w, struct http_exchange *x, int status, const struct err *e)
{
    char text[12];

    snprintf(text, sizeof(text), "%d", status);
    json_add_string(w, "statusCode", text);
    json_add_string(w, "code", e->code);
    json_add_string(w, "hearth_code", e->code);
    json_add_string(w, "error", e->code);
    json_add_string(w, "message", e->text);
    json_begin_array_as(w, "errors");
    json_begin_object(w);
    json_add_string(w, "message", e->text);
    json_end(w);
    json_end(w);
    return status;
}

static const struct error_form missing_part_error = { .name = "MissingPart", .write = write_missing };

static const struct part {
    const char *path, *what;
    const struct error_form *form;
} parts[] = {
    { "/storage/v1", "storage of files", &missing_part_error },
    { "/functions/v1", "edge functions", &missing_part_error },
    { "/graphql/v1", "GraphQL", &missing_part_error },
    { "/auth/v1/authorize", "sign-in with other services (OAuth)", &face_auth_error },
    { "/auth/v1/callback", "sign-in with other services (OAuth)", &face_auth_error },
    { "/auth/v1/user/identities", "sign-in with other services (OAuth)", &face_auth_error },
    { "/auth/v1/oauth", "an OAuth server", &face_auth_error },
    { "/auth/v1/sso", "sign-in with SAML", &face_auth_error },
    { "/auth/v1/otp", "sign-in by e-mail or SMS without a password", &face_auth_error },
    { "/auth/v1/magiclink", "sign-in by e-mail or SMS without a password", &face_auth_error },
    { "/auth/v1/verify", "sign-in by e-mail or SMS without a password", &face_auth_error },
    { "/auth/v1/resend", "sign-in by e-mail or SMS without a password", &face_auth_error },
    { "/auth/v1/reauthenticate", "sign-in by e-mail or SMS without a password", &face_auth_error },
    { "/auth/v1/recover", "recovery of a password by e-mail (`hearth user password` sets a new one)",
      &face_auth_error },
    { "/auth/v1/invite", "invitations by e-mail (`hearth user add` adds a user)", &face_auth_error },
    { "/auth/v1/factors", "sign-in with a second factor", &face_auth_error },
    { "/auth/v1/passkeys", "sign-in with passkeys", &face_auth_error },
    { "/auth/v1/admin", "management of users over HTTP (`hearth user` does it)", &face_auth_error },
    { "/rest/v1", "such a path of the REST service", &face_rest_error },
    { "/auth/v1", "such a function of the auth service", &face_auth_error },
};

static const struct part *part_of(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        size_t n = strlen(parts[i].path);

        if (strncmp(path, parts[i].path, n) == 0 && (path[n] == '\0' || path[n] == '/'))
            return &parts[i];
    }
    return NULL;
}

const struct error_form *face_error_form(const struct http_request *req)
{
    const struct part *part = part_of(req->path);

    return part ? part->form : NULL;
}

int face_refuse_path(const char *path, struct err *e)
{
    const struct part *part = part_of(path);

    return part ? err_set(e, -EOPNOTSUPP, "FACE_PART_MISSING",
                          "Hearth has no %s: docs/offline-face.md lists what apps of the hosted service find here.",
                          part->what)
                : 0;
}
