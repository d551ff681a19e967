#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void freep_frees_and_forgets(void **state)
{
    char *s = xstrdup("text");

    freep(&s);
    assert_null(s);
    freep(&s);
    assert_null(s);
}

static void take_hands_over_and_leaves_nothing(void **state)
{
    AUTO(freep) char *scoped = xstrdup("text");
    char *taken = TAKE(scoped);

    assert_null(scoped);
    assert_string_equal(taken, "text");
    free(taken);
}

static void memory_is_zeroed_and_never_null_even_for_nothing(void **state)
{
    static const char zeros[64];
    AUTO(freep) char *some = xcalloc(8, 8);
    AUTO(freep) char *nothing = xcalloc(0, 0);
    AUTO(freep) char *shrunk = xrealloc(xcalloc(1, 8), 0);

    assert_memory_equal(some, zeros, 64);
    assert_non_null(nothing);
    assert_non_null(shrunk);
}

static void realloc_keeps_what_was_there(void **state)
{
    AUTO(freep) char *s = xrealloc(xstrdup("abc"), 1000);

    assert_string_equal(s, "abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freep_frees_and_forgets),
        cmocka_unit_test(take_hands_over_and_leaves_nothing),
        cmocka_unit_test(memory_is_zeroed_and_never_null_even_for_nothing),
        cmocka_unit_test(realloc_keeps_what_was_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
