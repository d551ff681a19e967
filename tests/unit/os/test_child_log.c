#include "os/child_log.h"

#include "base/clock.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>

#define R "\xEF\xBF\xBD" /* U+FFFD */

struct fixture {
    struct arena *arena;
    struct child_log *log;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->arena = arena_new();
    f->log = child_log_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    child_log_unref(f->log);
    arena_free(f->arena);
    freep(&f);
    return 0;
}

static void add(struct fixture *f, enum child_stream stream, const char *text)
{
    child_log_add_bytes(f->log, stream, slice_of(text));
}

static const char *tail(struct fixture *f, enum child_stream stream, size_t n)
{
    return child_log_tail(f->log, f->arena, stream, n);
}

static void lines_are_joined_across_reads(void **state)
{
    struct fixture *f = *state;

    add(f, CHILD_STDOUT, "on");
    add(f, CHILD_STDERR, "bad ");
    add(f, CHILD_STDOUT, "e\n\ntw");
    add(f, CHILD_STDERR, "luck\n");
    add(f, CHILD_STDOUT, "o\r\n");
    assert_string_equal(tail(f, CHILD_STDOUT, 10), "one\n\ntwo");
    assert_string_equal(tail(f, CHILD_STDERR, 10), "bad luck");
}

static void an_unfinished_line_shows_after_the_flush(void **state)
{
    struct fixture *f = *state;

    add(f, CHILD_STDOUT, "half");
    assert_string_equal(tail(f, CHILD_STDOUT, 1), "");
    child_log_flush(f->log);
    child_log_flush(f->log);
    assert_string_equal(tail(f, CHILD_STDOUT, 10), "half");
}

struct text_case {
    const char *bytes, *text;
};

static const struct text_case text_cases[] = {
    { "plain\ttext", "plain\ttext" },
    { "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80" },
    { "bad\xFF"
      "byte",
      "bad" R "byte" },
    { "cut\xE2\x82", "cut" R R },
    { "\xED\xA0\x80", R R R },
    { "\x1B[31mred", R "[31mred" },
    { "10%\r20%", "10%" R "20%" },
    { "\x7F", R },
    { "\xC2\x85next", R "next" },
    { "\xC2\xA0space", "\xC2\xA0space" },
};

static void what_is_not_text_is_replaced(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(text_cases); i++) {
        add(f, CHILD_STDOUT, text_cases[i].bytes);
        add(f, CHILD_STDOUT, "\n");
        assert_string_equal(tail(f, CHILD_STDOUT, 1), text_cases[i].text);
    }
    child_log_add_bytes(f->log, CHILD_STDOUT, (struct slice){ "a\0b\n", 4 });
    assert_string_equal(tail(f, CHILD_STDOUT, 1), "a" R "b");
}

static void a_character_split_between_reads_stays_whole(void **state)
{
    struct fixture *f = *state;

    add(f, CHILD_STDOUT, "\xE2\x82");
    add(f, CHILD_STDOUT, "\xAC\n");
    assert_string_equal(tail(f, CHILD_STDOUT, 1), "\xE2\x82\xAC");
}

static void add_times(struct fixture *f, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add(f, CHILD_STDOUT, text);
}

static void a_line_of_the_maximum_is_whole_and_one_byte_more_is_cut_and_marked(void **state)
{
    struct fixture *f = *state;

    add_times(f, "x", LIMIT_LOG_LINE_BYTES);
    add(f, CHILD_STDOUT, "\n");
    assert_int_equal(strlen(tail(f, CHILD_STDOUT, 1)), LIMIT_LOG_LINE_BYTES);
    add_times(f, "x", LIMIT_LOG_LINE_BYTES + 1);
    add(f, CHILD_STDOUT, "more\nnext\n");
    assert_string_equal(tail(f, CHILD_STDOUT, 1), "next");
    assert_string_equal(tail(f, CHILD_STDOUT, 2) + LIMIT_LOG_LINE_BYTES, " [line cut]\nnext");
}

static void a_cut_leaves_no_part_of_a_character(void **state)
{
    struct fixture *f = *state;

    add(f, CHILD_STDOUT, "xx");
    add_times(f, "\xE2\x82\xAC", LIMIT_LOG_LINE_BYTES / 3);
    add(f, CHILD_STDOUT, "\n");
    assert_string_equal(tail(f, CHILD_STDOUT, 1) + 2 + (LIMIT_LOG_LINE_BYTES - 2) / 3 * 3, " [line cut]");
    add_times(f, "\xFF", LIMIT_LOG_LINE_BYTES); /* replacements are three bytes each */
    add(f, CHILD_STDOUT, "\n");
    assert_string_equal(tail(f, CHILD_STDOUT, 1) + LIMIT_LOG_LINE_BYTES / 3 * 3, " [line cut]");
}

