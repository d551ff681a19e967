#include "base/limits.h"
#include "base/log.h"
#include "base/log_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static int reader_fd, writer_fd;

static int make_pipe(void **state)
{
    int fds[2];
    struct err e = { 0 };

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    reader_fd = fds[0];
    writer_fd = fds[1];
    assert_int_equal(log_writer_start(writer_fd, &e), 0);
    return 0;
}

static int drop_pipe(void **state)
{
    close(reader_fd); /* ends a blocked write */
    log_writer_stop();
    close(writer_fd);
    return 0;
}

/* Expects the next line; lines are short, so each arrives as a whole. */
static void expect_line(const char *text)
{
    char got[LIMIT_LOG_OWN_LINE_BYTES + 1] = "";

    for (size_t n = 0; n < sizeof(got) - 1 && (n == 0 || got[n - 1] != '\n'); n++)
        assert_int_equal(read(reader_fd, got + n, 1), 1);
    assert_string_equal(got, text);
}

static void lines_arrive_in_their_order(void **state)
{
    assert_true(log_writer_add(slice_of("one\n")));
    assert_true(log_writer_add(slice_of("two\n")));
    expect_line("one\n");
    expect_line("two\n");
}

static void a_line_is_refused_when_no_writer_runs(void **state)
{
    log_writer_stop();
    assert_false(log_writer_add(slice_of("late\n")));
}

/* More lines of 63 bytes than pipe and queue hold. */
static void overfill(void)
{
    char line[64];

    for (size_t i = 0; i < ((size_t)LIMIT_LOG_WAITING_BYTES + 65536) / 63 + 200; i++) {
        snprintf(line, sizeof(line), "%062zu\n", i);
        assert_true(log_writer_add(slice_of(line)));
    }
}

static void nobody_waits_for_a_reader_who_does_not_read(void **state)
{
    overfill();
    assert_int_equal(log_writer_take_dropped(), 0); /* there is no room for a report yet */
}

static void what_was_dropped_is_reported_once_there_is_room(void **state)
{
    char line[64];

    overfill();
    for (size_t i = 0; i < 1000; i++) {
        snprintf(line, sizeof(line), "%062zu\n", i);
        expect_line(line);
    }
    assert_true(log_writer_take_dropped() > 0);
    assert_int_equal(log_writer_take_dropped(), 0);
}

static void the_end_does_not_wait_for_a_reader_who_does_not_read(void **state)
{
    overfill();
    log_writer_stop();
    assert_false(log_writer_add(slice_of("late\n")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_arrive_in_their_order, make_pipe, drop_pipe),
        cmocka_unit_test_setup_teardown(a_line_is_refused_when_no_writer_runs, make_pipe, drop_pipe),
        cmocka_unit_test_setup_teardown(nobody_waits_for_a_reader_who_does_not_read, make_pipe, drop_pipe),
        cmocka_unit_test_setup_teardown(what_was_dropped_is_reported_once_there_is_room, make_pipe, drop_pipe),
        cmocka_unit_test_setup_teardown(the_end_does_not_wait_for_a_reader_who_does_not_read, make_pipe, drop_pipe),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
