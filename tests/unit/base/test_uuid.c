#include "base/hash.h"
#include "base/uuid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void a_random_one_is_version_4_lower_case_and_new_each_time(void **state)
{
    char before[UUID_SIZE] = "", now[UUID_SIZE];

    for (int i = 0; i < 200; i++) {
        uuid_v4(now);
        assert_int_equal(strlen(now), UUID_LEN);
        assert_true(uuid_is_valid(slice_of(now)));
        assert_int_equal(now[14], '4');
        assert_non_null(strchr("89ab", now[19]));
        assert_int_equal(strspn(now, "0123456789abcdef-"), UUID_LEN);
        assert_string_not_equal(now, before);
        memcpy(before, now, sizeof(now));
    }
}

static void a_text_gives_the_same_version_8_each_time(void **state)
{
    char one[UUID_SIZE], same[UUID_SIZE], other[UUID_SIZE];

    uuid_of_text(SLICE_LIT("abc"), one);
    uuid_of_text(SLICE_LIT("abc"), same);
    uuid_of_text(SLICE_LIT("abd"), other);
    /* BLAKE2b-256("abc") is bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319 */
    assert_string_equal(one, "bddd813c-6342-8972-b171-ef3fee98579b");
    assert_string_equal(same, one);
    assert_string_not_equal(other, one);
}

static void only_the_one_shape_is_valid(void **state)
{
    static const struct {
        const char *text;
        bool is_valid;
    } cases[] = {
        { "00000000-0000-0000-0000-000000000000", true },
        { "ABCDEFab-cdef-0123-4567-89abcdefABCD", true },
        { "", false },
        { "00000000-0000-0000-0000-00000000000", false },
        { "00000000-0000-0000-0000-0000000000000", false },
        { "0000000000000000-0000-0000-000000000", false },
        { "00000000000000000000000000000000", false },
        { "0000000g-0000-0000-0000-000000000000", false },
        { "00000000-0000-0000-0000-00000000000-", false },
        { "{0000000-0000-0000-0000-00000000000}", false },
        { "00000000_0000-0000-0000-000000000000", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (uuid_is_valid(slice_of(cases[i].text)) != cases[i].is_valid)
            fail_msg("%s", cases[i].text);
    }
    assert_false(uuid_is_valid((struct slice){ 0 }));
}

static int set_up(void **state)
{
    return hash_init(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_random_one_is_version_4_lower_case_and_new_each_time),
        cmocka_unit_test(a_text_gives_the_same_version_8_each_time),
        cmocka_unit_test(only_the_one_shape_is_valid),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
