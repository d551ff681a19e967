/* Starts a child. The caller's worker checks the command and prepares the sandbox, the loop thread creates the process,
 * and the worker waits until the program runs or the sandbox reports why it does not. */
#include "os/child_private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/child_image.h"
#include "os/program.h"
#include "os/sandbox_private.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_DEADLINE_MS = 60000, START_WORDS = 400 };

/* ---- the command ---- */

struct start_job {
    struct supervisor *supervisor;
    const struct child_spec *spec;
    struct spawn_plan plan;  /* the program */
    struct spawn_plan outer; /* what is spawned: the program itself, hearth-child, or bubblewrap around hearth-child */
    struct sandbox_view view;
    int passed[CHILD_FDS_END]; /* owned */
    struct spawned spawned;
    struct child_enclosure enclosure;
    struct child *child; /* the result, a reference */
    struct err *e;
    int r;
};

static size_t start_count(const char *const *strings)
{
    size_t n = 0;

    while (strings && strings[n])
        n++;
    return n;
}

static int start_check_args(const struct child_spec *spec, struct err *e)
{
    size_t n = start_count(spec->args);

    if (n > LIMIT_ARGS)
        return err_set(e, -E2BIG, "TOO_MANY_ARGUMENTS", "A command may have at most %d arguments; this one has %zu.",
                       LIMIT_ARGS, n);
    for (size_t i = 0; i < n; i++)
        if (strlen(spec->args[i]) > LIMIT_ARG_BYTES)
            return err_set(e, -E2BIG, "ARGUMENT_TOO_LONG", "Argument %zu of the command must be at most %d bytes.",
                           i + 1, LIMIT_ARG_BYTES);
    return 0;
}

static int start_check_env(const struct child_spec *spec, struct err *e)
{
    for (size_t i = 0; i < start_count(spec->env); i++)
        if (strlen(spec->env[i]) > LIMIT_ARG_BYTES)
            return err_set(e, -E2BIG, "ARGUMENT_TOO_LONG",
                           "The environment variable %.*s with its value must be at most %d bytes.",
                           (int)MIN(strcspn(spec->env[i], "="), (size_t)80), spec->env[i], LIMIT_ARG_BYTES);
    return 0;
}

static int start_check_dir(const char *working_dir, struct err *e)
{
    struct stat st;

    if (working_dir && (stat(working_dir, &st) < 0 || !S_ISDIR(st.st_mode)))
        return err_set(e, -ENOTDIR, "BAD_WORKING_DIR", "The working folder %.300s does not exist or is not a folder.",
                       working_dir);
    return 0;
}

static const char *start_search_path(const struct child_spec *spec)
{
    const char *found = NULL;

    for (size_t i = 0; i < start_count(spec->env); i++)
        if (strncmp(spec->env[i], "PATH=", 5) == 0)
            found = spec->env[i] + 5;
    return found;
}

static char **start_argv(struct arena *a, const struct child_spec *spec)
{
    size_t n = start_count(spec->args);
    char **argv = arena_array(a, n + 2, sizeof(*argv));

    argv[0] = arena_strdup(a, spec->command);
    for (size_t i = 0; i < n; i++)
        argv[i + 1] = arena_strdup(a, spec->args[i]);
    return argv;
}

/* The caller's environment plus the mark by which a later service finds the processes that this one left. */
static char **start_envp(struct arena *a, const char *const *env, const char *mark)
{
    size_t n = start_count(env), n_name = strcspn(mark, "=") + 1, n_kept = 1;
    char **envp = arena_array(a, n + 2, sizeof(*envp));

    envp[0] = arena_strdup(a, mark);
    for (size_t i = 0; i < n; i++)
        if (strncmp(env[i], mark, n_name) != 0)
            envp[n_kept++] = arena_strdup(a, env[i]);
    return envp;
}

static int start_prepare(struct start_job *job, struct arena *a)
{
    const struct child_spec *spec = job->spec;
    char *path = NULL;
    int r = start_check_args(spec, job->e);

    if (r == 0)
        r = start_check_env(spec, job->e);
    if (r == 0)
        r = start_check_dir(spec->working_dir, job->e);
    if (r == 0)
        r = program_find(a, spec->command, spec->working_dir, start_search_path(spec), &path, job->e);
    if (r < 0)
        return r;
    job->plan = (struct spawn_plan){ path, start_argv(a, spec), start_envp(a, spec->env, job->supervisor->mark),
                                     spec->working_dir, NULL };
    return 0;
}

