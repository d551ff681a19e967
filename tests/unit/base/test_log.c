#include "base/arena.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum { CAPTURE_BYTES = 65536 };

static int saved_stderr, pipe_read_fd;
static char captured[CAPTURE_BYTES];

static void begin_capture(void)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    saved_stderr = dup(STDERR_FILENO);
    dup2(fds[1], STDERR_FILENO);
    close(fds[1]);
    pipe_read_fd = fds[0];
}

/* The text written to standard error since begin_capture(). */
static const char *end_capture(void)
{
    ssize_t n;

    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    n = read(pipe_read_fd, captured, sizeof(captured) - 1);
    close(pipe_read_fd);
    captured[MAX(n, 0)] = '\0';
    return captured;
}

static void a_line_has_time_level_area_request_id_and_text(void **state)
{
    const char *line;

    log_setup(LOG_INFO, false);
    begin_capture();
    log_info("tasks", "req-1", "claimed %d", 7);
    line = end_capture();
    assert_int_equal(strspn(line, "0123456789-T:.Z"), 24);
    assert_string_equal(line + 24, " info  tasks [req-1] claimed 7\n");
}

static void without_a_request_id_there_are_no_brackets(void **state)
{
    log_setup(LOG_INFO, false);
    begin_capture();
    log_error("store", NULL, "gone");
    assert_string_equal(end_capture() + 24, " error store gone\n");
}

static void levels_below_the_chosen_one_are_silent(void **state)
{
    static const enum log_level levels[] = { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        log_setup(levels[i], false);
        begin_capture();
        log_error("x", NULL, "E");
        log_warn("x", NULL, "W");
        log_info("x", NULL, "I");
        log_debug("x", NULL, "D");
        end_capture();
        assert_int_equal(strstr(captured, "E\n") != NULL, true);
        assert_int_equal(strstr(captured, "W\n") != NULL, levels[i] >= LOG_WARN);
        assert_int_equal(strstr(captured, "I\n") != NULL, levels[i] >= LOG_INFO);
        assert_int_equal(strstr(captured, "D\n") != NULL, levels[i] >= LOG_DEBUG);
        assert_int_equal(log_enabled(LOG_INFO), levels[i] >= LOG_INFO);
    }
}

static void level_names_are_read(void **state)
{
    enum log_level level = LOG_INFO;

    assert_int_equal(log_level_parse("debug", &level), 0);
    assert_int_equal(level, LOG_DEBUG);
    assert_int_equal(log_level_parse("error", &level), 0);
    assert_int_equal(level, LOG_ERROR);
    assert_int_equal(log_level_parse("loud", &level), -EINVAL);
    assert_int_equal(log_level_parse("Info", &level), -EINVAL);
    assert_int_equal(log_level_parse("", &level), -EINVAL);
    assert_int_equal(log_level_parse(NULL, &level), -EINVAL);
    assert_int_equal(level, LOG_ERROR);
}

static void a_line_stays_one_line_whatever_the_text(void **state)
{
    log_setup(LOG_INFO, false);
    begin_capture();
    log_info("x", "a\nb", "one\ntwo\r\x1b[31m\x7f");
    assert_string_equal(end_capture() + 24, " info  x [a\\nb] one\\ntwo\\r\\u001b[31m\\u007f\n");
}

static struct json_value parse_line(struct arena *a, const char *line)
{
    struct json_value value;

    assert_int_equal(json_parse(a, slice_of(line), &value, NULL), 0);
    return value;
}

static void as_json_a_line_is_one_object(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value line;

    log_setup(LOG_INFO, true);
    begin_capture();
    log_warn("tasks", "req-1", "said \"%s\"\n", "\xff");
    line = parse_line(a, end_capture());
    assert_int_equal(json_string(json_get(line, "time")).n, 24);
    assert_string_equal(json_cstr(json_get(line, "level")), "warn");
    assert_string_equal(json_cstr(json_get(line, "area")), "tasks");
    assert_string_equal(json_cstr(json_get(line, "request_id")), "req-1");
    assert_string_equal(json_cstr(json_get(line, "text")), "said \"\xef\xbf\xbd\"\n");
    assert_ptr_equal(strchr(captured, '\n'), captured + strlen(captured) - 1);
}

