#include "api/openapi.h"

#include "api/errors.h"
#include "api/resources/metered.h"
#include "base/json_write.h"
#include "identity/sessions.h"
#include <ctype.h>
#include <string.h>

struct row {
    const struct route *route;
    const char *path;
};
struct rows {
    struct row *items;
    size_t n, cap;
};

static void collect(const struct route *route, const char *path, void *arg)
{
    struct rows *rows = arg;

    if (rows->n == rows->cap) {
        rows->cap = rows->cap ? 2 * rows->cap : 64;
        rows->items = xrealloc(rows->items, rows->cap * sizeof(*rows->items));
    }
    rows->items[rows->n++] = (struct row){ route, path };
}

/* ---- names ---- */

/* "/a/:name/{rest*}" as "/a/{name}/{rest}". */
static void write_template(struct buf *out, const char *path)
{
    size_t n;

    for (const char *at = path; *at; at += n) {
        n = strcspn(at, "/");
        if (*at == ':')
            buf_printf(out, "{%.*s}", (int)n - 1, at + 1);
        else if (*at == '{')
            buf_printf(out, "%.*s}", (int)n - 2, at);
        else
            buf_add(out, at, n);
        if (at[n] == '/') {
            buf_add_char(out, '/');
            n++;
        }
    }
}

/* "get_sdk_ping": unique because method and path are unique together. */
static void write_operation_id(struct buf *out, const struct row *row)
{
    for (const char *c = http_method_name(row->route->method); *c; c++)
        buf_add_char(out, (char)tolower(*c));
    for (const char *c = row->path; *c; c++)
        buf_add_char(out, isalnum((unsigned char)*c) ? *c : strchr(":{", *c) ? 'X' : '_');
}

static void add_built_string(struct json_writer *w, const char *name,
                             void (*build)(struct buf *out, const struct row *row), const struct row *row)
{
    struct buf text;

    buf_init(&text, LIMIT_TARGET_BYTES);
    build(&text, row);
    json_add_string(w, name, buf_str(&text));
    buf_clear(&text);
}

/* ---- parameters and bodies ---- */

static void begin_parameter(struct json_writer *w, struct slice name, const char *where, bool is_required)
{
    json_begin_object(w);
    json_add_slice(w, "name", name);
    json_add_string(w, "in", where);
    json_add_bool(w, "required", is_required);
}

static void write_path_parameters(struct json_writer *w, const char *path)
{
    for (const char *at = strpbrk(path, ":{"); at; at = strpbrk(at + 1, ":{")) {
        begin_parameter(w, (struct slice){ at + 1, strcspn(at + 1, "/*") }, "path", true);
        json_begin_object_as(w, "schema");
        json_add_string(w, "type", "string");
        json_end(w);
        json_end(w);
    }
}

static void write_query_parameters(struct json_writer *w, const struct field *table)
{
    for (const struct field *f = table; f && f->kind != FIELD_KIND_END; f++) {
        begin_parameter(w, slice_of(f->name), "query", f->flags & FIELD_REQUIRED);
        field_write_schema(f, false, w, "schema");
        json_end(w);
    }
}

static void write_parameters(struct json_writer *w, const struct row *row)
{
    json_begin_array_as(w, "parameters");
    write_path_parameters(w, row->path);
    write_query_parameters(w, row->route->query);
    json_end(w);
}

/* OpenAPI has no words for bytes whose first line is JSON. */
static void write_bytes_with_line(struct json_writer *w, const struct route *route)
{
    json_begin_object_as(w, route->body_type);
    json_begin_object_as(w, "schema");
    json_add_string(w, "type", "string");
    json_add_string(w, "format", "binary");
    json_end(w);
    fields_write_schema(route->own_body, false, w, "x-first-line");
    json_end(w);
}

static void write_body(struct json_writer *w, const struct route *route)
{
    const struct field *body = route->body ? route->body : route->own_body;

    if (!body)
        return;
    json_begin_object_as(w, "requestBody");
    json_add_bool(w, "required", !route->is_body_optional);
    json_begin_object_as(w, "content");
    if (route->body_type) {
        write_bytes_with_line(w, route);
    } else {
        json_begin_object_as(w, route->takes_form ? "multipart/form-data" : "application/json");
        fields_write_schema(body, false, w, "schema");
        json_end(w);
    }
    if (route->takes_form) {
        json_begin_object_as(w, "*/*");
        json_end(w);
    }
    json_end(w);
    json_end(w);
}

