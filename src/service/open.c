/* Opening every module in order, closing in reverse. What is NULL was not opened. */
#include "service/private.h"

#include "api/routes.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "identity/consent.h"
#include "llm/local.h"
#include "llm/stored.h"
#include "net/guard.h"
#include "os/files.h"
#include "store/meta.h"

#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

int service_load_settings(struct service *s, struct err *e)
{
    char *beside = arena_printf(s->arena, "%s/hearth.conf", s->config.data_dir);
    const struct settings_sources from = {
        .config_path = s->config.config_file                ? s->config.config_file
                       : access(beside, F_OK) == 0 ? beside : NULL,
        .env = (const char *const *)environ,
        .flags = s->config.sets,
        .n_flags = s->config.n_sets,
    };

    return settings_load(&from, &s->settings, e);
}

static int apply_stored_settings(struct service *s, struct err *e)
{
    struct setting_row *rows;
    size_t n;
    int r = store_settings_list(s->store, s->arena, &rows, &n, e);

    if (r == 0 && settings_apply_rows(s->settings, rows, n, s->config.is_repair ? NULL : e) < 0 && !s->config.is_repair)
        r = -EINVAL;
    if (r == 0)
        settings_begin(s->settings);
    return r;
}

/* The command line says itself what went wrong: its log tells only why a request failed inside. */
static void setup_log(struct service *s, bool is_serving)
{
    enum log_level level = LOG_INFO;
    int r;

    if (!is_serving) {
        log_setup(LOG_WARN, false);
        return;
    }
    r = log_level_parse(settings_string(s->settings, s->arena, SETTING_LOG_LEVEL), &level);

    if (r == 0)
        log_setup(level, strcmp(settings_string(s->settings, s->arena, SETTING_LOG_FORMAT), "json") == 0);
}

static int open_data(struct service *s, bool is_serving, struct err *e)
{
    int r = hash_init(e);

    if (r == 0)
        r = service_load_settings(s, e);
    if (r == 0)
        r = dir_make(s->config.data_dir, e);
    if (r == 0)
        r = dir_check_owner(s->config.data_dir, e);
    if (r == 0)
        r = lockfile_open(s->config.data_dir, &s->lock, e);
    if (r == 0)
        r = store_open(s->config.data_dir, &s->store, e);
    if (r == 0)
        r = apply_stored_settings(s, e);
    if (r == 0 && is_serving)
        r = service_check_addresses(s, e);
    if (r == 0)
        setup_log(s, is_serving);
    return r;
}

static void end_store_thread(void *store)
{
    store_thread_end(store);
}

static int start_pools(struct service *s, struct err *e)
{
    long cores = MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
    const struct pool_config short_pool = {
        .name = "short", .n_min = (size_t)cores * 2, .n_max = (size_t)cores * 2,
        .max_waiting = LIMIT_SHORT_WAITING, .n_reserved = LIMIT_SHORT_RESERVED, .must_not_wait = true, .on_thread_end = end_store_thread, .arg = s->store,
    };
    const struct pool_config long_pool = {
        .name = "long", .n_min = 1, .n_max = LIMIT_LONG_THREADS,
        .max_waiting = LIMIT_LONG_WAITING, .n_reserved = LIMIT_LONG_RESERVED, .on_thread_end = end_store_thread, .arg = s->store,
    };
    int r = pool_start(&short_pool, &s->short_pool, e);

    return r < 0 ? r : pool_start(&long_pool, &s->long_pool, e);
}

static int try_backend(struct service *s, struct err *e)
{
    char *file = settings_string(s->settings, s->arena, SETTING_BACKEND_FILE);
    const struct backend_embedded_config c = {
        .path = *file ? file : arena_printf(s->arena, "%s/backend.db", s->config.data_dir),
        .abbr = settings_string(s->settings, s->arena, SETTING_IDENTITY_ABBR),
        .poll_ms = (int)settings_int(s->settings, SETTING_BACKEND_POLL_MS),
    };

    return backend_embedded_open(&c, &s->backend, e);
}

/* A stored backend.file that does not open must not keep anybody from changing it. */
static int open_backend(struct service *s, struct err *e)
{
    struct err why = { 0 };
    int r = try_backend(s, &why);

    if (r == 0)
        return 0;
    if (settings_origin(s->settings, SETTING_BACKEND_FILE) != ORIGIN_DATABASE)
        return err_set(e, r, why.code, "%s", why.text);
    if (!s->config.is_repair)
        return err_set(e, r, why.code, "%s; the setting backend.file is kept in the database: `hearth settings unset backend.file` removes it", why.text);
    settings_drop_stored(s->settings, SETTING_BACKEND_FILE, why.text);
    return try_backend(s, e);
}

static int open_identity(struct service *s, struct err *e)
{
    int r = identity_open(s->store, s->settings, s->config.data_dir, &s->identity, e);

    if (r < 0)
        return r;
    consent_on_change(s->identity, wire_consent_changed, s);
    identity_on_contact(s->identity, wire_contact, s);
    return 0;
}

