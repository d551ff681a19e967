/* The gain of a sentence that arrives piece by piece, measured by libebur128: loudness, true peak, and when it is
 * heard. */
#include "speech/worker_gain.h"

#include "speech/worker_frames.h"
#include "speech/worker_output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ebur128.h>
#include <math.h>
#include <stdlib.h>

enum { RATE = 24000, TENTH = RATE / 10 };

/* Syllables: a harmonic tone of 150 Hz, four a second, at this peak; each 1,000th sample a click when has_clicks. */
static int16_t sample_at(size_t i, double peak, bool has_clicks)
{
    const double t = (double)i / RATE, envelope = 0.5 - 0.5 * cos(2 * M_PI * 4 * t);
    double value = 0;

    for (int k = 1; k <= 8; k++)
        value += sin(2 * M_PI * 150 * k * t) / k;
    value = value / 2 * envelope * peak;
    if (has_clicks && i % 1000 < 2)
        value = i % 1000 ? -32767 : 32767;
    return (int16_t)fmax(-32768, fmin(32767, value));
}

struct sound {
    double peak, later_peak; /* later_peak: from the middle on; 0: the same */
    double seconds;
    bool has_clicks;
};

/* Gives a sound in pieces of a tenth of a second; ret_first: samples given when the first came out. */
static void change(const struct sound *s, int32_t known, struct worker_samples *out, int32_t *ret_loudness,
                   size_t *ret_first)
{
    struct worker_gain *gain = worker_gain_new(RATE, known);
    const size_t n = (size_t)(s->seconds * RATE);
    int16_t piece[TENTH];

    *out = (struct worker_samples){ .rate = RATE };
    *ret_first = 0;
    assert_non_null(gain);
    for (size_t at = 0, n_piece; at < n; at += n_piece) {
        n_piece = n - at < TENTH ? n - at : TENTH;
        for (size_t i = 0; i < n_piece; i++)
            piece[i] = sample_at(at + i, s->later_peak > 0 && at + i > n / 2 ? s->later_peak : s->peak, s->has_clicks);
        assert_true(worker_gain_add(gain, piece, n_piece, out));
        if (*ret_first == 0 && out->n > 0)
            *ret_first = at + n_piece;
    }
    assert_true(worker_gain_end(gain, out));
    assert_int_equal(out->n, n);
    *ret_loudness = worker_gain_loudness(gain);
    worker_gain_free(gain);
}

static double measured(const int16_t *items, size_t n, double *ret_peak)
{
    ebur128_state *state = ebur128_init(1, RATE, EBUR128_MODE_I | EBUR128_MODE_TRUE_PEAK);
    double lufs = 0;

    assert_int_equal(ebur128_add_frames_short(state, items, n), EBUR128_SUCCESS);
    assert_int_equal(ebur128_loudness_global(state, &lufs), EBUR128_SUCCESS);
    assert_int_equal(ebur128_true_peak(state, 0, ret_peak), EBUR128_SUCCESS);
    ebur128_destroy(&state);
    return lufs;
}

static void every_level_becomes_the_same_from_the_first_second_on(void **state)
{
    static const double peaks[] = { 150, 400, 2000, 8000, 32000 };

    for (size_t i = 0; i < sizeof(peaks) / sizeof(*peaks); i++) {
        const struct sound s = { .peak = peaks[i], .seconds = 4 };
        struct worker_samples out;
        int32_t loudness;
        size_t n_first;
        double peak, first, whole;

        change(&s, SPEECH_LOUDNESS_UNKNOWN, &out, &loudness, &n_first);
        assert_true(n_first == RATE);
        first = measured(out.items, RATE, &peak);
        whole = measured(out.items, out.n, &peak);
        if (fabs(first - WORKER_LOUDNESS_LUFS) > 1 || fabs(whole - WORKER_LOUDNESS_LUFS) > 1 || peak > 0.9)
            fail_msg("a peak of %g: %.1f LUFS, then %.1f, true peak %.2f", peaks[i], first, whole, peak);
        free(out.items);
    }
}

