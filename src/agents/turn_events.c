/* The events of turns, and the streams that show them.
 *
 * A turn's thread adds events to the turn's ring; the loop passes them on to every viewer. A slow viewer makes the turn
 * wait, TURN_VIEWER_WAIT_MS at most; then the turn waits for the other viewers only, and the slow one may lose events.
 */
#include "agents/turns_private.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "http/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct viewer {
    struct viewer *next;            /* of its turn, or of the idle ones */
    struct viewer *older, *younger; /* of all */
    struct agent_turns *turns;
    struct http_stream *stream; /* owned */
    struct agent_turn *turn;    /* a reference; NULL: idle */
    char *session_id;           /* owned; NULL: the stream ends with the turn */
    int64_t after;              /* the number of the last event that was pushed */
    int64_t n_taken;            /* as turn_events.n_taken */
    bool cancels, is_new;       /* is_new: has not been told which turn it sees */
    bool is_late;               /* made its turn wait for too long: the turn waits for it no longer */
};

static void pump(struct viewer *v);

void turn_events_init(struct turn_events *events)
{
    pthread_mutex_init(&events->lock, NULL);
    cond_init(&events->room);
}

void turn_events_clear(struct turn_events *events)
{
    llm_ring_clear(&events->ring);
    pthread_cond_destroy(&events->room);
    pthread_mutex_destroy(&events->lock);
}

/* ---- the turn's thread ---- */

static void print_event(struct agent_turn *turn, const struct turn_event *event, int64_t number, struct buf *out)
{
    struct json_writer w;

    buf_printf(out, "id: %lld.%lld\ndata: ", (long long)turn->id, (long long)number);
    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "type", event->type);
    if (event->member)
        json_add_slice(&w, event->member, event->text);
    if (event->more_name)
        json_add_string(&w, event->more_name, event->more);
    json_end(&w);
    buf_add_str(out, "\n\n");
}

/* How much each viewer must have taken before n more bytes are added. The caller holds the lock. */
static int64_t due_before(const struct turn_events *events, size_t n)
{
    return MIN(events->n_bytes, events->n_bytes + (int64_t)n - LIMIT_RING_BYTES / 2);
}

static bool is_far_ahead(const struct turn_events *events, size_t n)
{
    return events->late_before > 0 || events->n_taken < due_before(events, n);
}

static void wait_for_viewers(struct turn_events *events, size_t n)
{
    int64_t until_us = clock_mono_us() + TURN_VIEWER_WAIT_MS * INT64_C(1000);

    while (atomic_load(&events->n_viewers) > 0 && is_far_ahead(events, n))
        if (!cond_wait_until(&events->room, &events->lock, until_us)) {
            events->late_before = due_before(events, n);
            return;
        }
}

/* The place of the slowest viewer that is not late; without such viewers nothing waits. */
static void update_taken(struct turn_events *events)
{
    int64_t least = INT64_MAX;

    for (const struct viewer *v = events->viewers; v; v = v->next)
        if (!v->is_late)
            least = MIN(least, v->n_taken);
    pthread_mutex_lock(&events->lock);
    events->n_taken = MIN(least, events->n_bytes);
    pthread_mutex_unlock(&events->lock);
    pthread_cond_broadcast(&events->room);
}

static void mark_late(struct turn_events *events)
{
    int64_t late_before;

    pthread_mutex_lock(&events->lock);
    late_before = events->late_before;
    events->late_before = 0;
    pthread_mutex_unlock(&events->lock);
    for (struct viewer *v = events->viewers; v; v = v->next)
        v->is_late |= v->n_taken < late_before;
}

/* arg: a reference to the turn. */
static void pump_all(void *arg)
{
    struct agent_turn *turn = arg;
    struct viewer *next;

    pthread_mutex_lock(&turn->events.lock);
    turn->events.is_posted = false;
    pthread_mutex_unlock(&turn->events.lock);
    for (struct viewer *v = turn->events.viewers; v; v = next) {
        next = v->next;
        pump(v);
    }
    mark_late(&turn->events);
    update_taken(&turn->events);
    agent_turn_unref(turn);
}

