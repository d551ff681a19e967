#include "speech/ears_answer.h"
#include "speech/ears_phrases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void add_frame(struct buf *b, uint32_t kind, const void *head, size_t n_head, const char *text)
{
    const struct speech_frame frame = { kind, (uint32_t)(n_head + strlen(text)) };

    buf_add(b, &frame, sizeof(frame));
    buf_add(b, head, n_head);
    buf_add_str(b, text);
}

static void add_opened(struct buf *b)
{
    add_frame(b, EARS_FRAME_OPENED, &(struct ears_frame_opened){ 16000, 1 }, sizeof(struct ears_frame_opened), "");
}

static void add_word(struct buf *b, uint32_t from, uint32_t to, const char *text)
{
    add_frame(b, EARS_FRAME_WORD, &(struct ears_frame_word){ from, to, 500 }, sizeof(struct ears_frame_word), text);
}

static void add_segment(struct buf *b, uint32_t from, uint32_t to)
{
    add_frame(b, EARS_FRAME_SEGMENT, &(struct ears_frame_segment){ from, to }, sizeof(struct ears_frame_segment), "");
}

static void add_done(struct buf *b, uint32_t ms)
{
    add_frame(b, EARS_FRAME_DONE, &(struct ears_frame_done){ ms }, sizeof(struct ears_frame_done), "");
}

/* Reads all that can be read; returns the last result. kinds: the first letters of the events. */
static int read_all(const struct buf *bytes, size_t piece, char *kinds, struct err *e)
{
    struct ears_answer a;
    struct ears_event event;
    size_t n = 0;
    int r = 0;

    ears_answer_init(&a);
    for (size_t at = 0; r == 0 && at < bytes->n; at += piece) {
        ears_answer_feed(&a, (struct slice){ bytes->p + at, MIN(piece, bytes->n - at) });
        while ((r = ears_answer_next(&a, &event, e)) == 1)
            kinds[n++] = "OWSDNG"[event.kind];
    }
    kinds[n] = '\0';
    ears_answer_clear(&a);
    return r;
}

static void an_answer_is_read_in_pieces_of_any_size(void **state)
{
    struct buf bytes;
    char kinds[16];

    buf_init(&bytes, 4096);
    add_opened(&bytes);
    add_word(&bytes, 0, 100, "one");
    add_word(&bytes, 100, 200, "o'clock");
    add_segment(&bytes, 0, 210);
    add_done(&bytes, 300);
    for (size_t piece = 1; piece < 70; piece += 3) {
        assert_int_equal(read_all(&bytes, piece, kinds, NULL), 0);
        assert_string_equal(kinds, "OWWSD");
    }
    buf_clear(&bytes);
}

static void expect(int r, const char *code, void (*add)(struct buf *b))
{
    struct buf bytes;
    char kinds[16];
    struct err e = { 0 };

    buf_init(&bytes, 4096);
    add(&bytes);
    assert_int_equal(read_all(&bytes, 4096, kinds, &e), r);
    assert_string_equal(e.code, code);
    buf_clear(&bytes);
}

static void early_word(struct buf *b)
{
    add_word(b, 0, 1, "a");
}

static void times_back(struct buf *b)
{
    add_opened(b);
    add_word(b, 5, 9, "a");
    add_word(b, 8, 10, "b");
}

static void ends_before_start(struct buf *b)
{
    add_opened(b);
    add_segment(b, 5, 4);
}

static void too_late(struct buf *b)
{
    add_opened(b);
    add_segment(b, 0, UINT32_MAX);
}

static void no_word(struct buf *b)
{
    add_opened(b);
    add_word(b, 0, 1, "a b");
}

static void no_utf8(struct buf *b)
{
    add_opened(b);
    add_word(b, 0, 1, "\xff");
}

static void after_the_end(struct buf *b)
{
    add_opened(b);
    add_done(b, 1);
    add_segment(b, 0, 1);
}

