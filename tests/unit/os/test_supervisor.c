#include "place.h"

#include "base/limits.h"
#include "../metric.h"
#include "os/proc.h"

#include <signal.h>
#include <sys/wait.h>

static void it_counts_what_runs_and_the_metric_knows_the_kind(void **state)
{
    struct place *p = *state;
    static const char apps[] = "hearth_children{kind=\"app\"}";
    struct story s = { 0 };

    story_start_script(&s, p, "echo ready; exec sleep 1000", (struct child_spec){ .label = "app triage" });
    assert_int_equal(supervisor_n_children(p->supervisor), 1);
    assert_true(metric_of(apps) == 1);
    child_stop(s.child);
    story_wait(&s);
    assert_int_equal(supervisor_n_children(p->supervisor), 0);
    assert_true(metric_of(apps) == 0);
    story_end(&s);
}

static void at_most_256_run_at_a_time_and_the_close_ends_them_all(void **state)
{
    static struct story stories[LIMIT_CHILDREN];
    struct place *p = *state;
    const char *const args[] = { "1000", NULL };
    struct child_spec spec = { .label = "test", .command = "sleep", .args = args, .env = place_env };
    struct child *c = NULL;
    struct err e = { 0 };

    for (size_t i = 0; i < LIMIT_CHILDREN; i++)
        story_start(&stories[i], p, spec);
    assert_int_equal(child_start(p->supervisor, &spec, &c, &e), -EAGAIN);
    assert_string_equal(e.code, "TOO_MANY_CHILDREN");
    place_close_supervisor(p);
    for (size_t i = 0; i < LIMIT_CHILDREN; i++) {
        assert_int_equal(stories[i].n_exits, 1);
        assert_true(stories[i].how.was_stopped);
        story_end(&stories[i]);
    }
}

static void start_again(struct child *c, const struct child_exit *how, void *arg)
{
    struct story *s = arg;
    struct child_spec spec = {
        .label = "test", .command = "true", .env = place_env, .on_exit = story_note_exit, .arg = s
    };
    struct child *second = NULL;

    s->start_result = child_start(s->place->supervisor, &spec, &second, &s->start_error);
    child_unref(second);
    if (s->start_result < 0)
        story_note_exit(c, how, s);
}

static void the_next_can_be_started_where_an_exit_is_reported(void **state)
{
    struct story s = { 0 };

    story_start_script(&s, *state, "exit 9", (struct child_spec){ .on_exit = start_again });
    story_wait(&s);
    assert_int_equal(s.start_result, 0);
    assert_int_equal(s.how.code, 0);
    story_end(&s);
}

static void nothing_starts_while_it_closes(void **state)
{
    struct place *p = *state;
    struct story s = { 0 };

    story_start_script(&s, p, "exec sleep 1000", (struct child_spec){ .on_exit = start_again });
    place_close_supervisor(p);
    assert_int_equal(s.start_result, -EPIPE);
    assert_string_equal(s.start_error.code, "SHUTTING_DOWN");
    assert_int_equal(s.n_exits, 1);
    story_end(&s);
}

enum { N_STARTERS = 4, N_STARTS = 15, N_FORKERS = 40 };

static void *start_and_stop_many(void *arg)
{
    struct place *p = arg;
    static const char *const scripts[] = { "exit 1", "exec sleep 1000", "sleep 1000 & exit 1" };

    for (size_t i = 0; i < N_STARTS; i++) {
        struct story s = { 0 };

        story_start_script(&s, p, scripts[i % ARRAY_SIZE(scripts)], (struct child_spec){ .max_stdout = 10 });
        child_stop(s.child);
        story_wait(&s);
        story_end(&s);
        if (s.n_exits != 1)
            return p;
    }
    return NULL;
}

static void many_threads_may_start_and_stop(void **state)
{
    struct place *p = *state;
    pthread_t threads[N_STARTERS];
    void *failed;

    for (size_t i = 0; i < N_STARTERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_and_stop_many, p), 0);
    for (size_t i = 0; i < N_STARTERS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(supervisor_n_children(p->supervisor), 0);
}

static void a_close_without_patience_kills(void **state)
{
    struct place *p = *state;
    struct story s = { 0 };

    story_start_script(&s, p, "trap '' TERM; echo ready; while :; do sleep 0.01; done",
                       (struct child_spec){ .stop_grace_ms = 60000 });
    story_wait_for_output(&s);
    p->supervisor = supervisor_close(p->supervisor, 0);
    assert_int_equal(s.how.signal, SIGKILL);
    story_end(&s);
}

/* ---- after kill -9 of a service ---- */

/* A service in its own process, with one child that ignores SIGHUP and has a grandchild; killed by the test. */
static void service_start(void *arg)
{
    struct place *p = arg;
    struct child_spec spec = {
        .label = "app",
        .command = "/bin/sh",
        .env = place_env,
        .working_dir = p->dir,
        .args =
            (const char *const[]){
                "-c", "trap '' HUP; sh -c 'echo $$ >grandchild; exec sleep 1000' & echo $$ >child; wait", NULL },
    };
    struct child *c;

    if (child_start(p->supervisor, &spec, &c, NULL) < 0)
        _exit(1);
}

