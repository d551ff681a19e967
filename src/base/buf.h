/* Growable bytes with a maximum set at the start.
 *
 * Embedded in its owner (buf_init/buf_clear). A write beyond the maximum marks the buffer `overflowed`: further writes
 * are dropped, and one buf_check() at the end reports it, so single writes need no check. Always NUL-terminated. One
 * thread at a time.
 *
 *     struct buf out;
 *     buf_init(&out, LIMIT_REPLY);
 *     buf_printf(&out, "hello %s", name);
 *     r = buf_check(&out, e);
 *     buf_clear(&out);
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

struct arena;

struct buf {
    char *p;  /* owned; NULL until the first write */
    size_t n; /* bytes in use, without the final NUL */
    size_t cap;
    size_t max; /* largest n allowed */
    bool overflowed;
    bool may_fail;   /* for requests: a large growth without memory is an overflow and does not end the program */
    bool is_starved; /* overflowed because memory was short */
    size_t n_spare;  /* may_fail: bytes that must stay free for others */
};

void buf_init(struct buf *b, size_t max);
/* For buffers that a request can make large: growth fails when the system lacks memory for it plus n_spare bytes. */
void buf_init_soft(struct buf *b, size_t max, size_t n_spare);
void buf_clear(struct buf *b); /* frees; NULL is fine; b can be reused with the same max */
void buf_reset(struct buf *b); /* n = 0, no longer overflowed, keeps the memory */
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_add_str(struct buf *b, const char *s);
void buf_add_slice(struct buf *b, struct slice s);
void buf_add_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Makes room for n more bytes and returns where to write them; NULL when that exceeds max (b is then overflowed). The
 * caller adds the number of bytes written to b->n. */
char *buf_reserve(struct buf *b, size_t n);
/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);
/* -E2BIG TOO_LARGE when the buffer overflowed, -ENOMEM OUT_OF_MEMORY when memory was short. */
int buf_check(const struct buf *b, struct err *e) MUST_CHECK;
/* The bytes as a C string, never NULL. */
const char *buf_str(const struct buf *b);
struct slice buf_slice(const struct buf *b);
/* Hands the bytes to the caller (free() them); the buffer is empty again. Never NULL. */
char *buf_take(struct buf *b) MUST_CHECK;
/* The bytes as a C string in the arena; the buffer is empty again. After an overflow the string is cut: call
 * buf_check() first where that matters. */
char *buf_to_arena(struct buf *b, struct arena *a) MUST_CHECK;
