/* Checks of agents, apps, tasks, pending permission requests, and of the owners whose rows this machine processes. */
#include "api/resources/doctor.h"

#include "agents/agents.h"
#include "apps/apps.h"

#include "api/api.h"
#include "backend/backend.h"
#include "base/limits.h"
#include "identity/consent.h"
#include "os/program.h"
#include "settings/settings.h"
#include "store/tables/keys.h"
#include "store/tables/tasks.h"
#include "tasks/tasks.h"

#include <sys/stat.h>

/* --- agents and apps --- */

static void check_agent(struct checkup *c, const char *name)
{
    struct agent_definition agent = { 0 };
    struct err why = { 0 };
    char *path;
    int r = agent_find(c->api->agents, name, c->arena, &agent, &why);

    if (r == 0 && !agent_is_model(&agent))
        r = program_find(c->arena, agent.command, agent.working_dir, getenv("PATH"), &path, &why);
    doctor_add(c, "agent", r == 0,
               arena_printf(c->arena, "%s: %s", name,
                            r < 0                    ? why.text
                            : agent_is_model(&agent) ? "it works with a model"
                                                     : "its program is there"),
               "install the program or register the agent again with another command");
}

void doctor_check_agents(struct checkup *c)
{
    struct agent_row *rows;
    struct err why = { 0 };
    size_t n = 0;
    int r = agents_list(c->api->agents, c->arena, &rows, &n, &why);

    if (r < 0)
        doctor_add(c, "agents", false, why.text, "see store");
    for (size_t i = 0; r == 0 && i < n; i++) {
        check_agent(c, rows[i].name);
    }
}