static void a_known_voice_is_heard_at_once_and_at_its_level(void **state)
{
    const struct sound s = { .peak = 2000, .seconds = 3 };
    struct worker_samples out;
    int32_t loudness;
    size_t n_first;
    double peak;

    change(&s, SPEECH_LOUDNESS_UNKNOWN, &out, &loudness, &n_first);
    free(out.items);
    change(&s, loudness, &out, &loudness, &n_first);
    assert_true(n_first == TENTH);
    assert_true(fabs(measured(out.items, RATE, &peak) - WORKER_LOUDNESS_LUFS) < 1);
    free(out.items);
}

static void peaks_stay_below_the_ceiling_whatever_was_known(void **state)
{
    static const int32_t known[] = { SPEECH_LOUDNESS_UNKNOWN, SPEECH_LOUDNESS_MIN, -3000, SPEECH_LOUDNESS_MAX };
    static const struct sound sounds[] = { { .peak = 32000, .seconds = 3 },
                                           { .peak = 300, .seconds = 3, .has_clicks = true },
                                           { .peak = 50, .later_peak = 32000, .seconds = 4 } };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        for (size_t k = 0; k < sizeof(sounds) / sizeof(*sounds); k++) {
            struct worker_samples out;
            int32_t loudness;
            size_t n_first;
            double peak;

            change(&sounds[k], known[i], &out, &loudness, &n_first);
            (void)measured(out.items, out.n, &peak);
            if (peak > 0.93) /* -1 dB, and what the meter of peaks leaves open */
                fail_msg("known %d, sound %zu: a true peak of %.3f", known[i], k, peak);
            free(out.items);
        }
}

static void a_wrong_level_is_left_within_seconds(void **state)
{
    static const double later[] = { 500, 8000 }; /* 12 dB less and more */

    for (size_t i = 0; i < 2; i++) {
        const struct sound s = { .peak = 2000, .seconds = 3 }, changed = { .peak = later[i], .seconds = 8 };
        struct worker_samples out;
        int32_t loudness;
        size_t n_first;
        double peak, last;

        change(&s, SPEECH_LOUDNESS_UNKNOWN, &out, &loudness, &n_first);
        free(out.items);
        change(&changed, loudness, &out, &loudness, &n_first);
        last = measured(out.items + 4 * RATE, 4 * RATE, &peak);
        if (fabs(last - WORKER_LOUDNESS_LUFS) > 1)
            fail_msg("%g: %.1f LUFS after four seconds", later[i], last);
        free(out.items);
    }
}

/* What R128 does not measure is not changed, or as the voice was before; silence stays silence. */
static void what_cannot_be_measured_comes_out_whole(void **state)
{
    static const struct sound sounds[] = { { .peak = 2000, .seconds = 0.3 },
                                           { .peak = 0, .seconds = 5 },
                                           { .peak = 2000, .seconds = 0.001 } };

    for (size_t k = 0; k < sizeof(sounds) / sizeof(*sounds); k++) {
        struct worker_samples out;
        int32_t loudness;
        size_t n_first;

        change(&sounds[k], SPEECH_LOUDNESS_UNKNOWN, &out, &loudness, &n_first);
        assert_int_equal(loudness, SPEECH_LOUDNESS_UNKNOWN);
        for (size_t i = 0; i < out.n; i++)
            assert_int_equal(out.items[i], sample_at(i, sounds[k].peak, false));
        assert_true(n_first <= 3 * RATE + TENTH);
        free(out.items);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_becomes_the_same_from_the_first_second_on),
        cmocka_unit_test(a_known_voice_is_heard_at_once_and_at_its_level),
        cmocka_unit_test(peaks_stay_below_the_ceiling_whatever_was_known),
        cmocka_unit_test(a_wrong_level_is_left_within_seconds),
        cmocka_unit_test(what_cannot_be_measured_comes_out_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
