/* The sound of a provider while it arrives: files, samples and events, in pieces of every size. */
#include "speech/sound_reader.h"

#include "base/limits.h"
#include "base/util.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

enum { RATE = 24000 };

struct heard {
    struct buf samples;
    uint32_t rate;
    size_t n_pieces;
    int r; /* what the sink answers */
};

static int take(void *arg, const struct speech_pcm *piece, struct err *e)
{
    struct heard *heard = arg;

    assert_true(piece->samples.n >= 2 && piece->samples.n % 2 == 0);
    buf_add_slice(&heard->samples, piece->samples);
    heard->rate = piece->rate;
    heard->n_pieces++;
    return heard->r;
}

/* Reads the bytes in pieces of n_piece. */
static int read_in_pieces(struct slice bytes, enum speech_sound_form form, size_t n_piece, struct heard *heard,
                          struct err *e)
{
    const struct speech_sink sink = { take, heard, true };
    struct speech_sound_reader reader;
    int r = 0;

    buf_init(&heard->samples, LIMIT_SPEECH_REPLY);
    speech_sound_reader_init(&reader, form, RATE, &sink);
    while (r == 0 && bytes.n > 0 && !reader.is_done) {
        const size_t n = MIN(n_piece, bytes.n);
        char *piece = xcalloc(n, 1); /* ASan sees a read beyond */

        memcpy(piece, bytes.p, n);
        r = speech_sound_reader_feed(&reader, (struct slice){ piece, n }, e);
        free(piece);
        bytes = (struct slice){ bytes.p + n, bytes.n - n };
    }
    if (r == 0)
        r = speech_sound_reader_end(&reader, e);
    speech_sound_reader_clear(&reader);
    return r;
}

static void add_le(struct buf *b, uint32_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_add_char(b, (char)(value >> (8 * i)));
}

/* A WAV of 16 bits whose header announces n_data bytes, and that has n_present. */
static void draw(struct buf *b, uint32_t n_channels, uint32_t n_data, size_t n_present)
{
    buf_init(b, 1 << 20);
    buf_add(b, "RIFF\0\0\0\0WAVELIST\3\0\0\0abc\0fmt ", 28);
    add_le(b, 16, 4);
    add_le(b, 1, 2);
    add_le(b, n_channels, 2);
    add_le(b, 16000, 4);
    add_le(b, 16000 * n_channels * 2, 4);
    add_le(b, n_channels * 2, 2);
    add_le(b, 16, 2);
    buf_add_str(b, "data");
    add_le(b, n_data, 4);
    for (size_t i = 0; i < n_present; i++)
        buf_add_char(b, (char)(i / (n_channels * 2)));
}