/* ---- the sandbox ---- */

static int start_add_plan(const struct start_job *job, struct buf *out, struct err *e)
{
    const bool is_jailed = job->view.profile != SANDBOX_NONE;
    const struct sock_filter *filter = NULL;
    size_t n_filter = 0;
    int r = is_jailed ? sandbox_filter(&filter, &n_filter, e) : 0;
    const struct child_plan plan = {
        .n_filter = (uint32_t)n_filter,
        .n_args = (uint32_t)start_count((const char *const *)job->plan.argv),
        .n_env = (uint32_t)start_count((const char *const *)job->plan.envp),
        .n_rules = (uint32_t)job->view.n_rules,
        .max_tasks = is_jailed ? LIMIT_CHILD_TASKS : 0,
        .max_file_bytes = !is_jailed                  ? 0
                          : job->spec->max_file_bytes ? job->spec->max_file_bytes
                                                      : LIMIT_CHILD_FILE_BYTES,
        .landlock_abi = (uint32_t)job->view.landlock_abi,
        .port = job->supervisor->box->port,
        .is_jailed = is_jailed,
        .is_first_process = job->view.level == SANDBOX_LEVEL_NAMESPACES,
        .has_own_network =
            job->view.has_own_network && job->view.level == SANDBOX_LEVEL_NAMESPACES && !job->spec->is_cut_off,
        .has_file_rules = job->view.level == SANDBOX_LEVEL_LANDLOCK,
        .is_offline = job->view.has_own_network && job->view.level == SANDBOX_LEVEL_LANDLOCK,
    };

    buf_add(out, &plan, sizeof(plan));
    if (n_filter > 0)
        buf_add(out, filter, n_filter * sizeof(*filter));
    return r;
}

static void start_add_strings(struct buf *out, const char *const *strings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_add(out, strings[i], strlen(strings[i]) + 1);
}

/* Makes a file in memory that the child can read. */
static int start_share(struct slice bytes, int *ret, struct err *e)
{
    int fd = memfd_create("hearth-plan", MFD_CLOEXEC), r = fd < 0 ? -errno : 0;

    while (r == 0 && bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);

        if (n < 0 && errno != EINTR)
            r = -errno;
        n = MAX(n, (ssize_t)0);
        bytes = (struct slice){ bytes.p + n, bytes.n - (size_t)n };
    }
    if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
        r = -errno;
    if (r == 0)
        r = spawn_keep_above(&fd);
    *ret = fd;
    return r < 0 ? err_errno(e, -r, "The plan of a child cannot be kept in memory") : 0;
}

static int start_share_plan(struct start_job *job, struct err *e)
{
    const char *places[] = { job->plan.path, job->view.working_dir, job->view.home };
    struct buf out;
    int r;

    buf_init(&out, MIB(64));
    r = start_add_plan(job, &out, e);
    start_add_strings(&out, places, ARRAY_SIZE(places));
    start_add_strings(&out, (const char *const *)job->plan.argv, start_count((const char *const *)job->plan.argv));
    start_add_strings(&out, (const char *const *)job->plan.envp, start_count((const char *const *)job->plan.envp));
    start_add_strings(&out, job->view.rules, job->view.n_rules);
    if (r == 0)
        r = buf_check(&out, e);
    if (r == 0)
        r = start_share(buf_slice(&out), &job->passed[CHILD_PLAN_FD], e);
    buf_clear(&out);
    return r;
}

