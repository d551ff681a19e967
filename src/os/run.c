#include "os/run.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUN_PIECE_BYTES = 4096 };

/* One of its two outputs. */
struct run_stream {
    int fd, child_fd; /* owned; -1: closed */
    char *text;
    size_t n, size;
};

struct run {
    struct run_stream streams[2]; /* standard output and error */
    pid_t pid;
    int pidfd; /* owned */
};

static void run_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int run_open_streams(struct run *run)
{
    for (size_t i = 0; i < ARRAY_SIZE(run->streams); i++) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
            return -errno;
        run->streams[i].fd = ends[0];
        run->streams[i].child_fd = ends[1];
        if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
            return -errno;
    }
    return 0;
}

static int run_spawn(struct run *run, const struct run_plan *plan)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, run->streams[0].child_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, run->streams[1].child_fd, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    error = posix_spawn(&run->pid, plan->path, &actions, &attributes, (char *const *)(uintptr_t)plan->argv,
                        (char *const *)(uintptr_t)plan->envp);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    for (size_t i = 0; i < ARRAY_SIZE(run->streams); i++)
        run_close(&run->streams[i].child_fd);
    return -error;
}

static void run_keep(struct run_stream *s, const char *piece, size_t n)
{
    for (size_t i = 0; i < n && s->n + 1 < s->size; i++)
        if (piece[i] != '\0')
            s->text[s->n++] = piece[i];
    s->text[s->n] = '\0';
}

/* Reads what is there; what is beyond the text's size is read and dropped, so that the program never waits. */
static void run_drain(struct run_stream *s)
{
    char piece[RUN_PIECE_BYTES];
    ssize_t n;

    while (s->fd >= 0 && (n = read(s->fd, piece, sizeof(piece))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break;
        run_keep(s, piece, (size_t)n);
    }
    run_close(&s->fd);
}

/* Until its end: false when the deadline passed. A program that it left running may hold the pipes open. */
static bool run_read(struct run *run, int64_t deadline_ms)
{
    const int64_t until_ms = clock_mono_ms() + deadline_ms;

    for (;;) {
        struct pollfd ready[] = { { run->streams[0].fd, POLLIN, 0 },
                                  { run->streams[1].fd, POLLIN, 0 },
                                  { run->pidfd, POLLIN, 0 } };
        int64_t left_ms = until_ms - clock_mono_ms();

        if (left_ms <= 0)
            return false;
        if (poll(ready, ARRAY_SIZE(ready), (int)MIN(left_ms, (int64_t)INT32_MAX)) < 0)
            continue;
        for (size_t i = 0; i < ARRAY_SIZE(run->streams); i++)
            run_drain(&run->streams[i]);
        if (ready[2].revents)
            return true;
    }
}

static int run_reap(struct run *run)
{
    int status = 0;

    while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The pidfd of a child that was not reaped names no other process. */
static int run_to_end(struct run *run, const struct run_plan *plan, struct run_result *ret, struct err *e)
{
    bool is_done;

    run->pidfd = pidfd_open(run->pid, 0);
    is_done = run->pidfd >= 0 && run_read(run, plan->deadline_ms);
    if (!is_done)
        kill(-run->pid, SIGKILL);
    ret->code = run_reap(run);
    run_close(&run->pidfd);
    if (is_done)
        return 0;
    return err_set(e, -ETIMEDOUT, "COMMAND_TIMED_OUT", "`%.200s` did not end within %lld s and was killed.",
                   plan->argv[0], (long long)(plan->deadline_ms / 1000));
}

int run_program(const struct run_plan *plan, struct run_result *ret, struct err *e)
{
    struct run run = { .streams = { { -1, -1, ret->output, 0, sizeof(ret->output) },
                                    { -1, -1, ret->errors, 0, sizeof(ret->errors) } },
                       .pidfd = -1 };
    int r;

    *ret = (struct run_result){ .code = -1 };
    r = run_open_streams(&run);
    if (r == 0)
        r = run_spawn(&run, plan);
    if (r < 0)
        r = err_errno(e, -r, "`%.200s` did not start", plan->path);
    else
        r = run_to_end(&run, plan, ret, e);
    for (size_t i = 0; i < ARRAY_SIZE(run.streams); i++) {
        run_close(&run.streams[i].fd);
        run_close(&run.streams[i].child_fd);
    }
    return r;
}
