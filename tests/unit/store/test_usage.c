#include "store/tables/rates.h"
#include "store/retention.h"
#include "store/tables/usage.h"
#include "store/tables/apps.h"
#include "store/tables/keys.h"
#include "base/limits.h"

#include "fixture.h"

#define APP "11111111-1111-4111-8111-111111111111"
#define KEY "44444444-4444-4444-8444-444444444444"

static struct usage_row row_of(const char *day, const char *app, const char *model, int64_t requests, int64_t tokens)
{
    return (struct usage_row){
        .of = { [USAGE_DAY] = day,
                [USAGE_APP] = app,
                [USAGE_KEY] = "",
                [USAGE_PROVIDER] = "openai",
                [USAGE_MODEL] = model,
                [USAGE_KIND] = "chat" },
        .counts = { .requests = requests,
                    .failed = 1,
                    .estimated = 2,
                    .prompt_tokens = tokens,
                    .completion_tokens = 10 },
    };
}

static struct usage_page list(struct fixture *fx, struct usage_request request)
{
    struct fixture x = *fx;
    struct usage_page page = { 0 };

    request.from = request.from ? request.from : "2026-01-01";
    request.to = request.to ? request.to : "2026-12-31";
    MUST(store_usage_list(x.store, x.a, &request, &page, &x.e));
    return page;
}

static void add_some(struct fixture *fx)
{
    const struct usage_row rows[] = {
        row_of("2026-11-18", "", "small", 1, 100),
        row_of("2026-11-19", APP, "small", 2, 200),
        row_of("2026-11-19", APP, "large", 3, 300),
        row_of("2026-11-20", APP, "small", 4, 400),
    };
    struct fixture x = *fx;

    MUST(store_usage_add(x.store, rows, ARRAY_SIZE(rows), &x.e));
}

static void counts_of_the_same_row_add_up(void **state)
{
    struct fixture x = fixture_open();
    struct usage_page page;

    add_some(&x);
    add_some(&x);
    page = list(&x, (struct usage_request){ .by = USAGE_BY(USAGE_DAY), .only = { [USAGE_MODEL] = "large" } });
    assert_int_equal(page.n, 1);
    assert_int_equal(page.rows[0].counts.requests, 6);
    assert_int_equal(page.rows[0].counts.failed, 2);
    assert_int_equal(page.rows[0].counts.estimated, 4);
    assert_int_equal(page.rows[0].counts.prompt_tokens, 600);
    assert_int_equal(page.rows[0].counts.completion_tokens, 20);
    fixture_close(&x);
}

static void groups_have_what_was_asked_for_and_no_more(void **state)
{
    struct fixture x = fixture_open();
    struct usage_page page;

    add_some(&x);
    page = list(&x, (struct usage_request){ .by = USAGE_BY(USAGE_APP) | USAGE_BY(USAGE_MODEL) });
    assert_int_equal(page.n, 3);
    assert_int_equal(page.n_all, 3);
    assert_null(page.rows[0].of[USAGE_DAY]);
    assert_string_equal(page.rows[0].of[USAGE_MODEL], "small");
    assert_int_equal(page.rows[0].counts.requests, 6);
    assert_string_equal(page.rows[1].of[USAGE_MODEL], "large");
    assert_string_equal(page.rows[2].of[USAGE_APP], "");
    assert_int_equal(page.totals.requests, 10);
    assert_int_equal(page.totals.prompt_tokens, 1000);
    fixture_close(&x);
}

static void days_filters_and_pages_narrow_the_list(void **state)
{
    static const struct {
        const char *what;
        struct usage_request request;
        size_t n;
        int64_t n_all, requests;
    } table[] = {
        { "a day", { .from = "2026-11-19", .to = "2026-11-19", .by = USAGE_BY(USAGE_DAY) }, 1, 1, 5 },
        { "from a day on", { .from = "2026-11-19", .by = USAGE_BY(USAGE_DAY) }, 2, 2, 9 },
        { "no day", { .from = "2026-11-21", .by = USAGE_BY(USAGE_DAY) }, 0, 0, 0 },
        { "an app", { .only = { [USAGE_APP] = APP }, .by = USAGE_BY(USAGE_DAY) }, 2, 2, 9 },
        { "no app", { .only = { [USAGE_APP] = "" }, .by = USAGE_BY(USAGE_DAY) }, 1, 1, 1 },
        { "a model", { .only = { [USAGE_MODEL] = "small" }, .by = USAGE_BY(USAGE_KIND) }, 1, 1, 7 },
        { "another kind", { .only = { [USAGE_KIND] = "embed" }, .by = USAGE_BY(USAGE_KIND) }, 0, 0, 0 },
        { "a page", { .by = USAGE_BY(USAGE_DAY), .limit = 1, .offset = 1 }, 1, 3, 10 },
        { "behind the last page", { .by = USAGE_BY(USAGE_DAY), .limit = 1, .offset = 3 }, 0, 3, 10 },
    };
    struct fixture x = fixture_open();

    add_some(&x);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct usage_page page = list(&x, table[i].request);

        if (page.n != table[i].n || page.n_all != table[i].n_all || page.totals.requests != table[i].requests)
            fail_msg("%s: %zu rows of %lld, %lld requests", table[i].what, page.n, (long long)page.n_all,
                     (long long)page.totals.requests);
    }
    fixture_close(&x);
}