/* ---- responses ---- */

static void write_ref(struct json_writer *w, const char *name, const char *target)
{
    json_begin_object_as(w, name);
    json_add_string(w, "$ref", target);
    json_end(w);
}

static void write_json_answer(struct json_writer *w, const struct route *route)
{
    if (route->is_bare) {
        fields_write_schema(route->answer, true, w, "schema");
        return;
    }
    json_begin_object_as(w, "schema");
    json_begin_array_as(w, "allOf");
    write_ref(w, NULL, "#/components/schemas/Success");
    fields_write_schema(route->answer, true, w, NULL);
    json_end(w);
    json_end(w);
}

static void write_content(struct json_writer *w, const struct route *route)
{
    json_begin_object_as(w, "content");
    json_begin_object_as(w, route->answer_type ? route->answer_type : "application/json");
    if (route->answer)
        write_json_answer(w, route);
    json_end(w);
    if (route->may_stream) {
        json_begin_object_as(w, route->stream_type ? route->stream_type : "text/event-stream");
        json_end(w);
    }
    json_end(w);
}

static void write_success(struct json_writer *w, const struct route *route)
{
    char status[8];

    if (route->is_refused)
        return;
    snprintf(status, sizeof(status), "%d", route->status ? route->status : 200);
    json_begin_object_as(w, status);
    json_add_string(w, "description", route->summary);
    if (route->status != 204)
        write_content(w, route);
    json_end(w);
}

static bool is_public(const struct route *route)
{
    return strcmp(route->permission, PERM_PUBLIC) == 0;
}

/* True for routes that are metered and answered by a provider. */
static bool needs_models(const struct route *route)
{
    bool waits = route->kind == ROUTE_LONG || route->kind == ROUTE_RELAY || route->needs_long;

    return waits && (strcmp(route->permission, PERM_LLM_CHAT) == 0 || strcmp(route->permission, PERM_LLM_EMBED) == 0 ||
                     strcmp(route->permission, PERM_TTS_GENERATE) == 0);
}

/* Can this route answer with this status, as far as the row alone says? */
static bool may_answer(const struct route *route, const char *path, int status)
{
    bool is_grant = permission_find(route->permission) != NULL;

    switch (status) {
    case 400:
        return route->body || route->query || route->body_type;
    case 401:
        return !is_public(route) && strcmp(route->permission, PERM_BODY) != 0;
    case 403:
        return true; /* Host and Origin are checked on every route */
    case 404:
        return strpbrk(path, ":{") || strcmp(route->permission, PERM_BODY) == 0 || (route->body && !is_grant);
    case 413:
        return route->body || route->body_type;
    case 429:
    case 502:
        return needs_models(route);
    case 501:
        return route->is_refused && route->status == status;
    case 503:
        return route->kind != ROUTE_INLINE;
    default:
        return status == 500;
    }
}

static void write_errors(struct json_writer *w, const struct row *row)
{
    static const int statuses[] = { 400, 401, 403, 404, 413, 429, 500, 501, 502, 503 };
    const struct error_form *form = row->route->error_form;
    char text[8], target[80];

    snprintf(target, sizeof(target), "#/components/responses/%s", form ? form->name : "Error");

    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        if (!may_answer(row->route, row->path, statuses[i]))
            continue;
        snprintf(text, sizeof(text), "%d", statuses[i]);
        write_ref(w, text, target);
    }
    write_ref(w, "default", target);
}

/* ---- security ---- */

/* One choice that requires all of these schemes together. */
static void write_scheme_choice(struct json_writer *w, const char *const *schemes, size_t n)
{
    json_begin_object(w);
    for (size_t i = 0; i < n; i++) {
        json_begin_array_as(w, schemes[i]);
        json_end(w);
    }
    json_end(w);
}