static int start_share_control(struct start_job *job, struct err *e)
{
    const int on = 1;
    int ends[2], image = -1, r = child_image_fd(&image, e);

    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(e, errno, "A child cannot be connected with");
    job->enclosure.control_fd = ends[0];
    job->passed[CHILD_CONTROL_FD] = ends[1];
    job->passed[CHILD_IMAGE_FD] = fcntl(image, F_DUPFD_CLOEXEC, CHILD_FDS_END);
    r = spawn_keep_above(&job->passed[CHILD_CONTROL_FD]);
    if (r < 0 || job->passed[CHILD_IMAGE_FD] < 0 || setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
        return err_errno(e, r < 0 ? -r : errno, "A child cannot be connected with");
    return 0;
}

/* Only the program gets the variables of the definition; bubblewrap and hearth-child, which run outside the sandbox,
 * get none of them (LD_PRELOAD). */
static int start_enclose(struct start_job *job, struct arena *a, struct err *e)
{
    static const char *const with_bwrap[] = { "bwrap", "--args", "5", "--", "/proc/self/fd/6", NULL },
                             *const alone[] = { "hearth-child", NULL };
    char **envp = arena_array(a, 2, sizeof(*envp));
    struct sandbox_view *view = &job->view;
    int r = sandbox_view_make(job->supervisor->box, &(struct sandbox_subject){ job->spec, job->plan.path }, a, view, e);

    if (r < 0)
        return r;
    job->enclosure.is_jailed = view->profile != SANDBOX_NONE;
    job->plan.envp = start_envp(a, view->env, job->supervisor->mark);
    envp[0] = job->supervisor->mark;
    job->outer =
        (struct spawn_plan){ "/proc/self/fd/6", (char *const *)alone, envp, job->spec->working_dir, job->passed };
    if (view->bwrap_path)
        job->outer = (struct spawn_plan){ view->bwrap_path, (char *const *)with_bwrap, envp, "/", job->passed };
    r = start_share_control(job, e);
    if (r == 0)
        r = start_share_plan(job, e);
    if (r == 0 && view->bwrap_path)
        r = start_share(view->bwrap_args, &job->passed[CHILD_VIEW_FD], e);
    return r;
}

/* ---- waiting until the program runs; on the caller's worker ---- */

static void start_take_rights(struct start_job *job, const struct cmsghdr *head)
{
    size_t n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    struct child_enclosure *enclosure = &job->enclosure;

    for (size_t i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(head) + i * sizeof(fd), sizeof(fd));
        if (enclosure->n_sockets < ARRAY_SIZE(enclosure->sockets))
            enclosure->sockets[enclosure->n_sockets++] = fd;
        else
            close(fd);
    }
}

static void start_take_control(struct start_job *job, struct msghdr *message, const struct child_note *note)
{
    struct ucred sender;

    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
            start_take_rights(job, head);
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_CREDENTIALS || note->kind != CHILD_NOTE_PROCESS)
            continue;
        memcpy(&sender, CMSG_DATA(head), sizeof(sender)); /* the kernel translates the pid into this namespace */
        job->enclosure.program = sender.pid;
    }
}

/* 0: the sender closed its end, or a packet is incomplete. */
static int start_receive(struct start_job *job, struct child_note *ret)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(8 * sizeof(int))];
    } control = { 0 };
    struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)
    };
    ssize_t n = recvmsg(job->enclosure.control_fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    if (n != (ssize_t)sizeof(*ret))
        return 0;
    start_take_control(job, &message, ret);
    return 1;
}

/* Reports the message that bubblewrap wrote when it failed. */
static int start_failed_outside(struct start_job *job)
{
    char words[START_WORDS + 1] = "";
    ssize_t n = read(job->spawned.stderr_fd, words, START_WORDS);

    words[MAX(n, (ssize_t)0)] = '\0';
    words[strcspn(words, "\n")] = '\0';
    return err_set(job->e, -EIO, "SANDBOX_FAILED", "The sandbox of `%.200s` could not be made: %.300s", job->plan.path,
                   *words ? words : "it ended without a word");
}

static int start_await(struct start_job *job)
{
    const int64_t until_ms = clock_mono_ms() + START_DEADLINE_MS;
    struct pollfd fds[] = { { .fd = job->enclosure.control_fd, .events = POLLIN },
                            { .fd = job->spawned.pidfd, .events = POLLIN } };
    struct child_note note;

    for (;;) {
        int64_t left_ms = until_ms - clock_mono_ms();

        if (left_ms <= 0 || poll(fds, 2, (int)left_ms) == 0)
            return err_set(job->e, -ETIMEDOUT, "SANDBOX_FAILED", "The sandbox of `%.200s` was not ready within %d s.",
                           job->plan.path, START_DEADLINE_MS / 1000);
        while (start_receive(job, &note))
            if (note.kind == CHILD_NOTE_RUNNING)
                return 0;
            else if (note.kind == CHILD_NOTE_FAILED)
                return spawn_explain(&job->plan, (enum child_step)note.value, note.error, job->e);
        if (fds[1].revents)
            return start_failed_outside(job);
    }
}

