/* One turn in each of its phases: its owner frees it in on_end, as ASan verifies. */
#include "fixture.h"

#include "base/pool.h"
#include "llm/answer.h"
#include "llm/turn.h"

struct bench {
    struct fixture fixture;
    struct pool *workers;
    struct llm_turns *turns;
};

struct one { /* freed at the turn's end */
    struct llm_turn turn;
    struct arena *arena;
    struct llm_answer answer;
    struct bout *bout;
};

/* The test's view of a turn. */
struct bout {
    struct bench *bench;
    struct one *one;           /* until the turn's end; loop thread */
    enum llm_turn_state state; /* as look() saw it */
    bool commits, cancels_itself, checks;
    int n_bad; /* so many answers fail their check */
    int n_attempts, n_reads, n_checked_on_loop, n_accepted, r;
    char provider[40];
    struct llm_answer answer;
    struct err e;
    atomic_bool is_over;
};

static void open_turns(void *arg)
{
    struct bench *b = arg;

    assert_int_equal(llm_turns_new(b->fixture.rig.loop, b->fixture.settings, b->workers, &b->turns, NULL), 0);
}

static void free_turns(void *arg)
{
    struct bench *b = arg;

    b->turns = llm_turns_free(b->turns);
}

static void bench_open(struct bench *b, const char *first, const char *fallback)
{
    const struct pool_config config = { .name = "readers", .n_min = 1, .n_max = 1, .max_waiting = 10 };

    fixture_open(&b->fixture, first, fallback);
    assert_int_equal(pool_start(&config, &b->workers, NULL), 0);
    loop_call(b->fixture.rig.loop, open_turns, b);
}

static void bench_close(struct bench *b)
{
    b->workers = pool_stop(b->workers);
    loop_call(b->fixture.rig.loop, free_turns, b);
    fixture_close(&b->fixture);
}

static void on_attempt(void *arg)
{
    struct one *one = arg;

    one->bout->n_attempts++;
    llm_answer_clear(&one->answer);
    llm_answer_init(&one->answer);
}

static int after_read(void *arg)
{
    struct one *one = arg;

    one->bout->n_reads++;
    if (one->bout->commits)
        llm_turn_commit(&one->turn);
    if (one->bout->cancels_itself)
        llm_turn_cancel(&one->turn);
    return 0;
}

static void on_end(void *arg, int r, const struct err *e)
{
    struct one *one = arg;
    struct bout *bout = one->bout;

    bout->r = r;
    if (r < 0)
        bout->e = *e;
    bout->one = NULL;
    snprintf(bout->provider, sizeof(bout->provider), "%s", one->turn.account ? one->turn.account->name : "");
    bout->answer = one->answer;
    arena_free(one->arena);
    free(one);
    atomic_store(&bout->is_over, true);
}

static int check(void *arg, struct err *e)
{
    struct bout *bout = ((struct one *)arg)->bout;

    bout->n_checked_on_loop += loop_is_current(bout->bench->fixture.rig.loop);
    return bout->n_bad-- > 0 ? err_set(e, -EIO, "LLM_ERROR", "not what was asked for") : 0;
}

static int on_checked(void *arg)
{
    struct one *one = arg;

    one->bout->n_accepted++;
    llm_turn_answered(&one->turn);
    return 0;
}

static int on_answer_end(void *arg, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    struct one *one = CONTAINER_OF((struct llm_answer *)arg, struct one, answer);
    int r;

    llm_answer_end(&one->answer, why, usage, model);
    r = llm_turn_check(&one->turn);
    if (r == -EINPROGRESS)
        return 0;
    return r < 0 ? r : on_checked(one);
}

static void start(void *arg)
{
    static const struct llm_turn_events events = {
        .on_attempt = on_attempt, .after_read = after_read, .check = check, .on_checked = on_checked, .on_end = on_end
    };
    struct bout *bout = arg;
    struct one *one = xcalloc(1, sizeof(*one));
    struct llm_sink sink = llm_answer_sink(&one->answer);
    struct llm_plan *plan;

    sink.on_end = on_answer_end;
    bout->one = one;
    one->bout = bout;
    one->arena = arena_new();
    plan = fixture_plan(&bout->bench->fixture, one->arena, one->arena, bout->commits);
    for (size_t i = 0; i < plan->picks.n; i++)
        plan->of[i].must_check = bout->checks;
    llm_turn_start(bout->bench->turns, &one->turn,
                   &(struct llm_turn_start){ .plan = plan, .sink = sink, .events = &events, .arg = one });
}

