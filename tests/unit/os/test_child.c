#include "place.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void the_exit_code_is_told(void **state)
{
    struct story s = { 0 };

    story_start_script(&s, *state, "exit 7", (struct child_spec){ 0 });
    assert_true(child_pid(s.child) > 1);
    story_wait(&s);
    assert_int_equal(s.how.code, 7);
    assert_int_equal(s.how.signal, 0);
    assert_false(s.how.was_stopped);
    assert_false(s.how.timed_out);
    assert_false(child_is_running(s.child));
    assert_non_null(strstr(story_tail(&s, CHILD_NOTE), "ended with exit code 7"));
    story_end(&s);
}

static void the_signal_that_ended_it_is_reported(void **state)
{
    struct story s = { 0 };

    story_start_script(&s, *state, "kill -SEGV $$", (struct child_spec){ 0 });
    story_wait(&s);
    assert_int_equal(s.how.code, -1);
    assert_int_equal(s.how.signal, SIGSEGV);
    story_end(&s);
}

static void a_stop_asks_and_may_be_repeated(void **state)
{
    struct story s = { 0 };

    story_start_script(&s, *state, "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done",
                       (struct child_spec){ 0 });
    story_wait_for_output(&s);
    for (int i = 0; i < 3; i++)
        child_stop(s.child);
    story_wait(&s);
    child_stop(s.child);
    assert_int_equal(s.how.code, 3);
    assert_true(s.how.was_stopped);
    assert_string_equal(story_tail(&s, CHILD_STDOUT), "ready\nbye");
    story_end(&s);
    assert_int_equal(s.n_exits, 1);
}

static void a_stop_that_is_ignored_ends_in_a_kill(void **state)
{
    struct story s = { 0 };

    story_start_script(&s, *state, "trap '' TERM; echo ready; while :; do sleep 0.01; done",
                       (struct child_spec){ .stop_grace_ms = 50 });
    story_wait_for_output(&s);
    child_stop(s.child);
    story_wait(&s);
    assert_int_equal(s.how.signal, SIGKILL);
    assert_true(s.how.was_stopped);
    assert_non_null(strstr(story_tail(&s, CHILD_NOTE), "killed"));
    story_end(&s);
}

static bool is_halted(void *arg)
{
    struct story *s = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice stat = { 0 };

    return file_read(a, arena_printf(a, "/proc/%d/stat", (int)child_pid(s->child)), 4096, &stat, NULL) == 0 &&
           memmem(stat.p, stat.n, ") T ", 4);
}

static void one_that_is_halted_hears_the_stop(void **state)
{
    struct story s = { 0 };

    story_start_script(&s, *state, "trap 'exit 5' TERM; kill -STOP $$; while :; do sleep 0.01; done",
                       (struct child_spec){ 0 });
    assert_true(wait_until(is_halted, &s));
    child_stop(s.child);
    story_wait(&s);
    assert_int_equal(s.how.code, 5);
    story_end(&s);
}

static void it_begins_with_the_usual_limit_of_open_files(void **state)
{
    struct story s = { 0 };
    struct rlimit before, raised;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    raised = (struct rlimit){ .rlim_cur = before.rlim_max, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &raised), 0);
    story_start_script(&s, *state, "ulimit -n", (struct child_spec){ .max_stdout = 100 });
    story_wait(&s);
    assert_true(slice_eq_str(child_stdout(s.child, NULL), "1024\n"));
    story_end(&s);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void past_its_time_it_is_ended(void **state)
{
    struct story s = { 0 };

    story_start_script(&s, *state, "sleep 1000", (struct child_spec){ .timeout_ms = 50 });
    story_wait(&s);
    assert_true(s.how.timed_out);
    assert_false(s.how.was_stopped);
    assert_int_equal(s.how.signal, SIGTERM);
    story_end(&s);
}