static void opened_twice(struct buf *b)
{
    add_opened(b);
    add_opened(b);
}

static void short_head(struct buf *b)
{
    add_frame(b, EARS_FRAME_WORD, "ab", 2, "");
}

static void huge_frame(struct buf *b)
{
    const struct speech_frame frame = { EARS_FRAME_WORD, LIMIT_SPEECH_FRAME + 1 };

    buf_add(b, &frame, sizeof(frame));
}

static void unknown_refusal(struct buf *b)
{
    add_frame(b, EARS_FRAME_REFUSED, &(struct ears_frame_refused){ N_EARS_REFUSALS }, 4, "x");
}

static void unknown_frame(struct buf *b)
{
    add_frame(b, SPEECH_FRAME_AUDIO, "", 0, "");
}

static void early_sound(struct buf *b)
{
    add_frame(b, EARS_FRAME_SOUND, "ab", 2, "");
}

static void half_a_sample(struct buf *b)
{
    add_opened(b);
    add_frame(b, EARS_FRAME_SOUND, "abc", 3, "");
}

static void no_sound(struct buf *b)
{
    add_opened(b);
    add_frame(b, EARS_FRAME_SOUND, "", 0, "");
}

static void guess_of_lines(struct buf *b)
{
    add_opened(b);
    add_frame(b, EARS_FRAME_GUESS, "", 0, "a\nb");
}

static void long_guess(struct buf *b)
{
    char text[LIMIT_SPEECH_GUESS + 1];

    memset(text, 'a', sizeof(text));
    add_opened(b);
    add_frame(b, EARS_FRAME_GUESS, text, sizeof(text), "");
}

static void what_breaks_the_protocol_is_refused(void **state)
{
    void (*const cases[])(struct buf * b) = { early_word,  times_back,    ends_before_start, too_late,
                                              no_word,     no_utf8,       after_the_end,     opened_twice,
                                              short_head,  huge_frame,    unknown_refusal,   unknown_frame,
                                              early_sound, half_a_sample, no_sound,          guess_of_lines,
                                              long_guess };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        expect(-EIO, "SPEECH_FAILED", cases[i]);
}

static void unreadable(struct buf *b)
{
    add_frame(b, EARS_FRAME_REFUSED, &(struct ears_frame_refused){ EARS_UNREADABLE }, 4, "is no audio.");
}

static void too_long(struct buf *b)
{
    add_frame(b, EARS_FRAME_REFUSED, &(struct ears_frame_refused){ EARS_TOO_LONG }, 4, "is long.");
}

static void bad_phrases(struct buf *b)
{
    add_frame(b, EARS_FRAME_REFUSED, &(struct ears_frame_refused){ EARS_BAD_PHRASES }, 4, "has a word.");
}

static void no_device(struct buf *b)
{
    add_frame(b, EARS_FRAME_REFUSED, &(struct ears_frame_refused){ EARS_NO_DEVICE }, 4, "ALSA says no.");
}

static void sound_and_guesses_are_events_of_their_own(void **state)
{
    char longest[LIMIT_SPEECH_GUESS], kinds[16];
    struct buf bytes;

    memset(longest, 'a', sizeof(longest));
    buf_init(&bytes, 8192);
    add_opened(&bytes);
    add_frame(&bytes, EARS_FRAME_SOUND, "abcd", 4, "");
    add_frame(&bytes, EARS_FRAME_GUESS, "", 0, "it seems");
    add_frame(&bytes, EARS_FRAME_GUESS, "", 0, "");
    add_frame(&bytes, EARS_FRAME_GUESS, longest, sizeof(longest), "");
    add_word(&bytes, 0, 100, "one");
    add_segment(&bytes, 0, 210);
    assert_int_equal(read_all(&bytes, 100, kinds, NULL), 0);
    assert_string_equal(kinds, "ONGGGWS");
    buf_clear(&bytes);
}