static void look(void *arg)
{
    struct bout *bout = arg;

    bout->state = bout->one ? bout->one->turn.state : LLM_TURN_ENDED;
}

static bool waits(void *arg)
{
    struct bout *bout = arg;

    loop_call(bout->bench->fixture.rig.loop, look, bout);
    return bout->state == LLM_TURN_WAITS;
}

static bool reads(void *arg)
{
    (void)waits(arg);
    return ((struct bout *)arg)->state == LLM_TURN_READS;
}

static void cancel(void *arg)
{
    struct bout *bout = arg;

    assert_non_null(bout->one);
    llm_turn_cancel(&bout->one->turn);
    assert_non_null(bout->one); /* never during the call */
    llm_turn_cancel(&bout->one->turn);
}

static void start_and_cancel(void *arg)
{
    start(arg);
    cancel(arg);
}

static bool is_over(void *arg)
{
    return atomic_load(&((struct bout *)arg)->is_over);
}

static void begin(struct bout *bout, struct bench *b)
{
    bout->bench = b;
    loop_call(b->fixture.rig.loop, start, bout);
}

static void finish(struct bout *bout)
{
    assert_true(wait_until(is_over, bout));
}

static void bout_close(struct bout *bout)
{
    llm_answer_clear(&bout->answer);
}

static void a_turn_that_is_cancelled_at_once_ends_later(void **state)
{
    AUTO(bench_close) struct bench b = { 0 };
    AUTO(bout_close) struct bout bout = { .bench = &b };

    bench_open(&b, "/", NULL);
    loop_call(b.fixture.rig.loop, start_and_cancel, &bout);
    finish(&bout);
    assert_int_equal(bout.r, -ECANCELED);
}

static bool has_heard(void *arg)
{
    return atomic_load(&((struct raw_peer *)arg)->has_heard);
}

static bool has_left(void *arg)
{
    return atomic_load(&((struct raw_peer *)arg)->has_left);
}

static void a_cancel_leaves_the_upstream_before_and_within_its_answer(void **state)
{
    static const char *const says[] = { "", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choices\"",
                                        "HTTP/1.1 503 No\r\ncontent-length: 100\r\n\r\nno" };

    for (size_t i = 0; i < ARRAY_SIZE(says); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        AUTO(bench_close) struct bench b = { 0 };
        AUTO(bout_close) struct bout bout = { 0 };
        struct raw_peer peer;

        raw_open(&peer, says[i], RAW_HANG);
        bench_open(&b, arena_printf(a, "http://127.0.0.1:%u/v1", peer.port), "/");
        begin(&bout, &b);
        assert_true(wait_until(has_heard, &peer));
        loop_call(b.fixture.rig.loop, cancel, &bout);
        finish(&bout);
        assert_int_equal(bout.r, -ECANCELED);
        assert_int_equal(bout.n_attempts, 1); /* no other account is tried */
        assert_true(wait_until(has_left, &peer));
        raw_close(&peer);
    }
}

static void a_cancel_ends_the_wait_for_the_next_attempt(void **state)
{
    AUTO(bench_close) struct bench b = { 0 };
    AUTO(bout_close) struct bout bout = { 0 };

    bench_open(&b, "/unwilling", NULL);
    begin(&bout, &b);
    assert_true(wait_until(waits, &bout));
    loop_call(b.fixture.rig.loop, cancel, &bout);
    finish(&bout);
    assert_int_equal(bout.r, -ECANCELED);
    assert_int_equal(bout.n_attempts, 1);
    assert_string_equal(bout.provider, "one");
}

static void hold_worker(void *arg)
{
    assert_true(wait_until(is_open, arg));
}

