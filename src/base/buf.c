#include "base/buf.h"

#include "base/arena.h"
#include "base/blocks.h"
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_FIRST_CAP = 256 };

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){ .max = MIN(max, SIZE_MAX / 4) };
}

void buf_init_soft(struct buf *b, size_t max, size_t n_spare)
{
    buf_init(b, max);
    b->may_fail = true;
    b->n_spare = n_spare;
}

/* Makes the buffer empty again, as after buf_init(). */
static void forget(struct buf *b)
{
    *b = (struct buf){ .max = b->max, .may_fail = b->may_fail, .n_spare = b->n_spare };
}

void buf_clear(struct buf *b)
{
    if (!b)
        return;
    block_free(b->p);
    forget(b);
}

void buf_reset(struct buf *b)
{
    b->n = 0;
    b->overflowed = b->is_starved = false;
    if (b->p)
        b->p[0] = '\0';
}

/* Moves the bytes into a block that was kept. False: there is none. */
static bool move_to_block(struct buf *b, size_t cap)
{
    size_t n = 0;
    char *block = block_take(cap, &n);

    if (!block)
        return false;
    if (b->p)
        memcpy(block, b->p, b->n);
    block_free(b->p);
    b->p = block;
    b->cap = n;
    return true;
}

/* False: out of memory; the buffer is unchanged. */
static bool grow(struct buf *b, size_t cap)
{
    char *grown;

    if (move_to_block(b, cap))
        return true;
    if (b->may_fail && cap > MEMORY_LARGE_BYTES) {
        grown = memory_has_room(cap + b->n_spare) ? realloc(b->p, cap) : NULL;
        if (!grown)
            return false;
        b->p = grown;
    } else {
        b->p = xrealloc(b->p, cap);
    }
    b->cap = cap;
    return true;
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (b->overflowed || n > b->max - b->n) {
        b->overflowed = true;
        return NULL;
    }
    if (!b->p || b->n + n + 1 > b->cap) {
        size_t doubled = MAX(2 * b->cap, (size_t)BUF_FIRST_CAP);

        if (!grow(b, MAX(MIN(doubled, b->max + 1), b->n + n + 1))) {
            b->overflowed = b->is_starved = true;
            return NULL;
        }
    }
    b->p[b->n] = '\0';
    b->p[b->n + n] = '\0';
    return b->p + b->n;
}

/* Most writes fit; NULL when the buffer must grow, or is full. */
static char *room_for(struct buf *b, size_t n)
{
    return n < b->cap - b->n && !b->overflowed && n <= b->max - b->n ? b->p + b->n : NULL;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
    char *to = room_for(b, n);

    if (n == 0)
        return;
    if (!to)
        to = buf_reserve(b, n);
    if (!to)
        return;
    memcpy(to, bytes, n);
    to[n] = '\0';
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
    char *to = room_for(b, 1);

    if (!to) {
        buf_add(b, &c, 1);
        return;
    }
    to[0] = c;
    to[1] = '\0';
    b->n++;
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
    if (b->is_starved)
        return memory_refuse(e);
    if (b->overflowed)
        return err_set(e, -E2BIG, "TOO_LARGE", "The data is larger than the %zu bytes allowed here.", b->max);
    return 0;
}

const char *buf_str(const struct buf *b)
{
    if (!b->p)
        return "";
    b->p[b->n] = '\0'; /* after buf_reserve() the caller may have written fewer bytes than it asked for */
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
    forget(b);
    return taken;
}

char *buf_to_arena(struct buf *b, struct arena *a)
{
    char *text = arena_slicedup(a, buf_slice(b));

    buf_clear(b);
    return text;
}
