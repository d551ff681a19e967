#include "backup/archive.h"

#include "base/limits.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { ARCHIVE_BLOCK = 64 * 1024 };

static int archive_fail(struct archive *tar, const char *path, struct err *e)
{
    const char *why = archive_error_string(tar);
    int code = archive_errno(tar);

    return err_set(e, code > 0 ? -code : -EIO, code == ENOSPC ? "STORE_FULL" : "INTERNAL_ERROR", "%s: %s", path, why ? why : "unknown");
}

/* --- packing --- */

static int pack_bytes(struct archive *tar, int fd, const char *path, struct err *e)
{
    char block[ARCHIVE_BLOCK];
    ssize_t n;

    while ((n = read(fd, block, sizeof(block))) > 0)
        if (archive_write_data(tar, block, (size_t)n) != n)
            return archive_fail(tar, path, e);
    return n < 0 ? err_errno(e, errno, "%s", path) : 0;
}

static int pack_item(struct archive *tar, const struct archive_item *item, struct err *e)
{
    struct archive_entry *entry = archive_entry_new();
    int fd = open(item->path, O_RDONLY | O_CLOEXEC), r = 0;
    struct stat st = { 0 };

    if (fd < 0 || fstat(fd, &st) < 0)
        r = err_errno(e, errno, "%s", item->path);
    if (r == 0) {
        archive_entry_set_pathname(entry, item->name);
        archive_entry_set_size(entry, st.st_size);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0600);
        archive_entry_set_mtime(entry, st.st_mtime, 0);
        r = archive_write_header(tar, entry) == ARCHIVE_OK ? pack_bytes(tar, fd, item->path, e) : archive_fail(tar, item->path, e);
    }
    if (fd >= 0)
        close(fd);
    archive_entry_free(entry);
    return r;
}

static int pack_into(int fd, const char *path, const struct archive_item *items, size_t n, struct err *e)
{
    struct archive *tar = archive_write_new();
    int r = 0;

    if (archive_write_set_format_pax_restricted(tar) != ARCHIVE_OK || archive_write_add_filter_gzip(tar) != ARCHIVE_OK ||
        archive_write_open_fd(tar, fd) != ARCHIVE_OK)
        r = archive_fail(tar, path, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = pack_item(tar, &items[i], e);
    if (r == 0 && archive_write_close(tar) != ARCHIVE_OK)
        r = archive_fail(tar, path, e);
    archive_write_free(tar);
    if (r == 0 && fsync(fd) < 0)
        r = err_errno(e, errno, "%s", path);
    return r;
}

static int name_it(const char *part, const char *path, struct err *e)
{
    if (renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == EEXIST)
        return err_set(e, -EEXIST, "FILE_EXISTS", "%s exists already; choose another name", path);
    return err_errno(e, errno, "%s", path);
}

int archive_pack(const char *path, const struct archive_item *items, size_t n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *part = arena_printf(a, "%s.XXXXXX", path);
    int fd, r;

    if (access(path, F_OK) == 0)
        return err_set(e, -EEXIST, "FILE_EXISTS", "%s exists already; choose another name", path);
    fd = mkostemp(part, O_CLOEXEC);     /* a name nobody can be first to: the folder may be open to others, as /tmp is */
    if (fd < 0)
        return err_set(e, -errno, "FILE_NOT_WRITABLE", "%s cannot be written: %s", path, strerror(errno));
    r = pack_into(fd, path, items, n, e);
    close(fd);
    if (r == 0)
        r = name_it(part, path, e);
    if (r < 0)
        unlink(part);
    return r;
}

/* --- unpacking --- */

static int not_a_backup(const char *path, const char *why, struct err *e)
{
    return err_set(e, -EINVAL, "NOT_A_BACKUP", "%s is no backup of Hearth: %s", path, why);
}

struct unpacking {
    struct archive *tar;
    const char *path, *folder;
    const struct archive_limits *limits;
    int64_t n_bytes, max_bytes;         /* written, and allowed in all */
};

static int too_large(const struct unpacking *u, const char *name, int64_t max, struct err *e)
{
    if (max < u->max_bytes)
        return err_set(e, -E2BIG, "BACKUP_TOO_LARGE", "%s is no backup of Hearth: its %s is larger than %lld bytes", u->path, name, (long long)max);
    return err_set(e, -E2BIG, "BACKUP_TOO_LARGE", "The files of %s take more than %lld MB, far more than it has itself; --max-mb N allows as much when you "
                   "know where it is from", u->path, (long long)(u->max_bytes / MIB(1)));
}

/* What is read counts, whatever the head said. */
static int unpack_bytes(struct unpacking *u, const struct archive_member *member, int fd, struct err *e)
{
    char block[ARCHIVE_BLOCK];
    int64_t n_own = 0;
    ssize_t n;

    while ((n = archive_read_data(u->tar, block, sizeof(block))) > 0) {
        n_own += n;
        u->n_bytes += n;
        if ((member->max_bytes && n_own > member->max_bytes) || u->n_bytes > u->max_bytes)
            return too_large(u, member->name, member->max_bytes && n_own > member->max_bytes ? member->max_bytes : u->max_bytes, e);
        if (write(fd, block, (size_t)n) != n)
            return err_errno(e, errno ? errno : ENOSPC, "%s", u->path);
    }
    if (n < 0)
        return not_a_backup(u->path, archive_error_string(u->tar), e);
    return fsync(fd) < 0 ? err_errno(e, errno, "%s", u->path) : 0;
}

static const struct archive_member *find_member(const struct archive_limits *limits, const char *name)
{
    for (size_t i = 0; name && i < limits->n_members; i++)
        if (strcmp(limits->members[i].name, name) == 0)
            return &limits->members[i];
    return NULL;
}

/* A plain file of a known name and size, compressed once: no link, no hole, no device, no path. NULL: it is something else. */
static const struct archive_member *check_entry(const struct unpacking *u, struct archive_entry *entry)
{
    bool is_plain = archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry) && !archive_entry_symlink(entry) &&
                    archive_entry_sparse_count(entry) == 0 && archive_entry_size_is_set(entry) && archive_filter_count(u->tar) <= 2;

    return is_plain ? find_member(u->limits, archive_entry_pathname(entry)) : NULL;
}

