#include "backup/backup.h"

#include "backup/archive.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/files.h"
#include "store/backup.h"
#include "store/store.h"

#include <fcntl.h>
#include <unistd.h>

#define MANIFEST "hearth-backup.json"
enum { BACKUP_FORMAT = 1 };

/* What an archive may hold. A database is copied and checked, all else read as it is. */
static const struct backup_part { const char *name; bool is_database; int64_t max_bytes; } parts[] = {
    { "hearth.db", true, 0 },
    { "backend.db", true, 0 },
    { "vectors.db", true, 0 },
    { "hearth.conf", false, LIMIT_RESTORE_SMALL },
    { "master.key", false, LIMIT_RESTORE_KEY },
};

/* --- making one --- */

struct packing {
    struct arena *arena;
    const char *folder;                 /* private, beside the data; removed at the end */
    struct archive_item items[ARRAY_SIZE(parts) + 1];
    size_t n;
};

static const char *source_of(struct arena *a, const struct backup_source *from, const struct backup_part *part)
{
    if (strcmp(part->name, "backend.db") == 0)
        return from->backend_file;
    return arena_printf(a, "%s/%s", from->data_dir, part->name);
}

/* What is not there (no settings file, no sealed secret yet) is not in the archive either. */
static int add_part(struct packing *p, const struct backup_source *from, const struct backup_part *part, struct err *e)
{
    const char *source = source_of(p->arena, from, part);
    const char *copy = arena_printf(p->arena, "%s/%s", p->folder, part->name);
    int r;

    if (access(source, F_OK) < 0)
        return 0;
    r = part->is_database ? backup_copy(source, copy, e) : 0;
    if (r == 0)
        p->items[p->n++] = (struct archive_item){ part->name, part->is_database ? copy : source };
    return r;
}

static int write_manifest(struct packing *p, struct err *e)
{
    const char *path = arena_printf(p->arena, "%s/" MANIFEST, p->folder);
    char now[TIME_TEXT_SIZE];
    struct json_writer w;
    struct buf out;
    int r;

    clock_now_text(now);
    buf_init(&out, LIMIT_RESTORE_SMALL);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_int(&w, "format", BACKUP_FORMAT);
    json_add_string(&w, "version", HEARTH_VERSION);
    json_add_string(&w, "created_at", now);
    json_begin_array_as(&w, "files");
    for (size_t i = 1; i < p->n; i++)
        json_add_string(&w, NULL, p->items[i].name);
    json_end(&w);
    json_end(&w);
    r = file_write(path, buf_slice(&out), 0600, e);
    buf_clear(&out);
    p->items[0] = (struct archive_item){ MANIFEST, path };
    return r;
}

static int pack(struct packing *p, const struct backup_source *from, const char *path, struct backup_files *ret, struct err *e)
{
    int r = 0;

    p->n = 1;                           /* the manifest is first and told last */
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
        r = add_part(p, from, &parts[i], e);
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

/* A folder of our own beside the data: same file system, same privacy. */
static int make_work_folder(struct arena *a, const char *data_dir, const char **ret, struct err *e)
{
    char *folder = arena_printf(a, "%s/backup-XXXXXX", data_dir);

    if (!mkdtemp(folder))
        return err_errno(e, errno, "No folder can be made in %s", data_dir);
    *ret = folder;
    return 0;
}

/* The work is done whether or not its folder goes: a left one is harmless. */
static void remove_work_folder(const char *folder)
{
    struct err e = { 0 };

    if (dir_remove(folder, &e) < 0)
        log_debug("backup", NULL, "a folder is left behind: %s", e.text);
}

int backup_create(struct arena *a, const struct backup_source *from, const char *path, struct backup_files *ret, struct err *e)
{
    struct packing p = { .arena = a };
    int r;

    if (path[0] != '/')
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "`path` must be an absolute path");
    if (access(path, F_OK) == 0)
        return err_set(e, -EEXIST, "FILE_EXISTS", "%s exists already; choose another name", path);
    r = make_work_folder(a, from->data_dir, &p.folder, e);
    if (r < 0)
        return r;
    r = pack(&p, from, path, ret, e);
    remove_work_folder(p.folder);
    return r;
}

/* --- restoring --- */

