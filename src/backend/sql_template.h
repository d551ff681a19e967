/* SQL texts made from templates: in a template, a word in braces such as {table} is replaced. A text is made once for
 * each template (its address is the key) and lives until sql_texts_clear(). Any thread.
 *
 *     static const struct sql_word words[] = { { "{table}", put_table }, { NULL, NULL } };
 *     text = sql_text_of(&t->texts, "SELECT 1 FROM {table}", words, t);
 */
#pragma once

#include "base/buf.h"

#include <pthread.h>

enum { SQL_TEMPLATES_MAX = 64, SQL_TEXT_BYTES = 128 << 10 };

struct sql_word {
    const char *word; /* NULL ends a table of words */
    void (*put)(struct buf *out, const void *of);
};

struct sql_texts {
    pthread_mutex_t lock; /* guards the members below */
    struct {
        const char *template;
        char *text; /* owned */
    } items[SQL_TEMPLATES_MAX];
    size_t n;
};

void sql_texts_init(struct sql_texts *texts);
void sql_texts_clear(struct sql_texts *texts);
const char *sql_text_of(struct sql_texts *texts, const char *template, const struct sql_word *words, const void *of);
void sql_template_expand(struct buf *out, const char *template, const struct sql_word *words, const void *of);
