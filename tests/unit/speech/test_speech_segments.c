#include "speech/segments.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MAX_SEGMENTS = 16 };

static struct segments *cutter;
static struct {
    uint64_t first;
    size_t n;
} found[MAX_SEGMENTS];
static size_t n_found;
static int answer;

static int note(void *arg, const int16_t *samples, size_t n, uint64_t first)
{
    assert_true(n_found < MAX_SEGMENTS);
    found[n_found].first = first;
    found[n_found++].n = n;
    return answer;
}

static int setup(void **state)
{
    cutter = xcalloc(1, sizeof(*cutter));
    segments_init(cutter, note, NULL);
    n_found = 0;
    answer = 0;
    return 0;
}

static int teardown(void **state)
{
    free(cutter);
    return 0;
}

/* Pieces of an odd length, so that frames begin within them. */
static void add(double seconds, int16_t (*sample)(size_t i))
{
    int16_t samples[777];
    size_t n = (size_t)(seconds * EARS_RATE);

    for (size_t at = 0; at < n;) {
        size_t n_piece = MIN(n - at, ARRAY_SIZE(samples));

        for (size_t i = 0; i < n_piece; i++)
            samples[i] = sample(at + i);
        assert_int_equal(segments_add(cutter, samples, n_piece), answer);
        at += n_piece;
    }
}

static int16_t silence(size_t i)
{
    return 0;
}

static int16_t noise_of(size_t i, int loudest)
{
    static uint32_t random = 1;

    random = random * 1664525 + 1013904223;
    return (int16_t)((int)(random >> 16) % (2 * loudest + 1) - loudest);
}

static int16_t hiss(size_t i)
{
    return noise_of(i, 300);
}

/* Loud and quiet in turns, four times a second, as syllables are. */
static int16_t speech(size_t i)
{
    return noise_of(i, i / 2000 % 2 ? 200 : 8000);
}

static int16_t hum(size_t i)
{
    return (int16_t)(i / 160 % 2 ? 6000 : -6000); /* 50 Hz */
}

static void segments_have_a_little_silence_around_speech(void **state)
{
    add(5, silence);
    add(2, speech);
    add(3, silence);
    add(1, speech);
    assert_int_equal(segments_end(cutter), 0);
    assert_int_equal(n_found, 2);
    assert_true(found[0].first >= 4.6 * EARS_RATE && found[0].first <= 5.0 * EARS_RATE);
    assert_true(found[0].first + found[0].n >= 7.0 * EARS_RATE && found[0].first + found[0].n <= 7.7 * EARS_RATE);
    assert_true(found[1].first >= 9.6 * EARS_RATE && found[1].first <= 10.0 * EARS_RATE);
    assert_int_equal(found[1].first + found[1].n, 11 * EARS_RATE);
}

static void silence_hiss_and_hum_are_no_speech(void **state)
{
    add(4, hiss);
    add(4, silence);
    assert_int_equal(segments_end(cutter), 0);
    assert_int_equal(n_found, 0);
    add(4, hum);
    assert_true(n_found <= 1); /* its beginning */
}

static void speech_is_found_above_hiss(void **state)
{
    add(4, hiss);
    add(2, speech);
    add(4, hiss);
    assert_int_equal(segments_end(cutter), 0);
    assert_int_equal(n_found, 1);
    assert_true(found[0].first >= 3.6 * EARS_RATE && found[0].first <= 4.0 * EARS_RATE);
}

/* Nothing is lost or heard twice at a forced split, and no segment is too long. */
static void long_speech_is_split_without_a_gap(void **state)
{
    uint64_t next = 0;

    add(95, speech);
    assert_int_equal(segments_end(cutter), 0);
    assert_true(n_found >= 4);
    for (size_t i = 0; i < n_found; i++) {
        assert_int_equal(found[i].first, next);
        assert_true(found[i].n > 0 && found[i].n <= SEGMENT_SAMPLES);
        next += found[i].n;
    }
    assert_int_equal(next, 95 * EARS_RATE);
}

static size_t n_grown, n_growths;

static int note_growth(void *arg, const int16_t *samples, size_t n)
{
    assert_true(n > n_grown && n < SEGMENT_SAMPLES);
    n_grown = n;
    n_growths++;
    return 0;
}

static void a_segment_shows_its_growth_until_it_ends(void **state)
{
    n_grown = n_growths = 0;
    cutter->grows = note_growth;
    add(1, silence);
    assert_int_equal(n_growths, 0);
    add(2, speech);
    assert_true(n_growths > 150 && n_grown > 2 * (size_t)EARS_RATE);
    add(2, silence);
    assert_int_equal(n_found, 1);
    assert_true(n_grown <= found[0].n);
}

/* Pulses 120 times a second, as a throat gives them. */
static int16_t pulses(size_t i)
{
    return (int16_t)(i % 133 < 4 ? 9000 : noise_of(i, 50));
}

static size_t n_pitched_of(int16_t (*sound)(size_t i))
{
    struct voice_activity v;
    int16_t frame[VOICE_FRAME];
    size_t n = 0;

    voice_activity_init(&v);
    for (size_t i = 0; i < EARS_RATE; i++) {
        frame[i % VOICE_FRAME] = sound(i);
        if (i % VOICE_FRAME < VOICE_FRAME - 1)
            continue;
        (void)voice_activity_hear(&v, frame);
        n += voice_activity_has_pitch(&v);
    }
    return n;
}

static void a_voice_has_a_pitch_and_noise_has_none(void **state)
{
    assert_true(n_pitched_of(pulses) > 90);
    assert_int_equal(n_pitched_of(hiss), 0);
    assert_int_equal(n_pitched_of(speech), 0); /* noise, as loud as speech */
    assert_int_equal(n_pitched_of(silence), 0);
}

static void a_failure_ends_it(void **state)
{
    static int16_t loud[EARS_RATE];

    for (size_t i = 0; i < EARS_RATE; i++)
        loud[i] = speech(i);
    assert_int_equal(segments_add(cutter, loud, ARRAY_SIZE(loud)), 0);
    answer = -1;
    assert_int_equal(segments_end(cutter), -1);
}

static void nothing_is_no_segment(void **state)
{
    assert_int_equal(segments_end(cutter), 0);
    assert_int_equal(n_found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(segments_have_a_little_silence_around_speech, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_hiss_and_hum_are_no_speech, setup, teardown),
        cmocka_unit_test_setup_teardown(speech_is_found_above_hiss, setup, teardown),
        cmocka_unit_test_setup_teardown(long_speech_is_split_without_a_gap, setup, teardown),
        cmocka_unit_test(a_voice_has_a_pitch_and_noise_has_none),
        cmocka_unit_test_setup_teardown(a_segment_shows_its_growth_until_it_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failure_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_no_segment, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
