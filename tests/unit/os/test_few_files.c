#include "os/few_files.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FILES = 200 };

/* Leaves so many descriptors free. */
static void leave_free(size_t n)
{
    struct rlimit limit;
    size_t n_free = 0;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = FILES;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int fd = FILES; fd-- > 3;)
        if (n_free < n && (close(fd) == 0 || errno == EBADF))
            n_free++;
        else if (fcntl(fd, F_GETFD) < 0)
            assert_true(dup2(0, fd) == fd);
}

static void an_agent_starts_only_where_descriptors_are_left_for_requests(void **state)
{
    struct err e = { 0 };

    leave_free(LIMIT_FREE_FILES + LIMIT_START_FILES);
    assert_int_equal(few_files_room(16), 1);
    assert_int_equal(few_files_admit(&e), 0);
    leave_free(LIMIT_FREE_FILES + LIMIT_START_FILES - 1);
    assert_int_equal(few_files_room(16), 0);
    assert_int_equal(few_files_admit(&e), -EMFILE);
    assert_string_equal(e.code, "TOO_FEW_FILES");
    leave_free(0);
    assert_int_equal(few_files_room(16), 0);
}

static void the_room_is_that_of_starts_at_the_same_time_and_never_above_what_was_asked_for(void **state)
{
    leave_free(LIMIT_FREE_FILES + 4 * LIMIT_START_FILES);
    assert_int_equal(few_files_room(16), 4);
    assert_int_equal(few_files_room(3), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_starts_only_where_descriptors_are_left_for_requests),
        cmocka_unit_test(the_room_is_that_of_starts_at_the_same_time_and_never_above_what_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
