/* Preloaded into a program: writes each step that changes names or waits for the disk to the file $STEP_LOG, and ends
 * the program by SIGKILL before step $STEP_KILL (1 is the first that changes a name). While the file $STEP_REFUSE
 * exists, writes to files without a name fail with the errno in it. Built by steps.mjs. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void say(const char *line)
{
    const char *log = getenv("STEP_LOG");
    int fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

    if (fd >= 0 && write(fd, line, strlen(line)) < 0)
        _exit(99);
    if (fd >= 0)
        close(fd);
}

static void step(const char *what, const char *from, const char *to)
{
    static int n;
    const char *at = getenv("STEP_KILL");
    char line[1024];

    n++;
    snprintf(line, sizeof(line), "%s %s %s\n", what, from, to ? to : "");
    say(line);
    if (at && n == atoi(at))
        syscall(SYS_kill, getpid(), SIGKILL);
}

static void wait_for_disk(int fd)
{
    char link[64], path[512] = "", line[600];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof(path) - 1) > 0) {
        snprintf(line, sizeof(line), "fsync %s\n", path);
        say(line);
    }
}

int rename(const char *from, const char *to)
{
    step("rename", from, to);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    step("rename", from, to);
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    step("link", from, to);
    return (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
}

int unlink(const char *path)
{
    step("unlink", path, NULL);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int fd, const char *path, int flags)
{
    step("unlink", path, NULL);
    return (int)syscall(SYS_unlinkat, fd, path, flags);
}

int rmdir(const char *path)
{
    step("rmdir", path, NULL);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int fsync(int fd)
{
    wait_for_disk(fd);
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    wait_for_disk(fd);
    return (int)syscall(SYS_fdatasync, fd);
}

/* The errno for a write to this file; 0: the write is done. */
static int refusal(int fd)
{
    const char *path = getenv("STEP_REFUSE");
    char text[16] = "";
    struct stat st;
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (file < 0)
        return 0;
    if (syscall(SYS_read, file, text, sizeof(text) - 1) < 0)
        _exit(99);
    close(file);
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0 ? atoi(text) : 0;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    int why = refusal(fd);

    if (why == 0)
        return syscall(SYS_write, fd, bytes, n);
    errno = why;
    return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    int why = refusal(fd);

    if (why == 0)
        return syscall(SYS_pwrite64, fd, bytes, n, at);
    errno = why;
    return -1;
}
