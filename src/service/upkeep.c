/* Periodic cleanup of everything older than the *.keep_days settings: at the start and once an hour, on a worker, a few
 * rows at a time. */
#include "service/private.h"

#include "agents/sessions.h"
#include "base/blocks.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/http_client.h"
#include "store/tables/audit.h"
#include "store/tables/deliveries.h"
#include "store/retention.h"

#include <unistd.h>

enum {
    CLOSE_EVERY_MS = 30 * 1000,
    OFTEN_MS = 5000,
    UPKEEP_EVERY_MS = 3600 * 1000,
    PAUSE_FACTOR = 4,
    MOST_PAUSE_US = 200000
};

#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* ---- data kept for some days ---- */

static const struct {
    enum setting_id setting;
    enum kept what;
    const char *name;
} terms[] = {
    { SETTING_WEBHOOKS_KEEP_DAYS, KEPT_DELIVERIES, "webhook answers" },
    { SETTING_TASKS_KEEP_LOGS_DAYS, KEPT_RUN_LOGS, "output of runs" },
    { SETTING_TASKS_KEEP_DAYS, KEPT_TASKS, "tasks" },
    { SETTING_CALENDAR_KEEP_DAYS, KEPT_EVENTS, "calendar events" },
    { SETTING_USAGE_KEEP_DAYS, KEPT_USAGE, "usage" },
    { SETTING_AGENTS_KEEP_DAYS, KEPT_TURNS, "turns of conversations" },
};

static int64_t before_ms(struct service *s, enum setting_id setting)
{
    return clock_wall_ms() - settings_int(s->settings, setting) * DAY_MS;
}

/* Others write between two batches: the pause is a multiple of the time that a batch made them wait. */
static bool goes_on(struct service *s, int r, int64_t n, int64_t began_us)
{
    int64_t pause_us = MIN(PAUSE_FACTOR * (clock_mono_us() - began_us), (int64_t)MOST_PAUSE_US);

    if (r < 0 || n == 0)
        return false;
    usleep((useconds_t)pause_us);
    return !atomic_load(&s->api.is_leaving);
}

static void tidy_old(struct service *s, size_t i)
{
    int64_t before = before_ms(s, terms[i].setting), n = 0, began_us;
    struct err e = { 0 };
    int r;

    if (settings_int(s->settings, terms[i].setting) == 0)
        return;
    do {
        began_us = clock_mono_us();
        r = store_retention_trim(s->store, terms[i].what, before, &n, &e);
    } while (goes_on(s, r, n, began_us));
    if (r < 0)
        log_warn("service", NULL, "old %s could not be removed: %s", terms[i].name, e.text);
}

static void tidy_audit(struct service *s)
{
    int64_t before = before_ms(s, SETTING_AUDIT_KEEP_DAYS), n = 0, n_all = 0, began_us;
    struct err e = { 0 };
    int r;

    if (settings_int(s->settings, SETTING_AUDIT_KEEP_DAYS) == 0)
        return;
    do {
        began_us = clock_mono_us();
        r = store_audit_trim(s->store, before, &n, &e);
        n_all += r == 0 ? n : 0;
    } while (goes_on(s, r, n, began_us));
    if (r == 0 && n_all > 0)
        r = store_audit_note_trim(s->store, &e);
    if (r < 0)
        log_warn("service", NULL, "old entries of the audit log could not be removed: %s", e.text);
}

static void tidy_sessions(struct service *s)
{
    struct err e = { 0 };

    if (agent_sessions_expire(s->agent_turns, &e) < 0)
        log_warn("service", NULL, "idle sessions of agents could not be removed: %s", e.text);
}

static void tidy(void *arg)
{
    struct service *s = arg;

    for (size_t i = 0; i < ARRAY_SIZE(terms); i++)
        tidy_old(s, i);
    tidy_audit(s);
    tidy_sessions(s);
}

static void tidy_on_worker(void *arg)
{
    struct service *s = arg;

    if (pool_submit(s->long_pool, tidy, s) < 0)
        log_debug("service", NULL, "no worker is free for upkeep; the next hour will do");
}

/* ---- idle connections to providers and stores ---- */

static void close_idle(void *arg)
{
    struct service *s = arg;

    http_call_close_idle(CLOSE_EVERY_MS);
    agent_turns_forget_old(s->agent_turns);
}

static void close_idle_on_worker(void *arg)
{
    struct service *s = arg;

    if (pool_submit(s->long_pool, close_idle, s) < 0)
        log_debug("service", NULL, "no worker is free to close idle connections; the next round will do");
}

static void tidy_often(void *arg)
{
    struct service *s = arg;

    speech_tidy(s->speech);
    blocks_drop_idle();
}

int service_start_upkeep(struct service *s, struct err *e)
{
    int r = store_deliveries_release_all(s->store, e);

    if (r < 0)
        return r;
    s->upkeep = loop_timer_new(s->loop, tidy_on_worker, s);
    loop_timer_every(s->upkeep, UPKEEP_EVERY_MS);
    tidy_on_worker(s);
    s->close_idle = loop_timer_new(s->loop, close_idle_on_worker, s);
    loop_timer_every(s->close_idle, CLOSE_EVERY_MS);
    s->tidy_often = loop_timer_new(s->loop, tidy_often, s);
    loop_timer_every(s->tidy_often, OFTEN_MS);
    service_start_measuring(s);
    return 0;
}

void service_stop_upkeep(void *service)
{
    struct service *s = service;

    s->upkeep = loop_timer_free(s->upkeep);
    s->close_idle = loop_timer_free(s->close_idle);
    s->tidy_often = loop_timer_free(s->tidy_often);
    service_stop_measuring(s);
}