static void write_security(struct json_writer *w, const struct route *route)
{
    static const char *const callers[] = { "developerKey", "developerKeyHeader", "appId" };
    static const char *const browser[] = { "administrator", "administratorProof" };
    bool is_open = is_public(route) || strcmp(route->permission, PERM_BODY) == 0;

    json_begin_array_as(w, "security");
    for (size_t i = 0; i < ARRAY_SIZE(callers) && !is_public(route) && strcmp(route->permission, PERM_ADMIN) != 0; i++)
        write_scheme_choice(w, &callers[i], 1);
    write_scheme_choice(w, browser, is_open ? 0 : ARRAY_SIZE(browser)); /* an open route allows no credentials at all */
    json_end(w);
}

static void write_scheme(struct json_writer *w, const char *name, const char *where, const char *key,
                         const char *description)
{
    json_begin_object_as(w, name);
    json_add_string(w, "type", where ? "apiKey" : "http");
    if (where) {
        json_add_string(w, "in", where);
        json_add_string(w, "name", key);
    } else {
        json_add_string(w, "scheme", key);
    }
    json_add_string(w, "description", description);
    json_end(w);
}

static void write_schemes(struct json_writer *w)
{
    json_begin_object_as(w, "securitySchemes");
    write_scheme(w, "developerKey", NULL, "bearer", "A developer key: every permission");
    write_scheme(w, "developerKeyHeader", "header", "x-api-key", "A developer key: every permission");
    write_scheme(w, "appId", "header", "x-app-id", "A registered app with the permissions it was granted");
    write_scheme(w, "administrator", "cookie", SESSION_COOKIE,
                 "The local administrator's browser, together with administratorProof: see `hearth open`");
    write_scheme(w, "administratorProof", "header", SESSION_PROOF_HEADER,
                 "The other half of the session; the cookie alone is none");
    json_end(w);
}

/* ---- components ---- */

static void write_success_schema(struct json_writer *w)
{
    json_begin_object_as(w, "Success");
    json_add_string(w, "type", "object");
    json_begin_object_as(w, "properties");
    json_begin_object_as(w, "success");
    json_add_bool(w, "const", true);
    json_end(w);
    json_end(w);
    json_add_strings(w, "required", (const char *const[]){ "success" }, 1);
    json_end(w);
}

static void write_codes(struct json_writer *w)
{
    struct buf text;

    buf_init(&text, LIMIT_STRING_DEFAULT);
    for (const struct api_error *known = api_errors; known->code; known++)
        buf_printf(&text, "- `%s` (%d): %s\n", known->code, known->status, known->meaning);
    json_add_string(w, "description", buf_str(&text));
    buf_clear(&text);
}

static const struct field violation_shape[] = { SHAPE_STRING("field"), SHAPE_STRING("rule"), FIELD_END };

