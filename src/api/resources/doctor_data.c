/* Checks of the data folder and its databases: permissions, obstructing files, owners, integrity. */
#include "api/resources/doctor.h"

#include "api/api.h"
#include "backend/backend_providers.h"
#include "settings/settings.h"
#include "store/backup.h"
#include "store/instance.h"
#include "store/store.h"
#include "store/vectors/vectors_db.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DOCTOR_OPEN_FILES = 20 };

#define RESTORE_IT "stop the service and put a backup back with `hearth restore FILE --force`"

/* --- permissions --- */

static void check_mode(struct checkup *c, const char *path, size_t *n_bad)
{
    struct stat st;

    if (lstat(path, &st) < 0 || S_ISLNK(st.st_mode) || *n_bad == DOCTOR_OPEN_FILES)
        return;
    if (st.st_mode & 077)
        doctor_add(c, "folder", false, arena_printf(c->arena, "%s is open to others", path),
                   arena_printf(c->arena, "chmod go= %s", path));
    else if (st.st_uid != geteuid())
        doctor_add(c, "folder", false,
                   arena_printf(c->arena, "%s belongs to another user (uid %u)", path, (unsigned)st.st_uid),
                   arena_printf(c->arena, "chown %u %s", (unsigned)geteuid(), path));
    else
        return;
    ++*n_bad;
}

/* Checks the files in one of this service's folders; the folders of apps and agents are their own affair. */
static void check_modes_in(struct checkup *c, const char *dir, size_t *n_bad)
{
    DIR *entries = opendir(dir);
    struct dirent *entry;

    while (entries && (entry = readdir(entries)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            check_mode(c, arena_printf(c->arena, "%s/%s", dir, entry->d_name), n_bad);
    if (entries)
        closedir(entries);
}

void doctor_check_folder(struct checkup *c)
{
    static const char *const folders[] = { "", "/run", "/run/activities", "/local-apps", "/agents", "/vectors.side" };
    static const char *const endings[] = { "", "-wal", "-shm" };
    const char *dir = c->api->data_dir;
    const struct backend_file rows = backend_provider_file(c->api->settings, dir, c->arena);
    struct stat st = { 0 };
    bool is_private = stat(dir, &st) == 0 && (st.st_mode & 077) == 0;
    size_t n_bad = 0;

    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        check_modes_in(c, arena_printf(c->arena, "%s%s", dir, folders[i]), &n_bad);
    for (size_t i = 0; rows.is_elsewhere && strncmp(rows.path, dir, strlen(dir)) != 0 && i < ARRAY_SIZE(endings); i++)
        check_mode(c, arena_printf(c->arena, "%s%s", rows.path, endings[i]), &n_bad);
    doctor_add(c, "folder", is_private, arena_printf(c->arena, "%s has mode %04o", dir, st.st_mode & 07777),
               arena_printf(c->arena, "others can look into it: chmod 700 %s", dir));
}

/* --- obstructing files --- */

void doctor_check_places(struct checkup *c)
{
    static const struct {
        const char *name, *what;
        mode_t kind;
    } places[] = {
        { "hearth.sock", "a socket", S_IFSOCK }, { "hearth.lock", "a file", S_IFREG },
        { "hearth.conf", "a file", S_IFREG },    { "master.key", "a file", S_IFREG },
        { "hearth.db", "a file", S_IFREG },      { "backend.db", "a file", S_IFREG },
        { "vectors.db", "a file", S_IFREG },     { "vectors.side", "a folder", S_IFDIR },
        { "run", "a folder", S_IFDIR },          { "run/activities", "a folder", S_IFDIR },
        { "local-apps", "a folder", S_IFDIR },   { "agents", "a folder", S_IFDIR },
    };
    struct stat st;

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        const char *path = arena_printf(c->arena, "%s/%s", c->api->data_dir, places[i].name);

        if (stat(path, &st) == 0 && (st.st_mode & S_IFMT) != places[i].kind)
            doctor_add(c, "place", false,
                       arena_printf(c->arena, "%s is not %s, and in the way of one", path, places[i].what),
                       arena_printf(c->arena, "move it away: mv %s %s.away", path, path));
    }
}

/* --- databases --- */

static bool goes_on(void *api)
{
    return !atomic_load(&((struct api *)api)->is_leaving);
}

static int examine(struct checkup *c, enum instance_file file, const char *path, struct err *why)
{
    return c->api->instance ? instance_examine(c->api->instance, file, path, why) : 0;
}

static void report_database(struct checkup *c, const char *name, int r, const struct err *why, const char *well)
{
    doctor_add(c, name, r == 0, r < 0 ? why->text : well, RESTORE_IT);
}

void doctor_check_store(struct checkup *c)
{
    const struct backup_patience patience = { goes_on, c->api };
    struct err why = { 0 };
    int r = examine(c, INSTANCE_STORE, arena_printf(c->arena, "%s/hearth.db", c->api->data_dir), &why);

    if (r == 0)
        r = store_check(c->api->store, &patience, &why);
    report_database(c, "store", r, &why, "hearth.db is whole");
}

void doctor_check_backend(struct checkup *c)
{
    const struct backup_patience patience = { goes_on, c->api };
    const char *where = settings_rules[backend_provider_of(c->api->settings)->where].key;
    const char *elsewhere = backend_provider_of(c->api->settings)->elsewhere;
    const struct backend_file rows = backend_provider_file(c->api->settings, c->api->data_dir, c->arena);
    struct backend *backend = c->api->backend;
    struct err why = { 0 };
    int r = rows.path ? examine(c, INSTANCE_BACKEND, rows.path, &why) : 0;

    if (r == 0)
        r = backend->ops->is_ready(backend, &why);
    if (r == 0)
        r = backend->ops->check(backend, &patience, &why);
    doctor_add(c, "backend", r == 0,
               r < 0       ? why.text
               : elsewhere ? arena_printf(c->arena,
                                          "%s answers and is whole; the rows are %s, and in no backup of this service",
                                          backend->ops->name, elsewhere)
                           : arena_printf(c->arena, "%s answers and is whole", backend->ops->name),
               arena_printf(c->arena, "%slook at the setting %s: `hearth settings %s`",
                            rows.path ? RESTORE_IT ", or " : "", where, where));
}

/* A data folder that no service has used yet has no vector database. */
void doctor_check_vectors(struct checkup *c)
{
    const struct backup_patience patience = { goes_on, c->api };
    const char *path = arena_printf(c->arena, "%s/vectors.db", c->api->data_dir);
    struct err why = { 0 };
    int r = examine(c, INSTANCE_VECTORS, path, &why);

    if (r == 0 && access(path, F_OK) < 0)
        return;
    if (r == 0)
        r = vectors_db_check(path, &patience, &why);
    report_database(c, "vectors", r, &why, "vectors.db is whole");
}
