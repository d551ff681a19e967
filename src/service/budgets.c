/* What callers may hold (base/budget.h), by the settings. */
#include "service/private.h"

#include "base/budget.h"
#include "store/tables/apps.h"
#include "store/tables/keys.h"

#include <assert.h>
#include <dirent.h>
#include <ftw.h>
#include <unistd.h>

enum {
    MEMORY_SHARE = 4,
    MOST_MEMORY_MB = 2048,
    MEASURE_EVERY_MS = 60000,
    MOST_FILES = 1000000,
    OPEN_FOLDERS = 16,
    BLOCK_BYTES = 512
};

static int64_t memory_bytes(struct service *s)
{
    int64_t given_mb = settings_int(s->settings, SETTING_LIMITS_MEMORY_MB);
    int64_t machine_mb = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) >> 20;

    return (given_mb ? given_mb : MIN(machine_mb / MEMORY_SHARE, (int64_t)MOST_MEMORY_MB)) << 20;
}

void service_set_budgets(struct service *s)
{
    static const enum budget of_memory[] = { BUDGET_BODY, BUDGET_REPLIES, BUDGET_MEMORY };

    for (enum budget b = 0; b < N_BUDGETS; b++) {
        enum setting_id setting = 0;
        bool is_known = settings_find(budget_rules[b].setting, &setting);

        assert(is_known);
        if (is_known)
            budget_set_limit(b, settings_int(s->settings, setting) << (budget_rules[b].is_bytes ? 20 : 0));
    }
    for (size_t i = 0; i < ARRAY_SIZE(of_memory); i++)
        budget_set_total(of_memory[i], memory_bytes(s));
    budget_show_metrics();
}

/* ---- the size of the apps' data folders ---- */

/* nftw() passes no argument to its callback. */
static _Thread_local int64_t n_bytes, n_files;

static int add_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
    n_bytes += type == FTW_NS ? 0 : (int64_t)st->st_blocks * BLOCK_BYTES;
    return ++n_files >= MOST_FILES; /* enough is known */
}

static void measure_app(struct service *s, const char *folder, const char *app_id)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct budget_holder *app;

    if (!identity_knows_app(s->identity, app_id))
        return;
    n_bytes = n_files = 0;
    if (nftw(arena_printf(a, "%s/%s", folder, app_id), add_file, OPEN_FOLDERS, FTW_PHYS | FTW_MOUNT) < 0)
        return;
    app = budget_holder_get(HOLDER_APP, app_id);
    budget_measured(app, BUDGET_DISK, n_bytes);
    budget_holder_unref(app);
}

/* ---- the vectors of apps and keys; requests that store or delete vectors update the counts too ---- */

static void measure_vectors_of(struct service *s, enum holder_kind kind, const char *id, const char *scope)
{
    struct budget_holder *h;
    struct err ignored = { 0 };
    int64_t n = 0;

    if (vector_stores_bytes(s->vector_stores, scope, &n, &ignored) < 0)
        return;
    h = budget_holder_get(kind, id);
    budget_measured(h, BUDGET_VECTORS, n);
    budget_holder_unref(h);
}

static void measure_vectors(struct service *s)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct err ignored = { 0 };
    struct app_row *apps = NULL;
    struct key_row *keys = NULL;
    size_t n_apps = 0, n_keys = 0;

    if (store_apps_list(s->store, a, &apps, &n_apps, &ignored) < 0 ||
        store_keys_list(s->store, a, &keys, &n_keys, &ignored) < 0)
        return;
    for (size_t i = 0; i < n_apps && !atomic_load(&s->api.is_leaving); i++)
        measure_vectors_of(s, HOLDER_APP, apps[i].app_id, apps[i].app_id);
    for (size_t i = 0; i < n_keys && !atomic_load(&s->api.is_leaving); i++)
        measure_vectors_of(s, HOLDER_KEY, keys[i].id, keys[i].fingerprint);
}

static void measure(void *arg)
{
    struct service *s = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *folder = arena_printf(a, "%s/local-apps", s->config.data_dir);
    DIR *apps = opendir(folder);

    for (struct dirent *entry; apps && !atomic_load(&s->api.is_leaving) && (entry = readdir(apps));)
        if (entry->d_name[0] != '.')
            measure_app(s, folder, entry->d_name);
    if (apps)
        closedir(apps);
    measure_vectors(s);
    atomic_store(&s->is_measuring, false);
}

static void measure_on_worker(void *arg)
{
    struct service *s = arg;

    if (!atomic_exchange(&s->is_measuring, true) && pool_submit(s->long_pool, measure, s) < 0)
        atomic_store(&s->is_measuring, false);
}

void service_start_measuring(struct service *s)
{
    s->measuring = loop_timer_new(s->loop, measure_on_worker, s);
    loop_timer_every(s->measuring, MEASURE_EVERY_MS);
    measure_on_worker(s);
}

void service_stop_measuring(void *service)
{
    struct service *s = service;

    s->measuring = loop_timer_free(s->measuring);
}