static void the_oldest_lines_leave_first(void **state)
{
    struct fixture *f = *state;
    struct child_line *lines;
    char text[32];

    for (int i = 1; i <= LIMIT_LOG_LINES + 1; i++) {
        snprintf(text, sizeof(text), "line %d\n", i);
        add(f, CHILD_STDOUT, text);
    }
    assert_int_equal(child_log_lines(f->log, f->arena, 0, SIZE_MAX, &lines), LIMIT_LOG_LINES);
    assert_int_equal(lines[0].number, 2);
    assert_string_equal(lines[0].text, "line 2");
    assert_int_equal(lines[LIMIT_LOG_LINES - 1].number, LIMIT_LOG_LINES + 1);
}

static void the_bytes_kept_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct child_line *lines;
    size_t n_full = LIMIT_LOG_BYTES / 4096;

    for (size_t i = 0; i < n_full; i++) {
        add_times(f, "x", 4096);
        add(f, CHILD_STDOUT, "\n");
    }
    assert_int_equal(child_log_lines(f->log, f->arena, 0, SIZE_MAX, &lines), n_full);
    add(f, CHILD_STDOUT, "y\n");
    assert_int_equal(child_log_lines(f->log, f->arena, 0, SIZE_MAX, &lines), n_full);
    assert_int_equal(lines[0].number, 2);
}

static void lines_are_read_on_from_a_number(void **state)
{
    struct fixture *f = *state;
    struct child_line *lines;
    int64_t before_ms = clock_wall_ms();

    add(f, CHILD_STDOUT, "one\ntwo\n");
    child_log_note(f->log, "note %d", 3);
    add(f, CHILD_STDERR, "four\n");
    assert_int_equal(child_log_lines(f->log, f->arena, 1, 10, &lines), 3);
    assert_string_equal(lines[0].text, "two");
    assert_int_equal(lines[1].stream, CHILD_NOTE);
    assert_string_equal(lines[1].text, "note 3");
    assert_int_equal(lines[2].number, 4);
    assert_true(lines[0].wall_ms >= before_ms && lines[0].wall_ms <= clock_wall_ms());
    assert_int_equal(child_log_lines(f->log, f->arena, 0, 2, &lines), 2);
    assert_int_equal(lines[0].number, 3); /* the newest of them */
    assert_int_equal(child_log_lines(f->log, f->arena, 4, 10, &lines), 0);
    assert_int_equal(child_log_lines(f->log, f->arena, -5, 10, &lines), 4);
}

static void the_tail_is_of_one_stream(void **state)
{
    struct fixture *f = *state;

    add(f, CHILD_STDERR, "e1\ne2\n");
    add(f, CHILD_STDOUT, "o1\n");
    add(f, CHILD_STDERR, "e3\n");
    assert_string_equal(tail(f, CHILD_STDERR, 2), "e2\ne3");
    assert_string_equal(tail(f, CHILD_STDERR, 0), "");
}

static void *add_many(void *arg)
{
    struct child_log *log = child_log_ref(arg);

    for (int i = 0; i < 5000; i++)
        child_log_note(log, "note %d", i);
    child_log_unref(log);
    return NULL;
}

static void many_threads_may_write_and_read(void **state)
{
    struct fixture *f = *state;
    struct child_line *lines;
    pthread_t threads[3];
    size_t n;

    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, f->log), 0);
    for (int i = 0; i < 10; i++) {
        n = child_log_lines(f->log, f->arena, 0, 100, &lines);
        for (size_t k = 1; k < n; k++)
            assert_int_equal(lines[k].number, lines[k - 1].number + 1);
    }
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(child_log_lines(f->log, f->arena, 0, 1, &lines), 1);
    assert_int_equal(lines[0].number, 15000);
}

int main(void)
{
#define WITH_LOG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_LOG(lines_are_joined_across_reads),
        WITH_LOG(an_unfinished_line_shows_after_the_flush),
        WITH_LOG(what_is_not_text_is_replaced),
        WITH_LOG(a_character_split_between_reads_stays_whole),
        WITH_LOG(a_line_of_the_maximum_is_whole_and_one_byte_more_is_cut_and_marked),
        WITH_LOG(a_cut_leaves_no_part_of_a_character),
        WITH_LOG(the_oldest_lines_leave_first),
        WITH_LOG(the_bytes_kept_are_bounded),
        WITH_LOG(lines_are_read_on_from_a_number),
        WITH_LOG(the_tail_is_of_one_stream),
        WITH_LOG(many_threads_may_write_and_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
