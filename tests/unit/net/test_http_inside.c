/* Answers that were made inside this process: delivered on the loop and to a worker as if a peer had sent them. */
#include "record.h"

#define PIECE(text)                                                                                                    \
    {                                                                                                                  \
        text, sizeof(text) - 1                                                                                         \
    }

static const struct slice three[] = { PIECE("one "), PIECE("two "), PIECE("three") };
static const struct http_call_header type = { "content-type", "text/plain" };

static struct http_inside inside(void)
{
    return (struct http_inside){
        .peer = "the inside", .status = 200, .headers = &type, .n_headers = 1, .pieces = three, .n_pieces = 3
    };
}

static void no_request(void *arg, struct http_exchange *x)
{
    fail_msg("nothing is sent");
}

static void play(struct record *record, struct rig *rig, const struct http_call_request *request)
{
    rig_open(rig, no_request, NULL);
    record_open(record, rig);
    start(record, request);
}

static void the_loop_delivers_head_pieces_and_end(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_inside answer = inside();
    struct record record;

    play(&record, &rig, &(struct http_call_request){ .method = "POST", .inside = &answer });
    answer = (struct http_inside){ 0 }; /* the fetch has a copy */
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, 0);
    assert_int_equal(record.status, 200);
    assert_string_equal(record.type, "text/plain");
    assert_string_equal(buf_str(&record.bytes), "one two three");
    record_close(&record, &rig);
}

static void a_paused_answer_goes_on_where_it_was(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_inside answer = inside();
    struct record record = { 0 };

    for (size_t pause_at = 1; pause_at <= 13; pause_at += 6) {
        rig_open(&rig, no_request, NULL);
        record_open(&record, &rig);
        record.pause_at = pause_at;
        start(&record, &(struct http_call_request){ .method = "POST", .inside = &answer, .idle_ms = IDLE_MS });
        assert_true(wait_until(has_paused, &record));
        assert_false(atomic_load(&record.is_ended));
        loop_call(rig.loop, resume, &record);
        assert_true(wait_until(has_ended, &record));
        assert_int_equal(record.r, 0);
        assert_string_equal(buf_str(&record.bytes), "one two three");
        record_close(&record, &rig);
        rig_close(&rig);
        rig = (struct rig){ 0 };
    }
}

static void hold_the_loop(void *arg)
{
    int64_t began_ms = clock_mono_ms();

    assert_true(wait_until(has_the_limit_passed, &began_ms));
}

struct resuming {
    struct record *record;
    struct loop *loop;
};

/* The fetch goes on in a post of its own; the loop is held before the timer of its next piece. */
static void resume_then_hold(void *arg)
{
    struct resuming *r = arg;

    resume(r->record);
    loop_post(r->loop, hold_the_loop, NULL);
}

static void a_loop_that_stands_still_makes_no_piece_late(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_inside answer = inside();
    struct record record;

    rig_open(&rig, no_request, NULL);
    record_open(&record, &rig);
    record.pause_at = 1;
    start(&record, &(struct http_call_request){ .method = "POST", .inside = &answer, .idle_ms = IDLE_MS });
    assert_true(wait_until(has_paused, &record));
    loop_call(rig.loop, resume_then_hold, &(struct resuming){ &record, rig.loop });
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, 0);
    assert_string_equal(buf_str(&record.bytes), "one two three");
    record_close(&record, &rig);
}

static void an_answer_can_be_cancelled_stopped_and_freed(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_inside answer = inside();
    struct record record;

    answer.piece_ms = 3600000;
    play(&record, &rig, &(struct http_call_request){ .method = "POST", .inside = &answer });
    http_fetch_cancel(record.fetch);
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, -ECANCELED);
    record_close(&record, &rig);

    record_open(&record, &rig);
    start(&record, &(struct http_call_request){ .method = "POST", .inside = &answer });
    record_close(&record, &rig);
    assert_true(atomic_load(&record.is_ended));
    assert_int_equal(record.r, -ECANCELED);

    answer.piece_ms = 0;
    record_open(&record, &rig);
    record.stop_with = -EBADMSG;
    start(&record, &(struct http_call_request){ .method = "POST", .inside = &answer });
    assert_true(wait_until(has_ended, &record));
    assert_int_equal(record.r, -EBADMSG);
    assert_string_equal(buf_str(&record.bytes), "one ");
    record_close(&record, &rig);
}

