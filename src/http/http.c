#include "http/http.h"
#include "http/carrier.h"
#include "http/list.h"

#include <assert.h>
#include <string.h>

static const char *const method_names[HTTP_METHODS] = {
    [HTTP_GET] = "GET",     [HTTP_POST] = "POST",     [HTTP_PUT] = "PUT",
    [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE", [HTTP_OPTIONS] = "OPTIONS",
};

/* Statuses of RFC 9110 section 15 that this program sends. */
static const struct {
    int status;
    const char *text;
} statuses[] = {
    { 101, "Switching Protocols" },
    { 200, "OK" },
    { 201, "Created" },
    { 202, "Accepted" },
    { 204, "No Content" },
    { 301, "Moved Permanently" },
    { 302, "Found" },
    { 303, "See Other" },
    { 304, "Not Modified" },
    { 307, "Temporary Redirect" },
    { 308, "Permanent Redirect" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 406, "Not Acceptable" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 410, "Gone" },
    { 411, "Length Required" },
    { 412, "Precondition Failed" },
    { 413, "Content Too Large" },
    { 414, "URI Too Long" },
    { 415, "Unsupported Media Type" },
    { 416, "Range Not Satisfiable" },
    { 417, "Expectation Failed" },
    { 422, "Unprocessable Content" },
    { 423, "Locked" },
    { 425, "Too Early" },
    { 426, "Upgrade Required" },
    { 428, "Precondition Required" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 502, "Bad Gateway" },
    { 503, "Service Unavailable" },
    { 504, "Gateway Timeout" },
    { 505, "HTTP Version Not Supported" },
    { 507, "Insufficient Storage" },
};

const char *http_method_name(enum http_method m)
{
    assert(m >= 0 && m < HTTP_METHODS);
    return method_names[m];
}

const char *http_status_text(int status)
{
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].text;
    return "Unknown";
}

const char *http_header(const struct http_request *req, const char *name)
{
    for (size_t i = 0; i < req->n_headers; i++)
        if (req->headers[i].name[0] == name[0] && strcmp(req->headers[i].name, name) == 0)
            return req->headers[i].value;
    return NULL;
}

void http_response_header(struct http_exchange *x, const char *name, const char *value)
{
    struct http_response *response = &x->response;
    char *clean = arena_strdup(x->arena, value), *to = clean;

    assert(response->n_headers < ARRAY_SIZE(response->headers));
    for (const char *from = clean; *from; from++)
        if (*from != '\r' && *from != '\n')
            *to++ = *from;
    *to = '\0';
    response->headers[response->n_headers++] = (struct http_header){ arena_strdup(x->arena, name), clean };
}

bool http_has_response_header(const struct http_exchange *x, const char *name)
{
    for (size_t i = 0; i < x->response.n_headers; i++)
        if (strcmp(x->response.headers[i].name, name) == 0)
            return true;
    return false;
}

/* The value of `name=value`, without enclosing quotes; p is NULL when the pair has another name. */
static struct slice value_of_pair(struct slice pair, struct slice name)
{
    if (pair.n <= name.n || pair.p[name.n] != '=' || memcmp(pair.p, name.p, name.n) != 0)
        return (struct slice){ 0 };
    pair = (struct slice){ pair.p + name.n + 1, pair.n - name.n - 1 };
    if (pair.n >= 2 && pair.p[0] == '"' && pair.p[pair.n - 1] == '"')
        pair = (struct slice){ pair.p + 1, pair.n - 2 };
    return pair;
}

const char *http_cookie(struct arena *a, const struct http_request *req, const char *name)
{
    struct slice rest = slice_of(http_header(req, "cookie"));

    assert(name && *name);
    while (rest.n > 0) {
        struct slice value = value_of_pair(http_list_next(&rest, ';'), slice_of(name));

        if (value.p)
            return arena_slicedup(a, value);
    }
    return NULL;
}

static atomic_size_t promised;

void http_exchange_promise(struct http_exchange *x, size_t n)
{
    if (n != x->n_promised)
        atomic_fetch_add(&promised, n - x->n_promised);
    x->n_promised = n;
}

size_t http_promised(void)
{
    return atomic_load(&promised);
}

struct arena *http_exchange_body_arena(struct http_exchange *x)
{
    if (!x->body_arena)
        x->body_arena = arena_new();
    return x->body_arena;
}

void http_exchange_forget_body(struct http_exchange *x)
{
    x->request.body = (struct slice){ 0 };
    x->body_arena = arena_free(x->body_arena);
    x->carrier->forget_body(x);
    purse_give(&x->purse, BUDGET_BODY);
    purse_give(&x->purse, BUDGET_MEMORY);
    http_exchange_promise(x, 0);
}

int http_exchange_charge(struct http_exchange *x, struct budget_holder *holder, struct err *e)
{
    int r = x->carrier->charge(x, holder, e);

    if (r == 0)
        purse_open(&x->purse, holder);
    return r;
}

void http_exchange_send(struct http_exchange *x)
{
    x->carrier->send(x);
}

void http_exchange_on_gone(struct http_exchange *x, void (*fn)(struct http_exchange *x, void *arg), void *arg)
{
    x->carrier->on_gone(x, fn, arg);
}

struct http_stream *http_stream_start(struct http_exchange *x)
{
    return x->carrier->start_stream(x);
}

void http_exchange_forget_request(struct http_exchange *x)
{
    struct http_request *request = &x->request;

    request->path = request->query = NULL;
    request->headers = NULL;
    request->n_headers = x->response.n_headers = 0;
    http_exchange_forget_body(x);
    x->arena = arena_free(x->arena);
}

int http_stream_push(struct http_stream *s, struct slice bytes)
{
    return bytes.n > 0 ? s->carrier->push(s, bytes) : 0;
}

void http_stream_on_change(struct http_stream *s, void (*fn)(struct http_stream *s, void *arg), void *arg)
{
    s->carrier->on_change(s, fn, arg);
}

bool http_stream_is_gone(const struct http_stream *s)
{
    return s->carrier->is_gone(s);
}

bool http_stream_is_full(const struct http_stream *s)
{
    return s->carrier->is_full(s);
}

struct http_stream *http_stream_end(struct http_stream *s)
{
    if (s)
        s->carrier->end(s, true);
    return NULL;
}

struct http_stream *http_stream_abort(struct http_stream *s)
{
    s->carrier->end(s, false);
    return NULL;
}
