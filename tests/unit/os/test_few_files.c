#include "os/few_files.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
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

/* proc(5): FDSize is the number of descriptors for which the kernel's table has slots. */
static long table_size(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long n = 0;

    assert_non_null(status);
    while (fgets(line, sizeof(line), status))
        (void)sscanf(line, "FDSize: %ld", &n);
    fclose(status);
    return n;
}

static void the_table_is_made_large_once_and_no_descriptor_stays_taken(void **state)
{
    assert_true(table_size() < 1024); /* the tests before reached FILES */
    few_files_reserve(SIZE_MAX);
    assert_true(table_size() >= FILES); /* the limit: no descriptor above it can be had */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 1024, 1024 }), 0);
    few_files_reserve(1024);
    assert_true(table_size() >= 1024);
    assert_int_equal(fcntl(1023, F_GETFD), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_starts_only_where_descriptors_are_left_for_requests),
        cmocka_unit_test(the_room_is_that_of_starts_at_the_same_time_and_never_above_what_was_asked_for),
        cmocka_unit_test(the_table_is_made_large_once_and_no_descriptor_stays_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
