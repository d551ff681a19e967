/* How many speakers the metadata at the end of a file of ONNX name. */
#include "speech/programs_sherpa.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define KEY "\x72\x10\x0a\x0an_speakers\x12"

static void speakers_are_the_number_that_the_metadata_name(void **state)
{
    static const struct {
        struct slice end;
        size_t n;
    } rows[] = {
        { SLICE_LIT("weights" KEY "\x03"
                    "109"
                    "\x72\x04\x0a\x01"
                    "9"),
          109 },
        { SLICE_LIT(KEY "\x01"
                        "1"),
          1 },
        { SLICE_LIT(KEY "\x04"
                        "2000"),
          LIMIT_SPEECH_VOICES },
        { SLICE_LIT(KEY "\x04"
                        "2001"),
          LIMIT_SPEECH_VOICES },
        { SLICE_LIT(KEY "\x14"
                        "99999999999999999999"),
          LIMIT_SPEECH_VOICES },
        { SLICE_LIT(KEY "\x01"
                        "0"),
          1 },
        { SLICE_LIT(KEY "\x02"
                        "x2"),
          1 },
        { SLICE_LIT("n_speakers 5"), 1 },
        { SLICE_LIT(""), 1 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(speech_sherpa_speakers(rows[i].end), rows[i].n);
}

/* Each copy is as long as the heap block that holds it, so that ASan sees a byte read behind it. */
static void metadata_that_break_off_are_read_as_far_as_they_go(void **state)
{
    static const char whole[] = KEY "\x03"
                                    "109";

    for (size_t n = 1; n < sizeof(whole); n++) {
        char *copy = malloc(n);
        size_t found;

        memcpy(copy, whole, n);
        found = speech_sherpa_speakers((struct slice){ copy, n });
        assert_int_equal(found, n < sizeof(whole) - 2 ? 1 : n == sizeof(whole) - 2 ? 10 : 109);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speakers_are_the_number_that_the_metadata_name),
        cmocka_unit_test(metadata_that_break_off_are_read_as_far_as_they_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
