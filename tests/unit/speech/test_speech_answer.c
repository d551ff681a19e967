#include "speech/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void add_frame(struct buf *to, uint32_t kind, const void *bytes, size_t n)
{
    const struct speech_frame frame = { kind, (uint32_t)n };

    buf_add(to, &frame, sizeof(frame));
    buf_add(to, bytes, n);
}

/* Feeds in pieces; the result of the last one. */
static int feed(struct buf *bytes, struct buf *audio, size_t piece, size_t n_max, bool is_start, struct err *e)
{
    struct speech_answer answer;
    int r = 0;

    speech_answer_init(&answer, audio, n_max);
    answer.is_start = is_start;
    for (size_t at = 0; r == 0 && at < bytes->n; at += piece)
        r = speech_answer_feed(&answer, (struct slice){ bytes->p + at, MIN(piece, bytes->n - at) }, e);
    speech_answer_clear(&answer);
    return r;
}

static void an_answer_in_any_pieces_is_read(void **state)
{
    const struct speech_frame_done done = { 16000, 3 };
    const size_t pieces[] = { 1, 7, 100, 1000000 };
    static char part[LIMIT_SPEECH_FRAME];

    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        struct buf bytes, audio;

        buf_init(&bytes, MIB(1));
        buf_init(&audio, MIB(1));
        add_frame(&bytes, SPEECH_FRAME_AUDIO, part, sizeof(part));
        add_frame(&bytes, SPEECH_FRAME_AUDIO, "abcdef", 6);
        add_frame(&bytes, SPEECH_FRAME_DONE, &done, sizeof(done));
        assert_int_equal(feed(&bytes, &audio, pieces[i], MIB(1), false, NULL), 1);
        assert_int_equal(audio.n, sizeof(part) + 6);
        buf_clear(&bytes);
        buf_clear(&audio);
    }
}

/* What a worker that was taken over might send. */
static void what_breaks_the_protocol_is_refused(void **state)
{
    const struct speech_frame_done done = { 16000, 3 }, no_rate = { 0, 3 };
    const struct speech_frame_hello hello = { SPEECH_FRAMES_VERSION }, newer = { SPEECH_FRAMES_VERSION + 1 };
    const struct speech_frame huge = { SPEECH_FRAME_AUDIO, LIMIT_SPEECH_FRAME + 1 };
    const struct {
        uint32_t kind;
        const void *bytes;
        size_t n;
        bool is_start;
        int wanted;
    } cases[] = {
        { SPEECH_FRAME_DONE, &done, sizeof(done), false, 1 },
        { SPEECH_FRAME_DONE, &done, sizeof(done) - 1, false, -EIO },
        { SPEECH_FRAME_DONE, &no_rate, sizeof(no_rate), false, -EIO },
        { SPEECH_FRAME_HELLO, &hello, sizeof(hello), true, 1 },
        { SPEECH_FRAME_HELLO, &hello, sizeof(hello), false, -EIO },
        { SPEECH_FRAME_HELLO, &newer, sizeof(newer), true, -EIO },
        { SPEECH_FRAME_AUDIO, "ab", 2, true, -EIO },
        { SPEECH_FRAME_AUDIO, "abcd", 4, false, 0 },
        { SPEECH_FRAME_AUDIO, "abcde", 5, false, -EIO }, /* n_max is 4 */
        { SPEECH_FRAME_SAY, "", 0, false, -EIO },
        { SPEECH_FRAME_FAILED, "\xff\xff", 2, false, -EIO },
        { 77, "", 0, false, -EIO },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buf bytes, audio;

        buf_init(&bytes, MIB(1));
        buf_init(&audio, MIB(1));
        add_frame(&bytes, cases[i].kind, cases[i].bytes, cases[i].n);
        assert_int_equal(feed(&bytes, &audio, 1000, 4, cases[i].is_start, NULL), cases[i].wanted);
        buf_reset(&bytes);
        buf_add(&bytes, &huge, sizeof(huge));
        assert_int_equal(feed(&bytes, &audio, 1000, MIB(1), false, NULL), -EIO);
        buf_clear(&bytes);
        buf_clear(&audio);
    }
}

static void a_failure_has_the_words_of_the_worker(void **state)
{
    struct buf bytes, audio;
    struct err e = { 0 };

    buf_init(&bytes, 1000);
    buf_init(&audio, 1000);
    add_frame(&bytes, SPEECH_FRAME_FAILED, "No voice.", 9);
    assert_int_equal(feed(&bytes, &audio, 5, 1000, false, &e), -EIO);
    assert_string_equal(e.code, "SPEECH_FAILED");
    assert_string_equal(e.text, "No voice.");
    buf_clear(&bytes);
    buf_clear(&audio);
}

static void only_names_become_voices(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct speech_voices v = speech_answer_voices(a, SLICE_LIT("en-us\n\nfr\n../x\nFR\nsr_Latn\na b\nlast"));

    assert_int_equal(v.n, 4);
    assert_string_equal(v.items[0], "en-us");
    assert_string_equal(v.items[2], "sr_Latn");
    assert_string_equal(v.items[3], "last");
    assert_null(v.items[4]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_in_any_pieces_is_read),
        cmocka_unit_test(what_breaks_the_protocol_is_refused),
        cmocka_unit_test(a_failure_has_the_words_of_the_worker),
        cmocka_unit_test(only_names_become_voices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
