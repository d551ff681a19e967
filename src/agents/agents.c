#include "agents/private.h"

#include "base/limits.h"
#include "os/env.h"
#include "os/files.h"
#include "store/tables/agents.h"

const struct field agent_definition_fields[] = {
    FIELD_STRING(struct agent_definition, name, "name", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "What handlers and triggers call it; unique"),
    FIELD_STRING(struct agent_definition, display_name, "display_name", .max = LIMIT_NAME_CHARS,
                 .help = "As people see it; the name when absent"),
    FIELD_STRING(struct agent_definition, description, "description", .max = LIMIT_TEXT_CHARS, .def_str = ""),
    FIELD_STRING(struct agent_definition, hub_id, "hub_id", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct agent_definition, command, "command", FIELD_REQUIRED, .min = 1, .max = LIMIT_TEXT_CHARS,
                 .help = "Program; looked up in PATH when it has no slash"),
    FIELD_STRINGS(struct agent_definition, args, "args", .max = LIMIT_ARGS, .help = "Before the task id"),
    FIELD_STRING(struct agent_definition, working_dir, "working_dir", .max = LIMIT_TEXT_CHARS,
                 .help = "Absolute; a folder of its own when absent"),
    FIELD_STRING_MAP(struct agent_definition, env, "env", .max = LIMIT_ARGS,
                     .help = "Added to the minimal environment"),
    FIELD_STRUCT(struct agent_definition, sandbox, "sandbox", sandbox_definition_fields, .help = "see docs/agents.md"),
    FIELD_BOOL(struct agent_definition, passes_arguments, "pass_arguments",
               .help = "The activity is also an argument after the task id, which every user of the machine can read"),
    FIELD_DOUBLE(struct agent_definition, timeout_s, "timeout_s", .min = 0.01, .max = 86400, .def = 900),
    FIELD_END
};

/* ---- open and close ---- */

/* Removes files that runs of a killed service left. */
static int clean_activities(struct agents *agents, struct err *e)
{
    int r = dir_remove(agents->activities_dir, e);

    return r < 0 ? r : dir_make(agents->activities_dir, e);
}

int agents_open(struct store *store, struct supervisor *supervisor, const char *data_dir, struct agents **ret,
                struct err *e)
{
    static const struct pool_config ends = {
        .name = "agent-end", .n_min = 0, .n_max = 2, .max_waiting = LIMIT_CHILDREN
    };
    struct agents *agents = xcalloc(1, sizeof(*agents));
    int r = 0;

    agents->arena = arena_new();
    agents->store = store;
    agents->supervisor = supervisor;
    agents->data_dir = arena_strdup(agents->arena, data_dir);
    agents->activities_dir = arena_printf(agents->arena, "%s/run/activities", data_dir);
    if (supervisor)
        r = clean_activities(agents, e);
    if (r == 0 && supervisor)
        r = pool_start(&ends, &agents->ends, e);
    if (r < 0) {
        agents_close(agents);
        return r;
    }
    *ret = agents;
    return 0;
}

void agents_finish(struct agents *agents)
{
    if (agents->ends)
        pool_finish(agents->ends);
}

struct agents *agents_close(struct agents *agents)
{
    if (!agents)
        return NULL;
    pool_stop(agents->ends);
    arena_free(agents->arena);
    free(agents);
    return NULL;
}

/* ---- definitions ---- */

int agent_check(const struct agents *agents, const struct agent_definition *d, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct env_list *env = env_list_new(a);
    struct json_iter it = json_iter(d->env);
    struct json_value value;
    struct slice name;
    int r = 0;

    if (d->working_dir && *d->working_dir && d->working_dir[0] != '/')
        r = err_add_field(e, "working_dir", "must be an absolute path");
    while (json_next(&it, &name, &value)) {
        struct err why = { 0 };

        if (env_list_set(env, arena_slicedup(a, name), json_cstr(value), &why) < 0)
            r = err_add_field(e, "env", "holds what cannot be: %s", why.text);
    }
    if (sandbox_definition_check(&d->sandbox, "sandbox", agents->data_dir, e) < 0)
        r = -EINVAL;
    return r;
}

int agent_put(struct agents *agents, const struct agent_definition *d, struct slice json, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct agent_row row = {
        .name = d->name,
        .display_name = d->display_name ? d->display_name : d->name,
        .description = d->description,
        .hub_id = d->hub_id,
        .kind = "process",
        .definition = arena_slicedup(a, json),
    }, known;
    int r = agent_check(agents, d, e);

    if (r < 0)
        return r;
    r = store_agents_get(agents->store, a, d->name, &known, NULL);
    return r == -ENOENT ? store_agents_insert(agents->store, &row, e) : store_agents_update(agents->store, &row, e);
}

int agent_remove(struct agents *agents, const char *name, struct err *e)
{
    return store_agents_delete(agents->store, name, e);
}

int agent_find(struct agents *agents, const char *name, struct arena *a, struct agent_definition *ret, struct err *e)
{
    struct agent_definition d = { 0 };
    struct agent_row row;
    struct json_value object;
    int r = store_agents_get(agents->store, a, name, &row, e);

    if (r == -ENOENT)
        return err_set(e, r, "AGENT_NOT_FOUND", "There is no agent named \"%s\".", name);
    if (r == 0)
        r = json_parse(a, slice_of(row.definition), &object, e);
    if (r == 0)
        r = fields_read(agent_definition_fields, object, &d, a, "", e);
    if (r < 0)
        return r;
    d.display_name = row.display_name;
    *ret = d;
    return 0;
}
