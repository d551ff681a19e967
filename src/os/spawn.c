#include "os/spawn.h"

#include "base/limits.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const spawn_steps[] = {
    [CHILD_STEP_SESSION] = "its own session cannot begin",
    [CHILD_STEP_PARENT] = "it cannot be tied to the service",
    [CHILD_STEP_STREAMS] = "its output cannot be joined",
    [CHILD_STEP_DESCRIPTORS] = "the open files cannot be kept from it",
    [CHILD_STEP_LIMITS] = "its limits cannot be set",
    [CHILD_STEP_DIR] = "its working folder cannot be entered",
    [CHILD_STEP_EXEC] = "the system refused to run it",
    [CHILD_STEP_PLAN] = "its plan cannot be read",
    [CHILD_STEP_NAMESPACE] = "its sandbox cannot be closed",
    [CHILD_STEP_PORT] = "the service's port cannot be opened in its sandbox",
    [CHILD_STEP_FORK] = "it cannot have a process",
    [CHILD_STEP_LANDLOCK] = "its files cannot be restricted (Landlock)",
    [CHILD_STEP_FILTER] = "its system calls cannot be restricted (seccomp)",
};

struct spawn_failure {
    int step, error;
};

/* Descriptors of one spawn; -1 = none. */
struct spawn_fds {
    int null_fd;
    int in[2], out[2], err[2], report[2]; /* read end, write end */
};

struct spawn_refusal {
    int error; /* of execve() */
    int r;
    const char *code, *text; /* follows the program's name */
};

static const struct spawn_refusal spawn_refusals[] = {
    { ENOENT, -ENOENT, "COMMAND_NOT_FOUND", "exists, but the interpreter its first line names does not" },
    { EACCES, -EACCES, "COMMAND_NOT_EXECUTABLE", "or the interpreter its first line names may not be run" },
    { ENOEXEC, -EACCES, "COMMAND_NOT_EXECUTABLE",
      "is neither a program of this system nor a script that begins with #!" },
    { E2BIG, -E2BIG, "ARGUMENT_TOO_LONG",
      "was given arguments and environment longer together than the system allows" },
};

static void spawn_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void spawn_fds_clear(struct spawn_fds *fds)
{
    int *all[] = { &fds->null_fd, &fds->in[0],  &fds->in[1],     &fds->out[0],   &fds->out[1],
                   &fds->err[0],  &fds->err[1], &fds->report[0], &fds->report[1] };

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        spawn_close(all[i]);
}

/* The child's dup2() to 0, 1, 2 and the passed numbers must not replace a descriptor that it still needs. */
int spawn_keep_above(int *fd)
{
    int above;

    if (*fd >= CHILD_FDS_END)
        return 0;
    above = fcntl(*fd, F_DUPFD_CLOEXEC, CHILD_FDS_END);
    if (above < 0)
        return -errno;
    close(*fd);
    *fd = above;
    return 0;
}

static int spawn_pipe(int ends[2])
{
    int r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    r = spawn_keep_above(&ends[0]);
    return r < 0 ? r : spawn_keep_above(&ends[1]);
}

static int spawn_open_stdin(struct spawn_fds *fds, bool has_stdin)
{
    int r;

    if (!has_stdin) {
        fds->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return fds->null_fd < 0 ? -errno : spawn_keep_above(&fds->null_fd);
    }
    r = spawn_pipe(fds->in);
    return r == 0 && fcntl(fds->in[1], F_SETFL, O_NONBLOCK) < 0 ? -errno : r;
}

static int spawn_fds_open(struct spawn_fds *fds, bool has_stdin)
{
    int r = spawn_open_stdin(fds, has_stdin);

    if (r == 0)
        r = spawn_pipe(fds->out);
    if (r == 0)
        r = spawn_pipe(fds->err);
    if (r == 0)
        r = spawn_pipe(fds->report);
    if (r == 0 && (fcntl(fds->out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(fds->err[0], F_SETFL, O_NONBLOCK) < 0))
        r = -errno;
    return r;
}

/* ---- between fork and exec: only what signal-safety(7) allows ---- */

static _Noreturn void spawn_give_up(const struct spawn_fds *fds, enum child_step step)
{
    struct spawn_failure failure = { step, errno };

    if (write(fds->report[1], &failure, sizeof(failure)) < 0)
        _exit(126);
    _exit(127);
}

static void spawn_reset_signals(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;

    for (int signum = 1; signum < NSIG; signum++)
        sigaction(signum, &action, NULL); /* fails for signals whose action cannot be changed */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The service raises its own soft limit; programs that use select(2) need the usual limit. Other programs may raise it
 * again.
 */
static int spawn_usual_open_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return -1;
    files.rlim_cur = MIN(files.rlim_max, (rlim_t)LIMIT_CHILD_OPEN_FILES);
    return setrlimit(RLIMIT_NOFILE, &files);
}

static _Noreturn void spawn_child(const struct spawn_plan *plan, const struct spawn_fds *fds, pid_t parent)
{
    const struct rlimit no_core = { 0, 0 };
    const int stdin_fd = plan->has_stdin ? fds->in[0] : fds->null_fd;

    if (setsid() < 0)
        spawn_give_up(fds, CHILD_STEP_SESSION);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        spawn_give_up(fds, CHILD_STEP_PARENT);
    if (getppid() != parent) /* the parent died before the line above */
        _exit(127);
    if (dup2(stdin_fd, STDIN_FILENO) < 0 || dup2(fds->out[1], STDOUT_FILENO) < 0 ||
        dup2(fds->err[1], STDERR_FILENO) < 0)
        spawn_give_up(fds, CHILD_STEP_STREAMS);
    if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) <
        0) /* closed at exec: the report pipe is still needed until then */
        spawn_give_up(fds, CHILD_STEP_DESCRIPTORS);
    for (int fd = STDERR_FILENO + 1; plan->passed && fd < CHILD_FDS_END; fd++)
        if (plan->passed[fd] >= 0 && dup2(plan->passed[fd], fd) < 0)
            spawn_give_up(fds, CHILD_STEP_DESCRIPTORS);
    if (setrlimit(RLIMIT_CORE, &no_core) < 0 || spawn_usual_open_files() < 0)
        spawn_give_up(fds, CHILD_STEP_LIMITS);
    if (plan->working_dir && chdir(plan->working_dir) < 0)
        spawn_give_up(fds, CHILD_STEP_DIR);
    spawn_reset_signals();
    execve(plan->path, plan->argv, plan->envp);
    spawn_give_up(fds, CHILD_STEP_EXEC);
}