static int check_manifest(struct arena *a, const char *path, const char *folder, struct err *e)
{
    struct slice text = { 0 };
    struct json_value manifest = { 0 };
    int r = file_read(a, arena_printf(a, "%s/" MANIFEST, folder), LIMIT_RESTORE_SMALL, &text, NULL);

    if (r == 0)
        r = json_parse(a, text, &manifest, NULL);
    if (r < 0)
        return err_set(e, -EINVAL, "NOT_A_BACKUP", "%s is no backup of Hearth: it has no manifest", path);
    if (json_int(json_get(manifest, "format")) != BACKUP_FORMAT)
        return err_set(e, -EINVAL, "NOT_A_BACKUP", "%s has a format this version of Hearth does not know", path);
    if (access(arena_printf(a, "%s/hearth.db", folder), F_OK) < 0)
        return err_set(e, -EINVAL, "NOT_A_BACKUP", "%s is no backup of Hearth: hearth.db is missing", path);
    return 0;
}

static int check_databases(struct arena *a, const char *folder, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++) {
        const char *file = arena_printf(a, "%s/%s", folder, parts[i].name);

        if (parts[i].is_database && access(file, F_OK) == 0)
            r = backup_check(file, e);
    }
    return r;
}

static int check_target(struct arena *a, const char *data_dir, bool is_forced, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (!is_forced && access(arena_printf(a, "%s/%s", data_dir, parts[i].name), F_OK) == 0)
            return err_set(e, -EEXIST, "FILE_EXISTS", "%s holds %s already; --force restores over it and keeps a copy", data_dir,
                           parts[i].name);
    return 0;
}

static int keep_aside(struct arena *a, const char *path, const char *now, struct err *e)
{
    static const char *const endings[] = { "-wal", "-shm", "" };

    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        const char *from = arena_printf(a, "%s%s", path, endings[i]);

        if (rename(from, arena_printf(a, "%s.before-restore-%s%s", path, now, endings[i])) < 0 && errno != ENOENT)
            return err_errno(e, errno, "%s", from);
    }
    return 0;
}

static int put_in_place(struct arena *a, const char *folder, const char *data_dir, const char *name, struct err *e)
{
    const char *from = arena_printf(a, "%s/%s", folder, name), *to = arena_printf(a, "%s/%s", data_dir, name);
    char now[TIME_TEXT_SIZE];
    int r;

    if (strcmp(name, "hearth.db") == 0)
        return store_restore(data_dir, from, e);        /* knows the schema, keeps the old one too */
    clock_now_text(now);
    r = keep_aside(a, to, now, e);
    if (r == 0 && rename(from, to) < 0)
        r = err_errno(e, errno, "%s", to);
    return r;
}

static int put_all(struct arena *a, const char *folder, const char *data_dir, struct backup_files *ret, struct err *e)
{
    int r = 0;

    ret->items = arena_array(a, ARRAY_SIZE(parts), sizeof(*ret->items));
    ret->n = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++) {
        if (access(arena_printf(a, "%s/%s", folder, parts[i].name), F_OK) < 0)
            continue;
        r = put_in_place(a, folder, data_dir, parts[i].name, e);
        if (r == 0)
            ret->items[ret->n++] = parts[i].name;
    }
    return r;
}

int backup_restore(struct arena *a, const char *path, const char *data_dir, const struct backup_wish *wish, struct backup_files *ret, struct err *e)
{
    struct archive_member members[ARRAY_SIZE(parts) + 1] = { { MANIFEST, LIMIT_RESTORE_SMALL } };
    const struct archive_limits limits = { members, ARRAY_SIZE(members), wish->max_bytes };
    const char *folder = NULL;
    int r = access(path, R_OK) < 0 ? err_errno(e, errno, "The backup %s cannot be read", path) : check_target(a, data_dir, wish->is_forced, e);

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        members[i + 1] = (struct archive_member){ parts[i].name, parts[i].max_bytes };
    if (r == 0)
        r = make_work_folder(a, data_dir, &folder, e);
    if (r != 0)
        return r;
    r = archive_unpack(path, &limits, folder, e);
    if (r == 0)
        r = check_manifest(a, path, folder, e);
    if (r == 0)
        r = check_databases(a, folder, e);
    if (r == 0)
        r = put_all(a, folder, data_dir, ret, e);
    remove_work_folder(folder);
    return r;
}