/* Adds to the ring what out holds; false: no post is needed. */
static bool add_event(struct turn_events *events, struct slice text)
{
    bool needs_post;

    wait_for_viewers(events, text.n);
    llm_ring_add(&events->ring, text);
    events->n_bytes += (int64_t)text.n;
    if (atomic_load(&events->n_viewers) == 0)
        events->n_taken = events->n_bytes;
    needs_post = !events->is_posted && atomic_load(&events->n_viewers) > 0;
    events->is_posted |= needs_post;
    return needs_post;
}

/* The caller holds emit_lock. True: the loop is to be told. */
static bool print_and_add(struct agent_turn *turn, const struct turn_event *event)
{
    struct turn_events *events = &turn->events;
    bool needs_post;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    print_event(turn, event, events->ring.n_events + 1, &out);
    pthread_mutex_lock(&events->lock);
    needs_post = add_event(events, buf_slice(&out));
    pthread_mutex_unlock(&events->lock);
    buf_clear(&out);
    return needs_post;
}

void turn_emit(struct agent_turn *turn, const struct turn_event *event)
{
    bool needs_post, is_first;

    pthread_mutex_lock(&turn->emit_lock);
    needs_post = print_and_add(turn, event);
    is_first = !turn->was_shown && !event->is_failure;
    turn->was_shown |= is_first;
    pthread_mutex_unlock(&turn->emit_lock);
    if (needs_post)
        loop_post(turn->turns->config.loop, pump_all, agent_turn_ref(turn));
    if (is_first && turn->client.on_event)
        turn->client.on_event(turn->client.arg, turn);
}

void turn_events_end(struct agent_turn *turn)
{
    pthread_mutex_lock(&turn->events.lock);
    turn->events.is_ended = true;
    pthread_mutex_unlock(&turn->events.lock);
    loop_post(turn->turns->config.loop, pump_all, agent_turn_ref(turn));
}

/* ---- the loop: lists ---- */

static void unlink_viewer(struct viewer **at, struct viewer *v)
{
    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
}

static void leave_turn(struct viewer *v)
{
    struct agent_turn *turn = v->turn;

    if (!turn) {
        unlink_viewer(&v->turns->idle, v);
        return;
    }
    unlink_viewer(&turn->events.viewers, v);
    atomic_fetch_sub(&turn->events.n_viewers, 1);
    update_taken(&turn->events);
    v->turn = agent_turn_unref(turn);
}

static void join_turn(struct viewer *v, struct agent_turn *turn)
{
    v->turn = turn;
    v->is_new = v->session_id != NULL;
    v->is_late = false;
    v->next = turn->events.viewers;
    turn->events.viewers = v;
    atomic_fetch_add(&turn->events.n_viewers, 1);
}

static void join_idle(struct viewer *v)
{
    v->next = v->turns->idle;
    v->turns->idle = v;
}

static void add_to_all(struct viewer *v)
{
    v->older = v->turns->viewers;
    if (v->older)
        v->older->younger = v;
    v->turns->viewers = v;
}

static void remove_from_all(struct viewer *v)
{
    if (v->older)
        v->older->younger = v->younger;
    if (v->younger)
        v->younger->older = v->older;
    else
        v->turns->viewers = v->older;
}

static void free_viewer(struct viewer *v)
{
    http_stream_on_change(v->stream, NULL, NULL);
    http_stream_end(v->stream);
    free(v->session_id);
    free(v);
}

static void end_viewer(struct viewer *v)
{
    leave_turn(v);
    remove_from_all(v);
    free_viewer(v);
}

/* ---- the loop: pushing ---- */

static void push_note(struct viewer *v, const char *json)
{
    (void)!sse_push(v->stream, NULL, NULL, slice_of(json)); /* a viewer without room learns it from the events */
}

