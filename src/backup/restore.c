/* Restoring: everything is unpacked, checked and written to disk in a folder inside the data folder; renaming that
 * folder to RESTORE_READY commits the restore. The remaining moves of files are done immediately or, after a kill, at
 * the next start. */
#include "backup/archive.h"
#include "backup/backup.h"
#include "backup/parts.h"
#include "backup/work.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "os/files.h"
#include "store/backup.h"
#include "store/instance.h"
#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct restoring {
    struct arena *arena;
    const char *archive, *folder;
    bool has_digest;
    struct json_value files; /* of the manifest */
};

static bool has_file(const struct restoring *r, const char *name)
{
    return access(arena_printf(r->arena, "%s/%s", r->folder, name), F_OK) == 0;
}

static int not_a_backup(const struct restoring *r, const char *why, struct err *e)
{
    return err_set(e, -EINVAL, "NOT_A_BACKUP", "%s is no backup of Hearth: %s", r->archive, why);
}

/* --- checking --- */

static int read_manifest(struct restoring *r, struct json_value *ret, struct err *e)
{
    struct slice text = { 0 };
    int s =
        file_read(r->arena, arena_printf(r->arena, "%s/" BACKUP_MANIFEST, r->folder), LIMIT_RESTORE_SMALL, &text, NULL);

    if (s == 0)
        s = json_parse(r->arena, text, ret, NULL);
    return s < 0 ? not_a_backup(r, "it has no manifest", e) : 0;
}

/* A manifest without digests is from an older version. */
static int check_manifest(struct restoring *r, struct err *e)
{
    struct json_value manifest = { 0 };
    int s = read_manifest(r, &manifest, e);
    int64_t format = json_int(json_get(manifest, "format"));

    if (s < 0)
        return s;
    if (format != (r->has_digest ? BACKUP_FORMAT : BACKUP_FORMAT_WITHOUT_DIGESTS))
        return err_set(e, -EINVAL, "NOT_A_BACKUP",
                       "%s has a format this version of Hearth does not know, or lacks its digest", r->archive);
    r->files = json_get(manifest, "files");
    return has_file(r, "hearth.db") ? 0 : not_a_backup(r, "hearth.db is missing", e);
}

/* The manifest's entry for a member; absent when there is none. */
static struct json_value entry_of(const struct restoring *r, const char *name)
{
    struct json_value entry;

    for (struct json_iter it = json_iter(r->files); json_next(&it, NULL, &entry);)
        if (slice_eq_str(json_string(json_get(entry, "name")), name))
            return entry;
    return (struct json_value){ 0 };
}

static int check_member(const struct restoring *r, const char *name, struct err *e)
{
    struct json_value entry = entry_of(r, name);
    char hex[HASH_HEX_SIZE] = "";
    int64_t size = 0;
    int s = 0;

    if (has_file(r, name) != !json_is_absent(entry))
        return not_a_backup(r, arena_printf(r->arena, "its manifest does not tell of %s what it holds", name), e);
    if (json_is_absent(entry))
        return 0;
    s = file_hash(arena_printf(r->arena, "%s/%s", r->folder, name), hex, &size, e);
    if (s == 0 && !slice_eq_str(json_string(json_get(entry, "blake2b")), hex))
        return err_set(e, -EBADMSG, "BACKUP_DAMAGED", "%s is damaged: its %s is not what was packed", r->archive, name);
    return s;
}

static int check_members(const struct restoring *r, struct err *e)
{
    int s = 0;

    for (size_t i = 0; s == 0 && r->has_digest && i < BACKUP_N_PARTS; i++)
        s = check_member(r, backup_parts[i].name, e);
    return s;
}

static int check_databases(const struct restoring *r, struct err *e)
{
    int s = store_check_file(arena_printf(r->arena, "%s/hearth.db", r->folder), e);

    for (size_t i = 0; s == 0 && i < BACKUP_N_PARTS; i++)
        if (backup_parts[i].is_database && has_file(r, backup_parts[i].name))
            s = backup_check(arena_printf(r->arena, "%s/%s", r->folder, backup_parts[i].name), e);
    return s;
}

