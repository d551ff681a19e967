#include "speech/turns.h"

#include "base/limits.h"
#include "base/thread.h"
#include "wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { N_GREEDY = 8 };

static struct speech_turns turns;
static atomic_bool is_gone;
static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;
static char order[64];

struct request {
    pthread_t thread;
    const char *caller;
    int r;
};

static void *take_and_give(void *arg)
{
    struct request *req = arg;
    const struct net_wait wait = net_wait_of(60000, &is_gone, NULL);

    req->r = speech_turns_take(&turns, req->caller, &wait, NULL);
    if (req->r < 0)
        return NULL;
    pthread_mutex_lock(&order_lock);
    strncat(order, req->caller, 1);
    pthread_mutex_unlock(&order_lock);
    speech_turns_give(&turns);
    return NULL;
}

static bool has_waiting(void *n)
{
    bool has;

    pthread_mutex_lock(&turns.lock);
    has = turns.n_waiting == *(size_t *)n;
    pthread_mutex_unlock(&turns.lock);
    return has;
}

static void start(struct request *req, const char *caller, size_t n_then)
{
    req->caller = caller;
    assert_int_equal(thread_start(&req->thread, "turn", take_and_give, req), 0);
    assert_true(wait_until(has_waiting, &n_then));
}

static void callers_take_turns(void **state)
{
    const struct net_wait wait = net_wait_of(60000, NULL, NULL);
    struct request requests[N_GREEDY + 2];

    order[0] = '\0';
    speech_turns_init(&turns, 1);
    assert_int_equal(speech_turns_take(&turns, "a", &wait, NULL), 0); /* the place is taken while they arrive */
    for (size_t i = 0; i < N_GREEDY; i++)
        start(&requests[i], "a", i + 1);
    start(&requests[N_GREEDY], "b", N_GREEDY + 1);
    start(&requests[N_GREEDY + 1], "b", N_GREEDY + 2);
    speech_turns_give(&turns);
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        pthread_join(requests[i].thread, NULL);
    assert_string_equal(order, "babaaaaaaa");
    speech_turns_clear(&turns);
}

static void a_request_that_is_not_wanted_leaves(void **state)
{
    const struct net_wait wait = net_wait_of(60000, NULL, NULL);
    struct request gone;

    speech_turns_init(&turns, 1);
    assert_int_equal(speech_turns_take(&turns, "a", &wait, NULL), 0);
    start(&gone, "b", 1);
    atomic_store(&is_gone, true);
    pthread_join(gone.thread, NULL);
    assert_int_equal(gone.r, -ECANCELED);
    assert_int_equal(turns.n_waiting, 0);
    atomic_store(&is_gone, false);
    speech_turns_give(&turns);
    assert_int_equal(speech_turns_take(&turns, "c", &wait, NULL), 0);
    speech_turns_clear(&turns);
}

static void too_many_are_refused(void **state)
{
    const struct net_wait wait = net_wait_of(60000, NULL, NULL);
    struct err e = { 0 };

    speech_turns_init(&turns, 1);
    turns.n_waiting = LIMIT_SPEECH_WAITING;
    assert_int_equal(speech_turns_take(&turns, "a", &wait, &e), -EAGAIN);
    assert_string_equal(e.code, "OVERLOADED");
    turns.n_waiting = LIMIT_SPEECH_WAITING - 1;
    assert_int_equal(speech_turns_take(&turns, "a", &wait, NULL), 0);
    speech_turns_clear(&turns);
}

/* More callers than are remembered: the oldest is forgotten and counts as new. */
static void many_callers_are_served(void **state)
{
    const struct net_wait wait = net_wait_of(60000, NULL, NULL);
    char caller[16];

    speech_turns_init(&turns, 1);
    for (int i = 0; i < SPEECH_CALLERS * 3; i++) {
        snprintf(caller, sizeof(caller), "key:%d", i);
        assert_int_equal(speech_turns_take(&turns, caller, &wait, NULL), 0);
        speech_turns_give(&turns);
    }
    speech_turns_clear(&turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_take_turns),
        cmocka_unit_test(a_request_that_is_not_wanted_leaves),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(many_callers_are_served),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
