/* Finds the row of a route table for a path. Patterns are "/a/:name/b" and "/a/{name*}": the last segment {name*} is
 * the rest of the path, which may be empty. At each segment, from left to right, a literal wins over a
 * parameter, and a parameter over the rest.
 *
 * Built once at start-up, then read only, by any thread. Rows are any structs: the matcher keeps pointers to them.
 */
#pragma once

#include "http/http.h"
#include "base/limits.h"

struct http_matcher;

struct http_match {
    const void *row; /* NULL: no such path, or another method */
    bool is_path_known;
    unsigned allowed;                        /* mask of 1 << method for the Allow header */
    struct slice params[LIMIT_ROUTE_PARAMS]; /* in order of the pattern; borrowed from the path */
    size_t n_params;
};

struct http_matcher *http_matcher_new(void) MUST_CHECK;
struct http_matcher *http_matcher_free(struct http_matcher *m);
/* -EEXIST when method and pattern exist already, -EINVAL for a bad pattern. */
int http_matcher_add(struct http_matcher *m, enum http_method method, const char *pattern, const void *row,
                     struct err *e) MUST_CHECK;
void http_matcher_find(const struct http_matcher *m, enum http_method method, const char *path, struct http_match *ret);