static void the_exit_is_reported_after_the_group_has_ended(void **state)
{
    static const char *const scripts[] = {
        "sh -c 'echo $$ >left; exec sleep 1000' & while [ ! -s left ]; do sleep 0.01; done; exit 4",
        "sh -c 'trap \"\" TERM; echo $$ >left; while :; do sleep 0.01; done' & while [ ! -s left ]; do sleep 0.01; done; exit 4",
    };
    struct place *p = *state;

    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        struct story s = { 0 };
        pid_t left;

        story_start_script(&s, p, scripts[i], (struct child_spec){ .stop_grace_ms = 50 });
        story_wait(&s);
        left = place_read_pid(p, "left");
        if (kill(left, 0) == 0 && process_lives(process_hold(left)))
            fail_msg("%d lives: %s", (int)left, scripts[i]);
        assert_int_equal(s.how.code, 4);
        assert_non_null(strstr(story_tail(&s, CHILD_NOTE), "left behind"));
        assert_int_equal(unlink(arena_printf(p->arena, "%s/left", p->dir)), 0);
        story_end(&s);
    }
}

static void one_who_left_the_group_and_holds_the_pipe_delays_nothing(void **state)
{
    struct place *p = *state;
    struct story s = { 0 };
    int escaped;

    story_start_script(
        &s, p,
        "setsid sh -c 'echo $$ >escaped; exec sleep 1000' & while [ ! -s escaped ]; do sleep 0.01; done; echo done",
        (struct child_spec){ .max_stdout = 100 });
    escaped = process_hold(place_read_pid(p, "escaped"));
    story_wait(&s);
    assert_int_equal(process_lives(escaped), p->box == NULL); /* hearth-child ends all processes of its sandbox */
    assert_true(slice_eq_str(child_stdout(s.child, NULL), "done\n"));
    place_close_supervisor(p);
    assert_false(process_lives(escaped));
    close(escaped);
    story_end(&s);
}

static void only_the_three_streams_are_open_in_it(void **state)
{
    struct story s = { 0 };
    int leaky = open("/dev/null", O_RDONLY), high = fcntl(leaky, F_DUPFD, 200); /* without O_CLOEXEC */

    story_start_script(&s, *state, "ls /proc/$$/fd; readlink /proc/$$/fd/0", (struct child_spec){ 0 });
    story_wait(&s);
    assert_string_equal(story_tail(&s, CHILD_STDOUT), "0\n1\n2\n/dev/null");
    close(leaky);
    close(high);
    story_end(&s);
}

static void place_write(struct place *p, const char *name, const char *text, mode_t mode)
{
    assert_int_equal(file_write(arena_printf(p->arena, "%s/%s", p->dir, name), slice_of(text), mode, NULL), 0);
}

static size_t count_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void the_service_keeps_no_descriptor_of_one_that_ended(void **state)
{
    struct place *p = *state;
    size_t n_before = count_open();

    for (int i = 0; i < 5; i++) {
        struct story s = { 0 };

        story_start_script(&s, p, "exit 0", (struct child_spec){ 0 });
        story_wait(&s);
        story_end(&s);
    }
    assert_int_equal(count_open(), n_before);
}

static void set_open_files(rlim_t n)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = n ? n : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* With one more descriptor each time, the start fails at each step in turn, then succeeds. */
static void a_start_that_lacks_descriptors_fails_whole(void **state)
{
    struct place *p = *state;
    struct child_spec spec = { .label = "test", .command = "true", .env = place_env };
    size_t n_before = count_open();
    struct child *c = NULL;
    rlim_t n_allowed = 3;
    int n_failed = 0, r = -EMFILE;

    for (; r == -EMFILE; n_failed++, n_allowed++) {
        struct err e = { 0 };

        set_open_files(n_allowed);
        r = child_start(p->supervisor, &spec, &c, &e);
        set_open_files(0);
        if (r == -EMFILE)
            assert_non_null(strstr(e.text, "Too many open files"));
    }
    assert_int_equal(r, 0);
    assert_true(n_failed > 8);
    place_close_supervisor(p);
    assert_int_equal(count_open(), n_before);
    child_unref(c);
}

static void one_that_never_began_leaves_no_descriptor(void **state)
{
    struct place *p = *state;
    struct child_spec spec = { .label = "test", .command = "./lost", .env = place_env, .working_dir = p->dir };
    size_t n_before = count_open();
    struct child *c = NULL;

    place_write(p, "lost", "#!/no/such/interpreter\n", 0700);
    assert_int_equal(child_start(p->supervisor, &spec, &c, NULL), -ENOENT);
    assert_int_equal(count_open(), n_before);
}