static void a_cancel_while_a_worker_reads_waits_for_it(void **state)
{
    AUTO(bench_close) struct bench b = { 0 };
    AUTO(bout_close) struct bout bout = { 0 };

    bench_open(&b, "/bulky", NULL);
    assert_int_equal(pool_submit(b.workers, hold_worker, &b.fixture), 0);
    begin(&bout, &b);
    assert_true(wait_until(reads, &bout));
    loop_call(b.fixture.rig.loop, cancel, &bout);
    assert_false(atomic_load(&bout.is_over));
    atomic_store(&b.fixture.is_open, true);
    finish(&bout);
    assert_int_equal(bout.r, -ECANCELED);
}

static void a_worker_checks_an_answer_before_the_turn_ends(void **state)
{
    for (int commits = 0; commits < 2; commits++) {
        AUTO(bench_close) struct bench b = { 0 };
        AUTO(bout_close) struct bout bout = { .checks = true, .commits = commits == 1 };

        bench_open(&b, "/", NULL);
        assert_int_equal(pool_submit(b.workers, hold_worker, &b.fixture), 0);
        begin(&bout, &b);
        assert_true(wait_until(reads, &bout));
        assert_false(atomic_load(&bout.is_over));
        atomic_store(&b.fixture.is_open, true);
        finish(&bout);
        assert_int_equal(bout.r, 0);
        assert_int_equal(bout.n_accepted, 1);
        assert_int_equal(bout.n_checked_on_loop, 0);
        assert_string_equal(buf_str(&bout.answer.text), commits ? "Hello" : "all at once");
    }
}

static void an_answer_that_fails_its_check_is_requested_anew(void **state)
{
    AUTO(bench_close) struct bench b = { 0 };
    AUTO(bout_close) struct bout bout = { .checks = true, .n_bad = 1 };

    bench_open(&b, "/", "/");
    begin(&bout, &b);
    finish(&bout);
    assert_int_equal(bout.r, 0);
    assert_int_equal(bout.n_attempts, 2);
    assert_int_equal(bout.n_accepted, 1);
    assert_string_equal(bout.provider, "other");
}

static void an_answer_that_fails_its_check_after_it_was_passed_on_ends_the_turn(void **state)
{
    AUTO(bench_close) struct bench b = { 0 };
    AUTO(bout_close) struct bout bout = { .checks = true, .commits = true, .n_bad = 1 };

    bench_open(&b, "/", "/");
    begin(&bout, &b);
    finish(&bout);
    assert_int_equal(bout.r, -EIO);
    assert_string_equal(bout.e.text, "not what was asked for");
    assert_int_equal(bout.n_attempts, 1);
    assert_int_equal(bout.n_accepted, 0);
}

static void a_cancel_while_a_worker_checks_waits_for_it(void **state)
{
    AUTO(bench_close) struct bench b = { 0 };
    AUTO(bout_close) struct bout bout = { .checks = true };

    bench_open(&b, "/", "/");
    assert_int_equal(pool_submit(b.workers, hold_worker, &b.fixture), 0);
    begin(&bout, &b);
    assert_true(wait_until(reads, &bout));
    loop_call(b.fixture.rig.loop, cancel, &bout);
    assert_false(atomic_load(&bout.is_over));
    atomic_store(&b.fixture.is_open, true);
    finish(&bout);
    assert_int_equal(bout.r, -ECANCELED);
    assert_int_equal(bout.n_accepted, 0);
}

static void a_cancel_may_come_from_what_is_read(void **state)
{
    AUTO(bench_close) struct bench b = { 0 };
    AUTO(bout_close) struct bout bout = { .commits = true, .cancels_itself = true };

    bench_open(&b, "/gated", NULL);
    begin(&bout, &b);
    finish(&bout);
    assert_int_equal(bout.r, -ECANCELED);
    assert_true(bout.n_reads > 0);
    atomic_store(&b.fixture.is_open, true);
}

static void what_was_reported_is_not_asked_of_somebody_else(void **state)
{
    AUTO(bench_close) struct bench b = { 0 };
    AUTO(bout_close) struct bout bout = { .commits = true };

    bench_open(&b, "/cut", "/");
    begin(&bout, &b);
    finish(&bout);
    assert_int_equal(bout.r, -ECONNRESET);
    assert_int_equal(bout.n_attempts, 1);
    assert_string_equal(buf_str(&bout.answer.text), "Hello");
}

