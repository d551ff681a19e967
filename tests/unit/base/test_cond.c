#include "base/cond.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    bool has_rung;
};

static void *ring(void *arg)
{
    struct bell *b = arg;

    pthread_mutex_lock(&b->lock);
    b->has_rung = true;
    pthread_cond_signal(&b->rung);
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void a_wait_ends_when_its_time_has_come_and_not_before(void **state)
{
    static const int64_t waits_ms[] = { -5, 0, 30 };
    struct bell b = { .lock = PTHREAD_MUTEX_INITIALIZER };

    cond_init(&b.rung);
    pthread_mutex_lock(&b.lock);
    for (size_t i = 0; i < ARRAY_SIZE(waits_ms); i++) {
        int64_t until_us = clock_mono_us() + waits_ms[i] * 1000;

        while (cond_wait_until(&b.rung, &b.lock, until_us))
            ;
        assert_true(clock_mono_us() >= until_us);
    }
    pthread_mutex_unlock(&b.lock);
    pthread_cond_destroy(&b.rung);
}

static void a_signal_ends_a_wait(void **state)
{
    struct bell b = { .lock = PTHREAD_MUTEX_INITIALIZER };
    int64_t until_us = clock_mono_us() + INT64_C(600000000);
    pthread_t thread;

    cond_init(&b.rung);
    pthread_mutex_lock(&b.lock);
    assert_int_equal(pthread_create(&thread, NULL, ring, &b), 0);
    while (!b.has_rung)
        assert_true(cond_wait_until(&b.rung, &b.lock, until_us));
    pthread_mutex_unlock(&b.lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&b.rung);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_ends_when_its_time_has_come_and_not_before),
        cmocka_unit_test(a_signal_ends_a_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