static void newest_days_come_first(void **state)
{
    struct fixture x = fixture_open();
    struct usage_page page;

    add_some(&x);
    page = list(&x, (struct usage_request){ .by = USAGE_BY(USAGE_DAY) | USAGE_BY(USAGE_MODEL) });
    assert_int_equal(page.n, 4);
    assert_string_equal(page.rows[0].of[USAGE_DAY], "2026-11-20");
    assert_string_equal(page.rows[1].of[USAGE_MODEL], "large");
    assert_string_equal(page.rows[2].of[USAGE_MODEL], "small");
    assert_string_equal(page.rows[3].of[USAGE_DAY], "2026-11-18");
    fixture_close(&x);
}

static void apps_that_are_there_have_their_name(void **state)
{
    struct app_row app = { .app_id = APP,
                           .name = "triage",
                           .display_name = "Triage",
                           .app_type = "custom",
                           .config = "{}",
                           .permissions = "[]" };
    struct fixture x = fixture_open();
    struct usage_page page;

    add_some(&x);
    page = list(&x, (struct usage_request){ .by = USAGE_BY(USAGE_APP) });
    assert_null(page.rows[0].app_name);
    MUST(store_apps_insert(x.store, &app, &x.e));
    page = list(&x, (struct usage_request){ .by = USAGE_BY(USAGE_APP) });
    assert_string_equal(page.rows[0].app_name, "triage");
    assert_null(page.rows[1].app_name);
    fixture_close(&x);
}

static void a_day_of_each_app_can_be_read(void **state)
{
    struct fixture x = fixture_open();
    struct usage_row *rows;
    size_t n = 0;

    add_some(&x);
    MUST(store_usage_of_day(x.store, x.a, "2026-11-19", USAGE_APP, &rows, &n, &x.e));
    assert_int_equal(n, 1);
    assert_string_equal(rows[0].of[USAGE_APP], APP);
    assert_int_equal(rows[0].counts.requests, 5);
    fixture_close(&x);
}

static void old_days_are_forgotten(void **state)
{
    struct fixture x = fixture_open();
    int64_t n = 0, before_ms = 0;

    add_some(&x);
    MUST(clock_parse(SLICE_LIT("2026-11-19T13:00:00Z"), &before_ms));
    MUST(store_retention_trim(x.store, KEPT_USAGE, before_ms, &n, &x.e));
    assert_int_equal(n, 1);
    MUST(store_retention_trim(x.store, KEPT_USAGE, before_ms, &n, &x.e));
    assert_int_equal(n, 0);
    assert_int_equal(list(&x, (struct usage_request){ .by = USAGE_BY(USAGE_DAY) }).totals.requests, 9);
    fixture_close(&x);
}

static void limits_are_replaced_and_removed(void **state)
{
    const struct rate_row first = { RATE_OF_KEY, KEY, { 1, 2, 3, 4 } },
                          app = { RATE_OF_APP, APP, { RATE_BY_SETTING, RATE_NONE, 5, 6 } };
    const struct rate_row second = { RATE_OF_KEY, KEY, { 9, RATE_BY_SETTING, 7, 8 } };
    struct fixture x = fixture_open();
    struct rate_row *rows;
    size_t n = 0;

    MUST(store_rates_set(x.store, &first, &x.e));
    MUST(store_rates_set(x.store, &app, &x.e));
    MUST(store_rates_set(x.store, &second, &x.e));
    MUST(store_rates_list(x.store, x.a, &rows, &n, &x.e));
    assert_int_equal(n, 2);
    assert_int_equal(rows[0].of, RATE_OF_APP);
    assert_int_equal(rows[0].max[RATE_TOKENS_A_MINUTE], RATE_NONE);
    assert_string_equal(rows[1].id, KEY);
    assert_memory_equal(rows[1].max, second.max, sizeof(second.max));
    MUST(store_rates_remove(x.store, RATE_OF_APP, APP, &x.e));
    MUST(store_rates_remove(x.store, RATE_OF_APP, APP, &x.e));
    MUST(store_rates_list(x.store, x.a, &rows, &n, &x.e));
    assert_int_equal(n, 1);
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_the_same_row_add_up),
        cmocka_unit_test(groups_have_what_was_asked_for_and_no_more),
        cmocka_unit_test(days_filters_and_pages_narrow_the_list),
        cmocka_unit_test(newest_days_come_first),
        cmocka_unit_test(apps_that_are_there_have_their_name),
        cmocka_unit_test(a_day_of_each_app_can_be_read),
        cmocka_unit_test(old_days_are_forgotten),
        cmocka_unit_test(limits_are_replaced_and_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
