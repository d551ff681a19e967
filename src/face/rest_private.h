/* One request to /rest/v1, for the files of rest_*.c only. */
#pragma once

#include "base/json_write.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "face/rest.h"
#include "face/rest_prefer.h"
#include "face/rest_query.h"

struct rest_work {
    struct backend *backend;
    const struct face_caller *who;
    const struct rest_request *in;
    struct arena *arena;
    struct rest_prefer prefer;
    struct rest_query query;
    bool wants_object;
    struct table_shape shape;
    struct query q;
};

/* rest_headers.c: what holds for tables and functions */
int rest_read_headers(struct rest_work *w, struct err *e) MUST_CHECK;
/* -EACCES SIGN_IN_REQUIRED; what: "table", "function". */
int rest_check_caller(const struct rest_work *w, const char *what, struct err *e) MUST_CHECK;
/* The user whose rows alone count; NULL: all rows do. */
const char *rest_only_user(const struct rest_work *w);
/* The body as JSON. -EINVAL BAD_REST_BODY, INVALID_JSON. */
int rest_read_body(const struct rest_work *w, struct json_value *ret, struct err *e) MUST_CHECK;
/* first and last row of all, as Content-Range says it: "0-9/40", an empty range and an unknown number (all < 0) as
 * "*". */
const char *rest_content_range(struct arena *a, int64_t first, int64_t last, int64_t all);

/* rest_payload.c: the rows of a POST (an array is made of one object), the one object of a PATCH; checked against the
 * table's columns. -EINVAL BAD_REST_BODY, PAYLOAD_COLUMN. */
int rest_read_rows(struct rest_work *w, struct err *e) MUST_CHECK;