static int open_meter(struct service *s, bool is_serving, struct err *e)
{
    const struct meter_config c = { .store = s->store, .settings = s->settings, .is_serving = is_serving };

    return meter_open(&c, &s->meter, e);
}

static void make_guard(struct service *s)
{
    struct guard_config c = { 0 };

    c.private_hosts = settings_list(s->settings, s->arena, SETTING_NET_PRIVATE_HOSTS, &c.n_private_hosts);
    s->guard = guard_new(&c);
}

/* A command without a service seldom needs vectors: then they are opened only when it does. */
static int open_vector_stores(struct service *s, bool is_serving, struct err *e)
{
    struct vector_stores_config c = {
        .store = s->store,
        .identity = s->identity,
        .embedded = {
            .path = arena_printf(s->arena, "%s/vectors.db", s->config.data_dir),
            .list_above_rows = settings_int(s->settings, SETTING_VECTORS_LIST_ABOVE_ROWS),
            .target_recall = (double)settings_int(s->settings, SETTING_VECTORS_TARGET_RECALL_PERCENT) / 100,
            .memory_bytes = settings_int(s->settings, SETTING_VECTORS_MEMORY_MB) << 20,
        },
        .is_lazy = !is_serving,
    };

    make_guard(s);
    c.guard = s->guard;
    return vector_stores_open(&c, &s->vector_stores, e);
}

static void make_sandbox(struct service *s)
{
    const char *file = settings_string(s->settings, s->arena, SETTING_BACKEND_FILE);
    const char *backend[] = { file, arena_printf(s->arena, "%s-wal", file), arena_printf(s->arena, "%s-shm", file) };
    const char *hidden[ARRAY_SIZE(backend) + 2] = { NULL };
    size_t n = 0;
    const struct sandbox_config c = {
        .bwrap = settings_string(s->settings, s->arena, SETTING_SANDBOX_BWRAP),
        .data_dir = s->config.data_dir,
        .hidden = hidden,
        .profile = settings_string(s->settings, s->arena, SETTING_SANDBOX_DEFAULT),
    };

    for (size_t i = 0; *file && i < ARRAY_SIZE(backend); i++)
        hidden[n++] = backend[i];
    if (s->config.config_file)
        hidden[n++] = s->config.config_file;
    s->sandbox = sandbox_new(&c);
}

/* Children of a service that was killed are ended before anything new starts. */
static int open_supervisor(struct service *s, struct err *e)
{
    char fresh[UUID_SIZE], *instance;
    size_t n_orphans = 0;
    int r;

    uuid_v4(fresh);
    r = store_meta_keep(s->store, s->arena, META_INSTANCE_ID, fresh, &instance, e);
    if (r == 0)
        r = supervisor_open(s->loop, instance, &s->supervisor, &n_orphans, e);
    if (r == 0 && n_orphans > 0)
        log_warn("service", NULL, "ended %zu processes that an earlier run left behind", n_orphans);
    if (r == 0) {
        supervisor_set_sandbox(s->supervisor, s->sandbox);
        supervisor_on_sockets(s->supervisor, &(struct child_sockets){ wire_child_port, wire_child_ended, s });
    }
    return r;
}

static int open_apps(struct service *s, bool is_serving, struct err *e)
{
    const struct apps_config c = {
        .loop = s->loop, .pool = is_serving ? s->short_pool : NULL, .store = s->store, .settings = s->settings,
        .identity = s->identity, .supervisor = s->supervisor, .data_dir = s->config.data_dir,
        .base_url = s->api.base_url, .on_change = wire_app_changed, .arg = s,
    };

    return apps_open(&c, &s->apps, e);
}