static void check_handlers(struct checkup *c, const struct app_config *app)
{
    const struct app_handler *handlers = app->handlers.items;

    for (size_t i = 0; i < app->handlers.n; i++) {
        struct agent_row row;

        if (agent_get(c->api->agents, handlers[i].agent_id, c->arena, &row, NULL) == -ENOENT)
            doctor_add(c, "handler", false,
                       arena_printf(c->arena, "%s hands events of %s to the agent %s, which is not registered",
                                    app->name, handlers[i].table_name, handlers[i].agent_id),
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
    doctor_add(c, "app", is_ok,
               arena_printf(c->arena, "%s: %s", app->name,
                            r < 0   ? why.text
                            : is_ok ? app_status_name(state.status)
                                    : state.message),
               arena_printf(c->arena, "`hearth app logs %s` tells more; `hearth app start %s` tries again", app->name,
                            app->name));
    check_handlers(c, app);
    return 0;
}

void doctor_check_apps(struct checkup *c)
{
    struct err why = { 0 };

    if (app_each(c->api->apps, c->arena, check_app, c, &why) < 0)
        doctor_add(c, "apps", false, why.text, "register the app again with `hearth app add FILE.json`");
}

/* --- work that waits for the user --- */

void doctor_check_tasks(struct checkup *c)
{
    const struct task_filter filter = { .only_quarantined = true, .limit = LIMIT_LIST };
    struct task_row *rows;
    struct err why = { 0 };
    size_t n = 0;
    int r = store_tasks_list(c->api->store, c->arena, &filter, &rows, &n, &why);

    doctor_add(
        c, "tasks", r == 0 && n == 0,
        r < 0 ? why.text
        : n   ? arena_printf(c->arena, "quarantined after failing on several machines: %zu", n)
              : "none is quarantined",
        "`hearth task list --quarantined` shows them, `hearth task show UUID` why, `hearth task replay UUID` tries again");
}

void doctor_check_questions(struct checkup *c)
{
    struct consent_questions pending = { 0 };
    struct err why = { 0 };
    int r = consent_pending(c->api->identity, c->arena, &pending, &why);

    doctor_add(c, "permissions", r == 0,
               r < 0 ? why.text
               : pending.n == 0
                   ? "none waits for an answer"
                   : arena_printf(c->arena, "questions that wait for an answer: %zu, see `hearth permission list`",
                                  pending.n),
               "see store");
}

/* --- owners of rows --- */

/* The developer key with this data scope; NULL: no key has it. */
static const struct key_row *key_of_scope(const struct key_row *keys, size_t n, const char *scope)
{
    for (size_t i = 0; i < n; i++)
        if (keys[i].fingerprint && strcmp(keys[i].fingerprint, scope) == 0)
            return &keys[i];
    return NULL;
}

static void report_owner(struct checkup *c, const struct backend_owner *owner, const struct key_row *key)
{
    const char *n = arena_printf(c->arena, "%lld row%s", (long long)owner->n_waiting, owner->n_waiting == 1 ? "" : "s");

    if (key)
        doctor_add(
            c, "rows", false,
            arena_printf(c->arena, "%s inserted with the developer key %s and no app: nobody works on them", n,
                         key->name),
            "send x-app-id of an app that listens beside the key, or work on them with the database functions (docs/activities.md)");
    else
        doctor_add(c, "rows", false,
                   arena_printf(c->arena, "%s of %.64s, which is no registered app: nobody works on them", n,
                                owner->app_id),
                   "register the app again with that app_id, or delete the rows");
}

/* Reports rows that no machine may take, whoever owns them. */
static void report_stuck(struct checkup *c, const struct backend_owner *owner)
{
    const char *n = arena_printf(c->arena, "%lld row%s of %.130s", (long long)owner->n_waiting,
                                 owner->n_waiting == 1 ? "" : "s", owner->table);

    if (owner->stuck == BACKEND_STUCK_STATUS)
        doctor_add(c, "rows", false,
                   arena_printf(c->arena,
                                "%s with the status \"%.40s\", which is no word of Hearth's: nobody works on them", n,
                                owner->status),
                   "write it in small letters and without spaces, as `pending`");
    else
        doctor_add(
            c, "rows", false,
            arena_printf(c->arena, "%s failed on so many machines that none may take them (tasks.max_machines)", n),
            "`hearth task list --quarantined` shows their tasks, `hearth task replay UUID` tries again; a row without a task is set to "
            "pending by PATCH /activities/ID");
}

/* Reports waiting rows that no app or no machine can take. */
void doctor_check_owners(struct checkup *c)
{
    struct backend *backend = c->api->backend;
    struct backend_owners owners = { 0 };
    struct key_row *keys = NULL;
    struct err why = { 0 };
    size_t n_keys = 0, n_bad = 0;
    int r = store_keys_list(c->api->store, c->arena, &keys, &n_keys, &why);

    if (r == 0)
        r = backend->ops->owners(backend, settings_int(c->api->settings, SETTING_TASKS_MAX_MACHINES), c->arena, &owners,
                                 &why);
    if (r < 0)
        doctor_add(c, "rows", false, why.text, "see backend");
    for (size_t i = 0; r == 0 && i < owners.n; i++) {
        const struct backend_owner *owner = &owners.items[i];
        bool is_strange = owner->app_id && !identity_knows_app(c->api->identity, owner->app_id);

        if (owner->stuck != BACKEND_NOT_STUCK)
            report_stuck(c, owner);
        else if (is_strange)
            report_owner(c, owner, key_of_scope(keys, n_keys, owner->app_id));
        n_bad += owner->stuck != BACKEND_NOT_STUCK || is_strange;
    }
    if (r == 0 && n_bad == 0)
        doctor_add(c, "rows", true, "every row that waits belongs to an app", NULL);
}

void doctor_check_machine(struct checkup *c)
{
    const char *id = tasks_machine_id(c->api->tasks);
    bool is_taken = tasks_is_id_taken(c->api->tasks);

    doctor_add(
        c, "machine", !is_taken,
        arena_printf(c->arena,
                     is_taken
                         ? "another service works on this backend with the machine id %s, so this one takes up nothing"
                         : "the machine id is %s",
                     id),
        "give this one an id of its own: `hearth settings set identity.machine_id NAME`, then start it again");
}