static int check_target(struct arena *a, const char *data_dir, bool is_forced, struct err *e)
{
    for (size_t i = 0; i < BACKUP_N_PARTS; i++)
        if (!is_forced && access(arena_printf(a, "%s/%s", data_dir, backup_parts[i].name), F_OK) == 0)
            return err_set(e, -EEXIST, "FILE_EXISTS", "%s holds %s already; --force restores over it and keeps a copy",
                           data_dir, backup_parts[i].name);
    return 0;
}

/* --- the switch --- */

/* Line 1: the suffix for the names of the old files. Then each file that is removed without a replacement. */
static int write_plan(const struct restoring *r, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    struct buf out;
    int s;

    clock_now_text(now);
    buf_init(&out, LIMIT_RESTORE_SMALL);
    buf_printf(&out, "before-restore-%s\n", now);
    for (size_t i = 0; i < BACKUP_N_PARTS; i++)
        if (backup_parts[i].is_own && !has_file(r, backup_parts[i].name))
            buf_printf(&out, "%s\n", backup_parts[i].name);
    s = file_write(arena_printf(r->arena, "%s/" RESTORE_PLAN, r->folder), buf_slice(&out), 0600, e);
    buf_clear(&out);
    return s;
}

static int switch_over(const struct restoring *r, const char *data_dir, struct err *e)
{
    const char *ready = arena_printf(r->arena, "%s/" RESTORE_READY, data_dir);
    int s = write_plan(r, e); /* its fsync of the folder covers all names in the folder */

    if (s == 0 && renameat2(AT_FDCWD, r->folder, AT_FDCWD, ready, RENAME_NOREPLACE) < 0)
        s = err_errno(e, errno, "%s", ready);
    return s < 0 ? s : file_sync_folder(ready, e);
}

/* --- finishing --- */

struct finishing {
    struct arena *arena;
    const char *data_dir, *ready;
    const char *plan, *kept; /* text of the plan; its first line */
};

static bool is_leaving(const struct finishing *f, const char *name)
{
    return strstr(f->plan, arena_printf(f->arena, "\n%s\n", name)) != NULL;
}

static int keep_aside(const struct finishing *f, const char *path, struct err *e)
{
    static const char *const endings[] = { "-wal", "-shm", "" }; /* a log must not be applied to another database */

    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        const char *from = arena_printf(f->arena, "%s%s", path, endings[i]);

        if (rename(from, arena_printf(f->arena, "%s.%s%s", path, f->kept, endings[i])) < 0 && errno != ENOENT)
            return err_errno(e, errno, "%s", from);
    }
    return 0;
}

/* While a new file is still in the folder, the file of that name in the data folder is the old one. */
static int finish_part(const struct finishing *f, const char *name, struct err *e)
{
    const char *from = arena_printf(f->arena, "%s/%s", f->ready, name),
               *to = arena_printf(f->arena, "%s/%s", f->data_dir, name);
    bool is_coming = access(from, F_OK) == 0;
    int r = is_coming || is_leaving(f, name) ? keep_aside(f, to, e) : 0;

    return r == 0 && is_coming && rename(from, to) < 0 ? err_errno(e, errno, "%s", to) : r;
}

static int finish_parts(const struct finishing *f, struct err *e)
{
    int r = 0;

    if (unlink(arena_printf(f->arena, "%s/" INSTANCE_FILE, f->data_dir)) < 0 && errno != ENOENT)
        return err_errno(e, errno, "%s/" INSTANCE_FILE, f->data_dir); /* its notes are about the replaced files */
    for (size_t i = 0; r == 0 && i < BACKUP_N_PARTS; i++)
        r = finish_part(f, backup_parts[i].name, e);
    return r == 0 ? file_sync_folder(f->ready, e) : r;
}

