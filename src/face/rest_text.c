#include "face/rest_text.h"

#include <stdarg.h>
#include <stdio.h>

enum { FIRST_ROOM = 4 };

int rest_refuse(const struct rest_text *t, struct err *e, const char *fmt, ...)
{
    char rule[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(rule, sizeof(rule), fmt, ap);
    va_end(ap);
    return err_set(e, -EINVAL, "BAD_REST_QUERY", "`%.*s` %s", REST_SHOWN(slice_of(t->param)), rule);
}

bool rest_is_next(const struct rest_text *t, const char *word)
{
    size_t n = strlen(word);

    return t->rest.n >= n && memcmp(t->rest.p, word, n) == 0;
}

static void advance(struct rest_text *t, size_t n)
{
    t->rest = (struct slice){ t->rest.p + n, t->rest.n - n };
}

bool rest_skip(struct rest_text *t, const char *word)
{
    if (!rest_is_next(t, word))
        return false;
    advance(t, strlen(word));
    return true;
}

struct slice rest_until(struct rest_text *t, const char *stops)
{
    struct slice before = { t->rest.p, 0 };

    while (before.n < t->rest.n && !strchr(stops, t->rest.p[before.n]))
        before.n++;
    advance(t, before.n);
    return before;
}

int rest_need_end(const struct rest_text *t, struct err *e)
{
    return t->rest.n ? rest_refuse(t, e, "has unexpected text at \"%.*s\"", REST_SHOWN(t->rest)) : 0;
}

/* ---- names and paths ---- */

int rest_read_quoted(struct rest_text *t, const char **ret, struct err *e)
{
    struct slice in = t->rest;
    char *out = arena_alloc(t->arena, in.n + 1);
    size_t n = 0, i = 1;

    for (; i < in.n && in.p[i] != '"'; i++) {
        i += in.p[i] == '\\' && i + 1 < in.n;
        out[n++] = in.p[i];
    }
    if (i >= in.n)
        return rest_refuse(t, e, "misses a closing quote after \"%.*s\"", REST_SHOWN(in));
    advance(t, i + 1);
    *ret = out;
    return 0;
}

static struct slice trim(struct slice s)
{
    while (s.n && s.p[0] == ' ')
        s = (struct slice){ s.p + 1, s.n - 1 };
    while (s.n && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

static bool ends_name(struct slice rest)
{
    unsigned char c = (unsigned char)rest.p[0];

    return c < ' ' || strchr(",.:()!*=\"", c) || (c == '-' && rest.n > 1 && rest.p[1] == '>');
}

static struct slice take_bare(struct rest_text *t)
{
    struct slice name = { t->rest.p, 0 };

    while (t->rest.n && !ends_name(t->rest)) {
        name.n++;
        advance(t, 1);
    }
    return trim(name);
}

int rest_read_name(struct rest_text *t, const char **ret, struct err *e)
{
    struct slice name;

    if (rest_is_next(t, "\""))
        return rest_read_quoted(t, ret, e);
    name = take_bare(t);
    if (name.n == 0)
        return rest_refuse(t, e, "must have a name where \"%.*s\" stands", REST_SHOWN(t->rest));
    *ret = arena_slicedup(t->arena, name);
    return 0;
}

void *rest_room(struct arena *a, void *items, size_t n, size_t size)
{
    void *more;

    if (n != 0 && (n < FIRST_ROOM || (n & (n - 1)) != 0))
        return items;
    more = arena_array(a, n ? 2 * n : FIRST_ROOM, size);
    if (n)
        memcpy(more, items, n * size);
    return more;
}

static int add_step(struct rest_text *t, struct query_path *path, struct err *e)
{
    const char **steps = (const char **)(uintptr_t)path->steps;
    int r;

    if (path->n_steps == LIMIT_FILTER_PATH)
        return rest_refuse(t, e, "must have paths of at most %d steps", LIMIT_FILTER_PATH);
    steps = rest_room(t->arena, steps, path->n_steps, sizeof(*steps));
    r = rest_read_name(t, &steps[path->n_steps], e);
    path->steps = steps;
    path->n_steps++;
    return r;
}

int rest_read_path(struct rest_text *t, struct query_path *ret, struct err *e)
{
    struct query_path path = { 0 };
    int r = rest_read_name(t, &path.column, e);

    while (r == 0 && rest_skip(t, "->")) {
        if (path.is_text)
            return rest_refuse(t, e, "uses ->> before the end of a path");
        path.is_text = rest_skip(t, ">");
        r = add_step(t, &path, e);
    }
    if (r == 0)
        *ret = path;
    return r;
}