static void a_service_without_a_standard_input_starts_children_as_well(void **state)
{
    struct story s = { 0 };
    int saved = dup(STDIN_FILENO);

    close(STDIN_FILENO);
    story_start_script(&s, *state, "cat; echo out; echo err >&2", (struct child_spec){ 0 });
    story_wait(&s);
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    close(saved);
    assert_string_equal(story_tail(&s, CHILD_STDOUT), "out");
    assert_string_equal(story_tail(&s, CHILD_STDERR), "err");
    story_end(&s);
}

static void its_environment_is_what_was_given_and_the_mark(void **state)
{
    struct place *p = *state;
    struct story s = { 0 };
    const char *const env[] = { "B=two words", "HEARTH_INSTANCE=forged", "A=", NULL };

    setenv("HEARTH_TEST_SECRET", "1", 1);
    story_start(&s, p, (struct child_spec){ .command = "env", .env = env });
    story_wait(&s);
    assert_string_equal(story_tail(&s, CHILD_STDOUT),
                        arena_printf(p->arena, "HEARTH_INSTANCE=%s:%s:%d\nB=two words\nA=", p->instance,
                                     clock_boot_id(), (int)getpid()));
    story_end(&s);
}

static void it_leads_a_session_in_its_folder_and_leaves_no_cores(void **state)
{
    struct place *p = *state;
    struct story s = { 0 };

    story_start_script(&s, p, "cut -d' ' -f5,6 /proc/$$/stat; pwd; ulimit -c", (struct child_spec){ 0 });
    story_wait(&s);
    assert_string_equal(story_tail(&s, CHILD_STDOUT), arena_printf(p->arena, "%d %d\n%s\n0", (int)child_pid(s.child),
                                                                   (int)child_pid(s.child), p->dir));
    story_end(&s);
}

static void block_one_signal(void *arg)
{
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
}

static void no_signal_is_blocked_or_ignored_in_it(void **state)
{
    struct place *p = *state;
    struct story s = { 0 };
    const char *const args[] = { "-E", "^Sig(Blk|Ign)", "/proc/self/status", NULL };

    signal(SIGPIPE, SIG_IGN);
    loop_call(p->loop, block_one_signal, NULL);
    story_start(&s, p, (struct child_spec){ .command = "grep", .args = args });
    story_wait(&s);
    assert_string_equal(story_tail(&s, CHILD_STDOUT), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000");
    story_end(&s);
}

/* ---- what cannot be started ---- */

struct refusal {
    const char *command;
    const char *working_dir;
    int r;
    const char *code, *text; /* a part of it */
};

static const struct refusal refusals[] = {
    { "uvx", NULL, -ENOENT, "COMMAND_NOT_FOUND",
      "The program `uvx` was not found on PATH. It comes with the package uv (https://docs.astral.sh/uv); install it" },
    { "no-such-program", NULL, -ENOENT, "COMMAND_NOT_FOUND", "`no-such-program` was not found on PATH. Install it" },
    { "./missing", NULL, -ENOENT, "COMMAND_NOT_FOUND", "`./missing` does not exist" },
    { "", NULL, -ENOENT, "COMMAND_NOT_FOUND", "it is empty" },
    { "./plain", NULL, -EACCES, "COMMAND_NOT_EXECUTABLE", "chmod +x" },
    { "/tmp", NULL, -EACCES, "COMMAND_NOT_EXECUTABLE", "must be a file" },
    { "./lost", NULL, -ENOENT, "COMMAND_NOT_FOUND", "the interpreter its first line names does not" },
    { "./nothing", NULL, -EACCES, "COMMAND_NOT_EXECUTABLE", "neither a program of this system nor a script" },
    { "/bin/true", "/no/such/folder", -ENOTDIR, "BAD_WORKING_DIR",
      "The working folder /no/such/folder does not exist" },
    { "/bin/true", "/bin/true", -ENOTDIR, "BAD_WORKING_DIR", "/bin/true does not exist or is not a folder" },
};

static void what_cannot_be_started_says_why(void **state)
{
    struct place *p = *state;
    const char *const env[] = { "PATH=/no/such/folder::relative", NULL };

    place_write(p, "plain", "#!/bin/sh\n", 0600);
    place_write(p, "lost", "#!/no/such/interpreter\n", 0700);
    place_write(p, "nothing", "neither\n", 0700);
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        const struct refusal *want = &refusals[i];
        struct child_spec spec = { .label = "test",
                                   .command = want->command,
                                   .env = env,
                                   .working_dir = want->working_dir ? want->working_dir : p->dir };
        struct child *c = NULL;
        struct err e = { 0 };
        int r = child_start(p->supervisor, &spec, &c, &e);

        if (r != want->r || c || strcmp(e.code, want->code) != 0 || !strstr(e.text, want->text))
            fail_msg("`%s`: %d %s %s", want->command, r, e.code, e.text);
    }
    assert_int_equal(supervisor_n_children(p->supervisor), 0);
}