/* Undoes a start that failed before it became a child. */
static void start_undo(struct start_job *job)
{
    kill(-job->spawned.pid, SIGKILL); /* not reaped yet, so the pid has not been reused */
    waitpid(job->spawned.pid, NULL, 0);
    close(job->spawned.pidfd);
    close(job->spawned.stdout_fd);
    close(job->spawned.stderr_fd);
    if (job->spawned.stdin_fd >= 0)
        close(job->spawned.stdin_fd);
}

/* ---- on the loop thread ---- */

static int start_admit(struct supervisor *s, struct err *e)
{
    if (s->is_closing)
        return err_set(e, -EPIPE, "SHUTTING_DOWN", "The service is ending and starts no more programs.");
    if (supervisor_n_children(s) >= LIMIT_CHILDREN)
        return err_set(e, -EAGAIN, "TOO_MANY_CHILDREN",
                       "At most %d programs run at a time; try again when one has ended.", LIMIT_CHILDREN);
    return 0;
}

static void start_check_admission(void *arg)
{
    struct start_job *job = arg;

    job->r = start_admit(job->supervisor, job->e);
}

static void start_adopt(void *arg)
{
    struct start_job *job = arg;
    struct supervisor *s = job->supervisor;

    job->child = child_new(s, job->spec, &job->spawned, &job->enclosure);
    if (!job->child) {
        job->r = err_errno(job->e, ENOMEM, "The program `%.300s` could not be watched", job->plan.path);
        return;
    }
    child_log_note(job->child->log, "started %s as process %d", job->plan.path, (int)job->child->pid);
    log_debug("child", NULL, "%s started as pid %d", LOG_Q(job->spec->label), (int)job->child->pid);
    supervisor_add(s, child_ref(job->child));
    if (s->is_closing) { /* the start began before the close */
        job->child->how.was_stopped = true;
        child_end_softly(job->child, job->child->spec.stop_grace_ms);
    }
}

static void start_close(struct start_job *job)
{
    for (size_t i = 0; i < ARRAY_SIZE(job->passed); i++)
        if (job->passed[i] >= 0)
            close(job->passed[i]);
    for (size_t i = 0; i < job->enclosure.n_sockets; i++)
        close(job->enclosure.sockets[i]);
    if (job->enclosure.control_fd >= 0)
        close(job->enclosure.control_fd);
}

static int start_run(struct start_job *job, struct arena *a)
{
    const bool is_enclosed = job->supervisor->box && job->spec->sandbox;
    int r = start_prepare(job, a);

    job->outer = job->plan;
    if (r == 0 && job->spec->is_cut_off && !is_enclosed)
        r = err_set(job->e, -ENOTSUP, "SANDBOX_UNAVAILABLE", "There is no sandbox for this program.");
    if (r == 0 && is_enclosed)
        r = start_enclose(job, a, job->e);
    if (r < 0)
        return r;
    job->outer.has_stdin = job->spec->ends != NULL;
    loop_call(job->supervisor->loop, start_check_admission, job);
    if (job->r == 0)
        job->r = spawner_run(job->supervisor->spawner, &job->outer, &job->spawned, job->e);
    if (job->r < 0)
        return job->r;
    job->r = is_enclosed ? start_await(job) : 0;
    if (job->r == 0)
        loop_call(job->supervisor->loop, start_adopt, job);
    if (job->r < 0)
        start_undo(job);
    return job->r;
}

int child_start(struct supervisor *s, const struct child_spec *spec, struct child **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct start_job job = { .supervisor = s, .spec = spec, .enclosure.control_fd = -1, .e = e };
    int r;

    memset(job.passed, -1, sizeof(job.passed));
    supervisor_note_starting(s, 1);
    r = start_run(&job, a);
    supervisor_note_starting(s, -1);
    start_close(&job);
    if (r == 0)
        *ret = job.child;
    return r;
}
