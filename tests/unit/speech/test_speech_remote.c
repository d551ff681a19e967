/* What providers of speech send: WAV, lists of voices, transcripts; and what is sent to them. */
#include "speech/ears_services.h"
#include "speech/remote.h"

#include "base/limits.h"
#include "speech/worker_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

/* ---- WAV ---- */

static void add_le(struct buf *b, uint32_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_add_char(b, (char)(value >> (8 * i)));
}

struct sketch {
    uint32_t kind, n_channels, rate, bits, n_data; /* n_data: as the header says */
    size_t n_present;
};

static void draw(struct buf *b, const struct sketch *s)
{
    buf_add(b, "RIFF\0\0\0\0WAVEfmt ", 16);
    add_le(b, 16, 4);
    add_le(b, s->kind, 2);
    add_le(b, s->n_channels, 2);
    add_le(b, s->rate, 4);
    add_le(b, s->rate * s->n_channels * s->bits / 8, 4);
    add_le(b, s->n_channels * s->bits / 8, 2);
    add_le(b, s->bits, 2);
    buf_add_str(b, "data");
    add_le(b, s->n_data, 4);
    for (size_t i = 0; i < s->n_present; i++)
        buf_add_char(b, (char)i);
}

static int read_sketch(const struct sketch *s, struct arena *a, struct speech_pcm *ret)
{
    struct buf b;
    char *bytes;
    size_t n;

    buf_init(&b, 1 << 20);
    draw(&b, s);
    n = b.n;
    bytes = buf_to_arena(&b, a);
    return speech_wav_read((struct slice){ bytes, n }, a, ret, NULL);
}

static void a_wav_is_read_up_to_its_limits(void **state)
{
    static const struct {
        struct sketch sketch;
        size_t n; /* bytes of samples; 0: refused */
    } cases[] = {
        { { 1, 1, 16000, 16, 100, 100 }, 100 },
        { { 1, 1, SPEECH_RATE_MIN, 16, 100, 100 }, 100 },
        { { 1, 1, SPEECH_RATE_MIN - 1, 16, 100, 100 }, 0 },
        { { 1, 1, SPEECH_RATE_MAX, 16, 100, 100 }, 100 },
        { { 1, 1, SPEECH_RATE_MAX + 1, 16, 100, 100 }, 0 },
        { { 1, 8, 16000, 16, 160, 160 }, 20 },
        { { 1, 9, 16000, 16, 180, 180 }, 0 },
        { { 1, 0, 16000, 16, 100, 100 }, 0 },
        { { 3, 1, 16000, 32, 100, 100 }, 50 },
        { { 1, 1, 16000, 24, 99, 99 }, 0 },
        { { 1, 1, 16000, 16, 101, 100 }, 0 }, /* breaks off */
        { { 1, 1, 16000, 16, 50, 100 }, 50 }, /* what follows is no sound */
        { { 1, 1, 16000, 16, 0, 100 }, 100 }, /* lengths that are not known yet */
        { { 1, 1, 16000, 16, 0xffffffff, 100 }, 100 },
        { { 1, 1, 16000, 16, 0x7fffffff, 101 }, 100 }, /* half a sample */
        { { 1, 1, 16000, 16, 0, 0 }, 0 },
        { { 1, 2, 16000, 16, 2, 2 }, 0 },
    };
    struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct speech_pcm sound = { { NULL, 0 }, 0 };
        int r = read_sketch(&cases[i].sketch, a, &sound);

        if (r != (cases[i].n ? 0 : -EBADMSG) || sound.samples.n != cases[i].n)
            fail_msg("case %zu: %d, %zu bytes", i, r, sound.samples.n);
    }
    arena_free(a);
}

static void channels_are_mixed_and_numbers_become_samples(void **state)
{
    static const float given[] = { 0.5f, -0.25f, 7, 7, -1, -1 };
    struct arena *a = arena_new();
    struct speech_pcm sound = { { NULL, 0 }, 0 };
    struct buf b;
    int16_t samples[3];

    buf_init(&b, 4096);
    draw(&b, &(struct sketch){ 3, 2, 24000, 32, sizeof(given), 0 });
    buf_add(&b, given, sizeof(given));
    assert_int_equal(speech_wav_read(buf_slice(&b), a, &sound, NULL), 0);
    assert_int_equal(sound.rate, 24000);
    assert_int_equal(sound.samples.n, sizeof(samples));
    memcpy(samples, sound.samples.p, sizeof(samples));
    assert_int_equal(samples[0], 4096);
    assert_int_equal(samples[1], 32767);
    assert_int_equal(samples[2], -32767);
    buf_clear(&b);
    arena_free(a);
}