static char *text_of_x(struct arena *a, const char *before, size_t n)
{
    char *text = arena_alloc(a, strlen(before) + n + 1);

    memset(text, 'x', strlen(before) + n);
    memcpy(text, before, strlen(before));
    return text;
}

static void an_argument_may_be_as_long_as_the_kernel_allows(void **state)
{
    struct place *p = *state;
    struct story s = { 0 };
    const char *args[] = { "-c", "echo ${#1} ${#LONG}", "sh", text_of_x(p->arena, "", LIMIT_ARG_BYTES), NULL };
    const char *const env[] = { text_of_x(p->arena, "LONG=", LIMIT_ARG_BYTES - 5), NULL };
    struct child_spec spec = { .command = "/bin/sh", .args = args, .env = env };
    struct err e = { 0 };

    story_start(&s, p, spec);
    story_wait(&s);
    assert_string_equal(story_tail(&s, CHILD_STDOUT), "131071 131066");
    story_end(&s);

    spec.label = "test";
    args[3] = text_of_x(p->arena, "", LIMIT_ARG_BYTES + 1);
    assert_int_equal(child_start(p->supervisor, &spec, &s.child, &e), -E2BIG);
    assert_string_equal(e.text, "Argument 4 of the command must be at most 131071 bytes.");
    args[3] = NULL;
    spec.env = (const char *const[]){ text_of_x(p->arena, "LONG=", LIMIT_ARG_BYTES - 4), NULL };
    assert_int_equal(child_start(p->supervisor, &spec, &s.child, &e), -E2BIG);
    assert_string_equal(e.text, "The environment variable LONG with its value must be at most 131071 bytes.");
}

static void a_command_may_have_256_arguments(void **state)
{
    struct place *p = *state;
    struct story s = { 0 };
    const char *args[LIMIT_ARGS + 2] = { "-c", "echo $#", "sh" };
    struct child_spec spec = { .command = "/bin/sh", .args = args, .env = place_env };

    for (size_t i = 3; i < LIMIT_ARGS; i++)
        args[i] = "x";
    story_start(&s, p, spec);
    story_wait(&s);
    assert_string_equal(story_tail(&s, CHILD_STDOUT), "253");
    story_end(&s);
    args[LIMIT_ARGS] = "x";
    assert_int_equal(child_start(p->supervisor, &spec, &s.child, NULL), -E2BIG);
}

static void together_they_may_not_pass_what_the_kernel_takes(void **state)
{
    struct place *p = *state;
    const char *args[LIMIT_ARGS + 1] = { 0 };
    struct child_spec spec = { .label = "test", .command = "/bin/true", .args = args, .env = place_env };
    struct child *c = NULL;
    struct err e = { 0 };

    for (size_t i = 0; i < LIMIT_ARGS; i++)
        args[i] = text_of_x(p->arena, "", 100000);
    assert_int_equal(child_start(p->supervisor, &spec, &c, &e), -E2BIG);
    assert_string_equal(e.code, "ARGUMENT_TOO_LONG");
}

/* ---- output ---- */

