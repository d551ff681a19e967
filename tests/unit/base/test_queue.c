#include "base/clock.h"
#include "base/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>

static char items[8]; /* only their addresses are used */

static void items_come_out_in_the_order_they_went_in(void **state)
{
    struct queue *q = queue_new(3);
    void *item;

    for (int round = 0; round < 5; round++) { /* the ring wraps around */
        assert_int_equal(queue_push(q, &items[0]), 0);
        assert_int_equal(queue_push(q, &items[1]), 0);
        assert_int_equal(queue_pop(q, -1, &item), 0);
        assert_ptr_equal(item, &items[0]);
        assert_int_equal(queue_pop(q, 0, &item), 0);
        assert_ptr_equal(item, &items[1]);
        assert_int_equal(queue_pop(q, 0, &item), -ETIMEDOUT);
    }
    assert_null(queue_free(q));
    assert_null(queue_free(NULL));
}

static void the_maximum_fits_and_one_more_is_refused(void **state)
{
    struct queue *q = queue_new(2);
    void *item;

    assert_int_equal(queue_push(q, &items[0]), 0);
    assert_int_equal(queue_push(q, &items[1]), 0);
    assert_int_equal(queue_push(q, &items[2]), -EAGAIN);
    assert_int_equal(queue_pop(q, 0, &item), 0);
    assert_int_equal(queue_push(q, &items[2]), 0);
    assert_int_equal(queue_push(q, &items[0]), -EAGAIN);
    queue_free(q);
}

static void waiting_for_nothing_ends_after_its_time_and_no_earlier(void **state)
{
    struct queue *q = queue_new(1);
    int64_t before_us = clock_mono_us();
    void *item = items;

    assert_int_equal(queue_pop(q, 0, &item), -ETIMEDOUT);
    assert_int_equal(queue_pop(q, 20, &item), -ETIMEDOUT);
    assert_true(clock_mono_us() - before_us >= 20000);
    assert_ptr_equal(item, items);
    queue_free(q);
}

static void a_closed_queue_drains_and_then_fails(void **state)
{
    struct queue *q = queue_new(2);
    void *item;

    assert_int_equal(queue_push(q, &items[0]), 0);
    queue_close(q);
    queue_close(q);
    assert_int_equal(queue_push(q, &items[1]), -EPIPE);
    assert_int_equal(queue_pop(q, -1, &item), 0);
    assert_ptr_equal(item, &items[0]);
    assert_int_equal(queue_pop(q, -1, &item), -EPIPE);
    queue_free(q);
}

static void *pop_for_ever(void *arg)
{
    void *item;

    return queue_pop(arg, -1, &item) == -EPIPE ? arg : NULL;
}

static void closing_wakes_all_who_wait(void **state)
{
    struct queue *q = queue_new(1);
    pthread_t threads[3];
    void *result;

    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, pop_for_ever, q), 0);
    queue_close(q);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, q);
    }
    queue_free(q);
}

enum { PRODUCERS = 3, CONSUMERS = 3, ITEMS_EACH = 2000 };

struct traffic {
    struct queue *queue;
    unsigned char seen[PRODUCERS * ITEMS_EACH]; /* each element written by the thread that popped the item */
};

struct producer {
    struct traffic *traffic;
    size_t first;
};

static void *produce(void *arg)
{
    struct producer *producer = arg;
    struct traffic *traffic = producer->traffic;

    for (size_t i = 0; i < ITEMS_EACH; i++) {
        while (queue_push(traffic->queue, &traffic->seen[producer->first + i]) == -EAGAIN)
            sched_yield();
    }
    return NULL;
}

static void *consume(void *arg)
{
    struct traffic *traffic = arg;
    size_t *n_popped = xcalloc(1, sizeof(*n_popped));
    void *item;

    for (; queue_pop(traffic->queue, -1, &item) == 0; ++*n_popped)
        ++*(unsigned char *)item;
    return n_popped;
}

static void between_many_threads_every_item_arrives_exactly_once(void **state)
{
    static struct traffic traffic;
    struct producer producers[PRODUCERS];
    pthread_t producing[PRODUCERS], consuming[CONSUMERS];
    size_t n_popped = 0;

    traffic.queue = queue_new(16);
    for (size_t i = 0; i < CONSUMERS; i++)
        assert_int_equal(pthread_create(&consuming[i], NULL, consume, &traffic), 0);
    for (size_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){ &traffic, i * ITEMS_EACH };
        assert_int_equal(pthread_create(&producing[i], NULL, produce, &producers[i]), 0);
    }
    for (size_t i = 0; i < PRODUCERS; i++)
        pthread_join(producing[i], NULL);
    queue_close(traffic.queue);
    for (size_t i = 0; i < CONSUMERS; i++) {
        void *result;

        pthread_join(consuming[i], &result);
        n_popped += *(size_t *)result;
        freep(&result);
    }
    assert_int_equal(n_popped, PRODUCERS * ITEMS_EACH);
    for (size_t i = 0; i < ARRAY_SIZE(traffic.seen); i++)
        assert_int_equal(traffic.seen[i], 1);
    queue_free(traffic.queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_out_in_the_order_they_went_in),
        cmocka_unit_test(the_maximum_fits_and_one_more_is_refused),
        cmocka_unit_test(waiting_for_nothing_ends_after_its_time_and_no_earlier),
        cmocka_unit_test(a_closed_queue_drains_and_then_fails),
        cmocka_unit_test(closing_wakes_all_who_wait),
        cmocka_unit_test(between_many_threads_every_item_arrives_exactly_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
