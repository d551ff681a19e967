#include "os/files.h"

#include "base/buf.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    FILES_READ_STEP = 65536,
    FILES_PROBE_BYTES = 65536,
    FILES_MAX_DEPTH = 200, /* depth of folders that dir_remove() descends; each level holds a descriptor */
};

static void files_closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static int files_stat_dir(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_errno(e, errno, "The folder %.300s cannot be used", path);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, -ENOTDIR, "INTERNAL_ERROR", "%.300s exists and is not a folder.", path);
    return 0;
}

static int files_make_one(const char *path, struct err *e)
{
    if (mkdir(path, 0700) == 0)
        return 0;
    if (errno == EEXIST)
        return files_stat_dir(path, e);
    return err_errno(e, errno, "The folder %.300s cannot be made", path);
}

int dir_make(const char *path, struct err *e)
{
    AUTO(freep) char *part = xstrdup(path);
    int r;

    for (char *at = part + 1; *part && *at; at++) {
        if (*at != '/' || at[-1] == '/')
            continue;
        *at = '\0';
        r = files_make_one(part, e);
        *at = '/';
        if (r < 0)
            return r;
    }
    return files_make_one(path, e);
}

int dir_check_owner(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_errno(e, errno, "The folder %.300s cannot be used", path);
    if (st.st_uid != geteuid() && geteuid() != 0)
        return err_set(e, -EPERM, "BAD_DATA_FOLDER",
                       "The folder %.300s belongs to another user (uid %u); choose one of your own with --data.", path,
                       (unsigned)st.st_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(e, -EPERM, "BAD_DATA_FOLDER",
                       "In the folder %.300s others may write files: `chmod 700` makes it private.", path);
    return 0;
}

static int files_too_large(const char *path, size_t max, struct err *e)
{
    return err_set(e, -EFBIG, "TOO_LARGE", "The file %.300s is larger than %zu bytes.", path, max);
}

static int files_read_all(int fd, const char *path, struct buf *into, struct err *e)
{
    for (;;) {
        size_t step = MIN(into->max - into->n, (size_t)FILES_READ_STEP);
        char *to = step > 0 ? buf_reserve(into, step) : NULL;
        ssize_t n;

        if (!to)
            return files_too_large(path, into->max - 1, e);
        n = read(fd, to, step);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_errno(e, errno, "The file %.300s cannot be read", path);
        into->n += n > 0 ? (size_t)n : 0;
    }
}

int file_read(struct arena *a, const char *path, size_t max, struct slice *ret, struct err *e)
{
    AUTO(files_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct buf bytes;
    int r;

    if (fd < 0)
        return err_errno(e, errno, "The file %.300s cannot be opened", path);
    buf_init(&bytes, max + 1); /* one byte more than allowed, to detect a larger file */
    r = files_read_all(fd, path, &bytes, e);
    if (r == 0)
        *ret = (struct slice){ arena_slicedup(a, buf_slice(&bytes)), bytes.n };
    buf_clear(&bytes);
    return r;
}

int file_read_into(const char *path, void *to, size_t max, size_t *ret_n, struct err *e)
{
    AUTO(files_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = 1;
    size_t at = 0;
    char more;

    if (fd < 0)
        return err_errno(e, errno, "The file %.300s cannot be opened", path);
    while (n != 0) {
        n = at < max ? read(fd, (char *)to + at, max - at) : read(fd, &more, 1);
        if (n < 0 && errno != EINTR)
            return err_errno(e, errno, "The file %.300s cannot be read", path);
        if (n > 0 && at == max)
            return files_too_large(path, max, e);
        at += n > 0 ? (size_t)n : 0;
    }
    *ret_n = at;
    return 0;
}

int file_hash(const char *path, char ret_hex[HASH_HEX_SIZE], int64_t *ret_size, struct err *e)
{
    AUTO(files_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct hash_stream *stream = fd < 0 ? NULL : hash_stream_new();
    unsigned char hash[HASH_BYTES] = { 0 };
    char block[FILES_READ_STEP];
    ssize_t n = fd < 0 ? -1 : 1;

    *ret_size = 0;
    while (n > 0 && (n = read(fd, block, sizeof(block))) > 0) {
        hash_stream_add(stream, (struct slice){ block, (size_t)n });
        *ret_size += n;
    }
    if (n < 0)
        err_errno(e, errno, "The file %.300s cannot be read", path);
    hash_stream_end(stream, hash);
    hash_hex(hash, sizeof(hash), ret_hex);
    return n < 0 ? -EIO : 0;
}

static int files_write_all(int fd, struct slice bytes)
{
    while (bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            bytes = (struct slice){ bytes.p + n, bytes.n - (size_t)n };
    }
    return 0;
}

/* A new or renamed entry is durable only after an fsync of its folder. */
static int files_sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    AUTO(freep)
    char *parent = !slash ? xstrdup(".") : slash == path ? xstrdup("/") : strndup(path, (size_t)(slash - path));
    AUTO(files_closep) int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int file_sync_folder(const char *path, struct err *e)
{
    int r = files_sync_parent(path);

    return r < 0 ? err_errno(e, -r, "The folder of %.300s cannot be written to disk", path) : 0;
}

static int files_write_beside(char *temporary, const char *path, struct slice bytes, mode_t mode)
{
    AUTO(files_closep) int fd = mkostemp(temporary, O_CLOEXEC);
    int r;

    if (fd < 0)
        return -errno;
    r = files_write_all(fd, bytes);
    if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(temporary, path) < 0))
        r = -errno;
    if (r < 0)
        unlink(temporary);
    return r;
}

int file_write(const char *path, struct slice bytes, mode_t mode, struct err *e)
{
    char temporary[PATH_MAX];
    int r;

    if ((size_t)snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= sizeof(temporary))
        r = -ENAMETOOLONG;
    else
        r = files_write_beside(temporary, path, bytes, mode);
    if (r == 0)
        r = files_sync_parent(path);
    return r == 0 ? 0 : err_errno(e, -r, "The file %.300s cannot be written", path);
}

static int files_remove_below(int fd, int depth);

static int files_remove_entry(int parent_fd, const char *name, int depth)
{
    int fd, r;

    if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM) /* for a folder Linux returns EISDIR, POSIX specifies EPERM */
        return -errno;
    if (depth == FILES_MAX_DEPTH)
        return -ELOOP;
    fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    r = files_remove_below(fd, depth + 1);
    if (r == 0 && unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        r = -errno;
    return r;
}

/* Closes fd. */
static int files_remove_below(int fd, int depth)
{
    DIR *dir = fdopendir(fd);
    struct dirent *entry;
    int r = 0;

    if (!dir) {
        r = -errno;
        close(fd);
        return r;
    }
    while (r == 0 && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = files_remove_entry(fd, entry->d_name, depth);
    closedir(dir);
    return r;
}

int dir_remove(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;

    if (fd < 0 && errno == ENOENT)
        return 0;
    r = fd < 0 ? -errno : files_remove_below(fd, 0);
    if (r == 0 && rmdir(path) < 0 && errno != ENOENT)
        r = -errno;
    return r == 0 ? 0 : err_errno(e, -r, "The folder %.300s cannot be removed", path);
}

/* No "..", no "." and no empty segment, so that the path cannot leave its root without a link. */
static bool files_name_is_plain(const char *name)
{
    while (*name) {
        size_t n = strcspn(name, "/");

        if (n == 0 || (n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.'))
            return false;
        name += n;
        if (*name == '/' && *++name == '\0')
            return false;
    }
    return true;
}

/* Whether the existing part of path, with links followed, is below root. */
static bool files_resolves_below(const char *root, const char *path)
{
    AUTO(freep) char *real_root = realpath(root, NULL);
    AUTO(freep) char *part = xstrdup(path);
    AUTO(freep) char *real = NULL;
    size_t n_root = real_root ? strlen(real_root) : 0;
    struct stat st;

    if (!real_root)
        return errno == ENOENT;
    while (strlen(part) > strlen(root) && lstat(part, &st) < 0)
        *strrchr(part, '/') = '\0';
    real = realpath(part, NULL); /* NULL: a dangling link */
    return real && strncmp(real, real_root, n_root) == 0 &&
           (real[n_root] == '\0' || real[n_root] == '/' || n_root == 1);
}

int path_below(struct arena *a, const char *root, const char *name, char **ret, struct err *e)
{
    char *path = arena_printf(a, "%s/%s", root, name);

    if (!*name || !files_name_is_plain(name) || !files_resolves_below(root, path))
        return err_set(e, -EINVAL, "VALIDATION_ERROR",
                       "The path `%.200s` must stay inside its folder: relative, without `..` and "
                       "without links that lead out.",
                       name);
    *ret = path;
    return 0;
}

static int refuse_disk(struct err *e, const char *path, int error)
{
    if (error == EROFS)
        return err_set(e, -EROFS, "STORE_READ_ONLY", "The disk of %.300s is read-only.", path);
    if (error == ENOSPC || error == EDQUOT)
        return err_set(e, -ENOSPC, "STORE_FULL", "The disk of %.300s is full, or its quota is used up.", path);
    return err_errno(e, error, "The disk of %.300s cannot be written", path);
}

/* statvfs() shows neither a quota nor a disk that fails: a write does. The file has no name. */
static int disk_try_write(const char *path, struct err *e)
{
    static const char bytes[FILES_PROBE_BYTES];
    int fd = open(path, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600), error = errno;
    ssize_t n;

    if (fd < 0) /* some file systems have no files without a name */
        return error == EOPNOTSUPP || error == EISDIR ? 0 : refuse_disk(e, path, error);
    n = write(fd, bytes, sizeof(bytes));
    error = n < 0 ? errno : ENOSPC;
    close(fd);
    return n == (ssize_t)sizeof(bytes) ? 0 : refuse_disk(e, path, error);
}

int disk_check(const char *path, uint64_t min_bytes, struct err *e)
{
    struct statvfs space;
    uint64_t n_free;

    if (statvfs(path, &space) < 0)
        return err_errno(e, errno, "The free space at %.300s cannot be told", path);
    n_free = (uint64_t)space.f_bavail * space.f_frsize;
    if (space.f_flag & ST_RDONLY)
        return refuse_disk(e, path, EROFS);
    if (n_free < min_bytes)
        return err_set(e, -ENOSPC, "STORE_FULL", "The disk of %.300s is full: %llu KiB are free.", path,
                       (unsigned long long)n_free >> 10);
    if (space.f_files > 0 && space.f_favail == 0)
        return err_set(e, -ENOSPC, "STORE_FULL", "The disk of %.300s has no room for another file.", path);
    return disk_try_write(path, e);
}

int disk_free(const char *path, uint64_t *ret_bytes, struct err *e)
{
    struct statvfs space;

    if (statvfs(path, &space) < 0)
        return err_errno(e, errno, "The free space at %.300s cannot be told", path);
    *ret_bytes = (uint64_t)space.f_bavail * space.f_frsize;
    return 0;
}