static void a_wav_is_the_same_in_pieces_of_every_size(void **state)
{
    static const struct {
        uint32_t n_channels, n_data;
        size_t n_present, n; /* n: bytes of samples; 0: refused */
    } cases[] = {
        { 1, 100, 100, 100 },    { 1, 0xffffffff, 100, 100 }, { 1, 0, 100, 100 },
        { 2, 400, 400, 200 },    { 8, 160, 160, 20 },         { 1, 50, 100, 50 },
        { 1, 0xffffffff, 5, 4 }, { 1, 102, 100, 0 },          { 1, 0, 0, 0 },
        { 2, 0, 3, 0 },          { 9, 180, 180, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t n_piece = 1; n_piece < 80; n_piece += 1 + n_piece / 4) {
            struct heard heard = { .r = 0 };
            struct buf b;
            int r;

            draw(&b, cases[i].n_channels, cases[i].n_data, cases[i].n_present);
            r = read_in_pieces(buf_slice(&b), SPEECH_SOUND_FILE, n_piece, &heard, NULL);
            if (r != (cases[i].n ? 0 : -EBADMSG) || (r == 0 && heard.samples.n != cases[i].n))
                fail_msg("case %zu in pieces of %zu: %d, %zu bytes", i, n_piece, r, heard.samples.n);
            if (r == 0)
                assert_int_equal(heard.rate, 16000);
            buf_clear(&heard.samples);
            buf_clear(&b);
        }
}

static void the_head_of_a_wav_ends_at_its_limit(void **state)
{
    for (int is_above = 0; is_above < 2; is_above++) {
        const uint32_t n_junk = LIMIT_SPEECH_WAV_HEAD - 52 + (is_above ? 2 : 0); /* of 12, 8, 24 and 8 bytes */
        struct heard heard = { .r = 0 };
        struct buf b, rest;

        draw(&rest, 1, 4, 4);
        buf_init(&b, 1 << 20);
        buf_add(&b, rest.p, 12);
        buf_add_str(&b, "JUNK");
        add_le(&b, n_junk, 4);
        for (uint32_t i = 0; i < n_junk; i++)
            buf_add_char(&b, 'x');
        buf_add(&b, rest.p + 24, rest.n - 24);
        assert_int_equal(read_in_pieces(buf_slice(&b), SPEECH_SOUND_FILE, 1, &heard, NULL), is_above ? -EBADMSG : 0);
        buf_clear(&heard.samples);
        buf_clear(&rest);
        buf_clear(&b);
    }
}

static void a_file_that_is_no_wav_is_kept_whole(void **state)
{
    const struct speech_sink sink = { take, NULL, false };
    struct speech_sound_reader reader;

    speech_sound_reader_init(&reader, SPEECH_SOUND_FILE, 0, &sink);
    for (int i = 0; i < 10; i++)
        assert_int_equal(speech_sound_reader_feed(&reader, SLICE_LIT("OggS123"), NULL), 0);
    assert_int_equal(speech_sound_reader_end(&reader, NULL), 0);
    assert_int_equal(speech_sound_reader_file(&reader).n, 70);
    speech_sound_reader_clear(&reader);
}

static void samples_that_are_cut_within_are_joined(void **state)
{
    struct heard heard = { .r = 0 };
    struct err e;

    err_init(&e);
    assert_int_equal(read_in_pieces(SLICE_LIT("abcdefgh"), SPEECH_SOUND_RAW, 3, &heard, &e), 0);
    assert_int_equal(heard.rate, RATE);
    assert_true(slice_eq_str(buf_slice(&heard.samples), "abcdefgh"));
    buf_clear(&heard.samples);
    assert_int_equal(read_in_pieces(SLICE_LIT("abcdefg"), SPEECH_SOUND_RAW, 3, &heard, &e), -EBADMSG);
    assert_non_null(strstr(e.text, "half a sample"));
    buf_clear(&heard.samples);
    err_init(&e);
    assert_int_equal(read_in_pieces(SLICE_LIT(""), SPEECH_SOUND_RAW, 3, &heard, &e), -EBADMSG);
    assert_non_null(strstr(e.text, "sent nothing"));
    buf_clear(&heard.samples);
}

#define DELTA(audio) "data: {\"type\":\"speech.audio.delta\",\"audio\":\"" audio "\"}\n\n"
#define DONE "data: {\"type\":\"speech.audio.done\"}\n\n"

static void events_become_samples_or_are_refused(void **state)
{
    static const struct {
        const char *events, *samples, *why; /* why NULL: read */
    } cases[] = {
        { DELTA("YWI=") DELTA("Y2Q=") DONE, "abcd", NULL },
        { DELTA("YQ==") DELTA("YmNk") DONE, "abcd", NULL }, /* cut within a sample */
        { ": ping\n\nevent: x\r\n" DELTA("YWI=") "data: {\"type\":\"other\",\"audio\":7}\n\n" DONE, "ab", NULL },
        { DELTA("YWI=") DONE DELTA("Y2Q=") "data: {\n\n", "ab", NULL },
        { DELTA("YWI=") "data: [DONE]\n\n" DONE, "ab", NULL },
        { DELTA("YWI="), "ab", "break off" },
        { DELTA("YWI=") "data: [DONE]\n\n", "ab", "break off" },
        { DONE, "", "sent nothing" },
        { DELTA("YQ==") DONE, "", "half a sample" },
        { DELTA("YWI=") DELTA("Y%Q=") DONE, "ab", "no base64" },
        { "data: {\"type\":\"speech.audio.delta\"}\n\n" DONE, "", "without sound" },
        { "data: 7\n\n" DONE, "", "no JSON object" },
        { DELTA("YWI=") "data: {\"type\":\"error\",\"error\":{\"message\":\"too much\"}}\n\n" DONE, "ab",
          "off: too much" },
        { DELTA("YWI=") "data: {\"error\":\"out of order\"}\n\n" DONE, "ab", "off: out of order" },
        { DELTA("YWI=") "data: {\"type\":\"error\"}\n\n" DONE, "ab", "broke off" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t n_piece = 1; n_piece < 300; n_piece += 1 + n_piece) {
            struct heard heard = { .r = 0 };
            struct err e;
            int r;

            err_init(&e);
            r = read_in_pieces(slice_of(cases[i].events), SPEECH_SOUND_EVENTS, n_piece, &heard, &e);
            if (r != (cases[i].why ? -EBADMSG : 0) || !slice_eq_str(buf_slice(&heard.samples), cases[i].samples) ||
                (cases[i].why && !strstr(e.text, cases[i].why)))
                fail_msg("case %zu in pieces of %zu: %d, %zu bytes, %s", i, n_piece, r, heard.samples.n, e.text);
            buf_clear(&heard.samples);
        }
}

static void an_event_and_all_sound_end_at_their_limits(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        struct heard heard = { .r = 0 };
        struct buf b;

        buf_init(&b, 2 * LIMIT_SPEECH_EVENT);
        buf_add_str(&b, "data: {\"type\":\"x\",\"y\":\"");
        while (b.n < LIMIT_SPEECH_EVENT + i - 2)
            buf_add_char(&b, 'y');
        buf_add_str(&b, "\"}\n\n" DELTA("YWI=") DONE);
        assert_int_equal(read_in_pieces(buf_slice(&b), SPEECH_SOUND_EVENTS, 65536, &heard, NULL), i ? -EBADMSG : 0);
        buf_clear(&heard.samples);
        buf_clear(&b);
    }
    for (size_t i = 0; i < 2; i++) {
        const size_t n = LIMIT_SPEECH_REPLY + 2 * i;
        struct heard heard = { .r = 0 };
        char *bytes = xcalloc(n, 1);

        assert_int_equal(read_in_pieces((struct slice){ bytes, n }, SPEECH_SOUND_RAW, 65536, &heard, NULL),
                         i ? -EBADMSG : 0);
        assert_int_equal(heard.samples.n, LIMIT_SPEECH_REPLY);
        buf_clear(&heard.samples);
        free(bytes);
    }
}

static void what_the_sink_says_ends_the_reading(void **state)
{
    struct heard heard = { .r = -EPIPE };

    assert_int_equal(
        read_in_pieces(SLICE_LIT(DELTA("YWI=") DELTA("YWI=") DONE), SPEECH_SOUND_EVENTS, 1000, &heard, NULL), -EPIPE);
    assert_int_equal(heard.n_pieces, 1);
    buf_clear(&heard.samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wav_is_the_same_in_pieces_of_every_size),
        cmocka_unit_test(the_head_of_a_wav_ends_at_its_limit),
        cmocka_unit_test(a_file_that_is_no_wav_is_kept_whole),
        cmocka_unit_test(samples_that_are_cut_within_are_joined),
        cmocka_unit_test(events_become_samples_or_are_refused),
        cmocka_unit_test(an_event_and_all_sound_end_at_their_limits),
        cmocka_unit_test(what_the_sink_says_ends_the_reading),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