/* The data folder itself, not what is in it, which can be copied. Its lock says that nobody else works on it. */
static const char *instance_of(struct service *s)
{
    struct stat st = { 0 };

    return stat(s->config.data_dir, &st) < 0 ? NULL : arena_printf(s->arena, "%llx:%llx", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
}

static int open_tasks(struct service *s, bool is_serving, struct err *e)
{
    const struct tasks_config c = {
        .instance = instance_of(s),
        .loop = s->loop, .store = s->store, .settings = s->settings, .backend = s->backend,
        .runner = wire_runner(s), .listeners = wire_listeners, .on_change = wire_task_changed, .arg = s,
        .is_serving = is_serving,
    };

    return tasks_open(&c, &s->tasks, e);
}

/* What this machine offers besides; models that are run are children. */
static int open_local(struct service *s, struct err *e)
{
    const struct llamacpp_config c = { .loop = s->loop, .settings = s->settings, .supervisor = s->supervisor, .data_dir = s->config.data_dir };
    int r = llamacpp_new(&c, &s->llamacpp, e);

    if (r == 0)
        r = llm_local_new(s->settings, s->llamacpp, &s->llm_local, e);
    if (r == 0)
        llm_accounts_set_local(s->llm_accounts, s->llm_local);
    if (r == 0)
        llm_local_on_waiting(s->llm_local, wire_provider_found, s);
    return r;
}

static int open_llm(struct service *s, bool is_serving, struct err *e)
{
    int r = llm_accounts_new(s->settings, (const char *const *)environ, &s->llm_accounts, e);
    const struct llm_vault vault = { s->llm_accounts, s->store, s->identity };
    size_t n_unusable = 0;

    if (r == 0)
        r = llm_stored_load(&vault, &n_unusable, e);
    if (n_unusable > 0)
        log_warn("service", NULL, "stored providers that cannot be used: %zu; `hearth doctor` tells why", n_unusable);
    return r < 0 || !is_serving ? r : llm_relays_new(s->loop, s->settings, &s->llm_relays, e);
}

static int open_api(struct service *s, bool is_serving, struct err *e)
{
    const struct dispatch_config c = {
        .api = &s->api, .tables = api_route_tables, .settings = s->settings, .identity = s->identity,
        .short_pool = is_serving ? s->short_pool : NULL, .long_pool = is_serving ? s->long_pool : NULL,
        .loop = is_serving ? s->loop : NULL,
    };
    int r;

    s->events = api_events_new(&s->api);
    r = dispatch_open(&c, &s->dispatch, e);
    s->api.loop = s->loop;
    s->api.settings = s->settings;
    s->api.store = s->store;
    s->api.identity = s->identity;
    s->api.meter = s->meter;
    s->api.backend = s->backend;
    s->api.tasks = s->tasks;
    s->api.agents = s->agents;
    s->api.apps = s->apps;
    s->api.sandbox = s->sandbox;
    s->api.vector_stores = s->vector_stores;
    s->api.llm_accounts = s->llm_accounts;
    s->api.llm_relays = s->llm_relays;
    s->api.dispatch = s->dispatch;
    s->api.events = s->events;
    s->api.data_dir = s->config.data_dir;
    s->api.is_serving = is_serving;
    return r;
}

int service_open_core(struct service *s, const struct service_config *c, bool is_serving, struct err *e)
{
    int r;

    s->config = *c;
    s->arena = arena_new();
    r = open_data(s, is_serving, e);
    if (r == 0)
        r = loop_new(&s->loop, e);
    if (r == 0 && is_serving)
        service_set_budgets(s);
    if (r == 0 && is_serving)
        r = start_pools(s, e);
    if (r == 0)
        r = open_backend(s, e);
    if (r == 0)
        r = open_identity(s, e);
    if (r == 0)
        r = open_meter(s, is_serving, e);
    if (r == 0)
        r = open_vector_stores(s, is_serving, e);
    if (r == 0)
        r = open_llm(s, is_serving, e);
    if (r == 0)
        make_sandbox(s);
    if (r == 0 && is_serving)
        r = open_supervisor(s, e);
    if (r == 0 && is_serving)
        r = open_local(s, e);
    if (r == 0)
        r = agents_open(s->store, s->supervisor, s->config.data_dir, &s->agents, e);
    if (r == 0)
        r = open_apps(s, is_serving, e);
    if (r == 0)
        r = open_tasks(s, is_serving, e);
    return r < 0 ? r : open_api(s, is_serving, e);
}

/* What cannot be stored now is lost: the log is the last to know. */
static void close_meter(struct service *s)
{
    struct err e = { 0 };

    if (s->meter && meter_flush(s->meter, &e) < 0)
        log_warn("service", NULL, "the usage of the last seconds could not be stored: %s", e.text);
    s->meter = meter_close(s->meter);
}

struct service *service_close(struct service *s)
{
    if (!s)
        return NULL;
    s->server = http_server_stop(s->server);
    if (s->folder_fd > 0)
        close(s->folder_fd);
    s->short_pool = pool_stop(s->short_pool);
    s->long_pool = pool_stop(s->long_pool);
    llamacpp_stop(s->llamacpp);
    s->supervisor = supervisor_close(s->supervisor, 0);         /* only when it never came to serving */
    s->sandbox = sandbox_free(s->sandbox);
    s->dispatch = dispatch_close(s->dispatch);
    s->tasks = tasks_close(s->tasks);
    s->apps = apps_close(s->apps);
    s->agents = agents_close(s->agents);
    s->vector_stores = vector_stores_close(s->vector_stores);
    guard_set_own(NULL);
    s->guard = guard_free(s->guard);
    s->llm_relays = llm_relays_free(s->llm_relays);
    s->llm_local = llm_local_free(s->llm_local);
    s->llamacpp = llamacpp_free(s->llamacpp);
    s->llm_accounts = llm_accounts_free(s->llm_accounts);
    close_meter(s);
    s->identity = identity_close(s->identity);
    s->backend = backend_close(s->backend);
    s->on_term = loop_watch_free(s->on_term);
    s->on_int = loop_watch_free(s->on_int);
    service_stop_upkeep(s);
    s->loop = loop_free(s->loop);
    s->events = api_events_free(s->events);
    s->settings = settings_free(s->settings);
    s->store = store_close(s->store);
    s->lock = lockfile_close(s->lock);
    s->arena = arena_free(s->arena);
    free(s);
    return NULL;
}
