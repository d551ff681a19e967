/* The viewers of a turn: one that takes nothing makes the turn wait once, and costs the other viewers nothing. */
#include "agents/turns_private.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/util.h"
#include "http/carrier.h"

#include "../wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EVENT_BYTES = 100 << 10, N_BEFORE = 4, N_AFTER = 8 };

/* A client that takes what is pushed unless it is shut; its fields belong to the loop thread. */
struct client {
    struct http_stream stream;
    bool is_shut, was_told_of_loss;
    void (*on_change)(struct http_stream *s, void *arg);
    void *arg;
    atomic_int n_events, n_refused;
    atomic_bool has_ended;
};

static int client_push(struct http_stream *s, struct slice bytes)
{
    struct client *c = (struct client *)s;

    if (c->is_shut) {
        atomic_fetch_add(&c->n_refused, 1);
        return -EAGAIN;
    }
    c->was_told_of_loss |= memmem(bytes.p, bytes.n, "too slowly", 10) != NULL;
    for (const char *p = bytes.p, *end = p + bytes.n; (p = memmem(p, (size_t)(end - p), "id: ", 4)); p += 4)
        atomic_fetch_add(&c->n_events, 1);
    return 0;
}

static void client_on_change(struct http_stream *s, void (*fn)(struct http_stream *s, void *arg), void *arg)
{
    struct client *c = (struct client *)s;

    c->on_change = fn;
    c->arg = arg;
}

static bool client_is_gone(const struct http_stream *s)
{
    return false;
}

static void client_end(struct http_stream *s, bool is_complete)
{
    atomic_store(&((struct client *)s)->has_ended, true);
}

static const struct http_stream_carrier carrier = {
    .push = client_push, .on_change = client_on_change, .is_gone = client_is_gone, .end = client_end
};

static void shut(void *arg)
{
    ((struct client *)arg)->is_shut = true;
}

static void open_again(void *arg)
{
    struct client *c = arg;

    c->is_shut = false;
    if (c->on_change)
        c->on_change(&c->stream, c->arg);
}

/* ---- the turn ---- */

struct rig {
    struct agent_turns turns;
    struct agent_turn *turn;
    struct client bad, good;
    pthread_t loop_thread;
    char *text;
    int n_due;
    atomic_int n_emitted;
};

static void *run_loop(void *arg)
{
    assert_int_equal(loop_run(arg, NULL), 0);
    return NULL;
}

static int set_up(void **state)
{
    struct rig *x = xcalloc(1, sizeof(*x));

    assert_int_equal(loop_new(&x->turns.config.loop, NULL), 0);
    pthread_mutex_init(&x->turns.lock, NULL);
    x->turn = xcalloc(1, sizeof(*x->turn));
    *x->turn = (struct agent_turn){ .turns = &x->turns, .arena = arena_new() };
    atomic_store(&x->turn->n_refs, 1);
    pthread_mutex_init(&x->turn->emit_lock, NULL);
    turn_events_init(&x->turn->events);
    http_stream_init(&x->bad.stream, &carrier);
    http_stream_init(&x->good.stream, &carrier);
    x->text = xcalloc(1, EVENT_BYTES);
    memset(x->text, 'x', EVENT_BYTES);
    assert_int_equal(pthread_create(&x->loop_thread, NULL, run_loop, x->turns.config.loop), 0);
    *state = x;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *x = *state;

    loop_stop(x->turns.config.loop);
    pthread_join(x->loop_thread, NULL);
    agent_turn_unref(x->turn);
    loop_free(x->turns.config.loop);
    pthread_mutex_destroy(&x->turns.lock);
    free(x->text);
    free(x);
    return 0;
}

static void emit(struct rig *x, int n)
{
    for (int i = 0; i < n; i++) {
        turn_emit(x->turn, &(struct turn_event){ .type = "textResponseChunk",
                                                 .member = "textResponse",
                                                 .text = { x->text, EVENT_BYTES } });
        atomic_fetch_add(&x->n_emitted, 1);
    }
}

static void *emit_more(void *arg)
{
    emit(arg, N_AFTER);
    return NULL;
}

static bool both_view(void *arg)
{
    return atomic_load(&((struct rig *)arg)->turn->events.n_viewers) == 2;
}

static bool good_has_all(void *arg)
{
    return atomic_load(&((struct rig *)arg)->good.n_events) == N_BEFORE;
}

static bool good_is_behind(void *arg)
{
    struct rig *x = arg;

    return atomic_load(&x->good.n_refused) > 0 && atomic_load(&x->n_emitted) >= x->n_due;
}

static bool streams_have_ended(void *arg)
{
    struct rig *x = arg;

    return atomic_load(&x->good.has_ended) && atomic_load(&x->bad.has_ended);
}

static void a_viewer_that_takes_nothing_costs_the_others_nothing(void **state)
{
    struct rig *x = *state;
    pthread_t emitter;

    x->bad.is_shut = true;
    agent_turn_show(x->turn, &(struct agent_view){ .stream = &x->bad.stream });
    agent_turn_show(x->turn, &(struct agent_view){ .stream = &x->good.stream });
    assert_true(wait_until(both_view, x));
    emit(x, N_BEFORE); /* waits for the bad viewer, once */
    assert_true(wait_until(good_has_all, x));
    loop_call(x->turns.config.loop, shut, &x->good);
    x->n_due = N_BEFORE + LIMIT_RING_BYTES / 2 / EVENT_BYTES;
    assert_int_equal(pthread_create(&emitter, NULL, emit_more, x), 0);
    assert_true(wait_until(good_is_behind, x));
    loop_call(x->turns.config.loop, open_again, &x->good);
    pthread_join(emitter, NULL);
    turn_events_end(x->turn);
    assert_true(wait_until(streams_have_ended, x));
    assert_int_equal(atomic_load(&x->good.n_events), N_BEFORE + N_AFTER);
    assert_false(x->good.was_told_of_loss);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_viewer_that_takes_nothing_costs_the_others_nothing, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
