/* Checks everything and says what to do, for the local administrator. */
#include "agents/agents.h"
#include "apps/apps.h"

#include "api/api.h"
#include "api/providers.h"
#include "api/routes.h"
#include "backend/backend.h"
#include "base/budget.h"
#include "base/limits.h"
#include "identity/audit.h"
#include "identity/consent.h"
#include "llm/local.h"
#include "os/files.h"
#include "os/hardening.h"
#include "os/program.h"
#include "settings/settings.h"
#include "store/agents.h"
#include "store/app_contacts.h"
#include "store/keys.h"
#include "store/provider_choices.h"
#include "store/retention.h"
#include "store/tasks.h"
#include "tasks/tasks.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { DOCTOR_FREE_MIB = 256, DOCTOR_CALLERS = 20 };

struct checkup {
    const struct request *req;
    struct api *api;
    struct arena *arena;
    struct json_writer *w;
};

static const struct field check_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_BOOL("ok"),
    SHAPE_STRING("text", .help = "what was found"),
    SHAPE_STRING("advice", .flags = FIELD_NULLABLE, .help = "what to do, when it is not ok"),
    FIELD_END,
};
static const struct field doctor_answer[] = { SHAPE_LIST("checks", check_shape), FIELD_END };

static void tell(struct checkup *c, const char *name, bool is_ok, const char *text, const char *advice)
{
    json_begin_object(c->w);
    json_add_string(c->w, "name", name);
    json_add_bool(c->w, "ok", is_ok);
    json_add_string(c->w, "text", text);
    json_add_string(c->w, "advice", is_ok ? NULL : advice);
    json_end(c->w);
}

/* --- folder and databases --- */

