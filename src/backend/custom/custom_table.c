#include "backend/custom/custom_private.h"

#include <stdlib.h>

const char *const custom_column_names[CUSTOM_N_COLUMNS] = {
    [CUSTOM_STATUS] = "status",
    [CUSTOM_LOCKED_BY] = "locked_by",
    [CUSTOM_LOCKED_AT] = "locked_at",
    [CUSTOM_COMPLETED_AT] = "completed_at",
    [CUSTOM_ERROR_MESSAGE] = "error_message",
    [CUSTOM_RESULT] = "result",
    [CUSTOM_RETRY_COUNT] = "retry_count",
    [CUSTOM_ATTEMPTED_BY] = "attempted_by",
    [CUSTOM_UPDATED_AT] = "updated_at",
    [CUSTOM_CREATED_AT] = "created_at",
    [CUSTOM_USER_ID] = "user_id",
};

/* ---- what a shape says ---- */

static int unfit(const struct table_shape *shape, const char *what, struct err *e)
{
    return err_set(e, -EINVAL, "TABLE_UNFIT",
                   "The table %.130s is not fit for Custom Mode: %s; `hearth backend check` says how to mend it",
                   shape->table, what);
}

static int read_key(const struct table_shape *shape, struct custom_facts *ret, struct err *e)
{
    size_t n = 0;

    for (size_t i = 0; i < shape->n_columns; i++)
        if (shape->columns[i].is_key) {
            snprintf(ret->key, sizeof(ret->key), "%s", shape->columns[i].name);
            ret->key_type = shape->columns[i].type;
            n++;
        }
    return n == 1 ? 0 : unfit(shape, n ? "its key has several columns" : "it has no primary key", e);
}

bool custom_type_fits(enum custom_column column, enum table_type type)
{
    if (column == CUSTOM_LOCKED_AT)
        return type == TABLE_TIMESTAMPTZ || type == TABLE_TIMESTAMP;
    return type == TABLE_TEXT || type == TABLE_OTHER; /* an enumeration of PostgreSQL */
}

int custom_facts_read(const struct table_shape *shape, struct custom_facts *ret, struct err *e)
{
    struct custom_facts facts = { 0 };
    char what[200];
    int r = read_key(shape, &facts, e);

    for (size_t i = 0; r == 0 && i < CUSTOM_N_COLUMNS; i++) {
        const struct table_column *c = table_shape_column(shape, slice_of(custom_column_names[i]));

        facts.has[i] = c != NULL;
        facts.types[i] = c ? c->type : TABLE_OTHER;
        if (i >= CUSTOM_N_REQUIRED || (c && custom_type_fits(i, c->type)))
            continue;
        snprintf(what, sizeof(what), c ? "its column %s has the wrong type" : "it has no column %s",
                 custom_column_names[i]);
        r = unfit(shape, what, e);
    }
    if (r == 0)
        *ret = facts;
    return r;
}

/* ---- the set ---- */

struct table {
    char *name, *app_id; /* owned */
    unsigned events;
    bool has_facts;
    struct custom_facts facts;
};

struct custom_tables {
    pthread_mutex_t lock;
    struct table *items; /* owned */
    size_t n;
};

struct custom_tables *custom_tables_new(void)
{
    struct custom_tables *ts = xcalloc(1, sizeof(*ts));

    pthread_mutex_init(&ts->lock, NULL);
    return ts;
}

static void free_items(struct table *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(items[i].name);
        free(items[i].app_id);
    }
    free(items);
}

struct custom_tables *custom_tables_free(struct custom_tables *ts)
{
    if (!ts)
        return NULL;
    free_items(ts->items, ts->n);
    pthread_mutex_destroy(&ts->lock);
    free(ts);
    return NULL;
}

void custom_tables_set(struct custom_tables *ts, const struct custom_table *tables, size_t n)
{
    struct table *fresh = xcalloc(n + 1, sizeof(*fresh)), *old;
    size_t n_old;

    for (size_t i = 0; i < n; i++)
        fresh[i] = (struct table){ .name = xstrdup(tables[i].table),
                                   .app_id = xstrdup(tables[i].app_id),
                                   .events = tables[i].events };
    pthread_mutex_lock(&ts->lock);
    old = ts->items;
    n_old = ts->n;
    ts->items = fresh;
    ts->n = n;
    pthread_mutex_unlock(&ts->lock);
    free_items(old, n_old);
}

size_t custom_tables_count(struct custom_tables *ts)
{
    size_t n;

    pthread_mutex_lock(&ts->lock);
    n = ts->n;
    pthread_mutex_unlock(&ts->lock);
    return n;
}

static struct table *find_locked(struct custom_tables *ts, const char *name)
{
    for (size_t i = 0; i < ts->n; i++)
        if (strcmp(ts->items[i].name, name) == 0)
            return &ts->items[i];
    return NULL;
}

bool custom_tables_find(struct custom_tables *ts, const char *table, struct arena *a, struct custom_view *ret,
                        bool *ret_has_facts)
{
    const struct table *t;

    pthread_mutex_lock(&ts->lock);
    t = find_locked(ts, table);
    if (t) {
        *ret = (struct custom_view){ arena_strdup(a, t->name), arena_strdup(a, t->app_id), t->events, t->facts };
        *ret_has_facts = t->has_facts;
    }
    pthread_mutex_unlock(&ts->lock);
    return t != NULL;
}

void custom_tables_learn(struct custom_tables *ts, const char *table, const struct custom_facts *facts)
{
    struct table *t;

    pthread_mutex_lock(&ts->lock);
    t = find_locked(ts, table);
    if (t) {
        t->facts = *facts;
        t->has_facts = true;
    }
    pthread_mutex_unlock(&ts->lock);
}

void custom_tables_forget(struct custom_tables *ts, const char *table)
{
    struct table *t;

    pthread_mutex_lock(&ts->lock);
    t = find_locked(ts, table);
    if (t)
        t->has_facts = false;
    pthread_mutex_unlock(&ts->lock);
}

const char **custom_tables_names(struct custom_tables *ts, struct arena *a, size_t *ret_n)
{
    const char **names;

    pthread_mutex_lock(&ts->lock);
    names = arena_array(a, ts->n + 1, sizeof(*names));
    for (*ret_n = 0; *ret_n < ts->n; (*ret_n)++)
        names[*ret_n] = arena_strdup(a, ts->items[*ret_n].name);
    pthread_mutex_unlock(&ts->lock);
    return names;
}