static void refusals_have_codes(void **state)
{
    expect(-EINVAL, "AUDIO_UNREADABLE", unreadable);
    expect(-EFBIG, "AUDIO_TOO_LONG", too_long);
    expect(-EINVAL, "VALIDATION_ERROR", bad_phrases);
    expect(-ENODEV, "NO_AUDIO_DEVICE", no_device);
}

static void a_transcript_has_a_limit(void **state)
{
    struct ears_answer a;
    struct ears_event event;
    struct buf bytes;
    int r = 1;
    size_t n = 0;

    buf_init(&bytes, 4096);
    ears_answer_init(&a);
    add_opened(&bytes);
    for (; r == 1 && n <= LIMIT_SPEECH_TRANSCRIPT; n += 201) {
        char word[201] = "";

        memset(word, 'a', 200);
        add_word(&bytes, 0, 0, word);
        ears_answer_feed(&a, buf_slice(&bytes));
        buf_reset(&bytes);
        do
            r = ears_answer_next(&a, &event, NULL);
        while (r == 1 && event.kind == EARS_OPENED);
        assert_int_equal(r == 1 ? ears_answer_next(&a, &event, NULL) : 0, 0);
    }
    assert_int_equal(r, -EFBIG);
    assert_true(n > LIMIT_SPEECH_TRANSCRIPT);
    ears_answer_clear(&a);
    buf_clear(&bytes);
}

static int read_phrases(const char *given, enum ears_phrases *kind, char *out)
{
    struct arena *a = arena_new();
    struct slice text;
    int r = ears_phrases_read(a, given, kind, &text, NULL);

    snprintf(out, 100, "%.*s", r == 0 ? (int)MIN(text.n, (size_t)99) : 0, text.p);
    arena_free(a);
    return r;
}

static void phrases_are_checked(void **state)
{
    enum ears_phrases kind;
    char out[100], many[2 * LIMIT_SPEECH_PHRASES + 4] = "", longest[LIMIT_SPEECH_PHRASE + 2] = "";

    assert_int_equal(read_phrases(NULL, &kind, out), 0);
    assert_int_equal(kind, EARS_NO_PHRASES);
    assert_int_equal(read_phrases(" , \n,", &kind, out), 0);
    assert_int_equal(kind, EARS_NO_PHRASES);
    assert_int_equal(read_phrases("it's 9 a.m., go-on\nyes", &kind, out), 0);
    assert_int_equal(kind, EARS_WORD_LIST);
    assert_string_equal(out, "it's 9 a.m.\n go-on\nyes");
    assert_int_equal(read_phrases(" #JSGF V1.0;", &kind, out), 0);
    assert_int_equal(kind, EARS_GRAMMAR);
    for (const char *const *bad = (const char *const[]){ "a;b", "a|b", "<a>", "caf\xc3\xa9", "a\x01", NULL }; *bad;
         bad++)
        assert_int_equal(read_phrases(*bad, &kind, out), -EINVAL);
    for (size_t i = 0; i < LIMIT_SPEECH_PHRASES; i++)
        memcpy(many + 2 * i, "a,", 3);
    assert_int_equal(read_phrases(many, &kind, out), 0);
    memcpy(many + strlen(many), "a", 2);
    assert_int_equal(read_phrases(many, &kind, out), -EINVAL);
    memset(longest, 'a', LIMIT_SPEECH_PHRASE);
    assert_int_equal(read_phrases(longest, &kind, out), 0);
    longest[LIMIT_SPEECH_PHRASE] = 'a';
    assert_int_equal(read_phrases(longest, &kind, out), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_read_in_pieces_of_any_size),
        cmocka_unit_test(what_breaks_the_protocol_is_refused),
        cmocka_unit_test(sound_and_guesses_are_events_of_their_own),
        cmocka_unit_test(refusals_have_codes),
        cmocka_unit_test(a_transcript_has_a_limit),
        cmocka_unit_test(phrases_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