static void both_streams_are_logged_and_the_first_is_kept(void **state)
{
    struct story s = { 0 };
    bool is_cut = true;

    story_start_script(&s, *state, "printf 'one\\ntw'; echo bad >&2; printf 'o\\nthree'",
                       (struct child_spec){ .max_stdout = 13 });
    story_wait(&s);
    assert_true(slice_eq_str(child_stdout(s.child, &is_cut), "one\ntwo\nthree"));
    assert_false(is_cut);
    assert_string_equal(story_tail(&s, CHILD_STDOUT), "one\ntwo\nthree");
    assert_string_equal(story_tail(&s, CHILD_STDERR), "bad");
    assert_true(s.n_line_calls >= 2);
    story_end(&s);
}

static void standard_output_beyond_its_maximum_is_cut_and_reported(void **state)
{
    struct story s = { 0 };
    bool is_cut = false;

    story_start_script(&s, *state, "printf 123456", (struct child_spec){ .max_stdout = 5 });
    story_wait(&s);
    assert_true(slice_eq_str(child_stdout(s.child, &is_cut), "12345"));
    assert_true(is_cut);
    story_end(&s);
}

static void count_one(void *arg)
{
    (*(int *)arg)++;
}

static void a_flood_stays_bounded_and_leaves_the_loop_free(void **state)
{
    struct place *p = *state;
    struct story s = { 0 };
    struct child_line *lines;
    bool is_cut = false;
    size_t n_lines, n_bytes = 0;
    int n_calls = 0;

    story_start_script(
        &s, p, "yes 'a line of some length that is repeated without end, to see what holds' | head -c 100000000",
        (struct child_spec){ .max_stdout = MIB(1) });
    while (!story_has_ended(&s))
        loop_call(p->loop, count_one, &n_calls);
    assert_true(n_calls > 100); /* answered between the reads */
    assert_int_equal(child_stdout(s.child, &is_cut).n, MIB(1));
    assert_true(is_cut);
    n_lines = child_log_lines(child_log_of(s.child), p->arena, 0, SIZE_MAX, &lines);
    assert_int_equal(n_lines, LIMIT_LOG_LINES);
    for (size_t i = 0; i < n_lines; i++)
        n_bytes += strlen(lines[i].text);
    assert_true(n_bytes <= LIMIT_LOG_BYTES);
    story_end(&s);
}

int main(void)
{
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, place_set_up, place_tear_down)
    const struct CMUnitTest tests[] = {
        IN_PLACE(the_exit_code_is_told),
        IN_PLACE(the_signal_that_ended_it_is_reported),
        IN_PLACE(a_stop_asks_and_may_be_repeated),
        IN_PLACE(a_stop_that_is_ignored_ends_in_a_kill),
        IN_PLACE(one_that_is_halted_hears_the_stop),
        IN_PLACE(it_begins_with_the_usual_limit_of_open_files),
        IN_PLACE(past_its_time_it_is_ended),
        IN_PLACE(the_exit_is_reported_after_the_group_has_ended),
        IN_PLACE(one_who_left_the_group_and_holds_the_pipe_delays_nothing),
        IN_PLACE(only_the_three_streams_are_open_in_it),
        IN_PLACE(the_service_keeps_no_descriptor_of_one_that_ended),
        IN_PLACE(a_start_that_lacks_descriptors_fails_whole),
        IN_PLACE(one_that_never_began_leaves_no_descriptor),
        IN_PLACE(a_service_without_a_standard_input_starts_children_as_well),
        IN_PLACE(its_environment_is_what_was_given_and_the_mark),
        IN_PLACE(it_leads_a_session_in_its_folder_and_leaves_no_cores),
        IN_PLACE(no_signal_is_blocked_or_ignored_in_it),
        IN_PLACE(what_cannot_be_started_says_why),
        IN_PLACE(an_argument_may_be_as_long_as_the_kernel_allows),
        IN_PLACE(a_command_may_have_256_arguments),
        IN_PLACE(together_they_may_not_pass_what_the_kernel_takes),
        IN_PLACE(both_streams_are_logged_and_the_first_is_kept),
        IN_PLACE(standard_output_beyond_its_maximum_is_cut_and_reported),
        IN_PLACE(a_flood_stays_bounded_and_leaves_the_loop_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