static void a_wav_that_is_cut_anywhere_is_refused_or_read(void **state)
{
    struct arena *a = arena_new();
    struct buf b;

    buf_init(&b, 4096);
    draw(&b, &(struct sketch){ 1, 1, 16000, 16, 64, 64 });
    for (size_t n = 0; n < b.n; n++) {
        struct speech_pcm sound = { { NULL, 0 }, 0 };
        char *part = arena_array(a, n + 1, 1); /* ASan sees a read beyond */

        memcpy(part, b.p, n);
        assert_int_equal(speech_wav_read((struct slice){ part, n }, a, &sound, NULL), -EBADMSG);
    }
    buf_clear(&b);
    arena_free(a);
}

/* ---- voices ---- */

static size_t voices_of(const char *preset, const char *json, struct arena *a, struct speech_voice_list *ret)
{
    struct json_value root = { 0 };

    *ret = (struct speech_voice_list){ NULL, 0 };
    assert_int_equal(json_parse(a, slice_of(json), &root, NULL), 0);
    speech_service_of(preset)->protocol->read_voices(root, a, ret);
    return ret->n;
}

static void every_list_of_voices_is_read(void **state)
{
    struct arena *a = arena_new();
    struct speech_voice_list v;

    assert_int_equal(voices_of("kokoro", "{\"voices\":[\"af_bella\",{\"id\":\"am\",\"name\":\"Adam\"},7,{}]}", a, &v),
                     2);
    assert_string_equal(v.items[0].name, "af_bella");
    assert_string_equal(v.items[1].name, "Adam");
    assert_int_equal(voices_of("kokoro", "[{\"name\":\"x\",\"language\":\"de\"}]", a, &v), 1);
    assert_string_equal(v.items[0].language, "de");
    assert_int_equal(voices_of("elevenlabs", "{\"voices\":[{\"voice_id\":\"a1\",\"name\":\"Rachel\"}]}", a, &v), 1);
    assert_int_equal(voices_of("deepgram", "{\"tts\":[{\"canonical_name\":\"aura\",\"languages\":[\"en\"]}]}", a, &v),
                     1);
    assert_string_equal(v.items[0].language, "en");
    assert_int_equal(voices_of("azure-speech", "[{\"ShortName\":\"de-DE-K\",\"Locale\":\"de-DE\"}]", a, &v), 1);
    assert_int_equal(voices_of("piper", "{\"de_DE-t-low\":{\"audio\":{}}}", a, &v), 1);
    assert_string_equal(v.items[0].language, "de_DE");
    arena_free(a);
}

static void a_list_of_voices_ends_at_its_limit(void **state)
{
    struct arena *a = arena_new();
    struct speech_voice_list v = { NULL, 0 };
    char id[LIMIT_SPEECH_VOICE + 1];

    memset(id, 'x', sizeof(id));
    assert_true(speech_voice_add(&v, a, (struct slice){ id, LIMIT_SPEECH_VOICE }, NULL, NULL));
    assert_false(speech_voice_add(&v, a, (struct slice){ id, LIMIT_SPEECH_VOICE + 1 }, NULL, NULL));
    assert_false(speech_voice_add(&v, a, SLICE_LIT("a b"), NULL, NULL));
    assert_false(speech_voice_add(&v, a, SLICE_LIT(""), NULL, NULL));
    while (v.n < LIMIT_SPEECH_VOICES)
        assert_true(speech_voice_add(&v, a, SLICE_LIT("x"), NULL, NULL));
    assert_false(speech_voice_add(&v, a, SLICE_LIT("x"), NULL, NULL));
    arena_free(a);
}

/* ---- transcripts ---- */

static int hear(const char *preset, const char *json, struct arena *a, struct ears_heard *ret)
{
    struct json_value root = { 0 };

    *ret = (struct ears_heard){ NULL, 0, 0 };
    assert_int_equal(json_parse(a, slice_of(json), &root, NULL), 0);
    return ears_service_of(preset)->protocol->read(root, a, ret, NULL);
}

static void words_belong_to_the_segment_that_they_begin_in(void **state)
{
    struct arena *a = arena_new();
    struct ears_heard heard;

    assert_int_equal(
        hear("openai",
             "{\"text\":\"a b c\",\"duration\":3,\"words\":[{\"word\":\"a\",\"start\":0,\"end\":1},"
             "{\"word\":\"b\",\"start\":1,\"end\":2},{\"word\":\"c\",\"start\":2,\"end\":3}],\"segments\":["
             "{\"text\":\" a\",\"start\":0,\"end\":1},{\"text\":\" b c\",\"start\":1,\"end\":3}]}",
             a, &heard),
        0);
    assert_int_equal(heard.n, 2);
    assert_int_equal(heard.segments[0].n_words, 1);
    assert_int_equal(heard.segments[1].n_words, 2);
    assert_string_equal(heard.segments[1].text, "b c");
    assert_true(heard.duration == 3);
    arena_free(a);
}

