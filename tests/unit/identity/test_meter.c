#include "base/limits.h"
#include "base/metrics.h"
#include "fixture.h"
#include "identity/meter.h"
#include "identity/window.h"

#include <pthread.h>

#define KEY "44444444-4444-4444-8444-444444444444"
#define DAY ((int64_t)WINDOW_DAY_MS)

struct rig {
    struct fixture f;
    struct settings *settings;
    struct meter *meter;
    struct window_now now; /* of both clocks */
};

static int64_t rig_mono_ms(void *arg)
{
    return ((struct rig *)arg)->now.mono_ms;
}

static int64_t rig_wall_ms(void *arg)
{
    return ((struct rig *)arg)->now.wall_ms;
}

static void rig_open_meter(struct rig *rig)
{
    const struct meter_clock clock = { rig_mono_ms, rig_wall_ms, rig };
    const struct meter_config c = { .store = rig->f.store, .settings = rig->settings, .clock = &clock };
    struct err e = { 0 };

    must(meter_open(&c, &rig->meter, &e), &e);
}

/* Initialized in place, because the clock points at it. The time is noon. */
static void rig_open(struct rig *rig)
{
    struct err e = { 0 };

    *rig = (struct rig){ .f = fixture_open(), .now = { .mono_ms = 1000000, .wall_ms = 20000 * DAY + DAY / 2 } };
    must(settings_load(&(struct settings_sources){ 0 }, &rig->settings, &e), &e);
    rig_open_meter(rig);
}

static void rig_close(struct rig *rig)
{
    meter_close(rig->meter);
    settings_free(rig->settings);
    fixture_close(&rig->f);
}

static void pass_ms(struct rig *rig, int64_t ms)
{
    rig->now.mono_ms += ms;
    rig->now.wall_ms += ms;
}

static void set(struct rig *rig, const char *key, const char *value)
{
    struct err e = { 0 };

    must(settings_set(rig->settings, key, value, &e), &e);
}

static void limit(struct rig *rig, enum rate_of of, const char *id, enum rate rate, int64_t max)
{
    struct rate_row row = {
        of, id, { RATE_BY_SETTING, RATE_BY_SETTING, RATE_BY_SETTING, RATE_BY_SETTING, RATE_BY_SETTING, RATE_BY_SETTING }
    };
    struct err e = { 0 };

    row.max[rate] = max;
    must(meter_limit(rig->meter, &row, &e), &e);
}

static const struct caller by_key = { .kind = CALLER_KEY, .key_id = KEY };
static const struct caller by_app = { .kind = CALLER_APP, .app_id = APP };
static const struct caller by_other_app = { .kind = CALLER_APP, .app_id = OTHER_APP };
static const struct caller by_both = { .kind = CALLER_KEY, .key_id = KEY, .app_id = APP };
static const struct caller by_admin = { .kind = CALLER_ADMIN };

/* 0 when admitted, else the reported milliseconds. */
static int64_t admit_for(struct rig *rig, const struct caller *c, int64_t expected_tokens, struct meter_ticket *ret)
{
    int64_t wait_ms = 0;
    struct err e = { 0 };

    if (meter_admit(rig->meter, c, expected_tokens, ret, &wait_ms, &e) == 0)
        return 0;
    assert_string_equal(e.code, "RATE_LIMIT");
    assert_true(wait_ms > 0);
    return wait_ms;
}

static void count_tokens(struct rig *rig, struct meter_ticket *ticket, int64_t prompt, int64_t completion)
{
    meter_count(rig->meter, ticket,
                &(struct meter_use){
                    .provider = "openai", .model = "m", .prompt_tokens = prompt, .completion_tokens = completion });
}

/* A whole request that uses this many tokens. */
static int64_t request(struct rig *rig, const struct caller *c, int64_t tokens)
{
    struct meter_ticket ticket = { 0 };
    int64_t wait_ms = admit_for(rig, c, tokens, &ticket);

    if (wait_ms == 0)
        count_tokens(rig, &ticket, tokens, 0);
    return wait_ms;
}

static struct meter_state state_of(struct rig *rig, enum rate_of of, const char *id)
{
    struct meter_state state;

    meter_show(rig->meter, of, id, &state);
    return state;
}

