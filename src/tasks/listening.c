#include "tasks/private.h"

#include "base/log.h"

static void add_table(struct task_listening *l, const char *table)
{
    if (!task_listening_has_table(l, table))
        l->tables[l->n_tables++] = table;
}

static void collect_tables(struct task_listening *l, const char *deletions)
{
    size_t n = 1;

    for (size_t i = 0; i < l->list.n; i++)
        n += l->list.items[i].n_tables;
    l->tables = arena_array(l->arena, n, sizeof(*l->tables));
    for (size_t i = 0; i < l->list.n; i++)
        for (size_t j = 0; j < l->list.items[i].n_tables; j++) {
            add_table(l, l->list.items[i].tables[j]);
            if (l->list.items[i].table_events[j] & BACKEND_DELETE)
                add_table(l, deletions);
        }
}

static struct task_listening *listening_new(void)
{
    struct task_listening *l = xcalloc(1, sizeof(*l));

    l->n_refs = 1;
    l->arena = arena_new();
    return l;
}

static void listening_free(struct task_listening *l)
{
    arena_free(l->arena);
    free(l);
}

struct task_listening *task_listening_hold(struct tasks *t)
{
    struct task_listening *l;

    pthread_mutex_lock(&t->mutex);
    if (!t->listening)
        t->listening = listening_new();
    l = t->listening;
    l->n_refs++;
    pthread_mutex_unlock(&t->mutex);
    return l;
}

void task_listening_drop(struct tasks *t, struct task_listening *l)
{
    bool is_last;

    if (!l)
        return;
    pthread_mutex_lock(&t->mutex);
    is_last = --l->n_refs == 0;
    pthread_mutex_unlock(&t->mutex);
    if (is_last)
        listening_free(l);
}

/* The next sweep tries again to make a table that cannot be made now; the other tables work in the meantime. A backend
 * that is not there is asked once. */
static void ensure_tables(struct tasks *t, const struct task_listening *l)
{
    int r = 0;

    for (size_t i = 0; i < l->n_tables && r != -EAGAIN; i++) {
        struct err e = { 0 };

        r = 0;
        if (strcmp(l->tables[i], t->deletions) != 0)
            r = t->config.backend->ops->ensure_table(t->config.backend, l->tables[i], &e);
        if (r < 0)
            log_warn("tasks", NULL, "table %s cannot be used: %s", LOG_Q(l->tables[i]), LOG_Q(e.text));
    }
}

static uint64_t begin_read(struct tasks *t)
{
    uint64_t read;

    pthread_mutex_lock(&t->mutex);
    read = ++t->n_listening_reads;
    pthread_mutex_unlock(&t->mutex);
    return read;
}

/* Takes ownership. Several threads may read at the same time; a read that began earlier does not replace a later one,
 * whose list may be newer. */
static void install(struct tasks *t, struct task_listening *fresh)
{
    struct task_listening *dropped = fresh;

    pthread_mutex_lock(&t->mutex);
    if (!t->listening || t->listening->read < fresh->read) {
        dropped = t->listening;
        t->listening = fresh;
    }
    pthread_mutex_unlock(&t->mutex);
    task_listening_drop(t, dropped);
}

int task_listening_renew(struct tasks *t, struct err *e)
{
    uint64_t read = begin_read(t);
    struct task_listening *fresh = listening_new();
    int r = t->config.listeners(t->config.arg, fresh->arena, &fresh->list, e);

    if (r < 0) {
        listening_free(fresh);
        return r;
    }
    fresh->read = read;
    collect_tables(fresh, t->deletions);
    ensure_tables(t, fresh);
    install(t, fresh);
    return 0;
}

bool task_listening_is_current(struct tasks *t, const struct task_listening *l)
{
    bool is;

    pthread_mutex_lock(&t->mutex);
    is = t->listening == l;
    pthread_mutex_unlock(&t->mutex);
    return is;
}

bool task_listening_has_table(const struct task_listening *l, const char *table)
{
    for (size_t i = 0; i < l->n_tables; i++)
        if (strcmp(l->tables[i], table) == 0)
            return true;
    return false;
}

const struct task_listener *task_listening_find(const struct task_listening *l, const char *app_id)
{
    for (size_t i = 0; app_id && i < l->list.n; i++)
        if (strcmp(l->list.items[i].app_id, app_id) == 0)
            return &l->list.items[i];
    return NULL;
}

int tasks_read_listeners(struct tasks *t, struct arena *a, struct task_listeners *ret, struct err *e)
{
    return t->config.listeners(t->config.arg, a, ret, e);
}
