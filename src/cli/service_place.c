#include "cli/service_place.h"

#include "base/limits.h"
#include "cli/systemd.h"
#include "cli/unit_text.h"
#include "os/files.h"
#include "os/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#define PACKAGE_UNIT "/usr/lib/systemd/user/" SYSTEMD_UNIT

/* --- look --- */

static const char *what_is(const struct stat *st, struct arena *a)
{
    if (S_ISLNK(st->st_mode))
        return "is a symbolic link";
    if (!S_ISREG(st->st_mode))
        return "is no file";
    if (st->st_uid != geteuid())
        return arena_printf(a, "belongs to another user (uid %u)", (unsigned)st->st_uid);
    return NULL;
}

static void read_kind(struct arena *a, struct service_file *f)
{
    static const char *const words[] = {
        [UNIT_TEXT_FOREIGN] = "was not written by `hearth service install`",
        [UNIT_TEXT_CHANGED] = "was changed since `hearth service install` wrote it",
        [UNIT_TEXT_OURS] = "was written by `hearth service install`",
    };
    enum unit_text_kind kind = unit_text_kind(f->text);

    f->what = words[kind];
    f->is_ours = kind == UNIT_TEXT_OURS;
    f->data_dir = unit_text_data_dir(a, f->text);
}

/* A file that cannot be read is foreign, and says so. */
static void look_at(struct arena *a, const char *path, struct service_file *ret)
{
    struct err why = { 0 };
    struct stat st;

    *ret = (struct service_file){ .path = path };
    ret->exists = lstat(path, &st) == 0;
    if (!ret->exists)
        return;
    ret->what = what_is(&st, a);
    if (ret->what)
        return;
    if (file_read(a, path, LIMIT_UNIT_BYTES, &ret->text, &why) == 0)
        read_kind(a, ret);
    else
        ret->what = arena_printf(a, "cannot be read: %s", why.text);
}

int service_place_look(struct arena *a, struct service_place *ret, struct err *e)
{
    struct err why = { 0 };
    char *config;
    int r = paths_config_dir(a, &config, e);

    if (r < 0)
        return r;
    look_at(a, arena_printf(a, "%s/systemd/user/" SYSTEMD_UNIT, config), &ret->unit);
    look_at(a, arena_printf(a, "%s/autostart/hearth.desktop", config), &ret->autostart);
    ret->wants = arena_printf(a, "%s/systemd/user/default.target.wants/" SYSTEMD_UNIT, config);
    ret->package = (struct service_file){ .path = PACKAGE_UNIT };
    ret->package.exists = file_read(a, PACKAGE_UNIT, LIMIT_UNIT_BYTES, &ret->package.text, &why) == 0;
    return 0;
}

/* --- change --- */

int service_file_admit(const struct service_file *f, const char *data_dir, bool is_forced, struct err *e)
{
    if (!f->exists || is_forced)
        return 0;
    if (!f->data_dir)
        return err_set(e, -EEXIST, "FOREIGN_FILE", "%s %s: it stays as it is. `--force` replaces or removes it.",
                       f->path, f->what);
    if (!f->is_ours)
        return err_set(e, -EEXIST, "FILE_CHANGED", "%s %s: it stays as it is. `--force` replaces or removes it.",
                       f->path, f->what);
    if (strcmp(f->data_dir, data_dir) != 0)
        return err_set(
            e, -EEXIST, "OTHER_FOLDER",
            "%s is of the service on another data folder, %s: name that with --data, or `--force` replaces or "
            "removes the file.",
            f->path, f->data_dir);
    return 0;
}

/* Nobody else's folder is written to: with sudo, HOME may still be another user's. */
static int check_folder(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_errno(e, errno, "The folder %.300s", path);
    if (st.st_uid != geteuid())
        return err_set(e, -EPERM, "FOREIGN_FOLDER",
                       "The folder %.300s belongs to another user (uid %u): run this as that user, without sudo.", path,
                       (unsigned)st.st_uid);
    return 0;
}

/* The nearest folder that exists is checked before folders are made in it. */
static int make_folder(struct arena *a, const char *path, struct err *e)
{
    char *part = arena_strdup(a, path);
    struct stat st;
    int r;

    while (stat(part, &st) < 0 && errno == ENOENT && strrchr(part, '/') != part)
        *strrchr(part, '/') = '\0';
    r = check_folder(part, e);
    return r < 0 ? r : dir_make(path, e);
}

int service_file_write(const struct service_file *f, const char *text, bool *ret_changed, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int r;

    *ret_changed = !f->is_ours || !slice_eq_str(f->text, text);
    if (!*ret_changed)
        return 0;
    r = make_folder(a, arena_strndup(a, f->path, (size_t)(strrchr(f->path, '/') - f->path)), e);
    return r < 0 ? r : file_write(f->path, slice_of(text), 0644, e);
}

int service_file_remove(const struct service_file *f, struct err *e)
{
    return unlink(f->path) == 0 || errno == ENOENT ? 0 : err_errno(e, errno, "%s cannot be removed", f->path);
}
