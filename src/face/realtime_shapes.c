/* The columns of the tables whose changes come, for tables with columns of their own. Shapes are read and kept by the
 * thread of the rows; a change holds the one it was printed with. */
#include "face/realtime_private.h"

#include "base/clock.h"

#include <stdlib.h>

enum {
    OLD_MS = 10000, /* read again */
    NEW_MS = 500    /* not read again, also when it does not fit the record */
};

struct rt_shape *rt_shape_free(struct rt_shape *s)
{
    if (s && atomic_fetch_sub(&s->n_holders, 1) == 1) {
        arena_free(s->arena);
        free(s);
    }
    return NULL;
}

static const char *print_columns(struct arena *a, const struct table_shape *of)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, MIB(1));
    json_write_init(&w, &out);
    json_begin_array(&w);
    for (size_t i = 0; i < of->n_columns; i++) {
        json_begin_object(&w);
        json_add_string(&w, "name", of->columns[i].name);
        json_add_string(&w, "type",
                        of->columns[i].type_name ? of->columns[i].type_name : table_type_word(of->columns[i].type));
        json_end(&w);
    }
    json_end(&w);
    return buf_to_arena(&out, a);
}

/* A table that is not known any more has no columns; the service role alone is told of its changes. */
static struct rt_shape *read_shape(struct realtime *rt, const char *table, struct err *e)
{
    struct backend *b = rt->config.backend;
    struct rt_shape *s = xcalloc(1, sizeof(*s));
    int r;

    atomic_init(&s->n_holders, 1);
    s->arena = arena_new();
    s->table = arena_strdup(s->arena, table);
    s->read_ms = clock_mono_ms();
    r = b->ops->shape ? backend_shape(b, table, s->arena, &s->of, e) : -ENOENT; /* not every backend has it */
    if (r == -ENOENT)
        s->of = (struct table_shape){ .table = s->table, .has_own_columns = true };
    else if (r < 0)
        return rt_shape_free(s);
    s->columns = print_columns(s->arena, &s->of);
    s->has_user = table_shape_column(&s->of, SLICE_LIT("user_id")) != NULL;
    return s;
}

static void drop(struct realtime *rt, struct rt_shape *s)
{
    LIST_REMOVE(s, links);
    rt->n_shapes--;
    rt_shape_free(s);
}

void rt_shapes_clear(struct realtime *rt)
{
    struct rt_shape *s;

    while ((s = LIST_FIRST(&rt->shapes)))
        drop(rt, s);
}

static bool is_fit(const struct rt_shape *s, size_t n_members)
{
    int64_t age_ms = clock_mono_ms() - s->read_ms;

    return age_ms < NEW_MS || (age_ms < OLD_MS && (n_members == 0 || n_members == s->of.n_columns));
}

int rt_shape_of(struct realtime *rt, const char *table, size_t n_members, struct rt_shape **ret, struct err *e)
{
    struct rt_shape *s = LIST_FIRST(&rt->shapes), *now;

    while (s && strcmp(s->table, table) != 0)
        s = LIST_NEXT(s, links);
    if (!s || !is_fit(s, n_members)) {
        now = read_shape(rt, table, e);
        if (!now)
            return -EAGAIN;
        if (s)
            drop(rt, s);
        if (rt->n_shapes == LIMIT_REALTIME_SHAPES)
            rt_shapes_clear(rt);
        s = now;
        LIST_INSERT_HEAD(&rt->shapes, s, links);
        rt->n_shapes++;
    }
    atomic_fetch_add(&s->n_holders, 1);
    *ret = s;
    return 0;
}

/* ---- questions of a channel that joins ---- */

static bool is_meant(const struct rt_question *q, struct arena *a, const char *table)
{
    const struct table_parts parts = backend_table_parts(a, table);

    return rt_is_named(q->schema, parts.schema) && rt_is_named(q->name, parts.table);
}

static int check_question(struct realtime *rt, struct rt_item *item, const struct rt_question *q, const char *table,
                          struct err *e)
{
    struct rt_shape *shape = NULL;
    struct rt_filter filter;
    int r = rt_shape_of(rt, table, 0, &shape, e);

    if (r < 0)
        return r;
    r = rt_filter_read(item->arena, slice_of(q->filter), &filter, e);
    if (r == 0)
        r = rt_filter_check(&filter, &shape->of, e);
    rt_shape_free(shape);
    return r;
}

static int check_tables(struct realtime *rt, struct rt_item *item, const struct rt_question *q, struct err *e)
{
    const struct backend_publications *all = &item->tables;
    int r = 0;

    for (size_t i = 0; i < all->n; i++)
        for (size_t j = 0; r == 0 && j < all->items[i].n_tables; j++)
            if (is_meant(q, item->arena, all->items[i].tables[j]))
                r = check_question(rt, item, q, all->items[i].tables[j], e);
    return r;
}

/* A filter over all tables passes over those that lack its column. */
void rt_questions_answer(struct realtime *rt, struct rt_item *item)
{
    struct err why = { 0 };

    item->r = rt->config.backend->ops->publications(rt->config.backend, item->arena, &item->tables, NULL);
    for (size_t i = 0; item->r == 0 && !item->fault && i < item->n_questions; i++) {
        const struct rt_question *q = &item->questions[i];

        if (q->filter[0] && strcmp(q->name, "*") != 0 && check_tables(rt, item, q, &why) < 0)
            item->fault = arena_strdup(item->arena, why.text);
    }
}
