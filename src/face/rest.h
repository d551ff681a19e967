/* Rows over REST for apps of the hosted service: requests in PostgREST's language, answered by any backend
 * (docs/offline-face.md). Every text of a request is foreign; what is borrowed lives in the arena. Blocks; any worker.
 *
 *     r = rest_rows(backend, &caller, &request, arena, &answer, e);
 *
 * Who may: service_role everything; a signed-in user the rows whose user_id is theirs, and tables without user_id;
 * nobody else. Tables are those that the service reports changes of; only the schema public is served.
 */
#pragma once

#include "backend/backend.h"
#include "face/caller.h"
#include "http/http.h"

struct rest_request {
    enum http_method method;
    bool is_head;
    const char *name;  /* of the table or function */
    const char *query; /* behind the question mark, encoded */
    /* Headers; NULL: none. profile: Accept-Profile of GET, else Content-Profile. */
    const char *prefer, *accept, *content_type, *range, *range_unit, *profile;
    struct slice body;
};

struct rest_answer {
    int status;
    bool is_object;                                            /* one object instead of an array */
    struct slice body;                                         /* n 0: none */
    const char *content_range, *location, *preference_applied; /* headers; NULL: none */
};

/* GET, POST, PATCH, DELETE on a table. Errors may have the extras "details" and "hint"; face/rest_error.h says
 * what the original calls them:
 *   BAD_REST_QUERY, BAD_REST_BODY, BAD_PREFERENCE, BAD_RANGE, NOT_ACCEPTABLE, SCHEMA_NOT_SERVED, UNKNOWN_TABLE,
 *   PAYLOAD_COLUMN, WHERE_REQUIRED, NOT_SINGULAR, SIGN_IN_REQUIRED, and those of backend_query(). */
int rest_rows(struct backend *b, const struct face_caller *who, const struct rest_request *in, struct arena *a,
              struct rest_answer *ret, struct err *e) MUST_CHECK;
/* GET, POST on a function: BAD_REST_BODY, FUNCTION_NOT_FOUND, READ_ONLY_CALL and as above. */
int rest_call(struct backend *b, const struct face_caller *who, const struct rest_request *in, struct arena *a,
              struct rest_answer *ret, struct err *e) MUST_CHECK;
