/* A message of pgoutput under construction.
 *
 *     struct message m = { .n = 0 };
 *     put(&m, 'I', 1);
 */
#pragma once

#include "fixture.h"

#include <string.h>

struct message {
    char bytes[32768];
    size_t n;
};

/* Of more than eight bytes, those before the last eight are 0. */
static inline void put(struct message *m, uint64_t value, size_t n_bytes)
{
    for (; n_bytes > 8; n_bytes--)
        m->bytes[m->n++] = 0;
    for (size_t i = 0; i < n_bytes; i++)
        m->bytes[m->n++] = (char)(value >> 8 * (n_bytes - 1 - i));
}

static inline void put_name(struct message *m, const char *name)
{
    memcpy(m->bytes + m->n, name, strlen(name) + 1);
    m->n += strlen(name) + 1;
}

static inline void put_text(struct message *m, const char *text)
{
    put(m, 't', 1);
    put(m, strlen(text), 4);
    memcpy(m->bytes + m->n, text, strlen(text));
    m->n += strlen(text);
}

static inline struct slice slice_of_message(const struct message *m)
{
    return (struct slice){ m->bytes, m->n };
}
