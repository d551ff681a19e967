/* What an upgrade of the program means for a data folder, without opening the service on it or changing anything. */
#include "service/private.h"

#include "backend/backend_providers.h"
#include "base/log.h"
#include "os/files.h"
#include "store/examine.h"
#include "store/migrate.h"
#include "store/schema.h"
#include "store/vectors/vectors_db.h"

#include <sys/stat.h>

extern char **environ;

/* One database file of the folder. */
struct held {
    const char *name, *path;
    int64_t known;   /* schema version of this program */
    int64_t version; /* of the file; 0: there is none */
    int64_t bytes;   /* with its write-ahead log */
    int r;           /* of reading it */
    struct err why;
};

enum { N_HELD = 3 };

/* --- databases --- */

static int64_t size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_size : 0;
}

static void list_held(struct service *s, struct held ret[N_HELD])
{
    const struct backend_file rows = backend_provider_file(s->settings, s->config.data_dir, s->arena);
    const struct backend_provider *provider = backend_provider_of(s->settings);

    ret[0] = (struct held){ .name = "hearth.db",
                            .path = arena_printf(s->arena, "%s/hearth.db", s->config.data_dir),
                            .known = (int64_t)store_n_migrations };
    ret[1] = (struct held){ .name = "backend.db",
                            .path = rows.path ? rows.path : "",
                            .known = provider ? provider->schema_version : 0 };
    ret[2] = (struct held){ .name = "vectors.db",
                            .path = arena_printf(s->arena, "%s/vectors.db", s->config.data_dir),
                            .known = (int64_t)vectors_db_n_migrations };
}

static void examine(struct service *s, struct held *h, bool is_in_use)
{
    h->bytes = size_of(h->path) + size_of(arena_printf(s->arena, "%s-wal", h->path));
    h->r = examine_version(h->path, is_in_use, &h->version, &h->why);
}

static const char *state_of(const struct held *h)
{
    return h->r < 0                 ? "unreadable"
           : h->version == 0        ? "missing"
           : h->version < h->known  ? "migrates"
           : h->version == h->known ? "current"
                                    : "newer";
}

static bool is_due(const struct held *h)
{
    return h->r < 0 || (h->version != 0 && h->version != h->known);
}

static void write_held(const struct held *h, struct json_writer *w)
{
    json_begin_object(w);
    json_add_string(w, "name", h->name);
    json_add_string(w, "path", h->path);
    json_add_int(w, "version", h->version);
    json_add_int(w, "known", h->known);
    json_add_int(w, "bytes", h->bytes);
    json_add_string(w, "state", state_of(h));
    json_add_string(w, "error", h->r < 0 ? h->why.text : NULL);
    json_end(w);
}

/* The copies before migrations; each database whose schema changes needs one. */
static bool write_space(const struct service *s, const struct held *held, struct json_writer *w)
{
    uint64_t n_free = 0, n_needed = 0;
    bool is_enough;

    for (size_t i = 0; i < N_HELD; i++)
        if (strcmp(state_of(&held[i]), "migrates") == 0)
            n_needed += (uint64_t)held[i].bytes;
    is_enough = disk_free(s->config.data_dir, &n_free, NULL) < 0 || n_free >= n_needed;
    json_begin_object_as(w, "space");
    json_add_int(w, "needed", (int64_t)n_needed);
    json_add_int(w, "free", (int64_t)n_free);
    json_add_bool(w, "enough", is_enough);
    json_end(w);
    return is_enough;
}

static void write_copies(struct service *s, const struct held *held, struct json_writer *w)
{
    json_begin_array_as(w, "copies");
    for (size_t i = 0; i < N_HELD; i++) {
        const struct migrate_copy *copies;
        size_t n = migrate_copies(s->arena, held[i].path, &copies);

        for (size_t j = 0; j < n; j++) {
            json_begin_object(w);
            json_add_string(w, "path", copies[j].path);
            json_add_int(w, "bytes", copies[j].bytes);
            json_end(w);
        }
    }
    json_end(w);
}

/* --- settings --- */

/* File and environment; when they have a mistake, the mistake is a finding and the defaults are used. */
static int load_settings(struct service *s, const char **ret_mistake, struct err *e)
{
    const struct settings_sources none = { 0 };
    struct err why = { 0 };
    int r = service_load_settings(s, &why);

    *ret_mistake = NULL;
    if (r == 0)
        return 0;
    *ret_mistake = arena_strdup(s->arena, why.text);
    return settings_load(&none, &s->settings, e);
}

/* Keys that this version does not have, and values that it does not take. Returns how many. */
static size_t write_settings(struct service *s, const char *mistake, const char *store, bool is_in_use,
                             struct json_writer *w)
{
    struct setting_row *rows = NULL;
    struct err why = { 0 };
    const char *fault;
    size_t n_rows = 0, n = mistake != NULL;

    json_begin_array_as(w, "settings");
    if (mistake)
        json_add_string(w, NULL, mistake);
    if (examine_settings(store, is_in_use, s->arena, &rows, &n_rows, &why) == 0 &&
        settings_apply_rows(s->settings, rows, n_rows, &why) < 0)
        for (size_t i = 0; (fault = settings_fault(s->settings, i)); i++, n++)
            json_add_string(w, NULL, fault);
    json_end(w);
    return n;
}

/* --- the report --- */

int service_examine(const struct service_config *c, bool is_in_use, struct json_writer *w, bool *ret_due, struct err *e)
{
    struct service *s = xcalloc(1, sizeof(*s));
    struct held held[N_HELD];
    const char *mistake;
    int r;

    s->config = *c;
    s->arena = arena_new();
    r = load_settings(s, &mistake, e);
    if (r == 0) {
        *ret_due = write_settings(s, mistake, arena_printf(s->arena, "%s/hearth.db", c->data_dir), is_in_use, w) > 0;
        list_held(s, held);
        json_begin_array_as(w, "databases");
        for (size_t i = 0; i < N_HELD; i++) {
            if (!*held[i].path) /* no file holds the rows */
                continue;
            examine(s, &held[i], is_in_use);
            write_held(&held[i], w);
            *ret_due |= is_due(&held[i]);
        }
        json_end(w);
        json_add_string(w, "rows_elsewhere", backend_provider_of(s->settings)->elsewhere);
        *ret_due |= !write_space(s, held, w);
        write_copies(s, held, w);
    }
    service_close(s);
    return r;
}

/* --- at the start --- */

void service_log_copies(struct service *s)
{
    struct held held[N_HELD];

    list_held(s, held);
    for (size_t i = 0; i < N_HELD; i++) {
        const struct migrate_copy *copies;
        size_t n = migrate_copies(s->arena, held[i].path, &copies);

        for (size_t j = 0; j < n; j++)
            log_info("service", NULL, "%s is a copy from before an upgrade; remove it when you trust this version",
                     copies[j].path);
    }
}
