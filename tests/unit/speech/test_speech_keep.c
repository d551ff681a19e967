#include "os/files.h"
#include "speech/keep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static void samples_become_a_private_wav_in_the_folder_of_the_caller(void **state)
{
    char dir[] = "/tmp/hearth-keep-XXXXXX";
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct speech_keeper keeper = { mkdtemp(dir), "app-1" };
    const char *first = NULL, *second = NULL;
    struct slice wav;
    struct stat st;

    assert_non_null(keeper.data_dir);
    assert_int_equal(speech_keep_samples(&keeper, SLICE_LIT("abcd"), 16000, a, &first, NULL), 0);
    assert_int_equal(speech_keep_file(&keeper, SLICE_LIT("ID3"), "mp3", a, &second, NULL), 0);
    assert_string_not_equal(first, second);
    assert_non_null(strstr(first, arena_printf(a, "%s/local-apps/app-1/recording-", dir)));
    assert_string_equal(strrchr(second, '.'), ".mp3");
    assert_int_equal(stat(first, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(file_read(a, first, 100, &wav, NULL), 0);
    assert_int_equal(wav.n, 48);
    assert_memory_equal(wav.p, "RIFF", 4);
    assert_memory_equal(wav.p + 44, "abcd", 4);
    assert_int_equal(dir_remove(dir, NULL), 0);
}

static void a_caller_that_is_no_name_keeps_nothing(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct speech_keeper keeper = { "/nonexistent", "../other" };
    const char *path = NULL;

    assert_true(speech_keep_samples(&keeper, SLICE_LIT("abcd"), 16000, a, &path, NULL) < 0);
    assert_null(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_become_a_private_wav_in_the_folder_of_the_caller),
        cmocka_unit_test(a_caller_that_is_no_name_keeps_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
