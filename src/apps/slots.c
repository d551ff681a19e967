#include "apps/failure_line.h"
#include "apps/private.h"

#include "base/clock.h"
#include "base/cond.h"
#include "identity/launches.h"

struct app_slot *slot_find(struct apps *apps, const char *app_id)
{
    struct app_slot *slot = apps->slots;

    while (slot && strcmp(slot->app_id, app_id) != 0)
        slot = slot->next;
    return slot;
}

struct app_slot *slot_take(struct apps *apps, const char *app_id)
{
    struct app_slot *slot = slot_find(apps, app_id);

    if (slot)
        return slot;
    slot = xcalloc(1, sizeof(*slot));
    slot->apps = apps;
    snprintf(slot->app_id, sizeof(slot->app_id), "%s", app_id);
    slot->log = child_log_new();
    slot->next = apps->slots;
    apps->slots = slot;
    return slot;
}

void slot_drop(struct apps *apps, struct app_slot *slot)
{
    struct app_slot **at = &apps->slots;

    while (*at != slot)
        at = &(*at)->next;
    *at = slot->next;
}

struct app_slot *slot_free(struct app_slot *slot)
{
    if (!slot)
        return NULL;
    child_unref(slot->child);
    child_log_unref(slot->log);
    free(slot);
    return NULL;
}

void slot_set(struct app_slot *slot, enum app_status status, const char *message)
{
    slot->status = status;
    snprintf(slot->message, sizeof(slot->message), "%s", message ? message : "");
    pthread_cond_broadcast(&slot->apps->changed);
}

bool slot_is_idle(const struct app_slot *slot)
{
    return slot->status == APP_STOPPED || slot->status == APP_ERROR;
}

int slots_wait(struct apps *apps, int64_t deadline_ms)
{
    return cond_wait_until(&apps->changed, &apps->mutex, deadline_ms * 1000) ? 0 : -ETIMEDOUT;
}

/* --- the end of a child --- */

/* Records a crash now and returns the number of crashes in the window. */
static size_t count_crash(struct app_slot *slot, int64_t now_ms)
{
    size_t n_old = 0;

    while (n_old < slot->n_crashes && now_ms - slot->crashes_ms[n_old] > APP_CRASH_WINDOW_MS)
        n_old++;
    if (n_old == 0 && slot->n_crashes == APP_CRASHES_KEPT)
        n_old = 1;
    slot->n_crashes -= n_old;
    memmove(slot->crashes_ms, slot->crashes_ms + n_old, slot->n_crashes * sizeof(slot->crashes_ms[0]));
    slot->crashes_ms[slot->n_crashes++] = now_ms;
    return slot->n_crashes;
}

static const char *emit_end(const struct app_slot *slot, const struct child_exit *how, struct arena *a)
{
    const char *last = failure_line(child_log_tail(slot->log, a, CHILD_STDERR, FAILURE_LINES), a);
    const char *end = how->signal ? arena_printf(a, "signal %d (%s)", how->signal, strsignal(how->signal))
                                  : arena_printf(a, "exit code %d", how->code);

    return *last ? arena_printf(a, "It ended with %s; its last words: %.200s", end, last)
                 : arena_printf(a, "It ended with %s", end);
}

static void plan_restart(struct app_slot *slot, const struct child_exit *how, struct arena *a)
{
    struct settings *settings = slot->apps->config.settings;
    int64_t now_ms = clock_mono_ms();
    size_t n = count_crash(slot, now_ms);
    int64_t limit = settings_int(settings, SETTING_APPS_RESTART_LIMIT);
    int64_t pause_ms = settings_int(settings, SETTING_APPS_RESTART_BACKOFF_MS) << MIN(n - 1, (size_t)16);
    const char *end = emit_end(slot, how, a);

    if ((int64_t)n > limit) {
        child_log_note(slot->log, "not started again: it crashed %zu times within ten minutes", n);
        slot_set(slot, APP_ERROR,
                 arena_printf(a, "%s. It crashed %zu times within ten minutes and is not started again by itself.", end,
                              n));
        slot->is_wanted = false;
        return;
    }
    child_log_note(slot->log, "is started again in %lld ms", (long long)pause_ms);
    slot_set(slot, APP_STARTING, arena_printf(a, "%s. It is started again in %.1f s.", end, (double)pause_ms / 1000));
    slot->restart_at_ms = now_ms + MAX(pause_ms, (int64_t)1);
    slot->n_restarts++;
}

void slot_end(struct app_slot *slot, const struct child_exit *how)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    bool is_crash = how->code != 0 && !how->was_stopped && slot->is_wanted && !slot->apps->is_closing;

    launches_end(slot->apps->config.identity, slot->launch);
    slot->launch = 0;
    slot->child = child_unref(slot->child);
    slot->is_end_unreported = true;
    if (is_crash) {
        plan_restart(slot, how, a);
        return;
    }
    slot->is_wanted = false;
    slot_set(slot, APP_STOPPED, NULL);
}
