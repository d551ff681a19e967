#include "apps/private.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"

static const char *const status_names[] = {
    [APP_STOPPED] = "stopped", [APP_STARTING] = "starting", [APP_RUNNING] = "running",
    [APP_ERROR] = "error",     [APP_STOPPING] = "stopping",
};

const char *app_status_name(enum app_status s)
{
    return status_names[s];
}

void apps_notify(struct apps *apps, const char *app_id)
{
    if (apps->config.on_change)
        apps->config.on_change(apps->config.arg, app_id);
}

/* --- open and close --- */

static void make_timer(void *arg)
{
    struct apps *apps = arg;

    apps->chores = loop_timer_new(apps->config.loop, chores_on_time, apps);
}

int apps_open(const struct apps_config *c, struct apps **ret, struct err *e)
{
    struct apps *apps = xcalloc(1, sizeof(*apps));

    apps->config = *c;
    pthread_mutex_init(&apps->mutex, NULL);
    cond_init(&apps->changed);
    if (c->pool)
        loop_call(c->loop, make_timer, apps);
    *ret = apps;
    return 0;
}

void apps_stop(struct apps *apps)
{
    pthread_mutex_lock(&apps->mutex);
    apps->is_closing = true;
    while (apps->n_launching > 0)
        pthread_cond_wait(&apps->changed, &apps->mutex);
    pthread_mutex_unlock(&apps->mutex);
}

static void free_timer(void *arg)
{
    struct apps *apps = arg;

    apps->chores = loop_timer_free(apps->chores);
}

struct apps *apps_close(struct apps *apps)
{
    if (!apps)
        return NULL;
    if (apps->chores)
        loop_call(apps->config.loop, free_timer, apps);
    while (apps->slots) {
        struct app_slot *slot = apps->slots;

        apps->slots = slot->next;
        slot_free(slot);
    }
    pthread_cond_destroy(&apps->changed);
    pthread_mutex_destroy(&apps->mutex);
    free(apps);
    return NULL;
}

/* --- start-up --- */

/* An app that fails to start gets the status error with a message; the other apps start anyway. */
static int start_if_enabled(void *arg, const struct app_config *c, struct err *e)
{
    struct apps *apps = arg;
    struct err why = { 0 };

    if (c->is_enabled && app_start(apps, c->app_id, &why) < 0)
        log_debug("apps", NULL, "%s did not start: %s", LOG_Q(c->name), why.text);
    return 0;
}

int apps_start_enabled(struct apps *apps, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return app_each(apps, a, start_if_enabled, apps, e);
}

/* --- queries --- */

static void copy_state(const struct app_slot *slot, struct arena *a, struct app_state *ret)
{
    char started[TIME_TEXT_SIZE];

    clock_format(slot->started_at_ms, started);
    *ret = (struct app_state){
        .status = slot->status,
        .message = slot->message[0] ? arena_strdup(a, slot->message) : NULL,
        .pid = slot->child ? child_pid(slot->child) : 0,
        .port = slot_is_idle(slot) ? 0 : slot->port,
        .n_restarts = slot->n_restarts,
        .started_at = slot->started_at_ms ? arena_strdup(a, started) : NULL,
    };
}

int app_state(struct apps *apps, const char *app_id, struct arena *a, struct app_state *ret, struct err *e)
{
    struct app_slot *slot;

    pthread_mutex_lock(&apps->mutex);
    slot = slot_find(apps, app_id);
    if (slot)
        copy_state(slot, a, ret);
    else
        *ret = (struct app_state){ .status = APP_STOPPED };
    pthread_mutex_unlock(&apps->mutex);
    return 0;
}

void app_log_add(struct apps *apps, const char *app_id, struct slice text)
{
    struct child_log *log;

    pthread_mutex_lock(&apps->mutex);
    log = child_log_ref(slot_take(apps, app_id)->log);
    pthread_mutex_unlock(&apps->mutex);
    child_log_add_text(log, CHILD_ENTRY, text);
    child_log_unref(log);
}

struct child_log *app_log(struct apps *apps, const char *app_id)
{
    struct child_log *log = NULL;
    struct app_slot *slot;

    pthread_mutex_lock(&apps->mutex);
    slot = slot_find(apps, app_id);
    if (slot)
        log = child_log_ref(slot->log);
    pthread_mutex_unlock(&apps->mutex);
    return log;
}
