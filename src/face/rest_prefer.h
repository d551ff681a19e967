/* What the headers of a request to /rest/v1 ask for: Prefer (RFC 7240), Range, Accept. Pure; any thread. */
#pragma once

#include "backend/query.h"

enum rest_return { REST_MINIMAL, REST_HEADERS_ONLY, REST_REPRESENTATION };

struct rest_prefer {
    enum rest_return returns;
    enum query_conflict resolution;
    bool has_return, has_resolution, has_missing, has_handling, has_count;
    const char *count; /* exact, planned or estimated, which are all counted exactly; NULL: not asked for */
    bool is_default_for_missing, is_strict;
    int64_t max_affected; /* < 0: none; obeyed with handling=strict only, as the original does */
};

/* header NULL: none. Unknown preferences are ignored, with handling=strict refused: -EINVAL BAD_PREFERENCE. */
int rest_prefer_read(struct arena *a, const char *header, struct rest_prefer *ret, struct err *e) MUST_CHECK;
/* The value of Preference-Applied, of those that `kind` obeys; NULL: none. */
const char *rest_prefer_applied(struct arena *a, const struct rest_prefer *p, enum query_kind kind);

/* The rows that are asked for, in limit and offset of the query and in a header Range: 10-19 or 10-, together. Another
 * unit than items, and another form, count for nothing. -ERANGE BAD_RANGE. limit < 0: all. */
int rest_range_read(const char *header, const char *unit, int64_t *limit, int64_t *offset, struct err *e) MUST_CHECK;

/* Is one object wanted (application/vnd.pgrst.object+json) instead of an array? -ENOTSUP NOT_ACCEPTABLE. */
int rest_accept_read(const char *header, bool *ret_is_object, struct err *e) MUST_CHECK;