/* The name means that files must still be moved, so the folder is renamed before its content is removed. */
static int drop_ready(const struct finishing *f, struct err *e)
{
    const char *done = arena_printf(f->arena, "%s/" RESTORE_WORK "placed", f->data_dir);
    int r = dir_remove(done, e);

    if (r == 0 && rename(f->ready, done) < 0)
        r = err_errno(e, errno, "%s", f->ready);
    if (r == 0)
        r = file_sync_folder(done, e);
    if (r == 0)
        backup_work_remove(done);
    return r;
}

bool backup_is_restoring(const char *data_dir)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return access(arena_printf(a, "%s/" RESTORE_READY, data_dir), F_OK) == 0;
}

int backup_finish_restore(const char *data_dir, bool *ret_was_unfinished, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct finishing f = { .arena = a, .data_dir = data_dir, .ready = arena_printf(a, "%s/" RESTORE_READY, data_dir) };
    struct slice plan = { 0 };
    int r;

    *ret_was_unfinished = access(f.ready, F_OK) == 0;
    if (!*ret_was_unfinished)
        return 0;
    r = file_read(a, arena_printf(a, "%s/" RESTORE_PLAN, f.ready), LIMIT_RESTORE_SMALL, &plan, e);
    if (r < 0)
        return err_prefix(e, r, "A restore that was begun cannot be finished");
    f.plan = plan.p;
    f.kept = arena_strndup(a, plan.p, strcspn(plan.p, "/\n"));
    r = finish_parts(&f, e);
    return r < 0 ? r : drop_ready(&f, e);
}

/* --- the complete restore --- */

static int prepare(struct restoring *r, const struct backup_options *options, struct err *e)
{
    struct archive_member members[BACKUP_N_PARTS + 1] = { { BACKUP_MANIFEST, LIMIT_RESTORE_SMALL } };
    const struct archive_limits limits = { members, ARRAY_SIZE(members), options->max_bytes };
    int s;

    for (size_t i = 0; i < BACKUP_N_PARTS; i++)
        members[i + 1] = (struct archive_member){ backup_parts[i].name, backup_parts[i].max_bytes };
    s = archive_unpack(r->archive, &limits, r->folder, &r->has_digest, e);
    if (s == 0)
        s = check_manifest(r, e);
    if (s == 0)
        s = check_members(r, e);
    return s < 0 ? s : check_databases(r, e);
}

static void list_files(const struct restoring *r, struct backup_restored *ret)
{
    *ret = (struct backup_restored){ .is_unproven = !r->has_digest };
    ret->files.items = arena_array(r->arena, BACKUP_N_PARTS, sizeof(*ret->files.items));
    for (size_t i = 0; i < BACKUP_N_PARTS; i++)
        if (has_file(r, backup_parts[i].name))
            ret->files.items[ret->files.n++] = backup_parts[i].name;
}

int backup_restore(struct arena *a, const char *path, const char *data_dir, const struct backup_options *options,
                   struct backup_restored *ret, struct err *e)
{
    struct restoring r = { .arena = a, .archive = path };
    bool was_unfinished;
    int s = access(path, R_OK) < 0 ? err_errno(e, errno, "The backup %s cannot be read", path)
                                   : backup_finish_restore(data_dir, &was_unfinished, e);

    if (s == 0)
        s = check_target(a, data_dir, options->is_forced, e);
    if (s == 0)
        s = backup_work_make(a, data_dir, RESTORE_WORK, &r.folder, e);
    if (s < 0)
        return s;
    s = prepare(&r, options, e);
    if (s == 0) {
        list_files(&r, ret);
        s = switch_over(&r, data_dir, e);
    }
    if (s < 0)
        backup_work_remove(r.folder);
    return s < 0 ? s : backup_finish_restore(data_dir, &was_unfinished, e);
}