/* A file of the data folder that others may read, as one that was copied there by hand; NULL: none. */
static const char *open_file(struct checkup *c, const char *dir)
{
    DIR *entries = opendir(dir);
    const char *found = NULL;
    struct dirent *entry;
    struct stat st;

    while (entries && !found && (entry = readdir(entries)))
        if (entry->d_name[0] != '.' && fstatat(dirfd(entries), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(st.st_mode) &&
            (st.st_mode & 077) != 0)
            found = arena_strdup(c->arena, entry->d_name);
    if (entries)
        closedir(entries);
    return found;
}

static void check_folder(struct checkup *c)
{
    const char *dir = c->api->data_dir, *open = open_file(c, dir);
    struct stat st = { 0 };
    bool is_private = stat(dir, &st) == 0 && (st.st_mode & 077) == 0;

    if (open)
        tell(c, "folder", false, arena_printf(c->arena, "%s/%s is open to others", dir, open), arena_printf(c->arena, "chmod go= %s/%s", dir, open));
    tell(c, "folder", is_private, arena_printf(c->arena, "%s has mode %04o", dir, st.st_mode & 07777),
         arena_printf(c->arena, "others can look into it: chmod 700 %s", dir));
}

/* What the kernel lacks is no fault of the person's. */
static void check_hardening(struct checkup *c)
{
    struct hardening now = hardening_now();
    bool is_locked = identity_keys_are_locked(c->api->identity);
    const char *text = arena_printf(c->arena, "%s, %s, %s, %s",
                                    now.is_closed ? "its memory is closed to programs of the same user" : "its memory is open to programs of the same user",
                                    now.has_no_core ? "no core files" : "core files are possible",
                                    is_locked ? "its keys stay in memory" : "its keys may be swapped out",
                                    now.refuses_new_code ? "no new program code" : "this kernel cannot refuse new program code (Linux 6.6 can)");

    tell(c, "hardening", now.is_closed && now.has_no_core && is_locked, text,
         "raise the limit of locked memory (`ulimit -l`, LimitMEMLOCK= of systemd) to 64 KiB or more");
}

static void check_disk(struct checkup *c)
{
    uint64_t bytes = 0;
    struct err why = { 0 };
    int r = disk_free(c->api->data_dir, &bytes, &why);

    tell(c, "disk", r == 0 && bytes >= MIB(DOCTOR_FREE_MIB),
         r < 0 ? why.text : arena_printf(c->arena, "%llu MiB are free", (unsigned long long)(bytes >> 20)),
         arena_printf(c->arena, "make room: less than %d MiB are left for databases and logs", DOCTOR_FREE_MIB));
}

static void check_store(struct checkup *c)
{
    struct err why = { 0 };
    int r = store_check(c->api->store, &why);

    tell(c, "store", r == 0, r < 0 ? why.text : "hearth.db is whole", "stop the service and put a backup back with `hearth restore FILE --force`");
}

static void check_backend(struct checkup *c)
{
    struct backend *backend = c->api->backend;
    struct err why = { 0 };
    int r = backend->ops->is_ready(backend, &why);

    tell(c, "backend", r == 0, r < 0 ? why.text : arena_printf(c->arena, "%s answers", backend->ops->name),
         "look at the setting backend.file: `hearth settings backend.file`");
}

static const char *term_of(struct checkup *c, enum setting_id setting)
{
    int64_t days = settings_int(c->api->settings, setting);

    return days == 0 ? "kept forever" : arena_printf(c->arena, "kept %lld days", (long long)days);
}

static void check_audit(struct checkup *c)
{
    struct audit_verdict verdict = { 0 };
    struct err why = { 0 };
    int r = audit_verify(c->api->identity, &verdict, &why);
    bool is_whole = r == 0 && verdict.bad_seq == 0;

    tell(c, "audit", is_whole,
         r < 0 ? why.text : is_whole ? arena_printf(c->arena, "the audit log is whole, %lld entries, %s (audit.keep_days)",
                                                  (long long)(verdict.n_entries - verdict.n_trimmed), term_of(c, SETTING_AUDIT_KEEP_DAYS))
                                     : arena_printf(c->arena, "the audit log is broken at entry %lld", (long long)verdict.bad_seq),
         "somebody changed the database by hand; compare it with a backup");
}

static void check_settings(struct checkup *c)
{
    const char *fault;

    if (!settings_fault(c->api->settings, 0))
        tell(c, "settings", true, "every stored setting can be used", NULL);
    for (size_t i = 0; (fault = settings_fault(c->api->settings, i)); i++)
        tell(c, "settings", false, fault, "the service does not start before; `hearth settings` shows what counts");
}

static void check_network(struct checkup *c)
{
    bool is_remote = settings_bool(c->api->settings, SETTING_HTTP_ALLOW_REMOTE);

    tell(c, "network", true,
         !c->api->is_serving ? "no service runs on this data folder"
         : is_remote         ? "the service may listen for other machines (http.allow_remote)"
                             : arena_printf(c->arena, "the service answers at %s, for this machine only", c->api->base_url),
         NULL);
}

/* --- what holds apps and agents in --- */

static const char *namespaces_in_words(struct checkup *c, const struct sandbox_means *means)
{
    return means->has_namespaces ? "bubblewrap works" : arena_printf(c->arena, "no namespaces (%s)", means->why);
}

static void check_sandbox(struct checkup *c)
{
    struct sandbox_means means;
    const char *profile = settings_string(c->api->settings, c->arena, SETTING_SANDBOX_DEFAULT);
    const char *landlock;
    bool is_none = strcmp(profile, "none") == 0;

    sandbox_means(c->api->sandbox, &means);
    landlock = means.landlock_abi ? arena_printf(c->arena, "Landlock has version %d", means.landlock_abi) : "the kernel has no Landlock";
    tell(c, "sandbox", means.has_namespaces || is_none,
         arena_printf(c->arena, "%s, %s; apps and agents run in the profile %s unless their definition says otherwise", namespaces_in_words(c, &means),
                      landlock, profile),
         means.has_bwrap ? "let this user make user namespaces: `sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000`"
                         : "`apt install bubblewrap`; until then they can reach more of the machine (docs/security.md)");
}

/* --- agents and apps --- */

static void check_agents(struct checkup *c)
{
    struct agent_row *rows;
    struct err why = { 0 };
    size_t n = 0;
    int r = store_agents_list(c->api->store, c->arena, &rows, &n, &why);

    if (r < 0)
        tell(c, "agents", false, why.text, "see store");
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct agent_definition agent;
        char *path;

        why = (struct err){ 0 };
        r = agent_find(c->api->agents, rows[i].name, c->arena, &agent, &why);
        if (r == 0)
            r = program_find(c->arena, agent.command, agent.working_dir, getenv("PATH"), &path, &why);
        tell(c, "agent", r == 0, arena_printf(c->arena, "%s: %s", rows[i].name, r < 0 ? why.text : "its program is there"),
             "install the program or register the agent again with another command");
        r = 0;
    }
}

