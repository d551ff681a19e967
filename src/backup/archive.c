#include "backup/archive.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "os/files.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define DIGEST_MEMBER "hearth-backup.blake2b"

enum { ARCHIVE_BLOCK = 64 * 1024 };

static int archive_fail(struct archive *tar, const char *path, struct err *e)
{
    const char *why = archive_error_string(tar);
    int code = archive_errno(tar);

    return err_set(e, code > 0 ? -code : -EIO, code == ENOSPC ? "STORE_FULL" : err_code_of(-code, "INTERNAL_ERROR"),
                   "%s: %s", path, why ? why : "unknown");
}

/* Adds to the digest what it covers of a member in addition to the bytes. */
static void digest_head(struct hash_stream *digest, const char *name, int64_t size)
{
    char number[32];

    snprintf(number, sizeof(number), "%lld", (long long)size);
    hash_stream_add(digest, (struct slice){ name, strlen(name) + 1 });
    hash_stream_add(digest, (struct slice){ number, strlen(number) + 1 });
}

/* --- packing --- */

static int pack_head(struct archive *tar, const char *name, const struct stat *st, struct err *e)
{
    struct archive_entry *entry = archive_entry_new();
    int r;

    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, st->st_size);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0600);
    archive_entry_set_mtime(entry, st->st_mtime, 0);
    r = archive_write_header(tar, entry) == ARCHIVE_OK ? 0 : archive_fail(tar, name, e);
    archive_entry_free(entry);
    return r;
}

/* Packs exactly as many bytes as the header states. */
static int pack_bytes(struct archive *tar, struct hash_stream *digest, const struct archive_item *item, int fd,
                      int64_t size, struct err *e)
{
    char block[ARCHIVE_BLOCK];

    while (size > 0) {
        ssize_t n = read(fd, block, (size_t)MIN(size, (int64_t)sizeof(block)));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_errno(e, n < 0 ? errno : EIO, "%s", item->path);
        if (archive_write_data(tar, block, (size_t)n) != n)
            return archive_fail(tar, item->path, e);
        hash_stream_add(digest, (struct slice){ block, (size_t)n });
        size -= n;
    }
    return 0;
}

static int pack_item(struct archive *tar, struct hash_stream *digest, const struct archive_item *item, struct err *e)
{
    int fd = open(item->path, O_RDONLY | O_CLOEXEC), r = 0;
    struct stat st = { 0 };

    if (fd < 0 || fstat(fd, &st) < 0)
        r = err_errno(e, errno, "%s", item->path);
    if (r == 0)
        r = pack_head(tar, item->name, &st, e);
    if (r == 0) {
        digest_head(digest, item->name, st.st_size);
        r = pack_bytes(tar, digest, item, fd, st.st_size, e);
    }
    if (fd >= 0)
        close(fd);
    return r;
}

/* Takes ownership of digest. */
static int pack_digest(struct archive *tar, struct hash_stream *digest, struct err *e)
{
    const struct stat st = { .st_size = HASH_HEX_SIZE, .st_mtime = clock_wall_ms() / 1000 };
    unsigned char hash[HASH_BYTES];
    char line[HASH_HEX_SIZE];
    int r;

    hash_stream_end(digest, hash);
    hash_hex(hash, sizeof(hash), line);
    line[HASH_HEX_SIZE - 1] = '\n';
    r = pack_head(tar, DIGEST_MEMBER, &st, e);
    return r == 0 && archive_write_data(tar, line, sizeof(line)) != (ssize_t)sizeof(line)
               ? archive_fail(tar, DIGEST_MEMBER, e)
               : r;
}

