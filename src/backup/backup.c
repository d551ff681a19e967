#include "backup/backup.h"

#include "backup/archive.h"
#include "backup/parts.h"
#include "backup/work.h"
#include "base/clock.h"
#include "base/secret.h"
#include "base/json_write.h"
#include "os/files.h"
#include "store/backup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

const struct backup_part backup_parts[BACKUP_N_PARTS] = {
    { "hearth.db", true, true, 0 },
    { "backend.db", true, true, 0 },
    { "vectors.db", true, true, 0 },
    { "hearth.conf", false, false, LIMIT_RESTORE_SMALL },
    { "master.key", false, true, LIMIT_RESTORE_KEY },
};

/* --- making one --- */

struct packing {
    struct arena *arena;
    const char *folder; /* private, next to the data; removed at the end */
    struct archive_item items[BACKUP_N_PARTS + 1];
    size_t n;
};

static const char *source_of(struct arena *a, const struct backup_source *from, const struct backup_part *part)
{
    if (strcmp(part->name, "backend.db") == 0)
        return from->backend_file;
    return arena_printf(a, "%s/%s", from->data_dir, part->name);
}

static int copy_bytes(int from, int to)
{
    char block[LIMIT_RESTORE_KEY];
    ssize_t n;

    while ((n = read(from, block, sizeof(block))) > 0)
        if (write(to, block, (size_t)n) != n)
            return -(errno ? errno : ENOSPC);
    secret_wipe(block, sizeof(block)); /* it held the master key */
    return n < 0 ? -errno : 0;
}

/* Makes a copy, because the file may change between the digest and the packing. */
static int copy_file(const char *source, const char *copy, int64_t max_bytes, struct err *e)
{
    int from = open(source, O_RDONLY | O_CLOEXEC), to = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), r;
    struct stat st = { 0 };

    r = from < 0 || to < 0 || fstat(from, &st) < 0 ? -errno : copy_bytes(from, to);
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    if (r == 0 && st.st_size > max_bytes)
        return err_set(e, -EFBIG, "TOO_LARGE", "%s has more than the %lld bytes a backup may hold of it", source,
                       (long long)max_bytes);
    return r < 0 ? err_errno(e, -r, "%s cannot be copied", source) : 0;
}

/* A missing file (no settings file, no sealed secret yet) is left out of the archive. */
static int add_part(struct packing *p, const struct backup_source *from, const struct backup_part *part, struct err *e)
{
    const char *source = source_of(p->arena, from, part);
    const char *copy = arena_printf(p->arena, "%s/%s", p->folder, part->name);
    int r;

    if (!source || access(source, F_OK) < 0)
        return 0;
    r = part->is_database ? backup_copy(source, copy, e) : copy_file(source, copy, part->max_bytes, e);
    if (r == 0)
        p->items[p->n++] = (struct archive_item){ part->name, copy };
    return r;
}

static int add_manifest_file(struct json_writer *w, const struct archive_item *item, struct err *e)
{
    char hex[HASH_HEX_SIZE];
    int64_t size = 0;
    int r = file_hash(item->path, hex, &size, e);

    json_begin_object(w);
    json_add_string(w, "name", item->name);
    json_add_int(w, "bytes", size);
    json_add_string(w, "blake2b", hex);
    json_end(w);
    return r;
}

static int write_manifest(struct packing *p, struct err *e)
{
    const char *path = arena_printf(p->arena, "%s/" BACKUP_MANIFEST, p->folder);
    char now[TIME_TEXT_SIZE];
    struct json_writer w;
    struct buf out;
    int r = 0;

    clock_now_text(now);
    buf_init(&out, LIMIT_RESTORE_SMALL);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_int(&w, "format", BACKUP_FORMAT);
    json_add_string(&w, "version", HEARTH_VERSION);
    json_add_string(&w, "created_at", now);
    json_begin_array_as(&w, "files");
    for (size_t i = 1; r == 0 && i < p->n; i++)
        r = add_manifest_file(&w, &p->items[i], e);
    json_end(&w);
    json_end(&w);
    if (r == 0)
        r = file_write(path, buf_slice(&out), 0600, e);
    buf_clear(&out);
    p->items[0] = (struct archive_item){ BACKUP_MANIFEST, path };
    return r;
}

static int pack(struct packing *p, const struct backup_source *from, const char *path, struct backup_files *ret,
                struct err *e)
{
    int r = 0;

    p->n = 1; /* the manifest is the first member but is written last */
    for (size_t i = 0; r == 0 && i < BACKUP_N_PARTS; i++)
        r = add_part(p, from, &backup_parts[i], e);
    if (r == 0)
        r = write_manifest(p, e);
    if (r == 0)
        r = archive_pack(path, p->items, p->n, e);
    if (r < 0)
        return r;
    ret->items = arena_array(p->arena, p->n, sizeof(*ret->items));
    ret->n = p->n - 1;
    for (size_t i = 0; i < ret->n; i++)
        ret->items[i] = p->items[i + 1].name;
    return 0;
}

int backup_create(struct arena *a, const struct backup_source *from, const char *path, struct backup_files *ret,
                  struct err *e)
{
    struct packing p = { .arena = a };
    int r;

    if (path[0] != '/')
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "`path` must be an absolute path");
    if (access(path, F_OK) == 0)
        return err_set(e, -EEXIST, "FILE_EXISTS", "%s exists already; choose another name", path);
    r = backup_work_make(a, from->data_dir, BACKUP_WORK, &p.folder, e);
    if (r < 0)
        return r;
    r = pack(&p, from, path, ret, e);
    backup_work_remove(p.folder);
    return r;
}