static void a_long_line_is_cut_at_its_limit_and_stays_well_formed(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char text[3 * LIMIT_LOG_OWN_LINE_BYTES], id[1000];

    memset(text, '\x01', sizeof(text) - 1); /* six bytes each in JSON */
    text[sizeof(text) - 1] = '\0';
    memset(id, '\x02', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    for (int is_json = 0; is_json <= 1; is_json++) {
        log_setup(LOG_INFO, is_json);
        begin_capture();
        log_info("x", id, "%s", text);
        end_capture();
        assert_in_range(strlen(captured), LIMIT_LOG_OWN_LINE_BYTES / 2, LIMIT_LOG_OWN_LINE_BYTES);
        assert_ptr_equal(strchr(captured, '\n'), captured + strlen(captured) - 1);
    }
    assert_true(json_string(json_get(parse_line(a, captured), "text")).n > 100);
}

static void errno_survives_a_log_call(void **state)
{
    log_setup(LOG_INFO, false);
    begin_capture();
    errno = ENOENT;
    log_info("x", NULL, "text");
    assert_int_equal(errno, ENOENT);
    end_capture();
}

static void foreign_text_is_quoted_and_escaped(void **state)
{
    static const struct {
        const char *text, *quoted;
    } cases[] = {
        { "", "\"\"" },
        { "plain", "\"plain\"" },
        { "a\"b\\c", "\"a\\\"b\\\\c\"" },
        { "a\nb\tc\rd", "\"a\\nb\\tc\\rd\"" },
        { "\x01\x1b\x7f", "\"\\x01\\x1b\\x7f\"" },
        { "\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\"" },
        { "\xc2\x9b\xc2\xa0", "\"\\x9b\xc2\xa0\"" },
        { "a\x9b\xff", "\"a\\x9b\\xff\"" },
        { "\xc2", "\"\\xc2\"" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(log_quote(cases[i].text), cases[i].quoted);
    assert_string_equal(log_quote(NULL), "null");
}

static void quoted_text_is_cut_at_200_bytes_between_characters(void **state)
{
    char text[402];
    const char *quoted;

    memset(text, 'a', sizeof(text));
    text[200] = '\0';
    assert_int_equal(strlen(log_quote(text)), 202);
    text[200] = 'a';
    text[201] = '\0';
    quoted = log_quote(text);
    assert_int_equal(strlen(quoted), 205);
    assert_string_equal(quoted + 201, "\"...");

    memset(text, '\x01', 400);
    text[400] = '\0';
    assert_int_equal(strlen(log_quote(text)), 4 * 200 + 5);

    memcpy(text + 199, "\xc3\xa9", 2);
    assert_string_equal(log_quote(text) + 4 * 199 + 1, "\"...");
    memset(text, '\x80', 400);
    assert_true(utf8_is_valid(slice_of(log_quote(text))));
}

static void eight_quoted_texts_live_beside_each_other(void **state)
{
    const char *quoted[8];
    char text[2] = "a";

    for (int i = 0; i < 8; i++) {
        quoted[i] = log_quote(text);
        text[0]++;
    }
    assert_string_equal(quoted[0], "\"a\"");
    assert_string_equal(quoted[7], "\"h\"");
}

enum { WRITERS = 4, LINES_EACH = 100 };

static void *write_lines(void *arg)
{
    for (int i = 0; i < LINES_EACH; i++)
        log_info("x", NULL, "from %s end", LOG_Q(arg));
    return NULL;
}

static void lines_of_several_threads_never_mix(void **state)
{
    static char names[WRITERS][5] = { "aaaa", "bbbb", "cccc", "dddd" };
    pthread_t threads[WRITERS];
    size_t n_lines = 0;
    char *rest = captured;

    log_setup(LOG_INFO, false);
    begin_capture();
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, names[i]), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    end_capture();
    for (char *line; (line = strsep(&rest, "\n")) && *line; n_lines++) {
        assert_int_equal(strlen(line), 24 + strlen(" info  x from \"aaaa\" end"));
        assert_string_equal(line + strlen(line) - 4, " end");
    }
    assert_int_equal(n_lines, WRITERS * LINES_EACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_time_level_area_request_id_and_text),
        cmocka_unit_test(without_a_request_id_there_are_no_brackets),
        cmocka_unit_test(levels_below_the_chosen_one_are_silent),
        cmocka_unit_test(level_names_are_read),
        cmocka_unit_test(a_line_stays_one_line_whatever_the_text),
        cmocka_unit_test(as_json_a_line_is_one_object),
        cmocka_unit_test(a_long_line_is_cut_at_its_limit_and_stays_well_formed),
        cmocka_unit_test(errno_survives_a_log_call),
        cmocka_unit_test(foreign_text_is_quoted_and_escaped),
        cmocka_unit_test(quoted_text_is_cut_at_200_bytes_between_characters),
        cmocka_unit_test(eight_quoted_texts_live_beside_each_other),
        cmocka_unit_test(lines_of_several_threads_never_mix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