static void push_turn(struct viewer *v)
{
    char text[128];

    v->is_new = false;
    snprintf(text, sizeof(text), "{\"type\":\"turnStarted\",\"turn_id\":\"%s\"}", v->turn->uuid);
    push_note(v, text);
}

/* What the viewer has not seen: 0, or -ENOENT when some of it is not kept any more. */
static int take_events(struct viewer *v, struct buf *out, int64_t *ret_last, int64_t *ret_bytes, bool *ret_is_ended)
{
    struct turn_events *events = &v->turn->events;
    int r;

    pthread_mutex_lock(&events->lock);
    r = llm_ring_replay(&events->ring, v->after, out);
    *ret_last = events->ring.n_events;
    *ret_bytes = events->n_bytes;
    *ret_is_ended = events->is_ended;
    pthread_mutex_unlock(&events->lock);
    return r;
}

/* The session's viewer waits for the next turn, or follows it when it has begun already. */
static void move_on(struct viewer *v)
{
    struct agent_turn *latest = turns_latest(v->turns, v->session_id), *before = agent_turn_ref(v->turn);
    bool is_next = latest && latest->id > before->id;

    leave_turn(v);
    v->after = v->n_taken = 0;
    if (is_next) {
        join_turn(v, latest);
        pump(v);
    } else {
        join_idle(v);
        agent_turn_unref(latest);
    }
    agent_turn_unref(before);
}

/* A viewer that lost events: a follower is told so and goes on; a stream that promises every event ends. */
static bool skip_lost(struct viewer *v, int64_t last, int64_t n_bytes)
{
    if (!v->session_id) {
        push_note(v, "{\"type\":\"error\",\"error\":\"The stream was read too slowly: events were lost.\"}");
        end_viewer(v);
        return false;
    }
    push_note(v, "{\"type\":\"resync\"}");
    v->after = last;
    v->n_taken = n_bytes;
    update_taken(&v->turn->events);
    return true;
}

static void pump(struct viewer *v)
{
    int64_t last = 0, n_bytes = 0;
    bool is_ended = false;
    struct buf out;
    int r;

    if (v->is_new)
        push_turn(v);
    buf_init(&out, LIMIT_REPLY);
    r = take_events(v, &out, &last, &n_bytes, &is_ended);
    if (r < 0 && !skip_lost(v, last, n_bytes))
        return;
    r = r == 0 && out.n > 0 ? http_stream_push(v->stream, buf_slice(&out)) : 0;
    buf_clear(&out);
    if (r < 0) /* on_change() comes when there is room, or when the viewer has left */
        return;
    v->after = last;
    v->n_taken = n_bytes;
    update_taken(&v->turn->events);
    if (is_ended && v->session_id)
        move_on(v);
    else if (is_ended)
        end_viewer(v);
}

static void stream_changed(struct http_stream *stream, void *arg)
{
    struct viewer *v = arg;

    if (!http_stream_is_gone(stream)) {
        if (v->turn)
            pump(v);
        return;
    }
    if (v->cancels && v->turn)
        agent_turn_cancel(v->turn);
    end_viewer(v);
}

/* ---- new viewers ---- */

static bool has_ended(struct agent_turn *turn)
{
    bool has;

    pthread_mutex_lock(&turn->events.lock);
    has = turn->events.is_ended;
    pthread_mutex_unlock(&turn->events.lock);
    return has;
}

static struct agent_turn *running_turn(struct viewer *v)
{
    struct agent_turn *turn = turns_latest(v->turns, v->session_id);

    return turn && has_ended(turn) ? agent_turn_unref(turn) : turn;
}

static void refuse_viewer(struct viewer *v)
{
    if (v->turn)
        v->turn = agent_turn_unref(v->turn);
    free_viewer(v);
}