static _Noreturn void service_run(struct place *p)
{
    if (loop_new(&p->loop, NULL) < 0 || supervisor_open(p->loop, p->instance, &p->supervisor, NULL, NULL) < 0)
        _exit(2);
    loop_post(p->loop, service_start, p);
    _exit(loop_run(p->loop, NULL) < 0 ? 3 : 0);
}

static pid_t bystander_start(const char *mark, const char *script)
{
    pid_t pid = fork();

    if (pid == 0) {
        execle("/bin/sh", "sh", "-c", script, NULL, (char *[]){ (char *)(uintptr_t)mark, NULL });
        _exit(1);
    }
    assert_true(pid > 0);
    return pid;
}

static void bystander_end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void the_orphans_of_a_killed_service_are_found_and_ended(void **state)
{
    struct place *p = *state;
    pid_t service = fork(), bystander;
    int child, grandchild;

    if (service == 0)
        service_run(p);
    child = process_hold(place_read_pid(p, "child"));
    grandchild = process_hold(place_read_pid(p, "grandchild"));
    bystander = bystander_start(arena_printf(p->arena, "HEARTH_INSTANCE=%s2", p->instance), "exec sleep 1000");
    bystander_end(service);
    assert_true(wait_until(process_has_ended, &child)); /* PR_SET_PDEATHSIG */
    assert_true(process_lives(grandchild));

    assert_int_equal(place_open(p), 1);
    assert_false(process_lives(grandchild));
    assert_int_equal(waitpid(bystander, NULL, WNOHANG), 0); /* another service's process is untouched */
    bystander_end(bystander);
    close(child);
    close(grandchild);
}

static void exit_codes_are_reported_even_when_SIGCHLD_came_ignored(void **state)
{
    struct story s = { 0 };

    signal(SIGCHLD, SIG_IGN);
    place_open(*state);
    story_start_script(&s, *state, "exit 7", (struct child_spec){ 0 });
    story_wait(&s);
    assert_int_equal(s.how.code, 7);
    story_end(&s);
}

static void a_marked_process_that_does_not_listen_is_killed(void **state)
{
    struct place *p = *state;
    const char *mark = arena_printf(p->arena, "HEARTH_INSTANCE=%s", p->instance);
    pid_t pid = bystander_start(
        mark, arena_printf(p->arena, "trap '' TERM; echo $$ >%s/deaf; while :; do sleep 0.01; done", p->dir));
    int status = 0;

    place_read_pid(p, "deaf");
    assert_true(proc_end_marked(mark, 50) >= 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(proc_end_marked(mark, 50), 0);
}

/* Each round leaves the shell's newest child, which may be about to begin its program. */
static void a_process_that_begins_a_program_is_found(void **state)
{
    struct place *p = *state;
    const char *mark = arena_printf(p->arena, "HEARTH_INSTANCE=%s", p->instance);

    for (int i = 0; i < N_FORKERS; i++) {
        const char *name = arena_printf(p->arena, "forker%d", i);
        pid_t pid = bystander_start(
            mark, arena_printf(p->arena, "trap '' TERM; echo $$ >%s/%s; while :; do /bin/true; done", p->dir, name));

        place_read_pid(p, name);
        assert_true(proc_end_marked(mark, 0) >= 1);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(proc_end_marked(mark, 0), 0);
    }
}

static void a_group_of_zombies_does_not_live(void **state)
{
    pid_t pid = fork();
    siginfo_t info;

    if (pid == 0)
        _exit(setpgid(0, 0));
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(kill(-pid, 0), 0); /* the kernel still counts it */
    assert_false(proc_group_lives(pid));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(proc_group_lives(getpgrp()));
}

int main(void)
{
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, place_set_up, place_tear_down)
#define ALONE(test) cmocka_unit_test_setup_teardown(test, place_set_up_quiet, place_tear_down)
    const struct CMUnitTest tests[] = {
        ALONE(the_orphans_of_a_killed_service_are_found_and_ended),
        ALONE(exit_codes_are_reported_even_when_SIGCHLD_came_ignored),
        ALONE(a_marked_process_that_does_not_listen_is_killed),
        ALONE(a_process_that_begins_a_program_is_found),
        ALONE(a_group_of_zombies_does_not_live),
        IN_PLACE(it_counts_what_runs_and_the_metric_knows_the_kind),
        IN_PLACE(at_most_256_run_at_a_time_and_the_close_ends_them_all),
        IN_PLACE(the_next_can_be_started_where_an_exit_is_reported),
        IN_PLACE(nothing_starts_while_it_closes),
        IN_PLACE(many_threads_may_start_and_stop),
        IN_PLACE(a_close_without_patience_kills),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
