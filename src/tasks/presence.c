/* This machine's presence record (specification, "Presence"). */
#include "tasks/private.h"

#include "base/limits.h"
#include "base/log.h"

#include <unistd.h>

enum { HOST_SIZE = 256 };

/* One record a machine: the names of all its apps. */
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

void task_presence_put(struct tasks *t, void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char host[HOST_SIZE] = "";
    struct err e = { 0 };

    gethostname(host, sizeof(host) - 1);
    const struct backend_presence p = {
        .machine_id = t->machine_id,
        .user_email = settings_string(t->config.settings, a, SETTING_IDENTITY_USER_EMAIL),
        .hostname = host,
        .app_name = app_names(t, a),
        .online_at = t->started_at,
    };
    if (t->config.backend->ops->presence_put(t->config.backend, &p, &e) < 0)
        log_debug("tasks", NULL, "presence is not told: %s", LOG_Q(e.text));
}

void task_presence_remove(struct tasks *t)
{
    struct err e = { 0 };

    if (t->config.backend->ops->presence_remove(t->config.backend, t->machine_id, &e) < 0)
        log_debug("tasks", NULL, "presence is not taken back: %s", LOG_Q(e.text));
}
