#include "agents/private.h"

#include "base/limits.h"
#include "base/suggest.h"
#include "os/files.h"

/* What AGENT_DEFAULT is until a person defines it otherwise. */
static const char default_definition[] =
    "{\"name\":\"" AGENT_DEFAULT "\",\"kind\":\"model\",\"display_name\":\"Agent\","
    "\"description\":\"Answers with the default provider and Hearth's own tools.\","
    "\"instructions\":\"You are a helpful assistant on a person's own machine. Today is {date} ({time_zone}). The "
    "workspace is {workspace}. Use the tools when they help, and say so when you do not know.\","
    "\"tools\":[\"" AGENT_BUILTIN_TOOLS "/*\"]}";

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

/* ---- rows ---- */

static const struct agent_row *default_row(void)
{
    static const struct agent_row row = {
        .name = AGENT_DEFAULT,
        .display_name = "Agent",
        .description = "Answers with the default provider and Hearth's own tools.",
        .kind = "model",
        .definition = default_definition,
    };

    return &row;
}

static int err_unknown(struct agents *agents, const char *name, struct arena *a, struct err *e)
{
    struct agent_row *rows = NULL;
    const char **names, *near;
    size_t n = 0;

    if (agents_list(agents, a, &rows, &n, NULL) < 0)
        n = 0;
    names = arena_array(a, n + 1, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = rows[i].name;
    near = suggest_name(name, names, n);
    return err_set(e, -ENOENT, "AGENT_NOT_FOUND", "There is no agent named \"%.100s\"%s%s%s", name,
                   near ? "; did you mean " : ".", near ? near : "", near ? "?" : "");
}

int agent_get(struct agents *agents, const char *name, struct arena *a, struct agent_row *ret, struct err *e)
{
    struct err why = { 0 };
    int r = store_agents_get(agents->store, a, name, ret, &why);

    if (r != -ENOENT)
        return r < 0 ? err_set(e, r, why.code, "%s", why.text) : 0;
    if (strcmp(name, AGENT_DEFAULT) != 0)
        return err_unknown(agents, name, a, e);
    *ret = *default_row();
    return 0;
}

int agents_list(struct agents *agents, struct arena *a, struct agent_row **ret, size_t *ret_n, struct err *e)
{
    struct agent_row *stored, *all;
    size_t n = 0;
    bool has_default = false;
    int r = store_agents_list(agents->store, a, &stored, &n, e);

    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++)
        has_default = has_default || strcmp(stored[i].name, AGENT_DEFAULT) == 0;
    if (!has_default) {
        all = arena_array(a, n + 1, sizeof(*all));
        all[0] = *default_row();
        if (n > 0)
            memcpy(all + 1, stored, n * sizeof(*all));
        stored = all;
        n++;
    }
    *ret = stored;
    *ret_n = n;
    return 0;
}

/* ---- definitions ---- */

int agent_check(const struct agents *agents, const struct agent_definition *d, struct err *e)
{
    return agent_definition_check(d, agents->data_dir, e);
}

int agent_put(struct agents *agents, const struct agent_definition *d, struct slice json, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct agent_row row = {
        .name = d->name,
        .display_name = d->display_name ? d->display_name : d->name,
        .description = d->description,
        .hub_id = d->hub_id,
        .kind = agent_is_model(d) ? "model" : "process",
        .definition = arena_slicedup(a, json),
    }, known;
    int r = agent_check(agents, d, e);

    if (r < 0)
        return r;
    r = store_agents_get(agents->store, a, d->name, &known, NULL);
    return r == -ENOENT ? store_agents_insert(agents->store, &row, e) : store_agents_update(agents->store, &row, e);
}

int agent_check_remove(const char *name, struct err *e)
{
    if (strcmp(name, AGENT_DEFAULT) != 0)
        return 0;
    return err_set(e, -EBUSY, "AGENT_ALWAYS_EXISTS",
                   "The agent " AGENT_DEFAULT " cannot be removed; define it anew to change it.");
}

int agent_remove(struct agents *agents, const char *name, struct err *e)
{
    int r = agent_check_remove(name, e);

    return r < 0 ? r : store_agents_delete(agents->store, name, e);
}

int agent_find(struct agents *agents, const char *name, struct arena *a, struct agent_definition *ret, struct err *e)
{
    struct agent_definition d = { 0 };
    struct agent_row row;
    struct json_value object;
    int r = agent_get(agents, name, a, &row, e);

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
