#include "os/lockfile.h"

#include "base/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <unistd.h>

struct lockfile {
    int fd; /* owned; holds the lock while open */
};

enum {
    LOCKFILE_PATIENCE_MS = 200, /* lockfile_owner() in another process holds the lock for an instant */
    LOCKFILE_RETRY_MS = 10,
};

static int lockfile_open_fd(const char *data_dir, int flags)
{
    char path[PATH_MAX];

    if ((size_t)snprintf(path, sizeof(path), "%s/hearth.lock", data_dir) >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static pid_t lockfile_read_pid(int fd)
{
    char text[32] = "";
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    long pid = n > 0 ? strtol(text, NULL, 10) : 0;

    return pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

static int lockfile_write_pid(int fd, struct err *e)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());

    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
        return err_errno(e, errno ? errno : EIO, "The lock file of the data folder cannot be written");
    return 0;
}

static int lockfile_refuse(int fd, const char *data_dir, struct err *e)
{
    pid_t owner = lockfile_read_pid(fd);

    if (owner > 0)
        return err_set(
            e, -EBUSY, "ALREADY_RUNNING",
            "Another Hearth (pid %d) uses this data folder: %.300s. Stop it, or give this one its own folder with --data.",
            (int)owner, data_dir);
    return err_set(e, -EBUSY, "ALREADY_RUNNING", "Another Hearth uses this data folder: %.300s.", data_dir);
}

static int lockfile_take(int fd, const char *data_dir, struct err *e)
{
    int64_t deadline = clock_mono_ms() + LOCKFILE_PATIENCE_MS;

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return err_errno(e, errno, "The data folder %.300s cannot be locked", data_dir);
        if (clock_mono_ms() >= deadline)
            return lockfile_refuse(fd, data_dir, e);
        usleep(LOCKFILE_RETRY_MS * 1000);
    }
    return lockfile_write_pid(fd, e);
}

int lockfile_open(const char *data_dir, struct lockfile **ret, struct err *e)
{
    int fd = lockfile_open_fd(data_dir, O_RDWR | O_CREAT), r;

    if (fd < 0)
        return err_errno(e, errno, "The lock file of the data folder %.300s cannot be opened", data_dir);
    r = lockfile_take(fd, data_dir, e);
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->fd = fd;
    return 0;
}

/* The file is not removed: otherwise two services could lock two files of the same name. */
struct lockfile *lockfile_close(struct lockfile *l)
{
    if (!l)
        return NULL;
    close(l->fd);
    free(l);
    return NULL;
}

pid_t lockfile_owner(const char *data_dir)
{
    int fd = lockfile_open_fd(data_dir, O_RDONLY);
    pid_t owner = 0;

    if (fd < 0)
        return 0;
    if (flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        owner = lockfile_read_pid(fd);
    close(fd);
    return owner;
}
