#include "base/limits.h"
#include "../metric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

/* The page as text; the caller frees it. */
static char *page(void)
{
    struct buf b;

    buf_init(&b, MIB(1));
    metrics_print(&b);
    assert_int_equal(buf_check(&b, NULL), 0);
    return buf_take(&b);
}

static void assert_page_has(const char *line)
{
    AUTO(freep) char *text = page();

    if (!strstr(text, line))
        fail_msg("%s is not in:\n%s", line, text);
}

static void assert_page_has_not(const char *line)
{
    AUTO(freep) char *text = page();

    if (strstr(text, line))
        fail_msg("%s is in:\n%s", line, text);
}

static void a_counter_counts(void **state)
{
    struct metric *m = metric_counter("test_requests_total", "Requests.", "");

    metric_add(m, 1);
    metric_add(m, 41);
    assert_page_has(
        "# HELP test_requests_total Requests.\n# TYPE test_requests_total counter\ntest_requests_total 42\n");
}

static void the_same_name_and_labels_are_the_same_metric(void **state)
{
    struct metric *a = metric_gauge("test_gauge", "A gauge.", "pool=\"a\"");

    assert_ptr_equal(metric_gauge("test_gauge", "A gauge.", "pool=\"a\""), a);
    assert_ptr_not_equal(metric_gauge("test_gauge", "A gauge.", "pool=\"b\""), a);
}

static void samples_of_one_name_stand_together_under_one_heading(void **state)
{
    metric_set(metric_gauge("test_heap", "Bytes.", "kind=\"a\""), 1.5);
    metric_add(metric_counter("test_between_total", "Between.", ""), 1);
    metric_set(metric_gauge("test_heap", "Bytes.", "kind=\"b\""), -2);
    assert_page_has("# HELP test_heap Bytes.\n# TYPE test_heap gauge\n"
                    "test_heap{kind=\"a\"} 1.5\ntest_heap{kind=\"b\"} -2\n");
}

static void a_gauge_is_set_and_moved(void **state)
{
    struct metric *m = metric_gauge("test_streams", "Streams.", "");

    metric_set(m, 10);
    metric_add(m, -3);
    assert_true(metric_of("test_streams") == 7);
    metric_set(m, 0.25);
    assert_true(metric_of("test_streams") == 0.25);
}

static void numbers_beyond_all_numbers_have_their_names(void **state)
{
    struct metric *m = metric_gauge("test_odd", "Odd.", "");

    metric_set(m, INFINITY);
    assert_page_has("\ntest_odd +Inf\n");
    metric_set(m, -INFINITY);
    assert_page_has("\ntest_odd -Inf\n");
    metric_set(m, NAN);
    assert_page_has("\ntest_odd NaN\n");
}

static void a_histogram_counts_up_to_and_with_each_bound(void **state)
{
    static const double bounds[] = { 1, 10 };
    struct metric *m = metric_histogram_of("test_group", "Sizes.", "", bounds, ARRAY_SIZE(bounds));

    metric_observe(m, 1);
    metric_observe(m, 1.5);
    metric_observe(m, 10);
    metric_observe(m, 11);
    assert_true(metric_of("test_group_count") == 4);
    assert_page_has("# TYPE test_group histogram\n"
                    "test_group_bucket{le=\"1\"} 1\ntest_group_bucket{le=\"10\"} 3\ntest_group_bucket{le=\"+Inf\"} 4\n"
                    "test_group_sum 23.5\ntest_group_count 4\n");
}

static void a_histogram_of_seconds_has_the_usual_bounds_beside_its_labels(void **state)
{
    struct metric *m = metric_histogram("test_seconds", "Seconds.", "route=\"/x\"");

    metric_observe(m, 0.0004);
    metric_observe(m, 61);
    assert_page_has("test_seconds_bucket{route=\"/x\",le=\"0.0005\"} 1\n");
    assert_page_has("test_seconds_bucket{route=\"/x\",le=\"60\"} 1\n");
    assert_page_has("test_seconds_bucket{route=\"/x\",le=\"+Inf\"} 2\n");
    assert_page_has("test_seconds_count{route=\"/x\"} 2\n");
}

static double answer(void *arg)
{
    return *(double *)arg;
}

static void an_asked_gauge_is_asked_each_time_until_it_is_forgotten(void **state)
{
    double depth = 3, other = 4;

    metric_gauge_fn("test_depth", "Depth.", "queue=\"a\"", answer, &depth);
    metric_gauge_fn("test_depth", "Depth.", "queue=\"b\"", answer, &other);
    assert_page_has("\ntest_depth{queue=\"a\"} 3\ntest_depth{queue=\"b\"} 4\n");
    depth = 5;
    assert_page_has("\ntest_depth{queue=\"a\"} 5\n");
    metric_gauge_fn_forget(&depth);
    assert_page_has_not("queue=\"a\"");
    assert_page_has("\ntest_depth{queue=\"b\"} 4\n");
    metric_gauge_fn_forget(&other);
    assert_page_has_not("test_depth");
}

static double count_requesting(void *arg)
{
    metric_add(metric_counter("test_askings_total", "Askings.", ""), 1);
    return *(int *)arg;
}

static void who_is_asked_may_make_metrics(void **state)
{
    int depth = 6;

    metric_gauge_fn("test_asked", "Asked.", "", count_requesting, &depth);
    assert_page_has("\ntest_asked 6\n");
    assert_page_has("\ntest_askings_total 2\n");
    metric_gauge_fn_forget(&depth);
}

enum { THREADS = 4, TIMES = 5000 };

static void *touch_all(void *arg)
{
    struct metric *counter = metric_counter("test_shared_total", "Shared.", "");
    struct metric *gauge = metric_gauge("test_shared", "Shared.", "");
    struct metric *histogram = metric_histogram("test_shared_seconds", "Shared.", "");

    for (int i = 0; i < TIMES; i++) {
        metric_add(counter, 1);
        metric_add(gauge, 1);
        metric_observe(histogram, 0.5);
    }
    return NULL;
}

static void no_count_is_lost_between_threads(void **state)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, touch_all, NULL), 0);
    assert_page_has("# TYPE"); /* printing during updates does no harm */
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_page_has("\ntest_shared_total 20000\n");
    assert_page_has("\ntest_shared 20000\n");
    assert_page_has("\ntest_shared_seconds_sum 10000\ntest_shared_seconds_count 20000\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_counter_counts),
        cmocka_unit_test(the_same_name_and_labels_are_the_same_metric),
        cmocka_unit_test(samples_of_one_name_stand_together_under_one_heading),
        cmocka_unit_test(a_gauge_is_set_and_moved),
        cmocka_unit_test(numbers_beyond_all_numbers_have_their_names),
        cmocka_unit_test(a_histogram_counts_up_to_and_with_each_bound),
        cmocka_unit_test(a_histogram_of_seconds_has_the_usual_bounds_beside_its_labels),
        cmocka_unit_test(an_asked_gauge_is_asked_each_time_until_it_is_forgotten),
        cmocka_unit_test(who_is_asked_may_make_metrics),
        cmocka_unit_test(no_count_is_lost_between_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