static const struct field error_shape[] = {
    SHAPE_STRING("error", .help = "what went wrong, for a person"),
    SHAPE_STRING("message", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("permission", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("reason", .flags = FIELD_OPTIONAL, .help = "of a failure on the way to a provider"),
    METERED_ERROR_SHAPE,
    SHAPE_LIST("errors", violation_shape, .flags = FIELD_OPTIONAL, .help = "every field that breaks its rule"),
    FIELD_END,
};

static void write_error_schema(struct json_writer *w)
{
    json_begin_object_as(w, "Error");
    json_begin_array_as(w, "allOf");
    fields_write_schema(error_shape, true, w, NULL);
    json_begin_object(w);
    json_add_string(w, "type", "object");
    json_begin_object_as(w, "properties");
    json_begin_object_as(w, "success");
    json_add_bool(w, "const", false);
    json_end(w);
    json_begin_object_as(w, "code");
    json_add_string(w, "type", "string");
    write_codes(w);
    json_end(w);
    json_end(w);
    json_add_strings(w, "required", (const char *const[]){ "success" }, 1);
    json_end(w);
    json_end(w);
    json_end(w);
}

static void write_error_response(struct json_writer *w, const char *name, const struct field *answer)
{
    json_begin_object_as(w, name);
    json_add_string(w, "description", "The request was not carried out");
    json_begin_object_as(w, "content");
    json_begin_object_as(w, "application/json");
    if (answer)
        fields_write_schema(answer, true, w, "schema");
    else
        write_ref(w, "schema", "#/components/schemas/Error");
    json_end(w);
    json_end(w);
    json_end(w);
}

static bool has_form_before(const struct rows *rows, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (rows->items[j].route->error_form == rows->items[i].route->error_form)
            return true;
    return false;
}

static void write_error_responses(struct json_writer *w, const struct rows *rows)
{
    json_begin_object_as(w, "responses");
    write_error_response(w, "Error", NULL);
    for (size_t i = 0; i < rows->n; i++) {
        const struct error_form *form = rows->items[i].route->error_form;

        if (form && !has_form_before(rows, i))
            write_error_response(w, form->name, form->answer);
    }
    json_end(w);
}

static void write_components(struct json_writer *w, const struct rows *rows)
{
    json_begin_object_as(w, "components");
    json_begin_object_as(w, "schemas");
    write_success_schema(w);
    write_error_schema(w);
    json_end(w);
    write_error_responses(w, rows);
    write_schemes(w);
    json_end(w);
}

/* ---- the document ---- */

static void write_operation(struct json_writer *w, const struct row *row)
{
    char method[16];
    size_t n = 0;

    for (const char *c = http_method_name(row->route->method); *c && n < sizeof(method) - 1; c++)
        method[n++] = (char)tolower(*c);
    method[n] = '\0';
    json_begin_object_as(w, method);
    add_built_string(w, "operationId", write_operation_id, row);
    json_add_string(w, "summary", row->route->summary);
    json_add_strings(w, "tags", &row->route->tag, 1);
    if (permission_find(row->route->permission))
        json_add_string(w, "x-permission", row->route->permission);
    if (row->route->defines)
        json_add_string(w, "description",
                        "Changes what runs: a browser session needs a fresh confirmation (CONFIRMATION_REQUIRED).");
    write_parameters(w, row);
    write_body(w, row->route);
    json_begin_object_as(w, "responses");
    write_success(w, row->route);
    write_errors(w, row);
    json_end(w);
    write_security(w, row->route);
    json_end(w);
}

static bool was_before(const struct rows *rows, size_t i, bool by_tag)
{
    for (size_t j = 0; j < i; j++) {
        if (by_tag && strcmp(rows->items[j].route->tag, rows->items[i].route->tag) == 0)
            return true;
        if (!by_tag && strcmp(rows->items[j].path, rows->items[i].path) == 0)
            return true;
    }
    return false;
}

static void write_path_item(struct json_writer *w, const struct rows *rows, size_t first)
{
    struct buf name;

    buf_init(&name, LIMIT_TARGET_BYTES);
    write_template(&name, rows->items[first].path);
    json_begin_object_as(w, buf_str(&name));
    for (size_t i = first; i < rows->n; i++)
        if (strcmp(rows->items[i].path, rows->items[first].path) == 0)
            write_operation(w, &rows->items[i]);
    json_end(w);
    buf_clear(&name);
}

static void write_paths(struct json_writer *w, const struct rows *rows)
{
    json_begin_object_as(w, "paths");
    for (size_t i = 0; i < rows->n; i++)
        if (!was_before(rows, i, false))
            write_path_item(w, rows, i);
    json_end(w);
}

static void write_tags(struct json_writer *w, const struct rows *rows)
{
    json_begin_array_as(w, "tags");
    for (size_t i = 0; i < rows->n; i++) {
        if (was_before(rows, i, true))
            continue;
        json_begin_object(w);
        json_add_string(w, "name", rows->items[i].route->tag);
        json_end(w);
    }
    json_end(w);
}

static void write_info(struct json_writer *w)
{
    json_begin_object_as(w, "info");
    json_add_string(w, "title", "Hearth");
    json_add_string(w, "version", HEARTH_VERSION);
    json_add_string(
        w, "description",
        "A local AI application service. Every answer is JSON with `success` unless its content type says otherwise, and carries x-request-id.");
    json_begin_object_as(w, "license");
    json_add_string(w, "name", "Apache-2.0");
    json_add_string(w, "identifier", "Apache-2.0");
    json_end(w);
    json_end(w);
}

void openapi_write(const struct dispatch *d, struct buf *out)
{
    struct rows rows = { 0 };
    struct json_writer w;

    dispatch_each_route(d, collect, &rows);
    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "openapi", "3.1.0");
    write_info(&w);
    json_begin_array_as(&w, "servers");
    json_begin_object(&w);
    json_add_string(&w, "url", "/");
    json_end(&w);
    json_end(&w);
    write_tags(&w, &rows);
    write_paths(&w, &rows);
    write_components(&w, &rows);
    json_end(&w);
    free(rows.items);
}
