#include "cli/service_process.h"

#include "base/clock.h"
#include "base/limits.h"
#include "cli/client_curl.h"
#include "os/files.h"
#include "os/lockfile.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SERVICE_RETRY_MS = 20,
    SERVICE_LOG_TAIL = 2048, /* read of the log to say why a start failed */
};

extern char **environ;

char *service_process_log(struct arena *a, const char *data_dir)
{
    return arena_printf(a, "%s/hearth.log", data_dir);
}

/* --- find --- */

/* The process that holds the lock, when it is also the one that listens; 0: nobody, or not (yet) both. */
static pid_t who_serves(const char *data_dir, pid_t *ret_owner)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    *ret_owner = lockfile_owner(data_dir);
    return *ret_owner != 0 && curl_listener(arena_printf(a, "%s/hearth.sock", data_dir)) == *ret_owner ? *ret_owner : 0;
}

int service_process_find(const char *data_dir, int64_t patience_ms, pid_t *ret, struct err *e)
{
    const int64_t until_ms = clock_mono_ms() + patience_ms;
    pid_t owner;

    while ((*ret = who_serves(data_dir, &owner)) == 0 && owner != 0 && clock_mono_ms() < until_ms)
        usleep(SERVICE_RETRY_MS * 1000);
    if (*ret != 0 || owner == 0)
        return 0;
    return err_set(
        e, -EBUSY, "NOT_ANSWERING",
        "The process %d holds the data folder %.300s and does not answer on its socket: it starts, ends or hangs, "
        "or it runs in another container.",
        (int)owner, data_dir);
}

/* --- stop --- */

static int wait_for_end(int pidfd, pid_t pid, int64_t deadline_ms, struct err *e)
{
    const int64_t until_ms = clock_mono_ms() + deadline_ms;
    struct pollfd end = { .fd = pidfd, .events = POLLIN };
    int64_t left_ms;

    while ((left_ms = until_ms - clock_mono_ms()) > 0)
        if (poll(&end, 1, (int)MIN(left_ms, (int64_t)INT32_MAX)) > 0)
            return 0;
    return err_set(e, -ETIMEDOUT, "STOP_TIMED_OUT", "The service (pid %d) did not end within %lld s of SIGTERM.",
                   (int)pid, (long long)(deadline_ms / 1000));
}

/* The pidfd is opened before the check, so a pid that was used again in the meantime is not hit. */
int service_process_stop(const char *data_dir, pid_t pid, int64_t deadline_ms, struct err *e)
{
    int pidfd = pidfd_open(pid, 0), r = 0;
    pid_t owner;

    if (pidfd < 0)
        return errno == ESRCH ? 0 : err_errno(e, errno, "The process %d", (int)pid);
    if (who_serves(data_dir, &owner) == pid) {
        if (pidfd_send_signal(pidfd, SIGTERM, NULL, 0) < 0 && errno != ESRCH)
            r = err_errno(e, errno, "The service (pid %d) cannot be ended", (int)pid);
        if (r == 0)
            r = wait_for_end(pidfd, pid, deadline_ms, e);
    }
    close(pidfd);
    return r;
}

/* --- start --- */

/* A log that has grown large is kept once as hearth.log.1. */
static int open_log(const char *path, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct stat st;
    int fd;

    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > LIMIT_SERVICE_LOG_BYTES &&
        rename(path, arena_printf(a, "%s.1", path)) < 0)
        return err_errno(e, errno, "The log file %.300s cannot be renamed", path);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    return fd < 0 ? err_errno(e, errno, "The log file %.300s cannot be opened", path) : fd;
}

static int spawn_serve(const char *program, const char *data_dir, int log_fd, pid_t *ret)
{
    const char *const argv[] = { program, "serve", "--data", data_dir, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, log_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, log_fd, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    error = posix_spawn(ret, program, &actions, &attributes, (char *const *)(uintptr_t)argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -error;
}

/* The last line that the service wrote since the log had from bytes. */
static const char *last_line(struct arena *a, int log_fd, const char *path, off_t from)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char *text = arena_alloc(a, SERVICE_LOG_TAIL + 1), *feed;
    struct stat st = { 0 };
    ssize_t n = 0;

    if (fd >= 0 && fstat(log_fd, &st) == 0)
        n = pread(fd, text, SERVICE_LOG_TAIL, MAX(from, st.st_size - SERVICE_LOG_TAIL));
    if (fd >= 0)
        close(fd);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[MAX(n, (ssize_t)0)] = '\0';
    feed = strrchr(text, '\n');
    return feed ? feed + 1 : text;
}

/* 0: it answers. 1: it ended. */
static int wait_for_start(const char *data_dir, pid_t pid, int64_t deadline_ms, struct err *e)
{
    const int64_t until_ms = clock_mono_ms() + deadline_ms;
    pid_t owner;

    while (who_serves(data_dir, &owner) != pid) {
        if (waitpid(pid, NULL, WNOHANG) == pid)
            return 1;
        if (clock_mono_ms() >= until_ms)
            return err_set(e, -ETIMEDOUT, "START_TIMED_OUT",
                           "The service (pid %d) does not answer after %lld s; its log is %.300s/hearth.log.", (int)pid,
                           (long long)(deadline_ms / 1000), data_dir);
        usleep(SERVICE_RETRY_MS * 1000);
    }
    return 0;
}

int service_process_start(const char *program, const char *data_dir, int64_t deadline_ms, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *path = service_process_log(a, data_dir);
    struct stat before = { 0 };
    pid_t pid = -1;
    int fd, r = dir_make(data_dir, e);

    if (r == 0)
        r = dir_check_owner(data_dir, e);
    fd = r < 0 ? r : open_log(path, e);
    if (fd < 0)
        return fd;
    if (fstat(fd, &before) < 0)
        r = err_errno(e, errno, "The log file %.300s", path);
    if (r == 0 && (r = spawn_serve(program, data_dir, fd, &pid)) < 0)
        r = err_errno(e, -r, "%.300s did not start", program);
    if (r == 0)
        r = wait_for_start(data_dir, pid, deadline_ms, e);
    if (r == 1)
        r = err_set(e, -ECHILD, "START_FAILED", "The service did not start; the end of %.300s: %.300s", path,
                    last_line(a, fd, path, before.st_size));
    close(fd);
    return r;
}