static void times_in_nanoseconds_become_seconds(void **state)
{
    struct arena *a = arena_new();
    struct ears_heard heard;

    assert_int_equal(hear("localai",
                          "{\"text\":\"a b\",\"segments\":[{\"text\":\"a\",\"start\":0,\"end\":9640000000},"
                          "{\"text\":\"b\",\"start\":9640000000,\"end\":7199000000000}]}",
                          a, &heard),
                     0);
    assert_true(heard.segments[0].end == 9.64 && heard.segments[1].start == 9.64 && heard.segments[1].end == 7199);
    assert_int_equal(
        hear("localai", "{\"text\":\"a\",\"segments\":[{\"text\":\"a\",\"start\":7200,\"end\":1e6}]}", a, &heard), 0);
    assert_true(heard.segments[0].start == LIMIT_SPEECH_RECORDING_S && heard.duration == LIMIT_SPEECH_RECORDING_S);
    arena_free(a);
}

static void a_transcript_without_times_is_one_segment(void **state)
{
    struct arena *a = arena_new();
    struct ears_heard heard;

    assert_int_equal(hear("openai", "{\"text\":\" hello \"}", a, &heard), 0);
    assert_int_equal(heard.n, 1);
    assert_string_equal(heard.segments[0].text, "hello");
    assert_int_equal(hear("openai", "{\"text\":\"\"}", a, &heard), 0);
    assert_int_equal(heard.n, 0);
    assert_int_equal(hear("openai", "{\"words\":[]}", a, &heard), -EBADMSG);
    assert_int_equal(hear("deepgram", "{\"results\":{\"channels\":[]}}", a, &heard), -EBADMSG);
    assert_int_equal(hear("deepgram", "{\"results\":{\"utterances\":[]}}", a, &heard), 0);
    arena_free(a);
}

/* ---- what is sent ---- */

static void the_parameters_of_an_address_stay_at_its_end(void **state)
{
    const struct speech_account acc = { .base_url = "http://box:1/v1/?api-version=2" };
    struct arena *a = arena_new();
    struct http_call_request request;
    struct buf body;

    buf_init(&body, 100);
    buf_add_str(&body, "{}");
    speech_remote_post(&acc, "/say?voice=x", "application/json", &body, a, &request);
    assert_string_equal(request.url, "http://box:1/v1/say?voice=x&api-version=2");
    assert_int_equal(request.body.n, 2);
    buf_init(&body, 100);
    speech_remote_post(&acc, "/say", "application/json", &body, a, &request);
    assert_string_equal(request.url, "http://box:1/v1/say?api-version=2");
    arena_free(a);
}

/* A sentence of the longest kind, in characters of four bytes that are escaped, fits a request. */
static void the_longest_sentence_fits_every_request(void **state)
{
    struct arena *a = arena_new();
    struct buf text;

    buf_init(&text, LIMIT_SPEECH_SENTENCE * 4);
    for (size_t i = 0; i < LIMIT_SPEECH_SENTENCE; i++)
        buf_add_str(&text, i % 2 ? "\"" : "\xf0\x9f\x98\x80");
    for (const struct speech_service *s = speech_services; s->preset; s++) {
        const struct speech_account acc = { .service = s, .base_url = "http://x" };
        const struct speech_say say = { buf_slice(&text), "voice", "model", "en", 1 };
        struct http_call_request request;

        s->protocol->say(&acc, &say, a, &request);
        assert_true(request.body.n > text.n && request.body.n < LIMIT_SPEECH_REQUEST);
    }
    buf_clear(&text);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wav_is_read_up_to_its_limits),
        cmocka_unit_test(channels_are_mixed_and_numbers_become_samples),
        cmocka_unit_test(a_wav_that_is_cut_anywhere_is_refused_or_read),
        cmocka_unit_test(every_list_of_voices_is_read),
        cmocka_unit_test(a_list_of_voices_ends_at_its_limit),
        cmocka_unit_test(words_belong_to_the_segment_that_they_begin_in),
        cmocka_unit_test(times_in_nanoseconds_become_seconds),
        cmocka_unit_test(a_transcript_without_times_is_one_segment),
        cmocka_unit_test(the_parameters_of_an_address_stay_at_its_end),
        cmocka_unit_test(the_longest_sentence_fits_every_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
