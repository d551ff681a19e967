#include "backup/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
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

static bool is_wanted(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static int unpack_bytes(struct archive *tar, int fd, const char *path, struct err *e)
{
    char block[ARCHIVE_BLOCK];
    ssize_t n;

    while ((n = archive_read_data(tar, block, sizeof(block))) > 0)
        if (write(fd, block, (size_t)n) != n)
            return err_errno(e, errno ? errno : ENOSPC, "%s", path);
    if (n < 0)
        return not_a_backup(path, archive_error_string(tar), e);
    return fsync(fd) < 0 ? err_errno(e, errno, "%s", path) : 0;
}

static int unpack_item(struct archive *tar, struct archive_entry *entry, const char *path, const char *const *names, const char *folder,
                       struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *name = archive_entry_pathname(entry);
    int fd, r;

    if (!name || archive_entry_filetype(entry) != AE_IFREG || !is_wanted(name, names))
        return not_a_backup(path, "it holds something else", e);
    fd = open(arena_printf(a, "%s/%s", folder, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return not_a_backup(path, "it holds a file twice", e);
    if (fd < 0)
        return err_errno(e, errno, "%s/%s", folder, name);
    r = unpack_bytes(tar, fd, path, e);
    close(fd);
    return r;
}

int archive_unpack(const char *path, const char *const *names, const char *folder, struct err *e)
{
    struct archive *tar = archive_read_new();
    struct archive_entry *entry;
    int r = 0, step = ARCHIVE_OK;

    archive_read_support_format_tar(tar);
    archive_read_support_filter_gzip(tar);
    if (access(path, R_OK) < 0)
        r = err_errno(e, errno, "%s", path);
    else if (archive_read_open_filename(tar, path, ARCHIVE_BLOCK) != ARCHIVE_OK)
        r = not_a_backup(path, archive_error_string(tar), e);
    while (r == 0 && (step = archive_read_next_header(tar, &entry)) == ARCHIVE_OK)
        r = unpack_item(tar, entry, path, names, folder, e);
    if (r == 0 && step != ARCHIVE_EOF)
        r = not_a_backup(path, archive_error_string(tar), e);
    archive_read_free(tar);
    return r;
}
