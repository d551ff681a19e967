/* How loud voices of providers are known to be. */
#include "speech/levels.h"

#include "base/limits.h"
#include "speech/worker_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static struct speech_levels *levels;

static int set_up(void **state)
{
    levels = speech_levels_new();
    return 0;
}

static int tear_down(void **state)
{
    levels = speech_levels_free(levels);
    return 0;
}

static void key_of(size_t i, unsigned char key[HASH_BYTES])
{
    char voice[32];

    snprintf(voice, sizeof(voice), "voice-%zu", i);
    speech_levels_key("http://x", "model", voice, key);
}

static int32_t known(size_t i)
{
    unsigned char key[HASH_BYTES];

    key_of(i, key);
    return speech_levels_find(levels, key);
}

static void note(size_t i, int32_t loudness, double seconds)
{
    unsigned char key[HASH_BYTES];

    key_of(i, key);
    speech_levels_note(levels, key, loudness, seconds);
}

static void a_voice_is_known_after_its_first_sentence(void **state)
{
    assert_int_equal(known(0), SPEECH_LOUDNESS_UNKNOWN);
    note(0, -2300, 2);
    assert_int_equal(known(0), -2300);
    assert_int_equal(known(1), SPEECH_LOUDNESS_UNKNOWN);
}

static void a_loudness_that_no_sound_has_changes_nothing(void **state)
{
    note(0, SPEECH_LOUDNESS_UNKNOWN, 2);
    note(0, SPEECH_LOUDNESS_MIN - 1, 2);
    note(0, SPEECH_LOUDNESS_MAX + 1, 2);
    note(0, -2300, 0);
    note(0, -2300, 0.0 / 0.0);
    assert_int_equal(known(0), SPEECH_LOUDNESS_UNKNOWN);
    note(0, SPEECH_LOUDNESS_MIN, 2);
    assert_int_equal(known(0), SPEECH_LOUDNESS_MIN);
    note(1, SPEECH_LOUDNESS_MAX, 2);
    assert_int_equal(known(1), SPEECH_LOUDNESS_MAX);
}

/* Powers are averaged: half as much power is 3 dB less. */
static void the_mean_is_of_powers_and_of_the_last_half_a_minute(void **state)
{
    note(0, -2000, 5);
    note(0, -6000, 5);
    assert_in_range(-known(0), 2300, 2302);
    note(1, -2000, 10000);
    for (int i = 0; i < 20; i++)
        note(1, -4000, 30);
    assert_in_range(-known(1), 3999, 4000);
}

static void the_parts_of_a_key_are_divided(void **state)
{
    unsigned char one[HASH_BYTES], other[HASH_BYTES];

    speech_levels_key("a", "bc", "d", one);
    speech_levels_key("ab", "c", "d", other);
    assert_memory_not_equal(one, other, HASH_BYTES);
}

static void the_voice_that_was_used_longest_ago_is_forgotten(void **state)
{
    for (size_t i = 0; i < LIMIT_SPEECH_LEVELS; i++)
        note(i, -2000, 1);
    assert_int_equal(known(0), -2000); /* which is a use */
    note(LIMIT_SPEECH_LEVELS, -2000, 1);
    assert_int_equal(known(0), -2000);
    assert_int_equal(known(1), SPEECH_LOUDNESS_UNKNOWN);
    assert_int_equal(known(2), -2000);
    assert_int_equal(known(LIMIT_SPEECH_LEVELS), -2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_voice_is_known_after_its_first_sentence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_loudness_that_no_sound_has_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_mean_is_of_powers_and_of_the_last_half_a_minute, set_up, tear_down),
        cmocka_unit_test(the_parts_of_a_key_are_divided),
        cmocka_unit_test_setup_teardown(the_voice_that_was_used_longest_ago_is_forgotten, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
