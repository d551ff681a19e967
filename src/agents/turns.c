/* The turns that run, wait, or have ended a moment ago. */
#include "agents/approvals.h"
#include "agents/message.h"
#include "agents/turns_private.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_MS = 120 * 1000 /* the events of a turn that has ended */, LOOK_US = 100000 };

/* ---- one turn ---- */

struct agent_turn *agent_turn_ref(struct agent_turn *turn)
{
    atomic_fetch_add(&turn->n_refs, 1);
    return turn;
}

struct agent_turn *agent_turn_unref(struct agent_turn *turn)
{
    if (!turn || atomic_fetch_sub(&turn->n_refs, 1) > 1)
        return NULL;
    turn_events_clear(&turn->events);
    pthread_mutex_destroy(&turn->emit_lock);
    arena_free(turn->arena);
    free(turn);
    return NULL;
}

void agent_turn_cancel(struct agent_turn *turn)
{
    atomic_store(&turn->is_cancelled, true);
    if (turn->turns->config.approvals)
        approvals_poke(turn->turns->config.approvals);
}

const char *agent_turn_uuid(const struct agent_turn *turn)
{
    return turn->uuid;
}

static struct agent_turn *new_turn(struct agent_turns *turns, const struct agent_turn_job *job,
                                   const struct agent_turn_client *client)
{
    struct agent_turn *turn = xcalloc(1, sizeof(*turn));
    struct arena *a = turn->arena = arena_new();

    atomic_store(&turn->n_refs, 1);
    turn->turns = turns;
    turn->client = *client;
    turn->caller = *caller_copy(a, job->caller);
    turn->job = (struct agent_turn_job){ .caller = &turn->caller,
                                         .agent_name = arena_strdup(a, job->agent_name),
                                         .thread_id = job->thread_id,
                                         .session_id = arena_strdup(a, job->session_id),
                                         .task_uuid = arena_strdup(a, job->task_uuid),
                                         .sees_thread = job->sees_thread,
                                         .app_id = arena_strdup(a, job->app_id),
                                         .message = arena_strdup(a, job->message),
                                         .timeout_s = job->timeout_s,
                                         .replaces_turn = job->replaces_turn };
    uuid_v4(turn->uuid);
    err_init(&turn->error);
    pthread_mutex_init(&turn->emit_lock, NULL);
    turn_events_init(&turn->events);
    return turn;
}

/* ---- all turns; the callers hold the lock ---- */

static struct agent_turn *find_session(struct agent_turns *turns, const char *session_id, bool is_active)
{
    struct agent_turn *found = NULL;

    for (struct agent_turn *t = turns->first; t; t = t->next)
        if (t->job.session_id && strcmp(t->job.session_id, session_id) == 0 &&
            (is_active ? t->is_active : t->id > 0 && (!found || t->id > found->id)))
            found = t;
    return found;
}

/* Turns that ended too long ago, or are too many, are put into *gone. */
static void drop_kept(struct agent_turns *turns, struct agent_turn **gone)
{
    int64_t before = clock_mono_ms() - KEEP_MS;
    size_t n = 0;

    for (struct agent_turn **at = &turns->first; *at;) { /* the newest is the first */
        struct agent_turn *t = *at;

        if (t->is_active || (t->ended_ms > before && ++n <= LIMIT_TURNS_KEPT)) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        t->next = *gone;
        *gone = t;
    }
}

static void unref_all(struct agent_turn *gone)
{
    for (struct agent_turn *next; gone; gone = next) {
        next = gone->next;
        agent_turn_unref(gone);
    }
}

/* ---- finding ---- */

struct agent_turn *turns_latest(struct agent_turns *turns, const char *session_id)
{
    struct agent_turn *found;

    pthread_mutex_lock(&turns->lock);
    found = find_session(turns, session_id, false);
    if (found)
        agent_turn_ref(found);
    pthread_mutex_unlock(&turns->lock);
    return found;
}

struct agent_turn *agent_turns_running(struct agent_turns *turns, const char *session_id)
{
    struct agent_turn *found;

    pthread_mutex_lock(&turns->lock);
    found = find_session(turns, session_id, true);
    if (found)
        agent_turn_ref(found);
    pthread_mutex_unlock(&turns->lock);
    return found;
}

bool agent_turns_thread_is_busy(struct agent_turns *turns, int64_t thread_id)
{
    bool is_busy = false;

    pthread_mutex_lock(&turns->lock);
    for (struct agent_turn *t = turns->first; t; t = t->next)
        is_busy |= t->is_active && t->job.thread_id == thread_id;
    pthread_mutex_unlock(&turns->lock);
    return is_busy;
}

/* ---- begin and end ---- */

static int refuse_busy(struct err *e)
{
    return err_set(e, -EBUSY, "SESSION_BUSY", "A turn of this session runs already: wait for its end, or cancel it.");
}