/* A turn that began after the request is followed too. */
static void add_viewer(void *arg)
{
    struct viewer *v = arg;
    struct agent_turn *turn;

    if (v->turns->has_ended_streams) {
        refuse_viewer(v);
        return;
    }
    turn = v->turn ? v->turn : running_turn(v);
    add_to_all(v);
    if (v->session_id)
        push_note(v,
                  turn ? "{\"type\":\"session\",\"state\":\"running\"}" : "{\"type\":\"session\",\"state\":\"idle\"}");
    if (turn)
        join_turn(v, turn);
    else
        join_idle(v);
    v->is_new &= v->after == 0;
    turn = turn ? agent_turn_ref(turn) : NULL;
    http_stream_on_change(v->stream, stream_changed, v); /* ends the viewer of a client that has left */
    if (turn)
        pump_all(turn);
}

void agent_turn_show(struct agent_turn *turn, const struct agent_view *view)
{
    struct viewer *v = xcalloc(1, sizeof(*v));

    *v = (struct viewer){
        .turns = turn->turns, .stream = view->stream, .turn = agent_turn_ref(turn), .cancels = view->cancels
    };
    loop_post(turn->turns->config.loop, add_viewer, v);
}

/* "turn.number", as the events are numbered; false: of another turn, or no id of ours. */
static bool read_event_id(const char *id, int64_t turn_id, int64_t *ret_after)
{
    char *end = NULL;

    if (!id || strtoll(id, &end, 10) != turn_id || *end != '.' || end[1] < '0' || end[1] > '9')
        return false;
    *ret_after = strtoll(end + 1, &end, 10);
    return *end == '\0';
}

void agent_turns_follow(struct agent_turns *turns, const char *session_id, const struct agent_view *view)
{
    struct agent_turn *turn = turns_latest(turns, session_id);
    struct viewer *v = xcalloc(1, sizeof(*v));
    bool resumes;

    *v = (struct viewer){ .turns = turns, .stream = view->stream, .session_id = xstrdup(session_id) };
    resumes = turn && read_event_id(view->last_event_id, turn->id, &v->after);
    if (turn && !resumes) /* what has ended is shown only to those who saw its beginning */
        turn = agent_turn_unref(turn);
    v->turn = turn;
    if (view->last_event_id && *view->last_event_id && !resumes)
        push_note(v, "{\"type\":\"resync\"}");
    loop_post(turns->config.loop, add_viewer, v);
}

void turn_events_begin(void *arg)
{
    struct agent_turn *turn = arg;
    struct viewer *next;

    for (struct viewer *v = turn->turns->idle; v; v = next) {
        next = v->next;
        if (strcmp(v->session_id, turn->job.session_id) == 0) {
            leave_turn(v);
            join_turn(v, agent_turn_ref(turn));
            pump(v);
        }
    }
    agent_turn_unref(turn);
}

/* ---- the end of sessions and of the service ---- */

struct ended_session {
    struct agent_turns *turns;
    char *id;
};

static void end_session(void *arg)
{
    struct ended_session *ended = arg;

    for (struct viewer *v = ended->turns->viewers, *older; v; v = older) {
        older = v->older;
        if (v->session_id && strcmp(v->session_id, ended->id) == 0) {
            push_note(v, "{\"type\":\"close\"}");
            end_viewer(v);
        }
    }
    free(ended->id);
    free(ended);
}

void agent_turns_end_session(struct agent_turns *turns, const char *session_id)
{
    struct agent_turn *turn = agent_turns_running(turns, session_id);
    struct ended_session *ended;

    if (turn)
        agent_turn_cancel(turn);
    agent_turn_unref(turn);
    if (!turns->config.loop)
        return;
    ended = xcalloc(1, sizeof(*ended));
    *ended = (struct ended_session){ turns, xstrdup(session_id) };
    loop_post(turns->config.loop, end_session, ended);
}

void agent_turns_end_streams(struct agent_turns *turns)
{
    turns->has_ended_streams = true;
    while (turns->viewers)
        end_viewer(turns->viewers);
}
