#include "backend/sql_template.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Writes the replacement of the word at `at` and returns the text after the word. */
static const char *put_word(struct buf *out, const char *at, const struct sql_word *words, const void *of)
{
    for (const struct sql_word *w = words; w->word; w++)
        if (strncmp(at, w->word, strlen(w->word)) == 0) {
            w->put(out, of);
            return at + strlen(w->word);
        }
    buf_add_char(out, *at);
    return at + 1;
}

void sql_template_expand(struct buf *out, const char *template, const struct sql_word *words, const void *of)
{
    for (const char *at = template, *brace; *at; at = put_word(out, brace, words, of)) {
        brace = strchrnul(at, '{');
        buf_add(out, at, (size_t)(brace - at));
        if (!*brace)
            break;
    }
}

static char *expand(const char *template, const struct sql_word *words, const void *of)
{
    struct buf out;

    buf_init(&out, SQL_TEXT_BYTES);
    sql_template_expand(&out, template, words, of);
    return buf_take(&out);
}

const char *sql_text_of(struct sql_texts *texts, const char *template, const struct sql_word *words, const void *of)
{
    const char *found = NULL;

    pthread_mutex_lock(&texts->lock);
    for (size_t i = 0; i < texts->n && !found; i++)
        if (texts->items[i].template == template)
            found = texts->items[i].text;
    if (!found) {
        assert(texts->n < SQL_TEMPLATES_MAX);
        texts->items[texts->n].template = template;
        found = texts->items[texts->n++].text = expand(template, words, of);
    }
    pthread_mutex_unlock(&texts->lock);
    return found;
}

void sql_texts_init(struct sql_texts *texts)
{
    texts->n = 0;
    pthread_mutex_init(&texts->lock, NULL);
}

void sql_texts_clear(struct sql_texts *texts)
{
    for (size_t i = 0; i < texts->n; i++)
        free(texts->items[i].text);
    pthread_mutex_destroy(&texts->lock);
}