/* ---- in the parent ---- */

/* vfork() shares the memory until exec, so the cost of a start does not grow with the service (fork() stops the loop
 * for 17 us per resident megabyte). Hence spawn_child() writes only its own variables. All signals are blocked
 * meanwhile: a handler of the service must not run in the child. */
static pid_t spawn_fork(const struct spawn_plan *plan, const struct spawn_fds *fds)
{
    const pid_t parent = getpid();
    sigset_t all, before;
    pid_t pid;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    /* posix_spawn() cannot set PDEATHSIG nor report which step failed; spawn_child() only makes system calls. */
    pid = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    if (pid == 0)
        spawn_child(plan, fds, parent); // NOLINT(clang-analyzer-unix.Vfork)
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}

int spawn_explain(const struct spawn_plan *plan, enum child_step step, int error, struct err *e)
{
    if (step == CHILD_STEP_DIR)
        return err_set(e, -ENOTDIR, "BAD_WORKING_DIR", "The working folder %.300s cannot be entered: %s.",
                       plan->working_dir, strerrordesc_np(error));
    for (size_t i = 0; step == CHILD_STEP_EXEC && i < ARRAY_SIZE(spawn_refusals); i++) {
        const struct spawn_refusal *refusal = &spawn_refusals[i];

        if (refusal->error == error)
            return err_set(e, refusal->r, refusal->code, "The program `%.300s` %s.", plan->path, refusal->text);
    }
    if (step >= CHILD_STEP_PLAN)
        return err_set(e, -EIO, "SANDBOX_FAILED", "The program `%.300s` could not be started, %s: %s.", plan->path,
                       (size_t)step < ARRAY_SIZE(spawn_steps) ? spawn_steps[step] : "hearth-child failed",
                       strerrordesc_np(error));
    return err_errno(e, error, "The program `%.300s` could not be started, %s", plan->path, spawn_steps[step]);
}

/* End of file on the report pipe: the new program runs. Otherwise it holds the failed step. */
static int spawn_await_exec(const struct spawn_plan *plan, int report_fd, struct err *e)
{
    struct spawn_failure failure;
    ssize_t n;

    do
        n = read(report_fd, &failure, sizeof(failure));
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(failure) ? spawn_explain(plan, (enum child_step)failure.step, failure.error, e) : 0;
}

static int spawn_watch(const struct spawn_plan *plan, struct spawn_fds *fds, pid_t pid, int *ret_pidfd, struct err *e)
{
    int pidfd = pidfd_open(pid, 0), r;

    if (pidfd < 0) {
        r = err_errno(e, errno, "The program `%.300s` could not be watched", plan->path);
        kill(pid, SIGKILL); /* not reaped yet, so the pid has not been reused */
    } else {
        spawn_close(&fds->report[1]);
        r = spawn_await_exec(plan, fds->report[0], e);
    }
    if (r < 0) {
        waitpid(pid, NULL, 0);
        spawn_close(&pidfd);
        return r;
    }
    *ret_pidfd = pidfd;
    return 0;
}

int spawn_process(const struct spawn_plan *plan, struct spawned *ret, struct err *e)
{
    struct spawn_fds fds = { -1, { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
    int r = spawn_fds_open(&fds, plan->has_stdin), pidfd = -1;
    pid_t pid = r == 0 ? spawn_fork(plan, &fds) : -1;

    if (pid < 0)
        r = err_errno(e, r < 0 ? -r : errno, "The program `%.300s` could not be started", plan->path);
    else
        r = spawn_watch(plan, &fds, pid, &pidfd, e);
    if (r == 0) {
        *ret = (struct spawned){ pid, pidfd, fds.out[0], fds.err[0], fds.in[1] };
        fds.out[0] = fds.err[0] = fds.in[1] = -1; /* handed over */
    }
    spawn_fds_clear(&fds);
    return r;
}
