#include "speech/resample.h"

#include "base/limits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { SECONDS_TENTHS = 5, AMPLITUDE = 10000 };

static void add_tone(struct buf *out, double hz, uint32_t rate)
{
    for (uint32_t i = 0; i < rate / 10 * SECONDS_TENTHS; i++) {
        int16_t sample = (int16_t)lrint(AMPLITUDE * sin(2 * M_PI * hz * i / rate));

        buf_add(out, &sample, sizeof(sample));
    }
}

/* How far the samples are from the tone that they should be, in dB below it; not at the ends, where silence begins. */
static double noise_db(const struct buf *samples, double hz, uint32_t rate)
{
    const size_t n = samples->n / 2, edge = rate / 100;
    double noise = 0, tone = 0;

    for (size_t i = edge; i + edge < n; i++) {
        int16_t sample;
        double ideal = AMPLITUDE * sin(2 * M_PI * hz * (double)i / rate);

        memcpy(&sample, samples->p + 2 * i, sizeof(sample));
        noise += (sample - ideal) * (sample - ideal);
        tone += ideal * ideal;
    }
    return 10 * log10(noise / tone);
}

static void a_tone_stays_the_same_tone(void **state)
{
    const struct {
        uint32_t from, to;
        double hz;
    } rows[] = { { 16000, 24000, 440 },  { 22050, 24000, 3000 },  { 22050, 24000, 6000 },
                 { 48000, 24000, 1000 }, { 24000, 24000, 10000 }, { 8000, 48000, 2000 } };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf in, out;
        size_t n;

        buf_init(&in, MIB(1));
        buf_init(&out, MIB(1));
        add_tone(&in, rows[i].hz, rows[i].from);
        n = speech_resample(buf_slice(&in), rows[i].from, rows[i].to, &out);
        assert_int_equal(n, rows[i].to / 10 * SECONDS_TENTHS);
        assert_int_equal(out.n, 2 * n);
        assert_true(noise_db(&out, rows[i].hz, rows[i].to) < -50);
        buf_clear(&in);
        buf_clear(&out);
    }
}

/* Above half of the new rate nothing may be left, else it would be heard as another tone. */
static void what_the_new_rate_cannot_hold_is_removed(void **state)
{
    struct buf in, out;
    size_t n;
    double sum = 0;

    buf_init(&in, MIB(1));
    buf_init(&out, MIB(1));
    add_tone(&in, 15000, 48000);
    n = speech_resample(buf_slice(&in), 48000, 16000, &out);
    for (size_t i = 500; i + 500 < n; i++) {
        int16_t sample;

        memcpy(&sample, out.p + 2 * i, sizeof(sample));
        sum += sample * sample;
    }
    assert_true(sqrt(sum / (double)n) < AMPLITUDE / 300.0);
    buf_clear(&in);
    buf_clear(&out);
}

static void loud_samples_are_cut_off_not_wrapped(void **state)
{
    const int16_t step[] = { INT16_MAX, INT16_MAX, INT16_MAX, INT16_MAX, INT16_MIN, INT16_MIN, INT16_MIN, INT16_MIN };
    struct buf out;
    int16_t first;

    buf_init(&out, 4096);
    assert_int_equal(speech_resample((struct slice){ (const char *)step, sizeof(step) }, 16000, 48000, &out), 24);
    for (size_t i = 6; i < 10; i++) {
        memcpy(&first, out.p + 2 * i, sizeof(first));
        assert_true(first > 20000);
    }
    assert_int_equal(speech_resample((struct slice){ "a", 1 }, 16000, 24000, &out), 0);
    buf_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_tone_stays_the_same_tone),
                                        cmocka_unit_test(what_the_new_rate_cannot_hold_is_removed),
                                        cmocka_unit_test(loud_samples_are_cut_off_not_wrapped) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