/* What the head says is looked at before a byte is written. */
static int check_size(const struct unpacking *u, const struct archive_member *member, int64_t size, struct err *e)
{
    struct statvfs disk;

    if (member->max_bytes && size > member->max_bytes)
        return too_large(u, member->name, member->max_bytes, e);
    if (size > u->max_bytes - u->n_bytes)
        return too_large(u, member->name, u->max_bytes, e);
    if (statvfs(u->folder, &disk) == 0 && (uint64_t)size > (uint64_t)disk.f_bavail * disk.f_frsize)
        return err_set(e, -ENOSPC, "STORE_FULL", "%s needs %lld MB for %s, which the disk of %s does not have", u->path, (long long)(size / MIB(1)),
                       member->name, u->folder);
    return 0;
}

static int unpack_item(struct unpacking *u, struct archive_entry *entry, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct archive_member *member = check_entry(u, entry);
    int fd, r;

    if (!member)
        return not_a_backup(u->path, "it holds something else", e);
    r = check_size(u, member, archive_entry_size(entry), e);
    if (r < 0)
        return r;
    fd = open(arena_printf(a, "%s/%s", u->folder, member->name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return not_a_backup(u->path, "it holds a file twice", e);
    if (fd < 0)
        return err_errno(e, errno, "%s/%s", u->folder, member->name);
    r = unpack_bytes(u, member, fd, e);
    close(fd);
    return r;
}

static int unpack_all(struct unpacking *u, struct err *e)
{
    struct archive_entry *entry;
    int r = 0, step = ARCHIVE_OK;

    while (r == 0 && (step = archive_read_next_header(u->tar, &entry)) == ARCHIVE_OK)
        r = unpack_item(u, entry, e);
    if (r == 0 && step != ARCHIVE_EOF)
        r = not_a_backup(u->path, archive_error_string(u->tar), e);
    return r;
}

/* A pipe or a device has no size to measure against. */
static int open_file(const char *path, int64_t *ret_size, int *ret_fd, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st = { 0 };

    if (fd < 0 || fstat(fd, &st) < 0) {
        int r = err_errno(e, errno, "%s", path);

        if (fd >= 0)
            close(fd);
        return r;
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return not_a_backup(path, "it is no file", e);
    }
    *ret_size = st.st_size;
    *ret_fd = fd;
    return 0;
}

int archive_unpack(const char *path, const struct archive_limits *limits, const char *folder, struct err *e)
{
    struct unpacking u = { .path = path, .folder = folder, .limits = limits };
    int64_t size = 0;
    int fd = -1, r = open_file(path, &size, &fd, e);

    if (r < 0)
        return r;
    u.max_bytes = limits->max_bytes ? limits->max_bytes : MAX((int64_t)LIMIT_RESTORE_FLOOR, MIN(size, INT64_MAX / LIMIT_RESTORE_RATIO) * LIMIT_RESTORE_RATIO);
    u.tar = archive_read_new();
    archive_read_support_format_tar(u.tar);
    archive_read_support_filter_gzip(u.tar);
    r = archive_read_open_fd(u.tar, fd, ARCHIVE_BLOCK) == ARCHIVE_OK ? unpack_all(&u, e) : not_a_backup(path, archive_error_string(u.tar), e);
    archive_read_free(u.tar);
    close(fd);
    return r;
}
