/* Lack of resources: a machine that cannot start an agent now (descriptors, processes, memory, places for children,
 * disk) has not failed the row. The machine rests and claims nothing; then one claim tests whether starting works
 * again. One log line reports the beginning of the rest and one its end. Where there is no room for a start, nothing is
 * claimed: such rests begin short and are reported once they have become long. */
#include "tasks/private.h"

#include "base/clock.h"
#include "base/log.h"

struct rests {
    int64_t first_ms, longest_ms;
};

static const struct rests after_failure = { 1000, 60000 }, without_room = { 60, 4000 };

bool task_is_want(int r, const struct err *why)
{
    return strncmp(why->code, "STORE_", 6) == 0 || r == -EAGAIN || r == -EMFILE || r == -ENFILE || r == -ENOMEM ||
           r == -ENOSPC;
}

static int64_t count_starting_locked(const struct tasks *t)
{
    int64_t n = 0;

    for (const struct task_run *run = t->runs; run; run = run->next)
        n += !run->is_brief && !run->handle && !run->has_ended;
    return n;
}

bool task_want_admit_locked(struct tasks *t, int64_t room, bool *ret_is_probe)
{
    struct task_want *w = &t->want;
    bool has_room = count_starting_locked(t) < room;

    w->was_full = w->was_full || !has_room;
    *ret_is_probe = w->is_resting;
    if (!has_room || (w->is_resting && (w->is_probing || clock_mono_ms() < w->until_ms)))
        return false;
    w->is_probing = w->is_resting;
    return true;
}

static void start_timer(void *tasks)
{
    struct tasks *t = tasks;
    int64_t left_ms;

    pthread_mutex_lock(&t->mutex);
    left_ms = t->want.until_ms - clock_mono_ms();
    pthread_mutex_unlock(&t->mutex);
    if (t->want_timer)
        loop_timer_set(t->want_timer, MAX(left_ms, (int64_t)0) + 1);
}

/* Failures of claims that began before the rest do not prolong it. */
static void rest(struct tasks *t, const struct rests *rests, const char *why)
{
    struct task_want *w = &t->want;
    int64_t now_ms = clock_mono_ms();
    bool is_new, is_longer, has_to_log;

    pthread_mutex_lock(&t->mutex);
    is_new = !w->is_resting;
    is_longer = is_new || now_ms >= w->until_ms;
    if (is_longer) {
        w->delay_ms = is_new ? rests->first_ms : MIN(2 * w->delay_ms, rests->longest_ms);
        w->until_ms = now_ms + w->delay_ms;
    }
    has_to_log = !w->is_logged && w->delay_ms >= after_failure.first_ms;
    w->is_logged = w->is_logged || has_to_log;
    w->is_resting = true;
    w->is_probing = false;
    pthread_mutex_unlock(&t->mutex);
    if (has_to_log)
        log_warn("tasks", NULL, "no task can be started now, tasks wait: %s", LOG_Q(why));
    if (is_longer)
        loop_post(t->config.loop, start_timer, t);
}

void task_want_note(struct tasks *t, const char *why)
{
    rest(t, &after_failure, why);
}

void task_want_note_room(struct tasks *t, const char *why)
{
    rest(t, &without_room, why);
}

static struct task_crowded *crowded_locked(struct task_want *w, const char *uuid)
{
    struct task_crowded *c = w->crowded;

    while (c < w->crowded + LIMIT_CROWDED_TASKS && strcmp(c->uuid, uuid) != 0)
        c++;
    if (c == w->crowded + LIMIT_CROWDED_TASKS) {
        c = &w->crowded[w->n_crowded++ % LIMIT_CROWDED_TASKS];
        snprintf(c->uuid, sizeof(c->uuid), "%s", uuid);
        c->n = 0;
    }
    return c;
}

/* An end that could not be stored comes here again, and is counted once. */
bool task_want_excuse(struct tasks *t, struct task_run *run)
{
    struct rests rests = after_failure;
    struct task_crowded *c;
    bool is_new;

    pthread_mutex_lock(&t->mutex);
    c = crowded_locked(&t->want, run->uuid);
    is_new = !run->is_excused && c->n < LIMIT_CROWDED_RUNS;
    if (is_new)
        rests.first_ms <<= c->n++;
    run->is_excused = run->is_excused || is_new;
    pthread_mutex_unlock(&t->mutex);
    if (is_new)
        rest(t, &rests, run->end.error);
    return run->is_excused;
}

void task_want_end(struct tasks *t)
{
    bool was_resting, was_logged;

    pthread_mutex_lock(&t->mutex);
    was_resting = t->want.is_resting;
    was_logged = t->want.is_logged;
    t->want.is_resting = t->want.is_probing = t->want.is_logged = false;
    pthread_mutex_unlock(&t->mutex);
    if (!was_resting)
        return;
    if (was_logged)
        log_info("tasks", NULL, "agents can be started again");
    task_apps_dispatch(t);
}

/* A place is free: tasks of other apps may have waited for it. */
void task_want_left(struct tasks *t, const struct task_run *run)
{
    bool was_full;

    pthread_mutex_lock(&t->mutex);
    was_full = t->want.was_full || run->is_probe;
    t->want.was_full = false;
    t->want.is_probing = t->want.is_probing && !run->is_probe;
    pthread_mutex_unlock(&t->mutex);
    if (was_full)
        task_apps_dispatch(t);
}

/* A timer counts from when the loop woke up, so under load it may fire early. */
void task_want_retry(struct tasks *t, void *arg)
{
    bool is_early;

    pthread_mutex_lock(&t->mutex);
    is_early = t->want.is_resting && clock_mono_ms() < t->want.until_ms;
    pthread_mutex_unlock(&t->mutex);
    if (is_early)
        loop_post(t->config.loop, start_timer, t);
    else
        task_apps_dispatch(t);
}
