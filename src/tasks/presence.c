/* This machine's presence record (specification, "Presence"). */
#include "tasks/private.h"

#include "base/limits.h"
#include "base/log.h"

#include <unistd.h>

enum { HOST_SIZE = 256 };

/* One record per machine: the names of all its apps. */
static char *app_names(struct tasks *t, struct arena *a)
{
    struct task_listening *l = task_listening_hold(t);
    struct buf names;

    buf_init(&names, LIMIT_APPS * LIMIT_NAME_CHARS * 4);
    for (size_t i = 0; i < l->list.n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", l->list.items[i].app_name);
    task_listening_drop(t, l);
    return buf_to_arena(&names, a);
}

int task_presence_occupy(struct tasks *t, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char host[HOST_SIZE] = "";

    gethostname(host, sizeof(host) - 1);
    const struct backend_presence p = {
        .machine_id = t->machine_id,
        .user_email = settings_string(t->config.settings, a, SETTING_IDENTITY_USER_EMAIL),
        .hostname = host,
        .app_name = app_names(t, a),
        .online_at = t->started_at,
        .instance = t->config.instance,
    };
    return t->config.backend->ops->presence_put(
        t->config.backend, &p, TASK_MISSED_SIGNS * settings_ms(t->config.settings, SETTING_TASKS_PRESENCE_S), e);
}

/* Two services with one id would each take the other's leases for their own: the later service waits. */
static void note_occupied(struct tasks *t, bool is_taken, const struct err *why)
{
    bool was_taken;

    pthread_mutex_lock(&t->mutex);
    was_taken = t->is_id_taken;
    t->is_id_taken = is_taken;
    pthread_mutex_unlock(&t->mutex);
    if (is_taken && !was_taken)
        log_error("tasks", NULL, "no work is taken up: %s", LOG_Q(why->text));
    else if (!is_taken && was_taken)
        log_info("tasks", NULL, "the machine id %s is free now", LOG_Q(t->machine_id));
}

void task_presence_put(struct tasks *t, void *arg)
{
    struct err e = { 0 };
    int r = task_presence_occupy(t, &e);

    if (r == 0 || r == -EADDRINUSE)
        note_occupied(t, r < 0, &e);
    else
        log_debug("tasks", NULL, "presence is not told: %s", LOG_Q(e.text));
}

bool tasks_is_id_taken(struct tasks *t)
{
    bool is;

    pthread_mutex_lock(&t->mutex);
    is = t->is_id_taken;
    pthread_mutex_unlock(&t->mutex);
    return is;
}

void task_presence_remove(struct tasks *t)
{
    struct err e = { 0 };

    if (t->config.backend->ops->presence_remove(t->config.backend, t->machine_id, t->config.instance, &e) < 0)
        log_debug("tasks", NULL, "presence is not taken back: %s", LOG_Q(e.text));
}