static void check_handlers(struct checkup *c, const struct app_config *app)
{
    const struct app_handler *handlers = app->handlers.items;

    for (size_t i = 0; i < app->handlers.n; i++) {
        struct agent_row row;

        if (store_agents_get(c->api->store, c->arena, handlers[i].agent_id, &row, NULL) == -ENOENT)
            tell(c, "handler", false,
                 arena_printf(c->arena, "%s hands events of %s to the agent %s, which is not registered", app->name,
                              handlers[i].table_name, handlers[i].agent_id),
                 "`hearth agent add FILE.json` registers it");
    }
}

static int check_app(void *arg, const struct app_config *app, struct err *e)
{
    struct checkup *c = arg;
    struct app_state state = { .status = APP_STOPPED };
    struct err why = { 0 };
    int r = app_check(c->api->apps, app->app_id, &why);
    bool is_ok;

    if (r == 0)
        r = app_state(c->api->apps, app->app_id, c->arena, &state, &why);
    is_ok = r == 0 && state.status != APP_ERROR;
    tell(c, "app", is_ok,
         arena_printf(c->arena, "%s: %s", app->name,
                      r < 0 ? why.text : is_ok ? app_status_name(state.status) : state.message),
         arena_printf(c->arena, "`hearth app logs %s` tells more; `hearth app start %s` tries again", app->name, app->name));
    check_handlers(c, app);
    return 0;
}

static void check_apps(struct checkup *c)
{
    struct err why = { 0 };

    if (app_each(c->api->apps, c->arena, check_app, c, &why) < 0)
        tell(c, "apps", false, why.text, "register the app again with `hearth app add FILE.json`");
}

/* --- providers of models --- */

static void tell_provider(struct checkup *c, const char *where, const char *name, const char *advice)
{
    tell(c, "provider", false, arena_printf(c->arena, "%s names %s, which is not configured", where, name), advice);
}

static void check_settings_of_providers(struct checkup *c)
{
    const struct request *req = c->req;
    const char *chats = settings_string(c->api->settings, c->arena, SETTING_LLM_DEFAULT_PROVIDER);
    const char *embeddings = settings_string(c->api->settings, c->arena, SETTING_EMBED_PROVIDER);
    size_t n;
    const char *const *fallbacks = settings_list(c->api->settings, c->arena, SETTING_LLM_FALLBACKS, &n);

    if (*chats && !provider_can(req, PROVIDER_CHAT, chats))
        tell_provider(c, "llm.default_provider", chats, "the first provider of `hearth provider list` is asked instead; `hearth provider default NAME` chooses one");
    if (!provider_can(req, PROVIDER_EMBED, embeddings))
        tell_provider(c, "embed.provider", embeddings, "embeddings are refused; `hearth provider default NAME --for embed` chooses another");
    for (size_t i = 0; i < n; i++)
        if (!provider_can(req, PROVIDER_CHAT, fallbacks[i]))
            tell_provider(c, "llm.fallbacks", fallbacks[i], "it is passed over; `hearth settings set llm.fallbacks A,B` names others");
}

