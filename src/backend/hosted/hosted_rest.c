#include "backend/hosted/hosted_rest.h"

#include "backend/hosted/hosted_token.h"
#include "backend/query_sql.h"
#include "backend/refusals.h"
#include "backend/refusals_sql.h"
#include "base/clock.h"
#include "base/memory.h"
#include "net/http_client.h"
#include "net/http_date.h"
#include "net/url.h"

#include <stdlib.h>
#include <string.h>

enum { REASON_CHARS = 300, PAUSE_MS = 100, MOST_PAUSE_MS = 5000, N_HEADERS = 7 };

struct hosted_rest {
    char *url, *key, *user_key; /* owned; user_key: of requests of users */
    const char *token;          /* of a user; NULL: none */
    enum hosted_rights rights;
    struct backend_hosted_config config;
    const atomic_bool *is_closing; /* borrowed */
};

/* ---- refusals ---- */

int hosted_fault(struct err *e, const char *fmt, ...)
{
    char text[REASON_CHARS];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_set(e, -EIO, "STORE_FAILED", "The hosted service: its answer is wrong: %s", text);
}

static int unavailable(struct err *e, const char *text)
{
    return err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "The hosted service: %.*s", REASON_CHARS, text);
}

static const char *text_of(struct json_value body, const char *name)
{
    const char *text = json_cstr(json_get(body, name));

    return text ? text : "";
}

