/* Receivers without a backend: who is called, and who is not any more. */
#include "backend/receivers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>

struct party {
    struct receivers *receivers;
    struct party *other;
    int n_events, n_gaps, n_messages;
};

static void count_event(void *arg, const struct backend_event *event)
{
    struct party *p = arg;

    p->n_events++;
}

static void count_gap(void *arg)
{
    struct party *p = arg;

    p->n_gaps++;
}

static void count_message(void *arg, const char *channel, const char *event, const char *payload_json)
{
    struct party *p = arg;

    p->n_messages++;
}

static void dismiss_other(void *arg, const struct backend_event *event)
{
    struct party *p = arg;

    p->n_events++;
    receivers_unsubscribe(p->receivers, p->other);
}

static void invite_other(void *arg, const struct backend_event *event)
{
    struct party *p = arg;

    p->n_events++;
    if (receivers_subscribe(p->receivers, count_event, NULL, p->other, NULL) < 0)
        p->n_gaps++;
}

static void deliver(struct receivers *rs)
{
    const struct backend_event event = { .table = "orders", .op = BACKEND_INSERT };

    receivers_begin(rs);
    receivers_event(rs, &event);
    receivers_gap(rs);
    receivers_end(rs);
}

static void an_event_reaches_every_subscriber_and_a_gap_those_who_want_it(void **state)
{
    struct receivers *rs = receivers_new();
    struct party one = { 0 }, two = { 0 };

    assert_int_equal(receivers_subscribe(rs, count_event, count_gap, &one, NULL), 0);
    assert_int_equal(receivers_subscribe(rs, count_event, NULL, &two, NULL), 0);
    assert_int_equal(receivers_subscribe(rs, count_event, NULL, &two, NULL), -EEXIST);
    deliver(rs);
    receivers_unsubscribe(rs, &one);
    receivers_unsubscribe(rs, &one);
    receivers_unsubscribe(rs, NULL);
    deliver(rs);
    assert_int_equal(one.n_events, 1);
    assert_int_equal(one.n_gaps, 1);
    assert_int_equal(two.n_events, 2);
    receivers_free(rs);
}

static void a_callback_may_dismiss_the_next_and_invite_another(void **state)
{
    struct receivers *rs = receivers_new();
    struct party next = { 0 }, late = { 0 };
    struct party first = { .receivers = rs, .other = &next }, last = { .receivers = rs, .other = &late };

    assert_int_equal(receivers_subscribe(rs, dismiss_other, NULL, &first, NULL), 0);
    assert_int_equal(receivers_subscribe(rs, count_event, NULL, &next, NULL), 0);
    assert_int_equal(receivers_subscribe(rs, invite_other, NULL, &last, NULL), 0);
    deliver(rs);
    assert_int_equal(next.n_events, 0);
    assert_int_equal(late.n_events, 1);
    deliver(rs);
    assert_int_equal(next.n_events, 0);
    assert_int_equal(late.n_events, 2);
    assert_int_equal(last.n_gaps, 1); /* invited twice */
    receivers_free(rs);
}

static void whoever_leaves_is_no_subscriber_within_a_nested_delivery_either(void **state)
{
    struct receivers *rs = receivers_new();
    struct party one = { 0 };

    assert_int_equal(receivers_subscribe(rs, count_event, NULL, &one, NULL), 0);
    receivers_begin(rs);
    receivers_unsubscribe(rs, &one);
    deliver(rs);
    assert_false(receivers_has_subscriber(rs));
    receivers_end(rs);
    assert_int_equal(one.n_events, 0);
    assert_int_equal(receivers_subscribe(rs, count_event, NULL, &one, NULL), 0);
    receivers_free(rs);
}

static void a_broadcast_reaches_its_channel_until_the_listener_leaves_all(void **state)
{
    struct receivers *rs = receivers_new();
    struct party one = { 0 }, two = { 0 };

    receivers_listen(rs, "a", count_message, &one);
    receivers_listen(rs, "b", count_message, &one);
    receivers_listen(rs, "b", count_message, &two);
    receivers_broadcast(rs, "a", "x", "{}");
    receivers_broadcast(rs, "b", "x", "{}");
    receivers_broadcast(rs, "c", "x", "{}");
    assert_int_equal(one.n_messages, 2);
    assert_int_equal(two.n_messages, 1);
    receivers_unlisten(rs, &one);
    receivers_broadcast(rs, "a", "x", "{}");
    receivers_broadcast(rs, "b", "x", "{}");
    assert_int_equal(one.n_messages, 2);
    assert_int_equal(two.n_messages, 2);
    receivers_free(rs);
}

/* --- leaving waits for a callback that runs on the delivering thread --- */

struct slow {
    struct receivers *receivers;
    sem_t is_running, may_go;
    bool has_ended;
};

static void run_slowly(void *arg, const struct backend_event *event)
{
    struct slow *s = arg;

    sem_post(&s->is_running);
    sem_wait(&s->may_go);
    s->has_ended = true;
}

static void *deliver_on_thread(void *arg)
{
    struct slow *s = arg;

    deliver(s->receivers);
    return NULL;
}

static void *let_go(void *arg)
{
    struct slow *s = arg;

    sem_post(&s->may_go);
    return NULL;
}

static void leaving_waits_for_the_running_callback(void **state)
{
    struct slow s = { .receivers = receivers_new() };
    pthread_t deliverer, opener;

    sem_init(&s.is_running, 0, 0);
    sem_init(&s.may_go, 0, 0);
    assert_int_equal(receivers_subscribe(s.receivers, run_slowly, NULL, &s, NULL), 0);
    pthread_create(&deliverer, NULL, deliver_on_thread, &s);
    sem_wait(&s.is_running);
    pthread_create(&opener, NULL, let_go, &s);
    receivers_unsubscribe(s.receivers, &s);
    assert_true(s.has_ended);
    pthread_join(opener, NULL);
    pthread_join(deliverer, NULL);
    receivers_free(s.receivers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_reaches_every_subscriber_and_a_gap_those_who_want_it),
        cmocka_unit_test(a_callback_may_dismiss_the_next_and_invite_another),
        cmocka_unit_test(whoever_leaves_is_no_subscriber_within_a_nested_delivery_either),
        cmocka_unit_test(a_broadcast_reaches_its_channel_until_the_listener_leaves_all),
        cmocka_unit_test(leaving_waits_for_the_running_callback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
