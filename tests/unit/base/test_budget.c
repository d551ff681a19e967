#include "base/budget.h"
#include "base/limits.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after those */
#include <cmocka.h>

static int reset(void **state)
{
    for (enum budget b = 0; b < N_BUDGETS; b++) {
        budget_set_limit(b, 0);
        budget_set_total(b, 0);
    }
    return 0;
}

static void every_row_of_the_table_is_whole(void **state)
{
    for (enum budget b = 0; b < N_BUDGETS; b++) {
        const struct budget_rule *rule = &budget_rules[b];

        assert_non_null(rule->name);
        assert_non_null(rule->holds);
        assert_non_null(rule->setting);
        assert_true(rule->total > 0);
        assert_true(rule->limits[HOLDER_ADMIN] == BUDGET_UNLIMITED);
        assert_true(rule->limits[HOLDER_APP] > 0);
    }
}

static void one_more_than_the_limit_is_refused_by_name(void **state)
{
    struct budget_holder *app = budget_holder_get(HOLDER_APP, "app-one");
    struct err e = { 0 };

    budget_set_limit(BUDGET_STREAMS, 2);
    assert_int_equal(budget_take(app, BUDGET_STREAMS, 1, &e), 0);
    assert_int_equal(budget_take(app, BUDGET_STREAMS, 1, &e), 0);
    assert_int_equal(budget_take(app, BUDGET_STREAMS, 1, &e), -EBUSY);
    assert_string_equal(e.code, "BUDGET_EXCEEDED");
    assert_non_null(strstr(e.text, "`streams`"));
    assert_non_null(strstr(e.text, "limits.streams"));
    assert_string_equal(e.extras[0].value, "streams");
    assert_true(e.retry_after_ms > 0);
    assert_int_equal(budget_held(app, BUDGET_STREAMS), 2);
    budget_give(app, BUDGET_STREAMS, 1);
    assert_int_equal(budget_take(app, BUDGET_STREAMS, 1, &e), 0);
    budget_give(app, BUDGET_STREAMS, 2);
    assert_int_equal(budget_total(BUDGET_STREAMS), 0);
    budget_holder_unref(app);
}

static void callers_do_not_share_what_is_theirs_but_the_total(void **state)
{
    struct budget_holder *one = budget_holder_get(HOLDER_APP, "app-one"),
                         *two = budget_holder_get(HOLDER_KEY, "app-one");
    struct err e = { 0 };

    budget_set_limit(BUDGET_CHILDREN, 3);
    budget_set_total(BUDGET_CHILDREN, 4);
    assert_int_equal(budget_take(one, BUDGET_CHILDREN, 3, &e), 0);
    assert_int_equal(budget_take(two, BUDGET_CHILDREN, 1, &e), 0);
    assert_int_equal(budget_take(two, BUDGET_CHILDREN, 1, &e), -EAGAIN);
    assert_string_equal(e.code, "OVERLOADED");
    assert_int_equal(budget_held(two, BUDGET_CHILDREN), 1);
    budget_give(one, BUDGET_CHILDREN, 3);
    budget_give(two, BUDGET_CHILDREN, 1);
    budget_holder_unref(one);
    budget_holder_unref(two);
}

static void the_administrator_is_counted_and_never_refused(void **state)
{
    struct budget_holder *admin = budget_holder_get(HOLDER_ADMIN, "");

    budget_set_total(BUDGET_REQUESTS, 1);
    for (int i = 0; i < 100; i++)
        assert_int_equal(budget_take(admin, BUDGET_REQUESTS, 1, NULL), 0);
    assert_int_equal(budget_held(admin, BUDGET_REQUESTS), 100);
    assert_int_equal(budget_total(BUDGET_REQUESTS), 0);
    budget_give(admin, BUDGET_REQUESTS, 100);
    budget_holder_unref(admin);
}

static void one_large_request_is_possible_for_who_holds_nothing(void **state)
{
    struct budget_holder *app = budget_holder_get(HOLDER_APP, "app-one");

    budget_set_limit(BUDGET_MEMORY, 100);
    assert_int_equal(budget_take(app, BUDGET_MEMORY, 1000, NULL), 0);
    assert_int_equal(budget_take(app, BUDGET_MEMORY, 1, NULL), -EBUSY);
    budget_give(app, BUDGET_MEMORY, 1000);
    budget_holder_unref(app);
}