static void each_attempt_begins_anew(void **state)
{
    AUTO(bench_close) struct bench b = { 0 };
    AUTO(bout_close) struct bout bout = { 0 };

    bench_open(&b, "/unwilling", "/bulky");
    begin(&bout, &b);
    finish(&bout);
    assert_int_equal(bout.r, 0);
    assert_int_equal(bout.n_attempts, 3); /* two attempts at one, one at the other */
    assert_string_equal(bout.provider, "other");
    assert_int_equal(bout.answer.text.n, strlen("bulky.") + N_BULKY);
}

static void a_turn_may_end_while_it_starts(void **state)
{
    AUTO(bench_close) struct bench b = { 0 };

    bench_open(&b, "/", NULL);
    for (int i = 0; i < 2; i++) {
        AUTO(bout_close) struct bout bout = { 0 };
        AUTO(arena_freep) struct arena *a = arena_new();

        for (int failures = 0; failures < 10; failures++) /* the account rests */
            llm_account_state_failed(llm_accounts_find(b.fixture.accounts, a, "one"), NULL, LLM_FAULT_OF_ACCOUNT, 1);
        begin(&bout, &b);
        assert_true(is_over(&bout));
        assert_int_equal(bout.r, -EAGAIN);
        assert_string_equal(bout.e.code, "PROVIDER_UNAVAILABLE");
        assert_string_equal(bout.provider, "");
    }
}

static void the_service_may_stop_in_each_phase(void **state)
{
    static const char *const first[] = { "/unwilling", NULL };

    for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        AUTO(bout_close) struct bout bout = { 0 };
        struct bench b = { 0 };
        struct raw_peer peer;

        raw_open(&peer, "", RAW_HANG);
        bench_open(&b, first[i] ? first[i] : arena_printf(a, "http://127.0.0.1:%u/v1", peer.port), NULL);
        begin(&bout, &b);
        assert_true(first[i] ? wait_until(waits, &bout) : wait_until(has_heard, &peer));
        bench_close(&b);
        assert_true(is_over(&bout));
        assert_int_equal(bout.r, -ECANCELED);
        raw_close(&peer);
    }
}

static void nothing_starts_once_the_service_has_stopped(void **state)
{
    AUTO(bench_close) struct bench b = { 0 };
    AUTO(bout_close) struct bout bout = { 0 };
    struct raw_peer peer;

    raw_open(&peer, "", RAW_HANG);
    bench_open(&b, "/bulky", NULL);
    assert_int_equal(pool_submit(b.workers, hold_worker, &b.fixture), 0);
    begin(&bout, &b);
    assert_true(wait_until(reads, &bout));
    loop_call(b.fixture.rig.loop, free_turns, &b); /* a worker still has the turn's answer */
    atomic_store(&b.fixture.is_open, true);
    finish(&bout);
    assert_int_equal(bout.r, -ECANCELED);
    raw_close(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_that_is_cancelled_at_once_ends_later),
        cmocka_unit_test(a_cancel_leaves_the_upstream_before_and_within_its_answer),
        cmocka_unit_test(a_cancel_ends_the_wait_for_the_next_attempt),
        cmocka_unit_test(a_cancel_while_a_worker_reads_waits_for_it),
        cmocka_unit_test(a_worker_checks_an_answer_before_the_turn_ends),
        cmocka_unit_test(an_answer_that_fails_its_check_is_requested_anew),
        cmocka_unit_test(an_answer_that_fails_its_check_after_it_was_passed_on_ends_the_turn),
        cmocka_unit_test(a_cancel_while_a_worker_checks_waits_for_it),
        cmocka_unit_test(a_cancel_may_come_from_what_is_read),
        cmocka_unit_test(what_was_reported_is_not_asked_of_somebody_else),
        cmocka_unit_test(each_attempt_begins_anew),
        cmocka_unit_test(a_turn_may_end_while_it_starts),
        cmocka_unit_test(the_service_may_stop_in_each_phase),
        cmocka_unit_test(nothing_starts_once_the_service_has_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