/* Takes the session for the turn, before anything is stored. */
static int take_place(struct agent_turns *turns, struct agent_turn *turn, struct err *e)
{
    struct agent_turn *gone = NULL;
    int r = 0;

    pthread_mutex_lock(&turns->lock);
    if (atomic_load(&turns->is_leaving))
        r = err_set(e, -ECANCELED, "SHUTTING_DOWN", "The service is stopping.");
    else if (turn->job.session_id && find_session(turns, turn->job.session_id, true))
        r = refuse_busy(e);
    if (r == 0) {
        drop_kept(turns, &gone);
        turn->is_active = true;
        turn->next = turns->first;
        turns->first = agent_turn_ref(turn);
    }
    pthread_mutex_unlock(&turns->lock);
    unref_all(gone);
    return r;
}

static void give_place_back(struct agent_turn *turn)
{
    struct agent_turns *turns = turn->turns;
    struct agent_turn **at = &turns->first;

    pthread_mutex_lock(&turns->lock);
    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    pthread_mutex_unlock(&turns->lock);
    agent_turn_unref(turn);
}

void turns_release(struct agent_turn *turn)
{
    struct agent_turns *turns = turn->turns;
    struct agent_turn *gone = NULL;

    pthread_mutex_lock(&turns->lock);
    turn->is_active = false;
    turn->ended_ms = clock_mono_ms();
    drop_kept(turns, &gone);
    pthread_mutex_unlock(&turns->lock);
    unref_all(gone);
}

void agent_turns_forget_old(struct agent_turns *turns)
{
    struct agent_turn *gone = NULL;

    pthread_mutex_lock(&turns->lock);
    drop_kept(turns, &gone);
    pthread_mutex_unlock(&turns->lock);
    unref_all(gone);
}

static void run(void *arg)
{
    struct agent_turn *turn = arg;

    turn_run(turn);
    turn_events_end(turn);
    turn->client.on_end(turn->client.arg, &turn->end);
    agent_turn_unref(turn);
}

static void on_place(void *arg, size_t place)
{
    struct agent_turn *turn = arg;
    char text[80];

    snprintf(text, sizeof(text), "Waits for a free place: number %zu.", place);
    turn_emit(turn, &(struct turn_event){ .type = "agentThought", .member = "thought", .text = slice_of(text) });
}

static int store_turn(struct agent_turn *turn, struct err *e)
{
    const struct agent_turn_job *job = &turn->job;
    const struct turn_row row = { .uuid = turn->uuid,
                                  .thread_id = job->thread_id,
                                  .session_id = job->session_id,
                                  .task_uuid = job->task_uuid,
                                  .scope = turn->caller.scope,
                                  .who = turn->caller.actor,
                                  .agent_name = job->agent_name };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_message message = agent_message_of(a, LLM_USER, job->message);
    struct store *store = turn->turns->config.store;
    struct buf out;
    int64_t id = 0;
    int r;

    buf_init(&out, LIMIT_REPLY);
    agent_message_print(&out, &message);
    r = buf_check(&out, e);
    if (r == 0)
        r = store_turns_begin(store, &row, &(struct message_row){ .role = "user", .message = buf_str(&out) },
                              job->replaces_turn, &id, e);
    turn->id = id;
    if (r == 0 && job->session_id)
        r = store_agent_sessions_touch(store, job->session_id, e);
    buf_clear(&out);
    return r;
}

/* A turn that cannot begin after all: its row says so, and viewers that follow it already go on. */
static void forget_turn(struct agent_turn *turn, const struct err *e)
{
    const struct turn_row end = { .id = turn->id,
                                  .uuid = turn->uuid,
                                  .state = TURN_ENDED,
                                  .why = "failed",
                                  .error_code = e->code,
                                  .error = e->text };

    if (turn->id > 0)
        (void)!store_turns_end(turn->turns->config.store, &end, NULL);
    give_place_back(turn);
    turn_events_end(turn);
}

static int submit(struct agent_turn *turn, struct err *e)
{
    const struct turn_job job = { .run = run, .on_place = on_place, .arg = agent_turn_ref(turn) };
    int r = turn_pool_submit(turn->turns->pool, &job, e);

    if (r < 0) {
        agent_turn_unref(turn);
        return r;
    }
    if (turn->job.session_id)
        loop_post(turn->turns->config.loop, turn_events_begin, agent_turn_ref(turn));
    return 0;
}

static int check_job(struct agent_turns *turns, const struct agent_turn_job *job, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct agent_definition agent = { 0 };
    int r;

    if (!turns->pool)
        return err_set(e, -ENOTSUP, "NOT_SERVING",
                       "Agents work only while the service runs; start it with `hearth serve`");
    if (strlen(job->message) > LIMIT_AGENT_MESSAGE)
        return err_add_field(e, "message", "must have at most %d bytes", LIMIT_AGENT_MESSAGE);
    r = agent_find(turns->config.agents, job->agent_name, a, &agent, e);
    if (r == 0 && !agent_is_model(&agent))
        r = err_add_field(e, "agent_name", "must be an agent of kind model; %.128s is a process", job->agent_name);
    return r;
}