static void check_choices_of_apps(struct checkup *c)
{
    struct provider_choice_row *rows = NULL;
    struct err why = { 0 };
    size_t n = 0;
    int r = store_provider_choices_list(c->api->store, c->arena, &rows, &n, &why);

    if (r < 0)
        tell(c, "provider", false, why.text, "see store");
    for (size_t i = 0; r == 0 && i < n; i++)
        if (!provider_can(c->req, provider_capability_of(rows[i].capability), rows[i].provider))
            tell_provider(c, arena_printf(c->arena, "the app %s", rows[i].app_name), rows[i].provider,
                          arena_printf(c->arena, "its requests are refused; `hearth provider default NAME --app %s` gives it another", rows[i].app_name));
}

/* Keys that do not open, as after a restored database without its master.key. */
static void check_stored_providers(struct checkup *c)
{
    const struct llm_vault vault = provider_vault(c->req);
    struct provider_account_row *rows = NULL;
    struct err why = { 0 };
    size_t n = 0;
    int r = store_provider_accounts_list(c->api->store, c->arena, &rows, &n, &why);

    if (r < 0)
        tell(c, "provider", false, why.text, "see store");
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct llm_account account;

        why = (struct err){ 0 };
        if (llm_stored_open(&vault, &rows[i], c->arena, &account, &why) < 0)
            tell(c, "provider", false, arena_printf(c->arena, "%s cannot be used: %s", rows[i].name, why.text),
                 arena_printf(c->arena, "put master.key back from the backup, or `hearth provider add %s` again", rows[i].preset));
    }
}

static void check_providers(struct checkup *c)
{
    const char *names = provider_names(c->req);

    tell(c, "providers", true,
         strcmp(names, "none") == 0 ? "no provider of language models is configured; `hearth provider add` adds one"
                                    : arena_printf(c->arena, "configured: %s", names), NULL);
    check_settings_of_providers(c);
    check_choices_of_apps(c);
    check_stored_providers(c);
}

/* --- what grows --- */

static void tell_kept(struct checkup *c, enum kept what, const char *name, enum setting_id setting)
{
    struct kept_sum sum = { 0 };
    struct err why = { 0 };
    int r = store_retention_sum(c->api->store, what, &sum, &why);

    tell(c, "kept", r == 0,
         r < 0 ? why.text
               : arena_printf(c->arena, "%s: %lld, %.1f MiB%s%.10s, %s (%s)", name, (long long)sum.n, (double)sum.bytes / (double)MIB(1),
                              *sum.oldest ? ", the oldest of " : "", sum.oldest, term_of(c, setting), settings_rules[setting].key),
         "see store");
}

static void tell_file(struct checkup *c, const char *name)
{
    const char *path = arena_printf(c->arena, "%s/%s", c->api->data_dir, name);
    struct stat st = { 0 };

    if (stat(path, &st) == 0)
        tell(c, "size", true, arena_printf(c->arena, "%s: %.1f MiB", name, (double)st.st_size / (double)MIB(1)), NULL);
}

static void check_sizes(struct checkup *c)
{
    tell_file(c, "hearth.db");
    tell_file(c, "backend.db");
    tell_file(c, "vectors.db");
    tell_kept(c, KEPT_TASKS, "tasks", SETTING_TASKS_KEEP_DAYS);
    tell_kept(c, KEPT_RUN_LOGS, "output of runs", SETTING_TASKS_KEEP_LOGS_DAYS);
    tell_kept(c, KEPT_EVENTS, "calendar events", SETTING_CALENDAR_KEEP_DAYS);
    tell_kept(c, KEPT_USAGE, "rows of usage", SETTING_USAGE_KEEP_DAYS);
    tell_kept(c, KEPT_DELIVERIES, "webhook answers", SETTING_WEBHOOKS_KEEP_DAYS);
}

/* --- what waits for the person --- */

static void check_tasks(struct checkup *c)
{
    const struct task_filter filter = { .only_quarantined = true, .limit = LIMIT_LIST };
    struct task_row *rows;
    struct err why = { 0 };
    size_t n = 0;
    int r = store_tasks_list(c->api->store, c->arena, &filter, &rows, &n, &why);

    tell(c, "tasks", r == 0 && n == 0,
         r < 0 ? why.text : n ? arena_printf(c->arena, "quarantined after failing on several machines: %zu", n) : "none is quarantined",
         "`hearth task list --quarantined` shows them, `hearth task show UUID` why, `hearth task replay UUID` tries again");
}

