/* Finds out what this machine supports by trying it, not from version numbers. */
#include "os/sandbox_private.h"

#include "base/clock.h"
#include "os/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROBE_MS = 10000, PROBE_LANDLOCK_VERSION = 1 /* LANDLOCK_CREATE_RULESET_VERSION */ };

/* The namespaces of a strict child, around the smallest possible program. */
static const char *const probe_args[] = {
    "bwrap",
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--unshare-net",
    "--die-with-parent",
    "--as-pid-1",
    "--cap-drop",
    "ALL",
    "--cap-add",
    "CAP_SYS_ADMIN",
    "--cap-add",
    "CAP_SETPCAP",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--perms",
    "1777",
    "--size",
    "4096",
    "--tmpfs",
    "/tmp",
    "--",
    "/bin/true",
    NULL,
};

static const char *const probe_env[] = { "PATH=/usr/bin:/bin", NULL };

static int probe_spawn(const char *program, int stderr_fd, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    int error;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, stderr_fd, STDERR_FILENO);
    error = posix_spawn(ret, program, &actions, NULL, (char *const *)probe_args, (char *const *)probe_env);
    posix_spawn_file_actions_destroy(&actions);
    return -error;
}

/* Reads the first line of its standard error, until end of file. False: it took too long. */
static bool probe_read(int fd, char *text, size_t size)
{
    const int64_t until_ms = clock_mono_ms() + PROBE_MS;
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    size_t n_kept = 0;
    ssize_t n = 1;

    while (n > 0) {
        int64_t left_ms = until_ms - clock_mono_ms();
        char piece[256];

        if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) == 0)
            return false;
        n = read(fd, piece, sizeof(piece));
        for (ssize_t i = 0; i < n && n_kept + 1 < size; i++)
            text[n_kept++] = piece[i];
    }
    text[n_kept] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

static void probe_run(const char *program, struct sandbox_means *means)
{
    int ends[2], status = -1;
    pid_t pid = -1;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    if (probe_spawn(program, ends[1], &pid) == 0) {
        close(ends[1]);
        if (!probe_read(ends[0], means->why, sizeof(means->why))) {
            snprintf(means->why, sizeof(means->why), "bubblewrap did not end within %d s", PROBE_MS / 1000);
            kill(pid, SIGKILL);
        }
        if (waitpid(pid, &status, 0) < 0)
            status = -1;
    } else {
        close(ends[1]);
    }
    close(ends[0]);
    means->has_namespaces = status == 0;
    if (means->has_namespaces)
        means->why[0] = '\0';
    else if (!means->why[0])
        snprintf(means->why, sizeof(means->why), "bubblewrap could not make a namespace (status %d)", status);
}

void sandbox_probe(struct sandbox *box)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, PROBE_LANDLOCK_VERSION);
    struct err e = { 0 };
    char *program = NULL;

    box->means = (struct sandbox_means){ .landlock_abi = abi > 0 ? (int)abi : 0 };
    if (!*box->bwrap || program_find(box->arena, box->bwrap, NULL, getenv("PATH"), &program, &e) < 0) {
        snprintf(box->means.why, sizeof(box->means.why), "bubblewrap is not installed");
        return;
    }
    box->means.has_bwrap = true;
    box->bwrap_path = program;
    probe_run(program, &box->means);
}