int agent_turn_start(struct agent_turns *turns, const struct agent_turn_job *job,
                     const struct agent_turn_client *client, struct agent_turn **ret, struct err *e)
{
    struct agent_turn *turn;
    int r = check_job(turns, job, e);

    if (r < 0)
        return r;
    turn = new_turn(turns, job, client);
    r = take_place(turns, turn, e);
    if (r < 0) {
        agent_turn_unref(turn);
        return r;
    }
    *ret = agent_turn_ref(turn); /* the client may be called before this returns */
    r = store_turn(turn, e);
    if (r == 0)
        r = submit(turn, e);
    if (r < 0) {
        forget_turn(turn, e);
        *ret = agent_turn_unref(*ret);
    }
    agent_turn_unref(turn);
    return r;
}

/* ---- a thread that waits ---- */

struct blocked {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
};

static void wake(void *arg, const struct agent_turn_end *end)
{
    struct blocked *b = arg;

    pthread_mutex_lock(&b->lock);
    b->is_done = true;
    pthread_cond_signal(&b->changed); /* under the lock: b ends with its owner's next step */
    pthread_mutex_unlock(&b->lock);
}

static void wait_for_end(struct blocked *b, struct agent_turn *turn, const atomic_bool *is_gone)
{
    pthread_mutex_lock(&b->lock);
    while (!b->is_done) {
        cond_wait_until(&b->changed, &b->lock, clock_mono_us() + LOOK_US);
        if (is_gone && atomic_load(is_gone) && !atomic_load(&turn->is_cancelled)) {
            pthread_mutex_unlock(&b->lock);
            agent_turn_cancel(turn);
            pthread_mutex_lock(&b->lock);
        }
    }
    pthread_mutex_unlock(&b->lock);
}

static void unref_turn(void *turn)
{
    agent_turn_unref(turn);
}

int agent_turn_run_blocking(struct agent_turns *turns, const struct agent_turn_job *job, const atomic_bool *is_gone,
                            struct arena *a, struct agent_turn_end *ret, struct err *e)
{
    struct blocked b = { .is_done = false };
    const struct agent_turn_client client = { .on_end = wake, .arg = &b };
    struct agent_turn *turn = NULL;
    int r;

    pthread_mutex_init(&b.lock, NULL);
    cond_init(&b.changed);
    r = agent_turn_start(turns, job, &client, &turn, e);
    if (r == 0) {
        wait_for_end(&b, turn, is_gone);
        arena_defer(a, unref_turn, turn); /* its end lies in the turn's arena */
        *ret = turn->end;
    }
    pthread_cond_destroy(&b.changed);
    pthread_mutex_destroy(&b.lock);
    return r;
}

/* ---- the collection ---- */

static void end_store_thread(void *store)
{
    store_thread_end(store);
}

int agent_turns_open(const struct agent_turns_config *c, struct agent_turns **ret, struct err *e)
{
    struct agent_turns *turns = xcalloc(1, sizeof(*turns));
    const struct turn_pool_config pool = { .on_thread_end = end_store_thread, .arg = c->store };
    int64_t n_interrupted = 0;
    int r = 0;

    turns->config = *c;
    pthread_mutex_init(&turns->lock, NULL);
    if (c->loop)
        r = store_turns_recover(c->store, &n_interrupted, e);
    if (r == 0 && c->loop)
        r = turn_pool_start(&pool, &turns->pool, e);
    if (r < 0)
        agent_turns_close(turns);
    else
        *ret = turns;
    return r;
}

static void cancel_turns(struct agent_turns *turns, bool with_tasks)
{
    pthread_mutex_lock(&turns->lock);
    atomic_store(&turns->is_leaving, true);
    for (struct agent_turn *t = turns->first; t; t = t->next)
        if (t->is_active && (with_tasks || !t->job.task_uuid))
            atomic_store(&t->is_cancelled, true);
    pthread_mutex_unlock(&turns->lock);
    if (turns->config.approvals)
        approvals_poke(turns->config.approvals);
}

void agent_turns_leave(struct agent_turns *turns)
{
    cancel_turns(turns, false);
}

void agent_turns_finish(struct agent_turns *turns)
{
    if (!turns)
        return;
    cancel_turns(turns, true);
    turns->pool = turn_pool_stop(turns->pool);
}

struct agent_turns *agent_turns_close(struct agent_turns *turns)
{
    if (!turns)
        return NULL;
    agent_turns_finish(turns);
    unref_all(turns->first);
    pthread_mutex_destroy(&turns->lock);
    free(turns);
    return NULL;
}