static void check_questions(struct checkup *c)
{
    struct consent_questions pending = { 0 };
    struct err why = { 0 };
    int r = consent_pending(c->api->identity, c->arena, &pending, &why);

    tell(c, "permissions", r == 0,
         r < 0 ? why.text : pending.n == 0 ? "none waits for an answer"
                 : arena_printf(c->arena, "questions that wait for an answer: %zu, see `hearth permission list`", pending.n), "see store");
}

/* --- who is at a limit --- */

enum { NEARLY = 10, LATELY_MS = 10 * 60 * 1000 };

struct budget_check { struct checkup *c; enum budget budget; };

static const char *holder_text(struct checkup *c, const struct budget_state *s)
{
    struct app_config app;

    if (s->kind == HOLDER_APP && app_find(c->api->apps, s->id, c->arena, &app, NULL) == 0)
        return arena_printf(c->arena, "the app %s", app.name);
    if (s->kind == HOLDER_NOBODY)
        return "programs of this machine that do not say who they are";
    return arena_printf(c->arena, "the %s %s", holder_kind_name(s->kind), s->id);
}

static const char *amount_text(struct checkup *c, enum budget b, int64_t n)
{
    return budget_rules[b].is_bytes ? arena_printf(c->arena, "%.1f MiB", (double)n / (double)MIB(1)) : arena_printf(c->arena, "%lld", (long long)n);
}

static void check_holder(void *arg, const struct budget_state *s)
{
    const struct budget_check *check = arg;
    const struct budget_rule *rule = &budget_rules[check->budget];
    struct checkup *c = check->c;
    bool is_near = s->limit != BUDGET_UNLIMITED && s->held >= s->limit - s->limit / NEARLY;
    bool was_refused = s->refused_ago_ms != BUDGET_NEVER_REFUSED && s->refused_ago_ms < LATELY_MS;

    if (!is_near && !was_refused)
        return;
    tell(c, "budget", false,
         arena_printf(c->arena, "%s: %s%s %s%s", holder_text(c, s), amount_text(c, check->budget, s->held),
                      s->limit == BUDGET_UNLIMITED ? "" : arena_printf(c->arena, " of %s", amount_text(c, check->budget, s->limit)), rule->holds,
                      was_refused ? arena_printf(c->arena, "; requests refused so far: %lld", (long long)s->n_refused) : ""),
         arena_printf(c->arena, "look at what it does, or raise the setting %s", rule->setting));
}

static void check_budgets(struct checkup *c)
{
    for (enum budget b = 0; b < N_BUDGETS; b++)
        budget_each(b, check_holder, &(struct budget_check){ c, b });
}

static void check_found(struct checkup *c)
{
    struct llm_waiting waiting[LLM_N_PROBES];
    size_t n = llm_accounts_waiting(c->api->llm_accounts, waiting);

    for (size_t i = 0; i < n; i++)
        tell(c, "found", !waiting[i].is_foreign,
             waiting[i].is_foreign ? arena_printf(c->arena, "at 127.0.0.1:%u, where %s usually listens, another user's program does", waiting[i].port, waiting[i].label)
                                   : arena_printf(c->arena, "%s was found at 127.0.0.1:%u and waits for your yes: `hearth provider accept %s`", waiting[i].label,
                                                  waiting[i].port, waiting[i].name),
             "it is sent nothing; find out whose it is");
}

/* No fault: a person may well call an app's program by hand. */
static void check_callers(struct checkup *c)
{
    struct app_contact_row *rows;
    struct err why = { 0 };
    size_t n = 0;
    int r = store_app_contacts_list(c->api->store, c->arena, &rows, &n, &why);

    tell(c, "callers", r == 0, r < 0 ? why.text : arena_printf(c->arena, "ids of apps are taken from: %s (identity.peers)",
         settings_string(c->api->settings, c->arena, SETTING_IDENTITY_PEERS)), "see store");
    for (size_t i = 0; r == 0 && i < MIN(n, (size_t)DOCTOR_CALLERS); i++)
        tell(c, "caller", true, arena_printf(c->arena, "a program that Hearth did not start, %s, used the id of %s first at %s; identity.peers at launched "
             "refuses it", rows[i].program, rows[i].app_name, rows[i].first_at), NULL);
}