static void without_limits_everything_is_admitted(void **state)
{
    AUTO(rig_close) struct rig rig;

    rig_open(&rig);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(request(&rig, &by_both, 1000000), 0);
    assert_int_equal(state_of(&rig, RATE_OF_APP, APP).used[RATE_REQUESTS_A_DAY], 1000);
    assert_int_equal(state_of(&rig, RATE_OF_KEY, KEY).used[RATE_TOKENS_A_MINUTE], 1000000000);
}

static void the_request_beyond_a_limit_is_refused_in_words(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct meter_ticket ticket;
    int64_t wait_ms = 0;
    struct err e = { 0 };

    rig_open(&rig);
    set(&rig, "limits.requests_a_minute", "2");
    assert_int_equal(request(&rig, &by_app, 1), 0);
    pass_ms(&rig, 10500);
    assert_int_equal(request(&rig, &by_app, 1), 0);
    assert_int_equal(meter_admit(rig.meter, &by_app, 1, &ticket, &wait_ms, &e), -EBUSY);
    assert_int_equal(wait_ms, 50500);
    assert_string_equal(e.text, "This app has reached its limit of 2 requests a minute; try again in 51 seconds.");
    assert_string_equal(e.extras[0].value, "requests_a_minute");
    assert_string_equal(e.extras[1].value, "app");
    pass_ms(&rig, 50499);
    assert_int_equal(request(&rig, &by_app, 1), 1);
    pass_ms(&rig, 1);
    assert_int_equal(request(&rig, &by_app, 1), 0);
    assert_true(request(&rig, &by_app, 1) > 0);
}