static void a_setting_never_raises_what_strangers_may_hold(void **state)
{
    int64_t before = budget_limit(BUDGET_LONG_REQUESTS, HOLDER_ADDRESS);

    budget_set_limit(BUDGET_LONG_REQUESTS, 500);
    assert_int_equal(budget_limit(BUDGET_LONG_REQUESTS, HOLDER_KEY), 500);
    assert_int_equal(budget_limit(BUDGET_LONG_REQUESTS, HOLDER_ADDRESS), before);
    budget_set_limit(BUDGET_LONG_REQUESTS, 1);
    assert_int_equal(budget_limit(BUDGET_LONG_REQUESTS, HOLDER_ADDRESS), 1);
}

static void a_purse_gives_everything_back_and_changes_hands(void **state)
{
    struct budget_holder *nobody = budget_holder_get(HOLDER_NOBODY, ""),
                         *app = budget_holder_get(HOLDER_APP, "app-one");
    struct budget_purse purse = { 0 };

    assert_int_equal(purse_take(&purse, BUDGET_BODY, 10, NULL), 0);
    purse_open(&purse, nobody);
    assert_int_equal(budget_held(nobody, BUDGET_BODY), 10);
    assert_int_equal(purse_take(&purse, BUDGET_REQUESTS, 1, NULL), 0);
    purse_open(&purse, app);
    assert_int_equal(budget_held(nobody, BUDGET_BODY), 0);
    assert_int_equal(budget_held(app, BUDGET_BODY), 10);
    assert_int_equal(budget_held(app, BUDGET_REQUESTS), 1);
    purse_close(&purse);
    assert_int_equal(budget_held(app, BUDGET_BODY), 0);
    assert_int_equal(budget_held(app, BUDGET_REQUESTS), 0);
    budget_holder_unref(nobody);
    budget_holder_unref(app);
}

static void collect(void *arg, const struct budget_state *s)
{
    if (strcmp(s->id, "app-two") == 0)
        *(struct budget_state *)arg = *s;
}

static void who_is_at_the_limit_can_be_named(void **state)
{
    struct budget_holder *app = budget_holder_get(HOLDER_APP, "app-two");
    struct budget_state seen = { 0 };

    budget_measured(app, BUDGET_DISK, (int64_t)MIB(20000));
    assert_int_equal(budget_check(app, BUDGET_DISK, 1, NULL), -EBUSY);
    budget_each(BUDGET_DISK, collect, &seen);
    assert_true(seen.held > seen.limit);
    assert_int_equal(seen.n_refused, 1);
    assert_true(seen.refused_ago_ms >= 0);
    budget_measured(app, BUDGET_DISK, 0);
    assert_int_equal(budget_total(BUDGET_DISK), 0);
    budget_holder_unref(app);
}

enum { ROUNDS = 20000 };

static void *take_and_give(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct budget_holder *h = budget_holder_get(i % 2 ? HOLDER_ADDRESS : HOLDER_APP, "shared");

        if (budget_take(h, BUDGET_REQUESTS, 1, NULL) == 0)
            budget_give(h, BUDGET_REQUESTS, 1);
        budget_holder_unref(h);
    }
    return NULL;
}

static void accounts_stay_right_between_threads(void **state)
{
    pthread_t threads[4];
    struct budget_holder *h = budget_holder_get(HOLDER_APP, "shared");

    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(budget_held(h, BUDGET_REQUESTS), 0);
    assert_int_equal(budget_total(BUDGET_REQUESTS), 0);
    budget_holder_unref(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_row_of_the_table_is_whole, reset),
        cmocka_unit_test_setup(one_more_than_the_limit_is_refused_by_name, reset),
        cmocka_unit_test_setup(callers_do_not_share_what_is_theirs_but_the_total, reset),
        cmocka_unit_test_setup(the_administrator_is_counted_and_never_refused, reset),
        cmocka_unit_test_setup(one_large_request_is_possible_for_who_holds_nothing, reset),
        cmocka_unit_test_setup(a_setting_never_raises_what_strangers_may_hold, reset),
        cmocka_unit_test_setup(a_purse_gives_everything_back_and_changes_hands, reset),
        cmocka_unit_test_setup(who_is_at_the_limit_can_be_named, reset),
        cmocka_unit_test_setup(accounts_stay_right_between_threads, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
