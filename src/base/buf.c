#include "base/buf.h"

#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_FIRST_CAP = 256 };

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){ .max = MIN(max, SIZE_MAX / 4) };
}

void buf_clear(struct buf *b)
{
    if (!b)
        return;
    free(b->p);
    buf_init(b, b->max);
}

void buf_reset(struct buf *b)
{
    b->n = 0;
    b->overflowed = false;
    if (b->p)
        b->p[0] = '\0';
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (b->overflowed || n > b->max - b->n) {
        b->overflowed = true;
        return NULL;
    }
    if (b->n + n + 1 > b->cap) {
        size_t doubled = MAX(2 * b->cap, (size_t)BUF_FIRST_CAP);

        b->cap = MAX(MIN(doubled, b->max + 1), b->n + n + 1);
        b->p = xrealloc(b->p, b->cap);
    }
    b->p[b->n] = '\0';
    b->p[b->n + n] = '\0';
    return b->p + b->n;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
    char *to;

    if (n == 0)
        return;
    to = buf_reserve(b, n);
    if (!to)
        return;
    memcpy(to, bytes, n);
    b->n += n;
}

void buf_add_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_add_slice(struct buf *b, struct slice s)
{
    buf_add(b, s.p, s.n);
}

void buf_add_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    char small[256], *to;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < (int)sizeof(small)) {
        buf_add(b, small, n > 0 ? (size_t)n : 0);
        return;
    }
    to = buf_reserve(b, (size_t)n);
    if (!to)
        return;
    va_start(ap, fmt);
    vsnprintf(to, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

void buf_consume(struct buf *b, size_t n)
{
    n = MIN(n, b->n);
    if (n == 0)
        return;
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
    b->p[b->n] = '\0';
}

int buf_check(const struct buf *b, struct err *e)
{
    if (b->overflowed)
        return err_set(e, -E2BIG, "TOO_LARGE", "The data is larger than the %zu bytes allowed here.", b->max);
    return 0;
}

const char *buf_str(const struct buf *b)
{
    if (!b->p)
        return "";
    b->p[b->n] = '\0';                  /* after buf_reserve() the caller may have written fewer bytes than it asked for */
    return b->p;
}

struct slice buf_slice(const struct buf *b)
{
    return (struct slice){ b->p, b->n };
}

char *buf_take(struct buf *b)
{
    char *taken = b->p ? b->p : xcalloc(1, 1);

    taken[b->n] = '\0';
    buf_init(b, b->max);
    return taken;
}

char *buf_to_arena(struct buf *b, struct arena *a)
{
    char *text = arena_slicedup(a, buf_slice(b));

    buf_clear(b);
    return text;
}
