/* Children whose standard input and output belong to the caller. */
#include "place.h"

#include <fcntl.h>
#include <signal.h>

static struct child_ends start_with_ends(struct story *s, struct place *p, const char *script)
{
    struct child_ends ends = { -1, -1 };

    story_start_script(s, p, script, (struct child_spec){ .ends = &ends });
    assert_true(ends.stdin_fd > 2 && ends.stdout_fd > 2);
    assert_true(fcntl(ends.stdin_fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(ends.stdin_fd, F_GETFD) & FD_CLOEXEC);
    return ends;
}

/* Reads until the end of file or until `out` is full. */
static size_t read_all(int fd, char *out, size_t max)
{
    struct pollfd waited = { .fd = fd, .events = POLLIN };
    size_t n = 0;

    while (n < max) {
        ssize_t now;

        assert_int_equal(poll(&waited, 1, WAIT_MS), 1);
        now = read(fd, out + n, max - n);
        if (now <= 0)
            break;
        n += (size_t)now;
    }
    return n;
}

static void what_is_written_comes_back(void **state)
{
    struct story s = { 0 };
    struct child_ends ends = start_with_ends(&s, *state, "echo words >&2; exec cat");
    char back[64] = "";

    assert_int_equal(write(ends.stdin_fd, "hello\n", 6), 6);
    assert_int_equal(read_all(ends.stdout_fd, back, 6), 6);
    assert_string_equal(back, "hello\n");
    close(ends.stdin_fd); /* the end of its input ends it */
    story_wait(&s);
    assert_int_equal(s.how.code, 0);
    assert_int_equal(read_all(ends.stdout_fd, back, sizeof(back)), 0);
    assert_string_equal(story_tail(&s, CHILD_STDERR), "words");
    assert_string_equal(story_tail(&s, CHILD_STDOUT), "");
    close(ends.stdout_fd);
    story_end(&s);
}

static void it_has_no_descriptor_beyond_the_three(void **state)
{
    struct story s = { 0 };
    struct child_ends ends = start_with_ends(&s, *state, "cd /proc/self/fd; for f in *; do echo $f; done");
    char back[64] = "";

    story_wait(&s);
    read_all(ends.stdout_fd, back, sizeof(back) - 1);
    assert_memory_equal(back, "0\n1\n2\n", 6);
    close(ends.stdin_fd);
    close(ends.stdout_fd);
    story_end(&s);
}

static void the_callers_ends_stay_open_after_its_end(void **state)
{
    struct story s = { 0 };
    struct child_ends ends = start_with_ends(&s, *state, "echo last; exit 3");
    char back[64] = "";

    story_wait(&s);
    assert_int_equal(s.how.code, 3);
    assert_int_equal(read_all(ends.stdout_fd, back, sizeof(back) - 1), 5);
    assert_string_equal(back, "last\n");
    assert_int_equal(write(ends.stdin_fd, "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    close(ends.stdin_fd);
    close(ends.stdout_fd);
    story_end(&s);
}

static size_t count_descriptors(void)
{
    size_t n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void its_last_words_are_in_the_log_once_it_has_ended(void **state)
{
    struct story s = { 0 };
    struct child_ends ends = start_with_ends(&s, *state, "exec >&-; read line; echo words >&2");
    char back[1];

    assert_int_equal(read_all(ends.stdout_fd, back, sizeof(back)), 0);
    assert_false(child_wait_for_end(s.child, 1));
    assert_int_equal(write(ends.stdin_fd, "\n", 1), 1);
    assert_true(child_wait_for_end(s.child, WAIT_MS));
    assert_string_equal(story_tail(&s, CHILD_STDERR), "words");
    assert_true(child_wait_for_end(s.child, 0));
    story_wait(&s);
    close(ends.stdin_fd);
    close(ends.stdout_fd);
    story_end(&s);
}

static void a_start_that_fails_hands_over_nothing(void **state)
{
    struct place *p = *state;
    struct child_ends ends = { -1, -1 };
    struct child *c = NULL;
    struct err e = { 0 };
    size_t n_before = count_descriptors();
    const struct child_spec spec = {
        .label = "test", .command = "/nowhere/at/all", .env = place_env, .ends = &ends, .on_exit = story_note_exit
    };

    assert_true(child_start(p->supervisor, &spec, &c, &e) < 0);
    assert_int_equal(ends.stdin_fd, -1);
    assert_int_equal(ends.stdout_fd, -1);
    assert_int_equal(count_descriptors(), n_before);
}

int main(void)
{
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, place_set_up, place_tear_down)
    const struct CMUnitTest tests[] = {
        IN_PLACE(what_is_written_comes_back),
        IN_PLACE(it_has_no_descriptor_beyond_the_three),
        IN_PLACE(the_callers_ends_stay_open_after_its_end),
        IN_PLACE(its_last_words_are_in_the_log_once_it_has_ended),
        IN_PLACE(a_start_that_fails_hands_over_nothing),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
