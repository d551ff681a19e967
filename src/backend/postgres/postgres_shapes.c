#include "backend/postgres/postgres_shapes.h"

#include "base/clock.h"
#include "base/limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct kept {
    TAILQ_ENTRY(kept) links;
    struct arena *arena; /* owned; holds the shape */
    struct table_shape shape;
    int64_t read_ms; /* clock_mono_ms() */
};

struct postgres_shapes {
    pthread_mutex_t lock;            /* guards the members below */
    TAILQ_HEAD(kept_list, kept) all; /* the newest first */
    size_t n;
    int64_t forgotten_ms; /* clock_mono_ms() of the last postgres_shapes_forget() */
};

struct postgres_shapes *postgres_shapes_new(void)
{
    struct postgres_shapes *s = xcalloc(1, sizeof(*s));

    pthread_mutex_init(&s->lock, NULL);
    TAILQ_INIT(&s->all);
    return s;
}

/* A shape that PostgreSQL tells has no list of allowed values. */
static void copy(struct arena *a, const struct table_shape *from, struct table_shape *ret)
{
    *ret = *from;
    ret->table = arena_strdup(a, from->table);
    ret->columns = arena_array(a, from->n_columns, sizeof(*ret->columns));
    for (size_t i = 0; i < from->n_columns; i++) {
        ret->columns[i] = from->columns[i];
        ret->columns[i].name = arena_strdup(a, from->columns[i].name);
        ret->columns[i].type_name = arena_strdup(a, from->columns[i].type_name);
        ret->columns[i].default_text = arena_strdup(a, from->columns[i].default_text);
    }
}

/* --- under the lock --- */

static struct kept *find(struct postgres_shapes *s, const char *table)
{
    struct kept *k = TAILQ_FIRST(&s->all);

    while (k && strcmp(k->shape.table, table) != 0)
        k = TAILQ_NEXT(k, links);
    return k;
}

static void drop(struct postgres_shapes *s, struct kept *k)
{
    if (!k)
        return;
    TAILQ_REMOVE(&s->all, k, links);
    s->n--;
    arena_free(k->arena);
    free(k);
}

static void put(struct postgres_shapes *s, const struct table_shape *shape, int64_t read_ms)
{
    struct kept *k = xcalloc(1, sizeof(*k));

    k->arena = arena_new_sized(1024);
    k->read_ms = read_ms;
    copy(k->arena, shape, &k->shape);
    TAILQ_INSERT_HEAD(&s->all, k, links);
    s->n++;
}

/* --- interface --- */

struct postgres_shapes *postgres_shapes_free(struct postgres_shapes *s)
{
    if (!s)
        return NULL;
    while (!TAILQ_EMPTY(&s->all))
        drop(s, TAILQ_FIRST(&s->all));
    pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

bool postgres_shapes_find(struct postgres_shapes *s, const char *table, struct arena *a, struct table_shape *ret)
{
    struct kept *k;
    bool is_fresh;

    pthread_mutex_lock(&s->lock);
    k = find(s, table);
    is_fresh = k && clock_mono_ms() - k->read_ms < LIMIT_BACKEND_SHAPE_MS;
    if (is_fresh)
        copy(a, &k->shape, ret);
    pthread_mutex_unlock(&s->lock);
    return is_fresh;
}

void postgres_shapes_keep(struct postgres_shapes *s, const struct table_shape *shape, int64_t began_ms)
{
    pthread_mutex_lock(&s->lock);
    if (began_ms > s->forgotten_ms) {
        drop(s, find(s, shape->table));
        if (s->n == LIMIT_BACKEND_SHAPES)
            drop(s, TAILQ_LAST(&s->all, kept_list));
        put(s, shape, began_ms);
    }
    pthread_mutex_unlock(&s->lock);
}

void postgres_shapes_forget(struct postgres_shapes *s, const char *table)
{
    pthread_mutex_lock(&s->lock);
    s->forgotten_ms = clock_mono_ms();
    drop(s, find(s, table));
    pthread_mutex_unlock(&s->lock);
}
