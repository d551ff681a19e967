/* The environment of the tests of children: a running loop, a supervisor, a private folder, scripts for /bin/sh. */
#pragma once

#include "base/uuid.h"
#include "os/child.h"
#include "os/files.h"
#include "../wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/pidfd.h>
#include <unistd.h>

struct place {
    struct arena *arena;
    struct loop *loop;
    pthread_t thread;
    struct supervisor *supervisor;
    struct sandbox *box; /* NULL: children run without a sandbox */
    struct sandbox_definition definition;
    const char *writable;
    char instance[UUID_SIZE];
    char dir[64];
    atomic_bool is_running;
};

/* The reports of one child. */
struct story {
    struct child *child;
    struct place *place;
    struct child_exit how;
    atomic_int n_exits, n_line_calls;
    int start_result; /* result of starting a child in on_exit */
    struct err start_error;
};

static inline void *place_run(void *arg)
{
    struct place *p = arg;

    if (loop_run(p->loop, NULL) < 0)
        fail_msg("the loop failed");
    return NULL;
}

static inline void place_note_running(void *arg)
{
    struct place *p = arg;

    atomic_store(&p->is_running, true);
}

static inline bool place_is_running(void *arg)
{
    struct place *p = arg;

    return atomic_load(&p->is_running);
}

/* Only the folder: for tests that fork, because a process with several threads should not fork. */
static inline int place_set_up_quiet(void **state)
{
    struct place *p = xcalloc(1, sizeof(*p));

    snprintf(p->dir, sizeof(p->dir), "/tmp/hearth-os-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    uuid_v4(p->instance);
    p->arena = arena_new();
    *state = p;
    return 0;
}

/* Children of this place run in that profile and may write into its folder; NULL: no sandbox. */
static inline void place_enclose(struct place *p, const char *profile)
{
    if (!profile)
        return;
    p->box = sandbox_new(&(struct sandbox_config){ .bwrap = "bwrap", .data_dir = "/nowhere", .profile = profile });
    p->writable = p->dir;
    if (strcmp(profile, "none") != 0)
        p->definition.write = (struct field_strings){ &p->writable, 1 };
    supervisor_set_sandbox(p->supervisor, p->box);
}

/* Returns the number of orphans the supervisor found. */
static inline size_t place_open(struct place *p)
{
    size_t n_orphans = 0;

    assert_int_equal(loop_new(&p->loop, NULL), 0);
    assert_int_equal(supervisor_open(p->loop, p->instance, &p->supervisor, &n_orphans, NULL), 0);
    place_enclose(p, getenv("HEARTH_TEST_PROFILE"));
    assert_int_equal(pthread_create(&p->thread, NULL, place_run, p), 0);
    loop_post(p->loop, place_note_running, p);
    assert_true(wait_until(place_is_running, p)); /* until then this thread counts as the loop thread */
    return n_orphans;
}

static inline int place_set_up(void **state)
{
    place_set_up_quiet(state);
    assert_int_equal(place_open(*state), 0);
    return 0;
}

static inline void place_close_supervisor(struct place *p)
{
    p->supervisor = supervisor_close(p->supervisor, 1000);
}

static inline int place_tear_down(void **state)
{
    struct place *p = *state;

    if (p->loop) {
        place_close_supervisor(p);
        loop_stop(p->loop);
        assert_int_equal(pthread_join(p->thread, NULL), 0);
        loop_free(p->loop);
    }
    sandbox_free(p->box);
    assert_int_equal(dir_remove(p->dir, NULL), 0);
    arena_free(p->arena);
    freep(&p);
    return 0;
}

static inline void story_note_exit(struct child *c, const struct child_exit *how, void *arg)
{
    struct story *s = arg;

    s->how = *how;
    atomic_fetch_add(&s->n_exits, 1);
}

static inline void story_note_lines(struct child *c, void *arg)
{
    struct story *s = arg;

    atomic_fetch_add(&s->n_line_calls, 1);
}

static const char *const place_env[] = { "PATH=/usr/bin:/bin", NULL };

/* Starts spec with missing members filled in. */
static inline void story_start(struct story *s, struct place *p, struct child_spec spec)
{
    struct err e = { 0 };

    s->place = p;
    spec.label = spec.label ? spec.label : "test";
    spec.env = spec.env ? spec.env : place_env;
    spec.working_dir = p->dir;
    spec.sandbox = p->box ? &p->definition : NULL;
    spec.on_exit = spec.on_exit ? spec.on_exit : story_note_exit;
    spec.on_line = story_note_lines;
    spec.arg = s;
    if (child_start(p->supervisor, &spec, &s->child, &e) < 0)
        fail_msg("%s", e.text);
}

static inline void story_start_script(struct story *s, struct place *p, const char *script, struct child_spec spec)
{
    spec.command = "/bin/sh";
    spec.args = (const char *const[]){ "-c", script, "sh", NULL };
    story_start(s, p, spec);
}

static inline bool story_has_ended(void *arg)
{
    struct story *s = arg;

    return atomic_load(&s->n_exits) > 0;
}

static inline void story_wait(struct story *s)
{
    assert_true(wait_until(story_has_ended, s));
}

static inline void story_end(struct story *s)
{
    s->child = child_unref(s->child);
}

static inline const char *story_tail(struct story *s, enum child_stream stream)
{
    return child_log_tail(child_log_of(s->child), s->place->arena, stream, 100);
}

/* Polled with a fresh arena each time, to keep the test's arena small. */
static inline bool story_has_printed(void *arg)
{
    struct story *s = arg;
    struct arena *a = arena_new();
    bool has = *child_log_tail(child_log_of(s->child), a, CHILD_STDOUT, 1) != '\0';

    arena_free(a);
    return has;
}

static inline void story_wait_for_output(struct story *s)
{
    assert_true(wait_until(story_has_printed, s));
}

/* The number that a script wrote into a file of the place, once the file is complete. */
struct place_file {
    struct place *place;
    const char *name;
    pid_t pid;
};

static inline bool place_file_is_whole(void *arg)
{
    struct place_file *f = arg;
    struct arena *a = arena_new();
    struct slice text = { 0 };
    int r = file_read(a, arena_printf(a, "%s/%s", f->place->dir, f->name), 100, &text, NULL);
    bool is_whole = r == 0 && text.n > 0 && text.p[text.n - 1] == '\n';

    f->pid = is_whole ? (pid_t)strtol(text.p, NULL, 10) : 0;
    arena_free(a);
    return is_whole;
}

static inline pid_t place_read_pid(struct place *p, const char *name)
{
    struct place_file f = { p, name, 0 };

    assert_true(wait_until(place_file_is_whole, &f));
    assert_true(f.pid > 1);
    return f.pid;
}

/* A handle of a process that stays valid when the process's number is reused. */
static inline int process_hold(pid_t pid)
{
    int pidfd = pidfd_open(pid, 0);

    assert_true(pidfd >= 0);
    return pidfd;
}

static inline bool process_lives(int pidfd)
{
    struct pollfd fd = { .fd = pidfd, .events = POLLIN };

    return poll(&fd, 1, 0) == 0;
}

static inline bool process_has_ended(void *arg)
{
    return !process_lives(*(int *)arg);
}
