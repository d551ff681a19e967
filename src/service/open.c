/* Opens every module in order, closes them in reverse. A NULL member was not opened. */
#include "service/private.h"

#include "api/routes.h"
#include "backend/backend_providers.h"
#include "backend/custom/custom.h"
#include "backup/backup.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/secret.h"
#include "identity/consent.h"
#include "identity/seal.h"
#include "llm/local/local.h"
#include "llm/stored.h"
#include "models/speech_accounts.h"
#include "net/guard.h"
#include "os/few_files.h"
#include "os/files.h"
#include "store/instance.h"

#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* The file given by the command line, else hearth.conf of the data folder; NULL when there is none. */
static const char *settings_path(const struct service *s, struct arena *a)
{
    char *beside = arena_printf(a, "%s/hearth.conf", s->config.data_dir);

    return s->config.config_file ? s->config.config_file : access(beside, F_OK) == 0 ? beside : NULL;
}

int service_load_settings(struct service *s, struct err *e)
{
    const struct settings_sources from = {
        .config_path = settings_path(s, s->arena),
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

/* The command line reports errors itself: its log says only why a request failed internally. */
static void setup_log(struct service *s, bool is_serving)
{
    if (is_serving)
        settings_apply_log(s->settings);
    else
        log_setup(LOG_WARN, false);
}

void service_reload(void *service)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct service *s = service;
    struct err e = { 0 };

    if (settings_reload_file(s->settings, settings_path(s, a), &e) < 0) {
        log_error("service", NULL, "the settings stay as they are: %s", e.text);
        return;
    }
    settings_apply_log(s->settings);
    log_info("service", NULL, "the settings file was read again");
}

/* Finishes or removes the remains of killed commands before anything is opened. */
static int settle_folder(struct service *s, struct err *e)
{
    bool was_unfinished = false;
    int r = backup_finish_restore(s->config.data_dir, &was_unfinished, e);
    size_t n_left;

    if (r < 0)
        return r;
    if (was_unfinished)
        log_warn("service", NULL, "finished a restore that had been interrupted");
    n_left = backup_clean(s->config.data_dir);
    if (n_left > 0)
        log_info("service", NULL, "removed what %zu interrupted backups or restores left", n_left);
    return instance_open(s->config.data_dir, s->config.accept_loss, &s->instance, e);
}

static int open_data(struct service *s, bool is_serving, struct err *e)
{
    int r = hash_init(e);

    s->is_first_start = access(arena_printf(s->arena, "%s/run", s->config.data_dir), F_OK) < 0;
    if (r == 0)
        r = service_load_settings(s, e);
    if (r == 0)
        r = dir_make(s->config.data_dir, e);
    if (r == 0)
        r = dir_check_owner(s->config.data_dir, e);
    if (r == 0)
        r = lockfile_open(s->config.data_dir, &s->lock, e);
    if (r == 0)
        r = settle_folder(s, e);
    if (r == 0)
        r = store_open_of(s->instance, s->config.data_dir, &s->store, e);
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
    struct pool_config short_pool = {
        .name = "short",
        .n_min = (size_t)cores * 2,
        .n_max = (size_t)cores * 2,
        .max_waiting = LIMIT_SHORT_WAITING,
        .n_reserved = LIMIT_SHORT_RESERVED,
        .must_not_wait = true,
        .on_thread_end = end_store_thread,
        .arg = s->store,
    };
    struct pool_config long_pool = {
        .name = "long",
        .n_min = 1,
        .n_max = LIMIT_LONG_THREADS,
        .max_waiting = LIMIT_LONG_WAITING,
        .n_reserved = LIMIT_LONG_RESERVED,
        .on_thread_end = end_store_thread,
        .arg = s->store,
    };
    int r;

    few_files_adapt(&short_pool);
    few_files_adapt(&long_pool);
    r = pool_start(&short_pool, &s->short_pool, e);
    return r < 0 ? r : pool_start(&long_pool, &s->long_pool, e);
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
    c.is_public_only = true;
    s->file_guard = guard_new(&c);
}

/* A command without a service seldom needs vectors: they are opened only when needed. */
static int open_vector_stores(struct service *s, bool is_serving, struct err *e)
{
    struct vector_stores_config c = {
        .store = s->store,
        .identity = s->identity,
        .embedded = {
            .path = arena_printf(s->arena, "%s/vectors.db", s->config.data_dir),
            .side_folder = arena_printf(s->arena, "%s/vectors.side", s->config.data_dir),
            .instance = s->instance,
            .list_above_rows = settings_int(s->settings, SETTING_VECTORS_LIST_ABOVE_ROWS),
            .target_recall = (double)settings_int(s->settings, SETTING_VECTORS_TARGET_RECALL_PERCENT) / 100,
            .sketch_deviations = (double)settings_int(s->settings, SETTING_VECTORS_SKETCH_DEVIATIONS),
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
    static const char *const endings[] = { "", "-wal", "-shm" };
    const struct backend_file rows = backend_provider_file(s->settings, s->config.data_dir, s->arena);
    const char *hidden[ARRAY_SIZE(endings) + 2] = { NULL };
    size_t n = 0;
    const struct sandbox_config c = {
        .bwrap = settings_string(s->settings, s->arena, SETTING_SANDBOX_BWRAP),
        .data_dir = s->config.data_dir,
        .hidden = hidden,
        .profile = settings_string(s->settings, s->arena, SETTING_SANDBOX_DEFAULT),
    };

    for (size_t i = 0; rows.is_elsewhere && i < ARRAY_SIZE(endings); i++)
        hidden[n++] = arena_printf(s->arena, "%s%s", rows.path, endings[i]);
    if (s->config.config_file)
        hidden[n++] = s->config.config_file;
    s->sandbox = sandbox_new(&c);
}

/* Identifies the data folder itself, not its content, which can be copied. The folder's lock proves that no other
 * process works on it. */
static const char *folder_of(struct service *s)
{
    struct stat st = { 0 };

    return stat(s->config.data_dir, &st) < 0
               ? NULL
               : arena_printf(s->arena, "%llx:%llx", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
}

/* Ends the children of a killed service before any new child starts. */
static int open_supervisor(struct service *s, struct err *e)
{
    const char *folder = folder_of(s);
    size_t n_orphans = 0;
    int r;

    if (!folder)
        return err_errno(e, errno, "The data folder %s", s->config.data_dir);
    r = supervisor_open(s->loop, folder, &s->supervisor, &n_orphans, e);
    if (r == 0 && n_orphans > 0)
        log_warn("service", NULL, "ended %zu processes that an earlier run left behind", n_orphans);
    if (r == 0) {
        supervisor_set_sandbox(s->supervisor, s->sandbox);
        supervisor_on_sockets(s->supervisor, &(struct child_sockets){ wire_child_port, wire_child_ended, s });
    }
    return r;
}

static int open_agents(struct service *s, struct err *e)
{
    const struct approvals_config c = { .store = s->store,
                                        .settings = s->settings,
                                        .identity = s->identity,
                                        .on_change = wire_approval_changed,
                                        .arg = s };
    int r = agents_open(s->store, s->supervisor, s->config.data_dir, &s->agents, e);

    return r < 0 ? r : approvals_open(&c, &s->approvals, e);
}

static int open_apps(struct service *s, bool is_serving, struct err *e)
{
    const struct apps_config c = {
        .loop = s->loop,
        .pool = is_serving ? s->short_pool : NULL,
        .store = s->store,
        .settings = s->settings,
        .identity = s->identity,
        .supervisor = s->supervisor,
        .data_dir = s->config.data_dir,
        .base_url = s->api.base_url,
        .on_change = wire_app_changed,
        .arg = s,
    };

    return apps_open(&c, &s->apps, e);
}

static int open_tasks(struct service *s, bool is_serving, struct err *e)
{
    const struct tasks_config c = {
        .instance = folder_of(s),
        .loop = s->loop,
        .store = s->store,
        .settings = s->settings,
        .backend = s->backend,
        .runner = wire_runner(s),
        .listeners = wire_listeners,
        .on_change = wire_task_changed,
        .arg = s,
        .is_serving = is_serving,
    };

    return tasks_open(&c, &s->tasks, e);
}

/* Opens the models that this machine itself offers; running models are children. */
static int open_local(struct service *s, struct err *e)
{
    const struct llamacpp_config c = {
        .loop = s->loop, .settings = s->settings, .supervisor = s->supervisor, .data_dir = s->config.data_dir
    };
    int r = llamacpp_new(&c, &s->llamacpp, e);

    if (r == 0)
        r = llm_local_new(s->settings, s->llamacpp, &s->llm_local, e);
    if (r == 0)
        llm_accounts_set_local(s->llm_accounts, s->llm_local);
    if (r == 0)
        llm_local_on_waiting(s->llm_local, wire_provider_found, s);
    return r;
}

static void open_speech(struct service *s)
{
    const struct speech_accounts accounts = { speech_accounts_list, &s->models };
    const struct speech_config c = {
        .supervisor = s->supervisor, .settings = s->settings, .is_leaving = &s->api.is_leaving, .accounts = accounts
    };

    s->api.speech = s->speech = speech_open(&c);
    s->ears = ears_open(
        &(struct ears_config){ s->supervisor, s->settings, &s->api.is_leaving, accounts, s->config.data_dir });
    s->api.ears = s->ears;
    s->api.speech_sessions = s->speech_sessions = speech_sessions_new();
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
    if (r < 0 || !is_serving)
        return r;
    r = llm_turns_new(s->loop, s->settings, s->short_pool, &s->llm_turns, e);
    if (r == 0)
        s->llm_relays = llm_relays_new(s->llm_turns, s->settings);
    return r;
}

/* Logins at MCP servers; only a service answers a browser. */
static int open_mcp_oauth(struct service *s, struct err *e)
{
    struct mcp_oauth_config c = { .store = s->store, .guard = s->guard, .public_guard = s->file_guard };
    int r;

    s->mcp_key = secret_new(SEAL_KEY_BYTES);
    if (!s->mcp_key)
        return err_set(e, -ENOMEM, "INTERNAL_ERROR", "There is no memory that can be locked for the keys.");
    r = seal_load(s->config.data_dir, s->mcp_key, e);
    secret_freeze(s->mcp_key);
    c.key = s->mcp_key;
    if (r == 0)
        s->mcp_oauth = mcp_oauth_new(&c);
    return r;
}

static int open_mcp_host(struct service *s, struct err *e)
{
    int r = s->supervisor ? open_mcp_oauth(s, e) : 0;
    const struct mcp_host_config c = { .store = s->store,
                                       .settings = s->settings,
                                       .identity = s->identity,
                                       .supervisor = s->supervisor,
                                       .sandbox = s->sandbox,
                                       .oauth = s->mcp_oauth,
                                       .data_dir = s->config.data_dir,
                                       .hooks = { .trust = s->approvals ? wire_mcp_trust : NULL,
                                                  .sample = s->approvals ? wire_mcp_sample : NULL,
                                                  .elicit = s->approvals ? wire_mcp_elicit : NULL,
                                                  .changed = wire_mcp_changed,
                                                  .arg = s } };

    if (r == 0)
        r = mcp_host_open(&c, &s->mcp_host, e);
    if (r == 0 && mcp_host_n_unusable(s->mcp_host) > 0)
        log_warn("service", NULL,
                 "stored MCP servers that cannot be read: %zu; set them up again with `hearth mcp add`",
                 mcp_host_n_unusable(s->mcp_host));
    s->api.mcp_host = s->mcp_host;
    s->api.mcp_oauth = s->mcp_oauth;
    return r;
}

static void fill_models(struct service *s)
{
    s->models = (struct models){ .loop = s->loop,
                                 .settings = s->settings,
                                 .store = s->store,
                                 .identity = s->identity,
                                 .meter = s->meter,
                                 .llm_accounts = s->llm_accounts,
                                 .llm_turns = s->llm_turns,
                                 .llm_relays = s->llm_relays,
                                 .vector_stores = s->vector_stores,
                                 .file_guard = s->file_guard,
                                 .is_leaving = &s->api.is_leaving };
}

static int open_turns(struct service *s, bool is_serving, struct err *e)
{
    const struct agent_turns_config c = { .loop = is_serving ? s->loop : NULL,
                                          .store = s->store,
                                          .settings = s->settings,
                                          .agents = s->agents,
                                          .approvals = s->approvals,
                                          .host = s->mcp_host,
                                          .models = &s->models,
                                          .services = &s->tool_services,
                                          .data_dir = s->config.data_dir };

    s->tool_services = wire_builtin_services(s);
    return agent_turns_open(&c, &s->agent_turns, e);
}

static int open_api(struct service *s, bool is_serving, struct err *e)
{
    const struct dispatch_config c = {
        .api = &s->api,
        .tables = api_route_tables,
        .settings = s->settings,
        .identity = s->identity,
        .short_pool = is_serving ? s->short_pool : NULL,
        .long_pool = is_serving ? s->long_pool : NULL,
        .loop = is_serving ? s->loop : NULL,
    };
    int r;

    fill_models(s);
    s->events = api_events_new(&s->api);
    r = dispatch_open(&c, &s->dispatch, e);
    if (r == 0 && is_serving)
        r = service_open_face(s, e);
    s->api.realtime = s->realtime;
    s->api.face_auth = s->face_auth;
    s->api.loop = s->loop;
    s->api.settings = s->settings;
    s->api.store = s->store;
    s->api.identity = s->identity;
    s->api.meter = s->meter;
    s->api.backend = s->backend;
    atomic_store(&s->api.has_remote_rows, backend_provider_of(s->settings)->is_remote);
    s->api.tasks = s->tasks;
    s->api.agents = s->agents;
    s->api.agent_turns = s->agent_turns;
    s->api.approvals = s->approvals;
    s->api.apps = s->apps;
    s->api.sandbox = s->sandbox;
    s->api.llm_accounts = s->llm_accounts;
    s->api.models = &s->models;
    s->api.short_pool = is_serving ? s->short_pool : NULL;
    s->api.dispatch = s->dispatch;
    s->v1_kept = is_serving ? v1_kept_open(s->loop, s->settings) : NULL;
    s->api.v1_kept = s->v1_kept;
    s->mcp_api = is_serving ? mcp_api_open(&s->api) : NULL;
    s->api.mcp_api = s->mcp_api;
    s->api.events = s->events;
    s->api.instance = s->instance;
    s->api.data_dir = s->config.data_dir;
    s->api.is_serving = is_serving;
    return r;
}

int service_open_core(struct service *s, const struct service_config *c, bool is_serving, struct err *e)
{
    const char *accepted;
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
        r = service_open_backend(s, e);
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
        open_speech(s);
    if (r == 0)
        r = open_agents(s, e);
    if (r == 0)
        r = open_mcp_host(s, e);
    if (r == 0)
        r = open_turns(s, is_serving, e);
    if (r == 0)
        r = open_apps(s, is_serving, e);
    if (r == 0)
        r = wire_custom(s, e);
    if (r == 0)
        r = open_tasks(s, is_serving, e);
    if (r == 0 && is_serving)
        service_log_copies(s);
    for (size_t i = 0; r == 0 && (accepted = instance_accepted(s->instance, i)); i++)
        log_warn("service", NULL, "the loss is accepted: %s", accepted);
    return r < 0 ? r : open_api(s, is_serving, e);
}

/* Counts that cannot be stored now are lost, and this log line reports the loss. */
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
    realtime_stop(s->realtime);
    llamacpp_stop(s->llamacpp);
    s->speech = speech_close(s->speech);
    s->ears = ears_close(s->ears);
    s->speech_sessions = speech_sessions_free(s->speech_sessions);
    s->mcp_host = mcp_host_close(s->mcp_host);
    s->mcp_oauth = mcp_oauth_free(s->mcp_oauth);
    s->mcp_key = secret_free(s->mcp_key);
    s->supervisor = supervisor_close(s->supervisor, 0); /* only when the service never began to serve */
    s->sandbox = sandbox_free(s->sandbox);
    s->dispatch = dispatch_close(s->dispatch);
    s->tasks = tasks_close(s->tasks);
    if (s->custom)
        custom_stop(s->custom);
    s->apps = apps_close(s->apps);
    s->agent_turns = agent_turns_close(s->agent_turns);
    s->approvals = approvals_close(s->approvals);
    s->agents = agents_close(s->agents);
    s->vector_stores = vector_stores_close(s->vector_stores);
    guard_set_own(NULL);
    s->guard = guard_free(s->guard);
    s->file_guard = guard_free(s->file_guard);
    s->llm_relays = llm_relays_free(s->llm_relays);
    s->llm_turns = llm_turns_free(s->llm_turns);
    s->v1_kept = v1_kept_close(s->v1_kept);
    s->llm_local = llm_local_free(s->llm_local);
    s->llamacpp = llamacpp_free(s->llamacpp);
    s->llm_accounts = llm_accounts_free(s->llm_accounts);
    close_meter(s);
    s->identity = identity_close(s->identity);
    s->backend = backend_close(s->backend);
    s->on_term = loop_watch_free(s->on_term);
    s->on_int = loop_watch_free(s->on_int);
    s->on_hup = loop_watch_free(s->on_hup);
    service_stop_upkeep(s);
    s->leaving = loop_timer_free(s->leaving);
    s->loop = loop_free(s->loop);
    s->realtime = realtime_free(s->realtime);
    s->face_auth = face_auth_free(s->face_auth);
    s->events = api_events_free(s->events);
    s->mcp_api = mcp_api_close(s->mcp_api);
    s->settings = settings_free(s->settings);
    s->store = store_close(s->store);
    s->instance = instance_close(s->instance);
    s->lock = lockfile_close(s->lock);
    s->arena = arena_free(s->arena);
    free(s);
    return NULL;
}
