/* Rows over REST for apps of the hosted service (docs/offline-face.md): /rest/v1. The callers are apps with a key of
 * `hearth backend keys`. */
#include "face/rest.h"

#include "api/api.h"
#include "api/resources/face_form.h"
#include "api/resources/face_request.h"
#include "api/routes.h"

#include <string.h>

#define JSON_TYPE "application/json; charset=utf-8"
#define OBJECT_TYPE "application/vnd.pgrst.object+json; charset=utf-8"

/* The words of the language; every other parameter is a filter of the column that it names, or an argument. */
struct words {
    const char *apikey, *select, *order, *limit, *offset, *columns, *on_conflict;
};

static const struct field row_words[] = {
    FIELD_STRING(struct words, apikey, "apikey", .max = LIMIT_JWT_BYTES, .help = "or the header apikey"),
    FIELD_STRING(struct words, select, "select", .help = "columns: id,alias:column::text,raw_data->>member"),
    FIELD_STRING(struct words, order, "order", .help = "column.desc.nullslast,..."),
    FIELD_STRING(struct words, limit, "limit", .help = "a whole number"),
    FIELD_STRING(struct words, offset, "offset", .help = "a whole number"),
    FIELD_STRING(struct words, columns, "columns", .help = "of POST and PATCH: the only members that are written"),
    FIELD_STRING(struct words, on_conflict, "on_conflict", .help = "of POST: columns that identify a row"),
    FIELD_END,
};

static const struct field call_words[] = {
    FIELD_STRING(struct words, apikey, "apikey", .max = LIMIT_JWT_BYTES, .help = "or the header apikey"),
    FIELD_END,
};

static const struct field any_body[] = { FIELD_END };

/* ---- requests ---- */

/* Several headers of one name are one list. */
static const char *list_of_header(const struct request *req, const char *name)
{
    const struct http_request *in = &req->exchange->request;
    const char *list = NULL;

    for (size_t i = 0; i < in->n_headers; i++)
        if (strcmp(in->headers[i].name, name) == 0)
            list = list ? arena_printf(req->arena, "%s, %s", list, in->headers[i].value) : in->headers[i].value;
    return list;
}

static struct rest_request read_rest(const struct request *req)
{
    const struct http_request *in = &req->exchange->request;

    return (struct rest_request){
        .method = in->method,
        .is_head = in->is_head,
        .name = req->params[0],
        .query = in->query,
        .prefer = list_of_header(req, "prefer"),
        .accept = list_of_header(req, "accept"),
        .content_type = http_header(in, "content-type"),
        .range = http_header(in, "range"),
        .range_unit = http_header(in, "range-unit"),
        .profile = http_header(in, in->method == HTTP_GET ? "accept-profile" : "content-profile"),
        .body = in->body,
    };
}

static void add_header(const struct request *req, const char *name, const char *value)
{
    if (value)
        http_response_header(req->exchange, name, value);
}

/* Content-Range also tells of a range that there is not. */
static void put_answer(const struct request *req, struct response *res, const struct rest_answer *answer, int r)
{
    add_header(req, "content-range", answer->content_range);
    add_header(req, "preference-applied", answer->preference_applied);
    if (r < 0)
        return;
    buf_add_slice(response_start_raw(res, answer->is_object ? OBJECT_TYPE : JSON_TYPE), answer->body);
    res->exchange->response.status = answer->status;
    add_header(req, "location", answer->location);
}

typedef int rest_fn(struct backend *b, const struct face_caller *who, const struct rest_request *in, struct arena *a,
                    struct rest_answer *ret, struct err *e);

static int answer(struct request *req, struct response *res, rest_fn *fn, struct err *e)
{
    const struct words *words = req->query;
    const struct rest_request in = read_rest(req);
    struct rest_answer answer = { .status = 200 };
    struct face_caller caller;
    int r = face_request_caller(req, words->apikey, &caller, e);

    if (r == 0)
        r = fn(req->api->backend, &caller, &in, http_exchange_body_arena(req->exchange), &answer, e);
    put_answer(req, res, &answer, r);
    return r;
}

static int answer_rows(struct request *req, struct response *res, struct err *e)
{
    return answer(req, res, rest_rows, e);
}

static int answer_call(struct request *req, struct response *res, struct err *e)
{
    return answer(req, res, rest_call, e);
}

#define REST_ROUTE(verb, at, words_of, does, what)                                                                     \
    .method = (verb), .path = (at), .permission = PERM_PUBLIC, ROUTE_QUERY(words_of, struct words), .uses_rows = true, \
    .answer_type = "application/json", .is_bare = true, .error_form = &face_rest_error, .handler = (does),             \
    .summary = (what), .tag = "Face"

const struct route rest_routes[] = {
    { REST_ROUTE(
        HTTP_GET, "/rest/v1/:table", row_words, answer_rows,
        "Rows of a table in PostgREST's language: each further parameter is a filter, column=operator.value") },
    { REST_ROUTE(HTTP_POST, "/rest/v1/:table", row_words, answer_rows, "Insert rows: an object or an array of objects"),
      .own_body = any_body, .max_body = LIMIT_REST_BODY, .status = 201 },
    { REST_ROUTE(HTTP_PATCH, "/rest/v1/:table", row_words, answer_rows, "Change the rows that the filters name"),
      .own_body = any_body, .max_body = LIMIT_REST_BODY, .status = 204 },
    { REST_ROUTE(HTTP_DELETE, "/rest/v1/:table", row_words, answer_rows, "Delete the rows that the filters name"),
      .status = 204 },
    { REST_ROUTE(HTTP_GET, "/rest/v1/rpc/:function", call_words, answer_call,
                 "Call a function that only reads; every parameter is an argument") },
    { REST_ROUTE(HTTP_POST, "/rest/v1/rpc/:function", call_words, answer_call,
                 "Call a function: the body has its arguments by their names"),
      .own_body = any_body, .max_body = LIMIT_REST_BODY, .is_body_optional = true },
    ROUTE_END,
};