static int pack_into(int fd, const char *path, const struct archive_item *items, size_t n, struct err *e)
{
    struct hash_stream *digest = hash_stream_new();
    struct archive *tar = archive_write_new();
    int r = 0;

    if (archive_write_set_format_pax_restricted(tar) != ARCHIVE_OK ||
        archive_write_add_filter_gzip(tar) != ARCHIVE_OK || archive_write_open_fd(tar, fd) != ARCHIVE_OK)
        r = archive_fail(tar, path, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = pack_item(tar, digest, &items[i], e);
    if (r == 0)
        r = pack_digest(tar, TAKE(digest), e);
    hash_stream_end(digest, (unsigned char[HASH_BYTES]){ 0 });
    if (r == 0 && archive_write_close(tar) != ARCHIVE_OK)
        r = archive_fail(tar, path, e);
    archive_write_free(tar);
    if (r == 0 && fsync(fd) < 0)
        r = err_errno(e, errno, "%s", path);
    return r;
}

static int name_exists(const char *path, struct err *e)
{
    return err_set(e, -EEXIST, "FILE_EXISTS", "%s exists already; choose another name", path);
}

/* Opens a file without a name, so that a killed backup leaves nothing. part: its name where the file system does not
 * support that, otherwise NULL. */
static int open_part(const char *path, char *part, char **ret_part, struct err *e)
{
    AUTO(freep) char *folder = xstrdup(path);
    char *slash = strrchr(folder, '/');
    int fd;

    slash[slash == folder] = '\0';
    fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        fd = mkostemp(part, O_CLOEXEC); /* an unpredictable name: others may write to the folder, for example /tmp */
        *ret_part = part;
    }
    return fd < 0 ? err_set(e, -errno, "FILE_NOT_WRITABLE", "%s cannot be written: %s", path, strerror(errno)) : fd;
}

static int name_it(int fd, const char *part, const char *path, struct err *e)
{
    char own[64];
    int r;

    snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
    r = part ? renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_NOREPLACE)
             : linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
    if (r < 0)
        return errno == EEXIST ? name_exists(path, e) : err_errno(e, errno, "%s", path);
    return file_sync_folder(path, e);
}

int archive_pack(const char *path, const struct archive_item *items, size_t n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *part = NULL;
    int fd, r;

    if (access(path, F_OK) == 0)
        return name_exists(path, e);
    fd = open_part(path, arena_printf(a, "%s.XXXXXX", path), &part, e);
    if (fd < 0)
        return fd;
    r = pack_into(fd, path, items, n, e);
    if (r == 0)
        r = name_it(fd, part, path, e);
    close(fd);
    if (r < 0 && part)
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
    int64_t n_bytes, max_bytes;         /* written; allowed in total */
    struct hash_stream *digest;         /* owned; of the bytes read so far */
    unsigned char reported[HASH_BYTES]; /* the digest stated in the archive */
    bool has_digest;
};

static int too_large(const struct unpacking *u, const char *name, int64_t max, struct err *e)
{
    if (max < u->max_bytes)
        return err_set(e, -E2BIG, "BACKUP_TOO_LARGE", "%s is no backup of Hearth: its %s is larger than %lld bytes",
                       u->path, name, (long long)max);
    return err_set(
        e, -E2BIG, "BACKUP_TOO_LARGE",
        "The files of %s take more than %lld MB, far more than it has itself; --max-mb N allows as much when you "
        "know where it is from",
        u->path, (long long)(u->max_bytes / MIB(1)));
}

