/* Reading one parameter of PostgREST's query language from left to right: names, paths, values. For the files of
 * rest_*.c only. Every error is -EINVAL BAD_REST_QUERY and names the parameter. */
#pragma once

#include "backend/query.h"
#include "base/limits.h"
#include "base/utf8.h"

struct rest_text {
    struct arena *arena;
    const char *param; /* its name, for errors */
    struct slice rest; /* not yet read */
};

int rest_refuse(const struct rest_text *t, struct err *e, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* A text as an error shows it, for "%.*s": its beginning. */
#define REST_SHOWN(s) (int)utf8_head((s), 64).n, (s).p
bool rest_is_next(const struct rest_text *t, const char *word);
bool rest_skip(struct rest_text *t, const char *word); /* false: the word is not next */
/* Everything before the first of `stops`, or the rest. */
struct slice rest_until(struct rest_text *t, const char *stops);
int rest_need_end(const struct rest_text *t, struct err *e) MUST_CHECK;

/* name, or "name" with any characters; a bare name ends before , . : ( ) ! * = " and ->. */
int rest_read_name(struct rest_text *t, const char **ret, struct err *e) MUST_CHECK;
/* column, column->step->>step */
int rest_read_path(struct rest_text *t, struct query_path *ret, struct err *e) MUST_CHECK;
/* "text" with backslashes before quotes and backslashes */
int rest_read_quoted(struct rest_text *t, const char **ret, struct err *e) MUST_CHECK;

/* An array with room for one more element than n; moved when it is full. */
void *rest_room(struct arena *a, void *items, size_t n, size_t size);