static const char *words_of(struct json_value body, int status, struct arena *a)
{
    static const char *const names[] = { "message", "msg", "error_description", "error" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (*text_of(body, names[i]))
            return text_of(body, names[i]);
    return arena_printf(a, "it answered with status %d and gave no reason", status);
}

/* What PostgREST and its gateway say by a code of their own, or by the status alone. */
static int refuse_by_status(const struct hosted_call *call, const char *code, int status, const char *words,
                            struct err *e)
{
    if (strcmp(code, "PGRST205") == 0 && call->path->table)
        return refusals_no_table(call->path->table, e);
    if (strcmp(code, "PGRST202") == 0)
        return err_set(e, -ENOENT, "FUNCTION_NOT_FOUND", "The hosted service: %.*s", REASON_CHARS, words);
    if (strcmp(code, "PGRST106") == 0)
        return err_set(e, -ENOENT, "UNKNOWN_TABLE", "The project does not serve the schema %s: %.*s",
                       call->path->schema, REASON_CHARS, words);
    if (strcmp(code, "PGRST204") == 0)
        return err_set(e, -EINVAL, "TABLE_UNFIT", "%.*s: `hearth backend check` says what is missing", REASON_CHARS,
                       words);
    if (status == 401 || status == 403)
        return err_set(e, -EACCES, "STORE_DENIED",
                       "The hosted service takes no request with this key or token (status %d): %.*s", status,
                       REASON_CHARS, words);
    if (status == 413)
        return err_set(e, -E2BIG, "TOO_LARGE", "The hosted service takes no request of that size: %.*s", REASON_CHARS,
                       words);
    if (status == 408 || status == 429 || status >= 502)
        return unavailable(e, words);
    if (status == 404 && !*code)
        return err_set(e, -EIO, "STORE_FAILED",
                       "The hosted service: nothing is served there (status 404); is backend.project right? %.*s",
                       REASON_CHARS, words);
    return err_set(e, -EIO, "STORE_FAILED", "The hosted service refused with status %d: %.*s", status, REASON_CHARS,
                   words);
}

static bool is_sqlstate(const char *code)
{
    return strlen(code) == 5 && strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5;
}

/* 0: the code means the same for every call. */
static int refuse_query(const char *code, const char *words, struct err *e)
{
    if (strcmp(code, "PGRST124") == 0)
        return err_set(e, -E2BIG, "TOO_MANY_ROWS", "The change affects more rows than it may");
    if (strcmp(code, "PGRST204") == 0)
        return err_set(e, -EINVAL, "UNKNOWN_COLUMN", "%.*s", REASON_CHARS, words);
    return is_sqlstate(code) ? query_refuse_sqlstate(code, words, e) : 0;
}

static int refuse_token(const char *words, struct err *e)
{
    const char *code = "JWT_SIGNATURE";

    if (strstr(words, "expired"))
        code = "JWT_EXPIRED";
    else if (strstr(words, "not yet") || strstr(words, "future"))
        code = "JWT_NOT_YET";
    return err_set(e, -EACCES, code, "The app has to synchronise a fresh backend token; the project says: %.*s",
                   REASON_CHARS, words);
}

/* 0: the refusal means the same for the service itself. */
static int refuse_user(const struct hosted_call *call, const char *code, int status, const char *words, struct err *e)
{
    bool is_of_token = strncmp(code, "PGRST30", 7) == 0 || strstr(words, "JWT");

    if (call->rights == HOSTED_OF_USER && status == 401 && is_of_token)
        return refuse_token(words, e);
    if (strcmp(code, "42501") != 0 && strcmp(code, "PGRST302") != 0)
        return 0;
    if (call->rights == HOSTED_OF_USER)
        return err_set(e, -EPERM, "ROW_REFUSED",
                       "The project's row-level security refuses this to the app's user: %.*s", REASON_CHARS, words);
    return err_set(e, -EPERM, "ROW_REFUSED",
                   "The project's row-level security refuses this to anonymous callers, as which an app without "
                   "require_user_auth reaches its rows: %.*s",
                   REASON_CHARS, words);
}

static int refuse(const struct hosted_call *call, int status, struct json_value body, struct arena *a, struct err *e)
{
    const char *code = text_of(body, "code"), *words = words_of(body, status, a);
    struct err why = { 0 };
    int r;

    if (*code)
        err_add_extra(e, "sqlstate", code);
    if (*text_of(body, "details"))
        err_add_extra(e, "details", text_of(body, "details"));
    if (*text_of(body, "hint"))
        err_add_extra(e, "hint", text_of(body, "hint"));
    if (call->rights != HOSTED_OF_SERVICE && (r = refuse_user(call, code, status, words, e)) < 0)
        return r;
    if (call->is_query && (r = refuse_query(code, words, e)) < 0)
        return r;
    if (!is_sqlstate(code))
        return refuse_by_status(call, code, status, words, e);
    (void)err_set(&why, -EIO, "STORE_FAILED", "The hosted service: %.*s", REASON_CHARS, words);
    return refusals_sqlstate(code, call->path->table, &why, e);
}

/* ---- one answer ---- */

static int refuse_redirect(struct err *e)
{
    return err_set(
        e, -EIO, "STORE_FAILED",
        "The hosted service points elsewhere, and redirects are not followed with a key: set backend.project to "
        "the address that the project has");
}

int hosted_rest_read(const struct hosted_call *call, int status, struct slice body, struct arena *a,
                     struct hosted_reply *ret, struct err *e)
{
    struct err why = { 0 };
    int r;

    *ret = (struct hosted_reply){ .status = status, .count = -1, .text = body };
    if (status >= 300 && status < 400)
        return refuse_redirect(e);
    r = body.n ? json_parse(a, body, &ret->body, &why) : 0;
    if (r == -ENOMEM)
        return memory_refuse(e);
    if (r == -E2BIG)
        return refusals_list_too_large(e);
    if (r < 0 && status < 300)
        return hosted_fault(e, "it is no JSON (%.100s)", why.text);
    return status < 200 || status >= 300 ? refuse(call, status, ret->body, a, e) : 0;
}

/* "0-9/25", or with * for what is not known. */
static int64_t count_of(const char *content_range)
{
    const char *slash = content_range ? strchr(content_range, '/') : NULL;
    char *end;
    long long n;

    if (!slash || slash[1] < '0' || slash[1] > '9')
        return -1;
    n = strtoll(slash + 1, &end, 10);
    return *end ? -1 : n;
}

static int64_t retry_after_of(const struct http_answer *answer)
{
    const char *text = http_answer_header(answer, "retry-after");
    int64_t date_ms = 0;

    if (!text)
        return 0;
    if (*text >= '0' && *text <= '9')
        return MIN(strtol(text, NULL, 10), INT32_MAX) * INT64_C(1000);
    return http_date_parse(text, &date_ms) == 0 ? MAX(date_ms - clock_wall_ms(), 0) : 0;
}

/* ---- one request ---- */

struct attempt {
    const struct hosted_call *call;
    const char *url, *token; /* token: of the Authorization header */
    int64_t retry_after_ms;
    bool was_refused; /* the server has answered that it did nothing */
};

static size_t add_headers(const struct hosted_rest *rest, const struct attempt *at, struct arena *a,
                          struct http_call_header *ret)
{
    const struct hosted_call *call = at->call;
    bool is_read = strcmp(call->method, "GET") == 0;
    size_t n = 0;

    ret[n++] = (struct http_call_header){ "apikey", rest->key };
    ret[n++] = (struct http_call_header){ "authorization", arena_printf(a, "Bearer %s", at->token) };
    ret[n++] = (struct http_call_header){ "accept", "application/json" };
    ret[n++] = (struct http_call_header){ is_read ? "accept-profile" : "content-profile", call->path->schema };
    if (call->body.n)
        ret[n++] = (struct http_call_header){ "content-type", "application/json" };
    if (call->prefer)
        ret[n++] = (struct http_call_header){ "prefer", call->prefer };
    return n;
}

/* The service cannot be reached, or its answer was cut. */
static int failed(int r, const struct err *why, struct err *e)
{
    if (r == -EMSGSIZE)
        return refusals_list_too_large(e);
    if (r == -ECANCELED || r == -EBUSY || r == -ENOMEM || r == -EPERM)
        return err_set(e, r, why->code, "%s", why->text);
    return unavailable(e, why->text);
}

static int try(struct hosted_rest *rest, struct attempt *at, const struct net_wait *wait, struct arena *a,
               struct hosted_reply *ret, struct err *e)
{
    struct http_call_header headers[N_HEADERS];
    struct http_call_request request = { .method = at->call->method,
                                         .url = at->url,
                                         .headers = headers,
                                         .n_headers = add_headers(rest, at, a, headers),
                                         .body = at->call->body,
                                         .connect_ms = LIMIT_STORE_CONNECT_MS,
                                         .max_reply = at->call->max_reply,
                                         .guard = rest->config.guard,
                                         .is_moot = wait->is_leaving,
                                         .holder = wait->holder };
    struct http_answer answer = { 0 };
    struct err why = { 0 };
    int64_t left_ms = net_wait_left(wait, e);
    int r = (int)MIN(left_ms, 0);

    if (r < 0)
        return r;
    request.total_ms = left_ms;
    r = http_call(&request, a, wait->is_gone, &answer, &why);
    if (r < 0)
        return failed(r, &why, e);
    at->was_refused = answer.status == 429;
    at->retry_after_ms = retry_after_of(&answer);
    r = hosted_rest_read(at->call, answer.status, answer.body, a, ret, e);
    ret->count = count_of(http_answer_header(&answer, "content-range"));
    if (http_date_parse(http_answer_header(&answer, "date"), &ret->date_ms) < 0)
        ret->date_ms = 0;
    return r;
}

/* ---- calls ---- */

/* Waits before the next attempt. -ETIMEDOUT: there is no time for one. */
static int pause_before(const struct net_wait *wait, int n_tries, int64_t retry_after_ms, struct err *e)
{
    int64_t ms = MAX((int64_t)PAUSE_MS << n_tries, retry_after_ms);
    struct net_wait pause = net_wait_part(wait, ms);
    struct err over = { 0 };
    int r;

    if (ms > MOST_PAUSE_MS || clock_mono_ms() + ms >= wait->deadline_ms)
        return -ETIMEDOUT;
    r = net_wait_fd(&pause, -1, 0, &over);
    return r == -ECANCELED ? err_set(e, r, over.code, "%s", over.text) : 0;
}

static int call_until(struct hosted_rest *rest, struct attempt *at, const struct net_wait *wait, struct arena *a,
                      struct hosted_reply *ret, struct err *e)
{
    for (int n_tries = 0;; n_tries++) {
        struct err why = { 0 };
        int r = try(rest, at, wait, a, ret, &why), waited;

        if (r == -EAGAIN && (at->call->is_repeatable || at->was_refused) && n_tries + 1 < LIMIT_BACKEND_ATTEMPTS) {
            waited = pause_before(wait, n_tries, at->retry_after_ms, e);
            if (waited == 0)
                continue;
            if (waited == -ECANCELED)
                return waited;
        }
        if (r < 0 && e)
            *e = why;
        return r;
    }
}

/* A user's token replaces the key, which stays as the project's name for itself. */
static int find_token(struct hosted_rest *rest, const struct net_wait *wait, struct arena *a, const char **ret,
                      struct err *e)
{
    struct hosted_token token = { .text = rest->token };
    int r = rest->config.token ? rest->config.token(rest->config.arg, wait, a, &token, e) : 0;

    *ret = token.text ? token.text : rest->key;
    return r;
}

int hosted_rest_call(struct hosted_rest *rest, const struct hosted_call *call, struct arena *a,
                     struct hosted_reply *ret, struct err *e)
{
    int64_t usual_ms = rest->config.call_ms ? rest->config.call_ms : LIMIT_BACKEND_CALL_MS;
    const struct net_wait wait = net_wait_of(call->total_ms ? call->total_ms : usual_ms, NULL, rest->is_closing);
    struct hosted_call mine = *call;
    struct attempt at = { .call = &mine };
    char *url = NULL;
    int r = buf_check(&call->path->out, e);

    if (r == 0 && call->path->is_dots)
        r = err_set(e, -EINVAL, "VALIDATION_ERROR",
                    "The hosted service cannot name the table %.100s in an address: rename it", call->path->table);
    if (r == 0)
        r = url_join(a, rest->url, buf_str(&call->path->out), &url, e);
    if (r == 0)
        r = find_token(rest, &wait, a, &at.token, e);
    if (r < 0)
        return r;
    at.url = url;
    mine.rights = rest->rights;
    return call_until(rest, &at, &wait, a, ret, e);
}

/* ---- new and free ---- */

int hosted_rest_check_url(const char *url, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct url parts = { 0 };
    struct err why = { 0 };

    if (url_parse(a, url, &parts, &why) < 0)
        return err_set(e, -EINVAL, "BAD_SETTING", "backend.project: %s", why.text);
    if (!parts.is_tls && !parts.is_loopback)
        return err_set(
            e, -EINVAL, "BAD_SETTING",
            "backend.project must begin with https:// because a key is sent there; http:// is for this machine "
            "only");
    return 0;
}

static int check_key(const char *key, struct err *e)
{
    if (!key || !*key)
        return err_set(e, -EINVAL, "BAD_SETTING",
                       "The hosted backend needs a key of the project: `hearth backend use` takes it");
    for (const char *at = key; *at; at++)
        if (*at <= ' ' || *at > '~' || at - key >= LIMIT_HOSTED_KEY)
            return err_set(e, -EINVAL, "BAD_SETTING", "The project's key must be printable, at most %d bytes of it",
                           LIMIT_HOSTED_KEY);
    return 0;
}

int hosted_rest_new(const struct backend_hosted_config *c, const atomic_bool *is_closing, struct hosted_rest **ret,
                    struct err *e)
{
    struct hosted_rest *rest;
    int r = hosted_rest_check_url(c->url, e);

    if (r == 0)
        r = check_key(c->key, e);
    if (r < 0)
        return r;
    rest = xcalloc(1, sizeof(*rest));
    rest->config = *c;
    rest->url = xstrdup(c->url);
    rest->key = xstrdup(c->key);
    rest->user_key = c->user_key ? xstrdup(c->user_key) : NULL;
    rest->is_closing = is_closing;
    *ret = rest;
    return 0;
}

struct hosted_rest *hosted_rest_free(struct hosted_rest *rest)
{
    if (!rest)
        return NULL;
    free(rest->url);
    free(rest->user_key);
    free(rest->key);
    free(rest);
    return NULL;
}

/* Requests of users under a key of the service role would have every right. */
static int check_user_key(const char *key, struct arena *a, struct err *e)
{
    int r = check_key(key, e);

    if (r < 0 || (strncmp(key, "sb_secret_", 10) != 0 && !hosted_token_is_service(a, key)))
        return r;
    return err_set(e, -EINVAL, "BAD_SETTING",
                   "backend.project_key is a key of the service role; requests of users need the publishable one: "
                   "`hearth backend use`");
}

int hosted_rest_of_user(const struct hosted_rest *rest, const char *token, struct arena *a, struct hosted_rest **ret,
                        struct err *e)
{
    struct hosted_rest *user = ARENA_NEW(a, struct hosted_rest);
    int r = check_user_key(rest->user_key, a, e);

    if (r < 0)
        return r;
    *user = *rest;
    user->key = rest->user_key;
    user->token = token ? arena_strdup(a, token) : NULL;
    user->rights = token ? HOSTED_OF_USER : HOSTED_OF_NOBODY;
    user->config.token = NULL;
    *ret = user;
    return 0;
}

int hosted_rest_reach(const struct hosted_rest *rest, struct arena *a, struct backend_reach *ret, struct err *e)
{
    int r = check_user_key(rest->user_key, a, e);

    if (r == 0)
        *ret = (struct backend_reach){ arena_strdup(a, rest->url), arena_strdup(a, rest->user_key) };
    return r;
}