/* The limit applies to the bytes read, whatever size the header stated. */
static int unpack_bytes(struct unpacking *u, const struct archive_member *member, int fd, struct err *e)
{
    char block[ARCHIVE_BLOCK];
    int64_t n_own = 0;
    ssize_t n;

    while ((n = archive_read_data(u->tar, block, sizeof(block))) > 0) {
        n_own += n;
        u->n_bytes += n;
        if ((member->max_bytes && n_own > member->max_bytes) || u->n_bytes > u->max_bytes)
            return too_large(u, member->name,
                             member->max_bytes && n_own > member->max_bytes ? member->max_bytes : u->max_bytes, e);
        if (write(fd, block, (size_t)n) != n)
            return err_errno(e, errno ? errno : ENOSPC, "%s", u->path);
        hash_stream_add(u->digest, (struct slice){ block, (size_t)n });
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

/* Accepts a plain file of a known name and size, compressed once: no link, no hole, no device, no path. NULL: any other
 * entry. */
static const struct archive_member *check_entry(const struct unpacking *u, struct archive_entry *entry)
{
    static const struct archive_member digest = { DIGEST_MEMBER, HASH_HEX_SIZE };
    bool is_plain = archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry) &&
                    !archive_entry_symlink(entry) && archive_entry_sparse_count(entry) == 0 &&
                    archive_entry_size_is_set(entry) && archive_filter_count(u->tar) <= 2;
    const char *name =
        is_plain && !u->has_digest ? archive_entry_pathname(entry) : NULL; /* nothing may follow the digest */

    return name && strcmp(name, DIGEST_MEMBER) == 0 ? &digest : find_member(u->limits, name);
}

static int damaged(const char *path, struct err *e)
{
    return err_set(e, -EBADMSG, "BACKUP_DAMAGED",
                   "%s is damaged: it does not hold what was packed; nothing was changed, use another backup", path);
}

static int read_digest(struct unpacking *u, struct err *e)
{
    char line[HASH_HEX_SIZE + 2] = "";
    ssize_t n = archive_read_data(u->tar, line, sizeof(line) - 1);

    u->has_digest = true;
    if (n != HASH_HEX_SIZE || line[HASH_HEX_SIZE - 1] != '\n' || strspn(line, "0123456789abcdef") != HASH_HEX_SIZE - 1)
        return damaged(u->path, e);
    line[HASH_HEX_SIZE - 1] = '\0';
    hash_unhex(line, u->reported);
    return 0;
}

static int check_digest(struct unpacking *u, struct err *e)
{
    unsigned char found[HASH_BYTES];

    u->digest = hash_stream_end(u->digest, found);
    return u->has_digest && memcmp(found, u->reported, sizeof(found)) != 0 ? damaged(u->path, e) : 0;
}

/* Checks the size in the header before any byte is written. */
static int check_size(const struct unpacking *u, const struct archive_member *member, int64_t size, struct err *e)
{
    struct statvfs disk;

    if (member->max_bytes && size > member->max_bytes)
        return too_large(u, member->name, member->max_bytes, e);
    if (size > u->max_bytes - u->n_bytes)
        return too_large(u, member->name, u->max_bytes, e);
    if (statvfs(u->folder, &disk) == 0 && (uint64_t)size > (uint64_t)disk.f_bavail * disk.f_frsize)
        return err_set(e, -ENOSPC, "STORE_FULL", "%s needs %lld MB for %s, which the disk of %s does not have", u->path,
                       (long long)(size / MIB(1)), member->name, u->folder);
    return 0;
}

static int unpack_item(struct unpacking *u, struct archive_entry *entry, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct archive_member *member = check_entry(u, entry);
    int fd, r;

    if (!member)
        return not_a_backup(u->path, "it holds something else", e);
    if (strcmp(member->name, DIGEST_MEMBER) == 0)
        return read_digest(u, e);
    r = check_size(u, member, archive_entry_size(entry), e);
    if (r < 0)
        return r;
    fd = open(arena_printf(a, "%s/%s", u->folder, member->name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
              0600);
    if (fd < 0 && errno == EEXIST)
        return not_a_backup(u->path, "it holds a file twice", e);
    if (fd < 0)
        return err_errno(e, errno, "%s/%s", u->folder, member->name);
    digest_head(u->digest, member->name, archive_entry_size(entry));
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
    return r == 0 ? check_digest(u, e) : r;
}

/* A pipe or a device has no size for the ratio, so only files are accepted. */
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

int archive_unpack(const char *path, const struct archive_limits *limits, const char *folder, bool *ret_has_digest,
                   struct err *e)
{
    struct unpacking u = { .path = path, .folder = folder, .limits = limits };
    int64_t size = 0;
    int fd = -1, r = open_file(path, &size, &fd, e);

    if (r < 0)
        return r;
    u.max_bytes = limits->max_bytes ? limits->max_bytes
                                    : MAX((int64_t)LIMIT_RESTORE_FLOOR,
                                          MIN(size, INT64_MAX / LIMIT_RESTORE_RATIO) * LIMIT_RESTORE_RATIO);
    u.digest = hash_stream_new();
    u.tar = archive_read_new();
    archive_read_support_format_tar(u.tar);
    archive_read_support_filter_gzip(u.tar);
    r = archive_read_open_fd(u.tar, fd, ARCHIVE_BLOCK) == ARCHIVE_OK
            ? unpack_all(&u, e)
            : not_a_backup(path, archive_error_string(u.tar), e);
    archive_read_free(u.tar);
    hash_stream_end(u.digest, (unsigned char[HASH_BYTES]){ 0 });
    close(fd);
    *ret_has_digest = u.has_digest;
    return r;
}