struct outcome {
    struct http_inside answer;
    struct http_call_request request;
    int r;
    const char *code, *bytes;
};

static void fill_outcomes(struct outcome of[4])
{
    struct http_inside slow = inside(), cut = inside(), none = inside();

    slow.piece_ms = 3600000;
    cut.n_pieces = 2;
    cut.is_cut = true;
    none.n_pieces = 0;
    of[0] = (struct outcome){ cut, { 0 }, -ECONNRESET, "UPSTREAM_CLOSED", "one two " };
    of[1] = (struct outcome){ slow, { .first_byte_ms = 20 }, -ETIMEDOUT, "UPSTREAM_TIMEOUT", "" };
    of[2] = (struct outcome){ slow, { .total_ms = 20 }, -ETIMEDOUT, "UPSTREAM_TIMEOUT", "" };
    of[3] = (struct outcome){ none, { 0 }, 0, "", "" };
    for (size_t i = 0; i < 4; i++) {
        of[i].request.method = "POST";
        of[i].request.inside = &of[i].answer;
    }
}

static void time_limits_and_broken_connections_are_those_of_a_peer(void **state)
{
    struct outcome of[4];

    fill_outcomes(of);
    for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
        AUTO(rig_close) struct rig rig = { 0 };
        AUTO(arena_freep) struct arena *a = arena_new();
        struct http_answer answer = { 0 };
        struct err e = { 0 };
        struct record record;

        play(&record, &rig, &of[i].request);
        assert_true(wait_until(has_ended, &record));
        assert_int_equal(record.r, of[i].r);
        assert_string_equal(record.code, of[i].code);
        assert_string_equal(buf_str(&record.bytes), of[i].bytes);
        if (of[i].r < 0)
            assert_memory_equal(record.text, "the inside ", 11);
        record_close(&record, &rig);
        assert_int_equal(http_call(&of[i].request, a, NULL, &answer, &e), of[i].r);
        assert_string_equal(e.code, of[i].code);
    }
}

static void a_worker_gets_the_whole_answer(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_inside made = inside();
    struct http_call_request request = { .method = "POST", .inside = &made, .max_reply = 13 };
    struct http_answer answer = { 0 };
    struct err e = { 0 };

    assert_int_equal(http_call(&request, a, NULL, &answer, &e), 0);
    assert_int_equal(answer.status, 200);
    assert_true(slice_eq_str(answer.body, "one two three"));
    assert_string_equal(http_answer_header(&answer, "content-type"), "text/plain");
    request.max_reply = 12;
    assert_int_equal(http_call(&request, a, NULL, &answer, &e), -EMSGSIZE);
    assert_string_equal(e.code, "UPSTREAM_TOO_LARGE");
}

static void a_worker_that_waits_ends_when_its_caller_leaves(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_inside made = inside();
    struct http_call_request request = { .method = "POST", .inside = &made };
    const atomic_bool is_gone = true;
    struct http_answer answer = { 0 };

    made.piece_ms = 3600000;
    assert_int_equal(http_call(&request, a, &is_gone, &answer, NULL), -ECANCELED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loop_delivers_head_pieces_and_end),
        cmocka_unit_test(a_paused_answer_goes_on_where_it_was),
        cmocka_unit_test(a_loop_that_stands_still_makes_no_piece_late),
        cmocka_unit_test(an_answer_can_be_cancelled_stopped_and_freed),
        cmocka_unit_test(time_limits_and_broken_connections_are_those_of_a_peer),
        cmocka_unit_test(a_worker_gets_the_whole_answer),
        cmocka_unit_test(a_worker_that_waits_ends_when_its_caller_leaves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
