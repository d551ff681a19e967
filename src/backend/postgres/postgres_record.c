#include "backend/postgres/postgres_record.h"
#include "backend/postgres/postgres_json.h"
#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

struct postgres_record_shape {
    struct arena *arena;           /* owned */
    struct postgres_column *items; /* in the order of the messages */
    size_t n, n_key;
};

/* --- shapes --- */

static struct postgres_column column_of(const struct pgoutput_relation *rel, size_t i,
                                        const struct postgres_columns *known)
{
    for (size_t k = 0; k < known->n; k++)
        if (strcmp(known->items[k].name, rel->columns[i]) == 0)
            return known->items[k];
    return (struct postgres_column){ .name = rel->columns[i], .type = rel->types[i] };
}

struct postgres_record_shape *postgres_record_shape_new(const struct pgoutput_relation *relation,
                                                        const struct postgres_columns *columns)
{
    struct postgres_record_shape *s = xcalloc(1, sizeof(*s));

    s->arena = arena_new();
    s->n = relation->n_columns;
    s->items = arena_array(s->arena, MAX(s->n, (size_t)1), sizeof(*s->items));
    for (size_t i = 0; i < s->n; i++) {
        s->items[i] = column_of(relation, i, columns);
        s->items[i].name = arena_strdup(s->arena, s->items[i].name);
        s->n_key += s->items[i].is_key;
    }
    return s;
}

struct postgres_record_shape *postgres_record_shape_free(struct postgres_record_shape *s)
{
    if (s)
        arena_free(s->arena);
    free(s);
    return NULL;
}

/* --- values --- */

static const struct pgoutput_value *value_at(const struct postgres_record_image *image, size_t i)
{
    const struct pgoutput_value *value = i < image->tuple->n ? &image->tuple->values[i] : NULL;

    if (value && value->kind == PGOUTPUT_UNCHANGED)
        value = image->old && i < image->old->n ? &image->old->values[i] : NULL;
    return value && value->kind != PGOUTPUT_UNCHANGED ? value : NULL;
}

static bool is_wanted(const struct postgres_record_shape *s, const struct postgres_record_image *image, size_t i)
{
    return s->items[i].is_key || !image->is_key_only;
}

/* Whether every value is known, and all together are not too large. */
static bool is_whole(const struct postgres_record_shape *s, const struct postgres_record_image *image)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct pgoutput_value *value = value_at(image, i);

        if (is_wanted(s, image, i) && !value)
            return false;
        n_bytes += value ? value->text.n : 0;
    }
    return n_bytes <= LIMIT_EVENT_IMAGE;
}

static void add_value(struct json_writer *w, const char *name, const struct postgres_column *c,
                      const struct pgoutput_value *value)
{
    if (value->kind == PGOUTPUT_NULL)
        json_add_null(w, name);
    else
        postgres_json_add(w, name, c, value->text);
}

static const char *text_of(const struct postgres_record_shape *s, struct arena *a,
                           const struct postgres_record_image *image, const char *name)
{
    const struct pgoutput_value *value = NULL;
    size_t i = 0;

    while (i < s->n && strcmp(s->items[i].name, name) != 0)
        i++;
    if (i < s->n && is_wanted(s, image, i))
        value = value_at(image, i);
    return value && value->kind == PGOUTPUT_TEXT ? postgres_json_text(a, &s->items[i], value->text) : NULL;
}

/* --- rows --- */

/* NULL: it is too large. */
static char *finish(struct buf *out, struct arena *a)
{
    bool is_whole = buf_check(out, NULL) == 0;
    char *text = buf_to_arena(out, a);

    return is_whole ? text : NULL;
}

static char *record_of(const struct postgres_record_shape *s, struct arena *a,
                       const struct postgres_record_image *image)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_EVENT_MESSAGE);
    json_write_init(&w, &out);
    json_begin_object(&w);
    for (size_t i = 0; i < s->n; i++)
        if (is_wanted(s, image, i))
            add_value(&w, s->items[i].name, &s->items[i], value_at(image, i));
    json_end(&w);
    return finish(&out, a);
}

/* Of one column, its text; of several, a JSON array; of none, "". */
static char *key_of(const struct postgres_record_shape *s, struct arena *a, const struct postgres_record_image *image)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_EVENT_MESSAGE);
    json_write_init(&w, &out);
    if (s->n_key > 1)
        json_begin_array(&w);
    for (size_t i = 0; i < s->n; i++) {
        if (s->items[i].is_key && s->n_key > 1)
            add_value(&w, NULL, &s->items[i], value_at(image, i));
        else if (s->items[i].is_key)
            buf_add_str(&out, postgres_json_text(a, &s->items[i], value_at(image, i)->text));
    }
    if (s->n_key > 1)
        json_end(&w);
    return finish(&out, a);
}

const struct backend_row *postgres_record_row(const struct postgres_record_shape *s, struct arena *a, const char *table,
                                              const struct postgres_record_image *image)
{
    struct backend_row *row = ARENA_NEW(a, struct backend_row);

    if (!is_whole(s, image))
        return NULL;
    row->table = arena_strdup(a, table);
    row->id = key_of(s, a, image);
    row->raw_data = record_of(s, a, image);
    row->status = text_of(s, a, image, "status");
    row->user_id = text_of(s, a, image, "user_id");
    row->locked_by = text_of(s, a, image, "locked_by");
    row->status = row->status ? row->status : "";
    return row->id && row->raw_data ? row : NULL;
}