/* --- whose work is done here --- */

/* The developer key whose data scope that is; NULL: of none. */
static const struct key_row *key_of_scope(const struct key_row *keys, size_t n, const char *scope)
{
    for (size_t i = 0; i < n; i++)
        if (keys[i].fingerprint && strcmp(keys[i].fingerprint, scope) == 0)
            return &keys[i];
    return NULL;
}

static void tell_owner(struct checkup *c, const struct backend_owner *owner, const struct key_row *key)
{
    const char *n = arena_printf(c->arena, "%lld row%s", (long long)owner->n_waiting, owner->n_waiting == 1 ? "" : "s");

    if (key)
        tell(c, "rows", false, arena_printf(c->arena, "%s inserted with the developer key %s and no app: nobody works on them", n, key->name),
             "send x-app-id of an app that listens beside the key, or work on them with the database functions (docs/activities.md)");
    else
        tell(c, "rows", false, arena_printf(c->arena, "%s of %.64s, which is no registered app: nobody works on them", n, owner->app_id),
             "register the app again with that app_id, or delete the rows");
}

/* Rows that wait although no app can take them. */
static void check_owners(struct checkup *c)
{
    struct backend *backend = c->api->backend;
    const char *table = arena_printf(c->arena, "%s_activities", settings_string(c->api->settings, c->arena, SETTING_IDENTITY_ABBR));
    struct backend_owners owners = { 0 };
    struct key_row *keys = NULL;
    struct err why = { 0 };
    size_t n_keys = 0, n_bad = 0;
    int r = store_keys_list(c->api->store, c->arena, &keys, &n_keys, &why);

    if (r == 0)
        r = backend->ops->owners(backend, table, c->arena, &owners, &why);
    if (r < 0)
        tell(c, "rows", false, why.text, "see backend");
    for (size_t i = 0; r == 0 && i < owners.n; i++)
        if (owners.items[i].app_id && !identity_knows_app(c->api->identity, owners.items[i].app_id)) {
            tell_owner(c, &owners.items[i], key_of_scope(keys, n_keys, owners.items[i].app_id));
            n_bad++;
        }
    if (r == 0 && n_bad == 0)
        tell(c, "rows", true, "every row that waits belongs to an app", NULL);
}

static void check_machine(struct checkup *c)
{
    const char *id = tasks_machine_id(c->api->tasks);
    bool is_taken = tasks_is_id_taken(c->api->tasks);

    tell(c, "machine", !is_taken,
         arena_printf(c->arena, is_taken ? "another service works on this backend with the machine id %s, so this one takes up nothing" : "the machine id is %s", id),
         "give this one an id of its own: `hearth settings set identity.machine_id NAME`, then start it again");
}

static void (*const checks[])(struct checkup *c) = {
    check_folder, check_hardening, check_disk, check_store, check_backend, check_audit, check_settings, check_network, check_sandbox, check_agents,
    check_apps, check_providers, check_sizes, check_budgets, check_tasks, check_owners, check_machine, check_questions, check_callers, check_found,
};

static int examine(struct request *req, struct response *res, struct err *e)
{
    struct checkup c = { req, req->api, req->arena, &res->json };

    json_begin_array_as(&res->json, "checks");
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
        checks[i](&c);
    json_end(&res->json);
    return 0;
}

const struct route doctor_routes[] = {
    { .method = HTTP_GET, .path = "/api/doctor", .permission = PERM_ADMIN, .kind = ROUTE_LONG, .answer = doctor_answer, .handler = examine,
      .summary = "Check everything and say what to do", .tag = "System" },
    ROUTE_END,
};
