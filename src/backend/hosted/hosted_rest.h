/* The REST interface of a hosted project (PostgREST): one request, with its answer checked, over connections that all
 * calls share. Any thread; calls block until their deadline at most and end early when the service stops.
 *
 *     hosted_path_init(&p, "orders");
 *     hosted_path_filter(&p, "status", "eq", "pending");
 *     r = hosted_rest_call(rest, &(struct hosted_call){ .method = "GET", .path = &p }, arena, &reply, e);
 *     hosted_path_clear(&p);
 */
#pragma once

#include "backend/hosted/hosted_open.h"
#include "base/json.h"

/* ---- addresses ---- */

/* A table, as backend_table_name() returns it, and what a request asks of it. Texts are escaped here; `raw` is the
 * program's own. */
struct hosted_path {
    struct buf out;
    char schema[LIMIT_TABLE_NAME_PART + 1]; /* "public" */
    const char *table;                      /* borrowed; NULL: a function */
    bool has_query;
    bool is_dots; /* the table's name is "." or "..", which every URL reader takes out of a path */
};

void hosted_path_init(struct hosted_path *p, const char *table);
void hosted_path_init_function(struct hosted_path *p, const char *name);
void hosted_path_clear(struct hosted_path *p);
void hosted_path_add(struct hosted_path *p, const char *name, const char *value); /* name=value */
void hosted_path_number(struct hosted_path *p, const char *name, int64_t value);
/* column=op.value; value NULL: column=is.null */
void hosted_path_filter(struct hosted_path *p, const char *column, const char *op, const char *value);
/* A text in double quotes, as a list or a tree of conditions takes it: "a\"b". */
void hosted_quote(struct buf *out, const char *text);
/* The text of an array of one text: {"a\"b"}. */
const char *hosted_array_of(struct arena *a, const char *text);

/* ---- calls ---- */

struct hosted_rest;

/* Whose rights a request has. Of users and anonymous callers a refusal is the project's answer to them, not a fault. */
enum hosted_rights { HOSTED_OF_SERVICE, HOSTED_OF_USER, HOSTED_OF_NOBODY };

struct hosted_call {
    const char *method;
    const struct hosted_path *path;
    struct slice body;         /* JSON; empty: none */
    const char *prefer;        /* NULL: none */
    size_t max_reply;          /* 0: LIMIT_REPLY */
    bool is_repeatable;        /* twice is the same as once */
    int64_t total_ms;          /* 0: the deadline of every call */
    bool is_query;             /* refusals are those of a query (backend/query.h) */
    enum hosted_rights rights; /* set by hosted_rest_call() */
};

struct hosted_reply {
    int status;
    struct json_value body; /* absent: none */
    struct slice text;      /* of the body, as it came */
    int64_t count;          /* of all rows that match; -1: not told */
    int64_t date_ms;        /* when the server answered, by its clock; 0: not told */
};

/* Of a project's URL: -EINVAL BAD_SETTING unless it is https, or http to this machine. */
int hosted_rest_check_url(const char *url, struct err *e) MUST_CHECK;
int hosted_rest_new(const struct backend_hosted_config *c, const atomic_bool *is_closing, struct hosted_rest **ret,
                    struct err *e) MUST_CHECK;
struct hosted_rest *hosted_rest_free(struct hosted_rest *rest);
/* The project's address and its key of users, in the arena; errors of hosted_rest_of_user(). */
int hosted_rest_reach(const struct hosted_rest *rest, struct arena *a, struct backend_reach *ret,
                      struct err *e) MUST_CHECK;
/* The same project by the key of users, with this token, which is printable; NULL: without one. In the arena, and not
 * freed. -EINVAL BAD_SETTING: the key of users is missing, or is one of the service role. */
int hosted_rest_of_user(const struct hosted_rest *rest, const char *token, struct arena *a, struct hosted_rest **ret,
                        struct err *e) MUST_CHECK;

/* Any status of 300 or more is an error: what PostgreSQL refused as refusals_sqlstate() says, -ENOENT UNKNOWN_TABLE,
 * -ENOENT FUNCTION_NOT_FOUND, -EACCES STORE_DENIED (401 and 403), -EAGAIN STORE_UNAVAILABLE (no connection, 429, 5xx of
 * a gateway), -E2BIG TOO_LARGE for an answer above max_reply, -EIO STORE_FAILED for an answer that breaks the protocol,
 * -ECANCELED. With the rights of a user or of nobody: -EPERM ROW_REFUSED by row-level security, -EACCES JWT_EXPIRED,
 * JWT_NOT_YET or JWT_SIGNATURE for a token that the project does not take. Extras "sqlstate", "details" and "hint" as
 * the server gave them. */
int hosted_rest_call(struct hosted_rest *rest, const struct hosted_call *call, struct arena *a,
                     struct hosted_reply *ret, struct err *e) MUST_CHECK;
/* What an answer breaks. */
int hosted_fault(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The reading of an answer's body and of its error, for tests: `status` and `body` are foreign. */
int hosted_rest_read(const struct hosted_call *call, int status, struct slice body, struct arena *a,
                     struct hosted_reply *ret, struct err *e) MUST_CHECK;