static void a_refused_request_counts_nowhere(void **state)
{
    AUTO(rig_close) struct rig rig;

    rig_open(&rig);
    limit(&rig, RATE_OF_APP, APP, RATE_REQUESTS_A_DAY, 1);
    assert_int_equal(request(&rig, &by_app, 1), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(request(&rig, &by_both, 1), DAY / 2);
    assert_int_equal(state_of(&rig, RATE_OF_APP, APP).used[RATE_REQUESTS_A_MINUTE], 1);
    assert_int_equal(state_of(&rig, RATE_OF_KEY, KEY).used[RATE_REQUESTS_A_MINUTE], 0);
}

static void tokens_are_refused_from_the_limit_on(void **state)
{
    AUTO(rig_close) struct rig rig;

    rig_open(&rig);
    set(&rig, "limits.tokens_a_minute", "100");
    assert_int_equal(request(&rig, &by_key, 99), 0);
    assert_int_equal(request(&rig, &by_key, 1), 0);
    assert_int_equal(request(&rig, &by_key, 1), 61000);
    pass_ms(&rig, 61000);
    assert_int_equal(request(&rig, &by_key, 1000), 0);
    assert_int_equal(request(&rig, &by_key, 1), 61000);
}

static void tokens_count_when_the_answer_is_there(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct meter_ticket ticket;

    rig_open(&rig);
    set(&rig, "limits.tokens_a_minute", "100");
    assert_int_equal(admit_for(&rig, &by_key, 10, &ticket), 0);
    pass_ms(&rig, 120000);
    count_tokens(&rig, &ticket, 60, 40);
    assert_int_equal(request(&rig, &by_key, 1), 61000);
}

/* Of a hundred concurrent requests those are admitted whose expected tokens fit; each request that ends makes room
 * again. */
static void requests_under_way_hold_their_expected_tokens(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct meter_ticket tickets[100];
    size_t n = 0;

    rig_open(&rig);
    set(&rig, "limits.tokens_a_minute", "1000");
    for (size_t i = 0; i < 100; i++)
        n += admit_for(&rig, &by_key, 100, &tickets[n]) == 0;
    assert_int_equal(n, 10);
    assert_int_equal(request(&rig, &by_key, 100), 1000);
    for (size_t i = 0; i < n; i++)
        count_tokens(&rig, &tickets[i], 50, 0);
    assert_int_equal(state_of(&rig, RATE_OF_KEY, KEY).used[RATE_TOKENS_A_MINUTE], 500);
    for (n = 0; admit_for(&rig, &by_key, 100, &tickets[n]) == 0;)
        n++;
    assert_int_equal(n, 5);
    for (size_t i = 0; i < n; i++)
        count_tokens(&rig, &tickets[i], 100, 0);
    assert_int_equal(request(&rig, &by_key, 1), 61000);
}

static void one_request_alone_is_admitted_whatever_it_expects(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct meter_ticket ticket, another;

    rig_open(&rig);
    set(&rig, "limits.tokens_a_day", "100");
    assert_int_equal(admit_for(&rig, &by_key, 5000, &ticket), 0);
    assert_int_equal(admit_for(&rig, &by_key, 1, &another), 1000);
    count_tokens(&rig, &ticket, 10, 10);
    assert_int_equal(admit_for(&rig, &by_key, 5000, &ticket), 0);
    count_tokens(&rig, &ticket, 90, 0);
    assert_int_equal(request(&rig, &by_key, 1), DAY / 2);
}

static void key_and_app_both_need_room(void **state)
{
    AUTO(rig_close) struct rig rig;

    rig_open(&rig);
    limit(&rig, RATE_OF_KEY, KEY, RATE_REQUESTS_A_MINUTE, 3);
    limit(&rig, RATE_OF_APP, APP, RATE_REQUESTS_A_DAY, 1);
    assert_int_equal(request(&rig, &by_both, 1), 0);
    assert_int_equal(request(&rig, &by_both, 1), DAY / 2);
    assert_int_equal(request(&rig, &by_app, 1), DAY / 2);
    assert_int_equal(request(&rig, &by_key, 1), 0);
    assert_int_equal(request(&rig, &by_key, 1), 0);
    assert_int_equal(request(&rig, &by_key, 1), 61000);
    assert_int_equal(request(&rig, &by_both, 1), DAY / 2);
    assert_int_equal(request(&rig, &by_other_app, 1), 0);
}

static void own_limits_outrank_the_settings_at_once(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct err e = { 0 };

    rig_open(&rig);
    set(&rig, "limits.requests_a_minute", "1");
    assert_int_equal(request(&rig, &by_app, 1), 0);
    assert_true(request(&rig, &by_app, 1) > 0);
    limit(&rig, RATE_OF_APP, APP, RATE_REQUESTS_A_MINUTE, 2);
    assert_int_equal(request(&rig, &by_app, 1), 0);
    assert_true(request(&rig, &by_app, 1) > 0);
    limit(&rig, RATE_OF_APP, APP, RATE_REQUESTS_A_MINUTE, RATE_NONE);
    for (int i = 0; i < 100; i++)
        assert_int_equal(request(&rig, &by_app, 1), 0);
    must(meter_unlimit(rig.meter, RATE_OF_APP, APP, &e), &e);
    assert_true(request(&rig, &by_app, 1) > 0);
    set(&rig, "limits.requests_a_minute", "0");
    assert_int_equal(request(&rig, &by_app, 1), 0);
}

static void the_administrator_is_counted_and_not_limited(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct usage_request by_app_of_today = { .from = "2024-10-04", .to = "2024-10-04", .by = USAGE_BY(USAGE_APP) };
    struct usage_page page;
    struct err e = { 0 };

    rig_open(&rig);
    set(&rig, "limits.requests_a_day", "1");
    for (int i = 0; i < 5; i++)
        assert_int_equal(request(&rig, &by_admin, 7), 0);
    must(meter_flush(rig.meter, &e), &e);
    must(store_usage_list(rig.f.store, rig.f.a, &by_app_of_today, &page, &e), &e);
    assert_int_equal(page.n, 1);
    assert_string_equal(page.rows[0].of[USAGE_APP], "");
    assert_int_equal(page.totals.requests, 5);
    assert_int_equal(page.totals.prompt_tokens, 35);
}

static void a_day_ends_at_midnight(void **state)
{
    AUTO(rig_close) struct rig rig;

    rig_open(&rig);
    set(&rig, "limits.requests_a_day", "1");
    pass_ms(&rig, DAY / 2 - 1);
    assert_int_equal(request(&rig, &by_app, 1), 0);
    assert_int_equal(request(&rig, &by_app, 1), 1);
    pass_ms(&rig, 1);
    assert_int_equal(request(&rig, &by_app, 1), 0);
    rig.now.wall_ms -= 1; /* the clock is set back over midnight */
    assert_int_equal(request(&rig, &by_app, 1), DAY + 1);
}

static void counts_and_limits_of_the_day_survive_a_restart(void **state)
{
    AUTO(rig_close) struct rig rig;

    rig_open(&rig);
    limit(&rig, RATE_OF_KEY, KEY, RATE_REQUESTS_A_DAY, 3);
    limit(&rig, RATE_OF_APP, APP, RATE_TOKENS_A_DAY, 100);
    assert_int_equal(request(&rig, &by_both, 40), 0);
    assert_int_equal(request(&rig, &by_both, 50), 0);
    meter_close(rig.meter);
    rig_open_meter(&rig);
    assert_int_equal(state_of(&rig, RATE_OF_APP, APP).used[RATE_TOKENS_A_DAY], 90);
    assert_int_equal(state_of(&rig, RATE_OF_APP, APP).used[RATE_TOKENS_A_MINUTE], 0);
    assert_int_equal(request(&rig, &by_both, 10), 0);
    assert_int_equal(request(&rig, &by_app, 1), DAY / 2);
    assert_int_equal(request(&rig, &by_key, 1), DAY / 2);
    pass_ms(&rig, DAY / 2);
    meter_close(rig.meter);
    rig_open_meter(&rig);
    assert_int_equal(request(&rig, &by_both, 1), 0);
}

static void counts_of_many_days_keep_their_day(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct usage_request by_day = { .from = "2024-01-01", .to = "2025-01-01", .by = USAGE_BY(USAGE_DAY) };
    struct usage_page page;
    struct err e = { 0 };

    rig_open(&rig);
    for (int day = 0; day < 5; day++) {
        for (int i = 0; i <= day; i++)
            assert_int_equal(request(&rig, &by_app, 10), 0);
        if (day % 2)
            must(meter_flush(rig.meter, &e), &e);
        pass_ms(&rig, DAY);
    }
    must(meter_flush(rig.meter, &e), &e);
    must(store_usage_list(rig.f.store, rig.f.a, &by_day, &page, &e), &e);
    assert_int_equal(page.n, 5);
    assert_string_equal(page.rows[0].of[USAGE_DAY], "2024-10-08");
    assert_string_equal(page.rows[4].of[USAGE_DAY], "2024-10-04");
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(page.rows[i].counts.requests, 5 - i);
    assert_int_equal(page.totals.prompt_tokens, 150);
}

static void models_beyond_the_limit_are_counted_together(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct usage_request others = {
        .from = "2024-10-04", .to = "2024-10-04", .only = { [USAGE_MODEL] = "other" }, .by = USAGE_BY(USAGE_MODEL)
    };
    struct meter_ticket ticket;
    struct usage_page page;
    struct err e = { 0 };
    char model[32];

    rig_open(&rig);
    for (int i = 0; i < LIMIT_USAGE_ROWS + 7; i++) {
        snprintf(model, sizeof(model), "model-%d", i);
        assert_int_equal(admit_for(&rig, &by_key, 1, &ticket), 0);
        meter_count(rig.meter, &ticket,
                    &(struct meter_use){ .provider = "openai", .model = model, .prompt_tokens = 1 });
    }
    must(meter_flush(rig.meter, &e), &e);
    must(store_usage_list(rig.f.store, rig.f.a, &others, &page, &e), &e);
    assert_int_equal(page.totals.requests, 7);
}

static void a_ticket_counts_once_and_an_empty_one_never(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct meter_ticket ticket, empty = { 0 };

    rig_open(&rig);
    assert_int_equal(admit_for(&rig, &by_key, 10, &ticket), 0);
    count_tokens(&rig, &ticket, 10, 0);
    count_tokens(&rig, &ticket, 10, 0);
    count_tokens(&rig, &empty, 10, 0);
    assert_int_equal(state_of(&rig, RATE_OF_KEY, KEY).used[RATE_TOKENS_A_MINUTE], 10);
}

static void a_request_that_came_to_nobody_leaves_no_trace(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct meter_ticket ticket;

    rig_open(&rig);
    limit(&rig, RATE_OF_KEY, KEY, RATE_REQUESTS_A_DAY, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(admit_for(&rig, &by_both, 1000, &ticket), 0);
        meter_give_back(rig.meter, &ticket);
        meter_give_back(rig.meter, &ticket);
    }
    for (int rate = 0; rate < N_RATES; rate++)
        assert_int_equal(state_of(&rig, RATE_OF_KEY, KEY).used[rate] + state_of(&rig, RATE_OF_APP, APP).used[rate], 0);
    assert_int_equal(request(&rig, &by_both, 5), 0);
    assert_int_not_equal(request(&rig, &by_both, 5), 0);
}

static void foreign_numbers_and_names_stay_in_bounds(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct meter_ticket ticket;
    char name[LIMIT_USAGE_NAME_BYTES * 2];
    struct usage_request by_name = { .from = "2024-10-04",
                                     .to = "2024-10-04",
                                     .by = USAGE_BY(USAGE_MODEL) | USAGE_BY(USAGE_PROVIDER) };
    struct usage_page page;
    struct err e = { 0 };

    rig_open(&rig);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (int i = 0; i < 3; i++) {
        assert_int_equal(admit_for(&rig, &by_both, INT64_MAX, &ticket), 0);
        meter_count(rig.meter, &ticket,
                    &(struct meter_use){
                        .provider = name, .model = name, .prompt_tokens = INT64_MAX, .completion_tokens = INT64_MIN });
    }
    must(meter_flush(rig.meter, &e), &e);
    assert_int_equal(state_of(&rig, RATE_OF_KEY, KEY).used[RATE_TOKENS_A_DAY], 3 * (INT64_C(1) << 40));
    must(store_usage_list(rig.f.store, rig.f.a, &by_name, &page, &e), &e);
    assert_int_equal(page.n, 1);
    assert_int_equal(strlen(page.rows[0].of[USAGE_MODEL]), LIMIT_USAGE_NAME_BYTES);
    assert_int_equal(strlen(page.rows[0].of[USAGE_PROVIDER]), LIMIT_USAGE_NAME_BYTES);
}

static size_t count_of(const char *text, const char *word)
{
    size_t n = 0;

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        n++;
    return n;
}

static void providers_beyond_the_limit_share_their_metrics(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct meter_ticket ticket;
    struct buf page;
    char provider[32];

    rig_open(&rig);
    for (int i = 0; i < LIMIT_USAGE_PROVIDERS + 20; i++) {
        snprintf(provider, sizeof(provider), "p\"%d", i);
        assert_int_equal(admit_for(&rig, &by_admin, 1, &ticket), 0);
        meter_count(rig.meter, &ticket, &(struct meter_use){ .provider = provider, .model = "m" });
    }
    buf_init(&page, LIMIT_REPLY);
    metrics_print(&page);
    assert_int_equal(count_of(buf_str(&page), "hearth_model_requests_total{provider=\"p_"),
                     2 * N_METER_WORKS * (LIMIT_USAGE_PROVIDERS - 1));
    assert_non_null(
        strstr(buf_str(&page), "hearth_model_requests_total{provider=\"other\",kind=\"chat\",result=\"whole\"} 21\n"));
    buf_clear(&page);
}

/* ---- threads ---- */

enum { N_THREADS = 8, N_REQUESTS = 500 };

struct crowd {
    struct rig *rig;
    int n_admitted;
    bool has_failed;
};

static void *press(void *arg)
{
    struct crowd *crowd = arg;
    struct meter_ticket ticket;
    int64_t wait_ms;

    for (int i = 0; i < N_REQUESTS; i++) {
        if (meter_admit(crowd->rig->meter, i % 2 ? &by_key : &by_both, 3, &ticket, &wait_ms, NULL) < 0)
            continue;
        crowd->n_admitted++;
        meter_count(crowd->rig->meter, &ticket,
                    &(struct meter_use){ .work = i % 2,
                                         .provider = "openai",
                                         .model = i % 3 ? "a" : "b",
                                         .prompt_tokens = 2,
                                         .completion_tokens = 1 });
        crowd->has_failed |= i % 100 == 0 && meter_flush(crowd->rig->meter, NULL) < 0;
    }
    return NULL;
}

static int press_together(struct rig *rig)
{
    struct crowd crowd[N_THREADS];
    pthread_t threads[N_THREADS];
    int n = 0;

    for (int i = 0; i < N_THREADS; i++) {
        crowd[i] = (struct crowd){ .rig = rig };
        assert_int_equal(pthread_create(&threads[i], NULL, press, &crowd[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_false(crowd[i].has_failed);
        n += crowd[i].n_admitted;
    }
    return n;
}

static void a_crowd_gets_exactly_the_limit_and_all_of_it_is_stored(void **state)
{
    AUTO(rig_close) struct rig rig;
    struct usage_request all = { .from = "2024-10-04", .to = "2024-10-04", .by = USAGE_BY(USAGE_KEY) };
    struct meter_config c = { .is_serving = true };
    struct meter_clock clock;
    struct usage_page page;
    struct err e = { 0 };

    rig_open(&rig);
    meter_close(rig.meter);
    clock = (struct meter_clock){ rig_mono_ms, rig_wall_ms, &rig };
    c.store = rig.f.store;
    c.settings = rig.settings;
    c.clock = &clock;
    must(meter_open(&c, &rig.meter, &e), &e); /* with its own thread */
    limit(&rig, RATE_OF_KEY, KEY, RATE_REQUESTS_A_MINUTE, 1500);
    assert_int_equal(press_together(&rig), 1500);
    rig.meter = meter_close(rig.meter);
    must(store_usage_list(rig.f.store, rig.f.a, &all, &page, &e), &e);
    assert_int_equal(page.totals.requests, 1500);
    assert_int_equal(page.totals.prompt_tokens, 3000);
    assert_int_equal(page.totals.completion_tokens, 1500);
}

static int speak(struct rig *rig, int64_t characters, struct meter_ticket *ret)
{
    return meter_admit_speech(rig->meter, &by_app, characters, ret, &(int64_t){ 0 }, NULL);
}

static void what_is_spoken_counts_in_characters(void **state)
{
    const struct meter_use use = { .work = METER_SPEECH, .provider = "flite_local", .model = "rms", .audio_ms = 1500 };
    struct meter_ticket ticket = { 0 }, second = { 0 };
    AUTO(rig_close) struct rig rig;

    rig_open(&rig);
    limit(&rig, RATE_OF_APP, APP, RATE_CHARACTERS_A_DAY, 100);
    assert_int_equal(speak(&rig, 99, &ticket), 0);
    assert_int_equal(speak(&rig, 50, &second), 0); /* the last one may go beyond */
    meter_give_back(rig.meter, &second);
    assert_int_equal(state_of(&rig, RATE_OF_APP, APP).used[RATE_CHARACTERS_A_DAY], 99);
    meter_count(rig.meter, &ticket, &use);
    assert_int_equal(speak(&rig, 1, &ticket), 0);
    meter_count(rig.meter, &ticket, &use);
    assert_int_equal(speak(&rig, 1, &second), -EBUSY);
    assert_int_equal(request(&rig, &by_app, 5), 0); /* characters limit nothing else ... */
    meter_close(rig.meter);
    rig_open_meter(&rig);
    assert_int_equal(state_of(&rig, RATE_OF_APP, APP).used[RATE_CHARACTERS_A_DAY], 100); /* also after a restart */
    limit(&rig, RATE_OF_APP, APP, RATE_TOKENS_A_DAY, 1);
    assert_int_equal(speak(&rig, 1, &second), 0); /* ... and tokens no speech */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_limits_everything_is_admitted),
        cmocka_unit_test(the_request_beyond_a_limit_is_refused_in_words),
        cmocka_unit_test(a_refused_request_counts_nowhere),
        cmocka_unit_test(tokens_are_refused_from_the_limit_on),
        cmocka_unit_test(tokens_count_when_the_answer_is_there),
        cmocka_unit_test(requests_under_way_hold_their_expected_tokens),
        cmocka_unit_test(one_request_alone_is_admitted_whatever_it_expects),
        cmocka_unit_test(key_and_app_both_need_room),
        cmocka_unit_test(own_limits_outrank_the_settings_at_once),
        cmocka_unit_test(the_administrator_is_counted_and_not_limited),
        cmocka_unit_test(a_day_ends_at_midnight),
        cmocka_unit_test(counts_and_limits_of_the_day_survive_a_restart),
        cmocka_unit_test(counts_of_many_days_keep_their_day),
        cmocka_unit_test(models_beyond_the_limit_are_counted_together),
        cmocka_unit_test(a_ticket_counts_once_and_an_empty_one_never),
        cmocka_unit_test(a_request_that_came_to_nobody_leaves_no_trace),
        cmocka_unit_test(foreign_numbers_and_names_stay_in_bounds),
        cmocka_unit_test(providers_beyond_the_limit_share_their_metrics),
        cmocka_unit_test(what_is_spoken_counts_in_characters),
        cmocka_unit_test(a_crowd_gets_exactly_the_limit_and_all_of_it_is_stored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
