/* Agents: the SDK's list and the local administrator's definitions (specification, "Agent"; decision D7). */
#include "agents/agents.h"

#include "agents/approvals.h"
#include "agents/builtin.h"
#include "api/api.h"
#include "api/resources/providers.h"
#include "api/routes.h"
#include "apps/apps.h"
#include "identity/audit.h"
#include "mcp/host.h"
#include "store/tables/tasks.h"

#include <string.h>

static const struct field agent_shape[] = {
    SHAPE_STRING("slug", .help = "the same as name"),
    SHAPE_STRING("name"),
    SHAPE_STRING("display_name"),
    SHAPE_STRING("description"),
    SHAPE_STRING("hub_id", .flags = FIELD_NULLABLE),
    FIELD_END,
};

struct agent_remove_query {
    bool is_forced;
};

static const struct field remove_fields[] = {
    FIELD_BOOL(struct agent_remove_query, is_forced, "force", .help = "also when apps or unfinished tasks use it"),
    FIELD_END,
};

static const struct field agents_answer[] = { SHAPE_LIST("agents", agent_shape), FIELD_END };
static const struct field agent_name_answer[] = { SHAPE_STRING("name"),
                                                  SHAPE_STRING("sandbox", .help = "what it may see and do, in words"),
                                                  FIELD_END };
static const struct field agent_answer[] = {
    SHAPE_OBJECT("agent", agent_shape),
    SHAPE_OBJECT("definition", NULL),
    FIELD_END,
};

static void write_agent(struct json_writer *w, const char *name, const struct agent_row *row)
{
    json_begin_object_as(w, name);
    json_add_string(w, "slug", row->name);
    json_add_string(w, "name", row->name);
    json_add_string(w, "display_name", row->display_name);
    json_add_string(w, "description", row->description);
    json_add_string(w, "hub_id", row->hub_id);
    json_end(w);
}

static int list_agents(struct request *req, struct response *res, struct err *e)
{
    struct agent_row *rows;
    size_t n;
    int r;

    r = agents_list(req->api->agents, req->arena, &rows, &n, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "agents");
    for (size_t i = 0; i < n; i++)
        write_agent(&res->json, NULL, &rows[i]);
    json_end(&res->json);
    return 0;
}

static int show_agent(struct request *req, struct response *res, struct err *e)
{
    struct agent_row row;
    int r;

    r = agent_get(req->api->agents, req->params[0], req->arena, &row, e);
    if (r < 0)
        return r;
    write_agent(&res->json, "agent", &row);
    json_add_raw(&res->json, "definition", row.definition);
    return 0;
}

static int check_agent(const struct request *req, const void *body, struct err *e)
{
    return agent_check(req->api->agents, body, e);
}

static const char *tools_in_words(struct arena *a, const struct field_strings *tools)
{
    const char *words = tools->n ? tools->items[0] : "no tools";

    for (size_t i = 1; i < tools->n; i++)
        words = arena_printf(a, "%s, %s", words, tools->items[i]);
    return words;
}

/* What the definition names and is not there: it may come later, so this is said and not refused. The error's sentence
 * names the nearest one. */
static const char *add_lack(struct arena *a, const char *words, const struct err *why)
{
    size_t n = strlen(why->text);

    while (n > 0 && strchr(".?", why->text[n - 1]))
        n--;
    return arena_printf(a, "%s; but: %.*s", words, (int)n, why->text);
}

static int find_tool(const struct request *req, const char *pattern, struct err *e)
{
    const char *slash = strchr(pattern, '/');
    const char *server = arena_strndup(req->arena, pattern, (size_t)(slash - pattern));
    struct mcp_server_info info;

    if (strcmp(server, "*") == 0)
        return 0;
    if (strcmp(server, AGENT_BUILTIN_TOOLS) == 0)
        return strchr(slash, '*') ? 0 : builtin_check(slash + 1, e);
    return mcp_host_server(req->api->mcp_host, server, req->arena, &info, e);
}

static const char *add_lacks(const struct request *req, const struct agent_definition *d, const char *words)
{
    struct llm_account_state *account;
    struct err why;

    for (size_t i = 0; i < d->tools.n; i++) {
        why = (struct err){ 0 };
        if (find_tool(req, d->tools.items[i], &why) < 0)
            words = add_lack(req->arena, words, &why);
    }
    why = (struct err){ 0 };
    if (d->provider && provider_find(req, d->provider, &account, &why) < 0)
        words = add_lack(req->arena, words, &why);
    return words;
}

static const char *words_of(const struct request *req, const struct agent_definition *d)
{
    static const char *const approval_words[] = { [AGENT_APPROVAL_NEVER] = "nobody is asked before a call",
                                                  [AGENT_APPROVAL_DANGEROUS] =
                                                      "a person is asked before dangerous calls",
                                                  [AGENT_APPROVAL_ALWAYS] = "a person is asked before each call" };
    const char *words;

    if (!agent_is_model(d))
        return sandbox_words(req->arena, req->api->sandbox, &d->sandbox);
    words = arena_printf(req->arena, "works with a model and may use %s; %s", tools_in_words(req->arena, &d->tools),
                         approval_words[agent_approval_of(d)]);
    return add_lacks(req, d, words);
}

static int put_agent(struct request *req, struct response *res, struct err *e)
{
    const struct agent_definition *definition = req->body;
    int r;

    r = audit_append_values(req->api->identity, req->caller->actor, "agent.put", definition->name, req->body_json, e);
    if (r == 0)
        r = agent_put(req->api->agents, definition, req->exchange->request.body, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "name", definition->name);
    json_add_string(&res->json, "sandbox", words_of(req, definition));
    return 0;
}

/* The users of an agent: apps whose handlers name it, and unfinished tasks. */
struct agent_users {
    const char *agent;
    struct buf names;
};

static int note_user(void *arg, const struct app_config *app, struct err *e)
{
    struct agent_users *users = arg;
    const struct app_handler *handlers = app->handlers.items;

    for (size_t i = 0; i < app->handlers.n; i++)
        if (strcmp(handlers[i].agent_id, users->agent) == 0) {
            buf_printf(&users->names, "%sthe app %s", users->names.n ? ", " : "", app->name);
            return 0;
        }
    return 0;
}

static int check_unused(struct request *req, const char *name, struct err *e)
{
    struct agent_users users = { .agent = name };
    int64_t n_tasks = 0;
    const char *names;
    int r;

    buf_init(&users.names, LIMIT_REPLY);
    r = app_each(req->api->apps, req->arena, note_user, &users, e);
    if (r == 0)
        r = store_tasks_count_agent(req->api->store, name, &n_tasks, e);
    if (n_tasks)
        buf_printf(&users.names, "%s%lld task%s", users.names.n ? " and " : "", (long long)n_tasks,
                   n_tasks == 1 ? "" : "s");
    names = buf_to_arena(&users.names, req->arena);
    if (r < 0 || !*names)
        return r;
    return err_set(e, -EBUSY, "AGENT_IN_USE",
                   "The agent %.128s is used by %.300s; --force (force=true) removes it all the same.", name, names);
}

static int remove_agent(struct request *req, struct response *res, struct err *e)
{
    const struct agent_remove_query *query = req->query;
    struct agent_row row;
    int r = agent_check_remove(req->params[0], e);

    if (r == 0 && !query->is_forced)
        r = check_unused(req, req->params[0], e);
    if (r == 0)
        r = agent_get(req->api->agents, req->params[0], req->arena, &row, e);
    if (r == 0)
        r = audit_append_json(req->api->identity, req->caller->actor, "agent.remove", row.name,
                              slice_of(row.definition), e);
    if (r == 0)
        r = agent_remove(req->api->agents, req->params[0], e);
    if (r == 0 && req->api->approvals)
        approvals_forget_allowed(req->api->approvals, req->params[0], NULL);
    return r;
}

const struct route agent_routes[] = {
    { .method = HTTP_GET,
      .path = "/agents",
      .permission = PERM_AGENTS,
      .is_sdk = true,
      .answer = agents_answer,
      .handler = list_agents,
      .summary = "Agents",
      .tag = "Agents" },
    { .method = HTTP_GET,
      .path = "/api/agents/:name",
      .permission = PERM_ADMIN,
      .answer = agent_answer,
      .handler = show_agent,
      .summary = "An agent's definition",
      .tag = "Agents" },
    { .method = HTTP_POST,
      .path = "/api/agents",
      .permission = PERM_ADMIN,
      ROUTE_BODY(agent_definition_fields, struct agent_definition),
      .check_body = check_agent,
      .status = 201,
      .answer = agent_name_answer,
      .defines = true,
      .handler = put_agent,
      .summary = "Define an agent, or replace its definition",
      .tag = "Agents" },
    { .method = HTTP_DELETE,
      .path = "/api/agents/:name",
      .permission = PERM_ADMIN,
      ROUTE_QUERY(remove_fields, struct agent_remove_query),
      .answer = api_nothing,
      .defines = true,
      .handler = remove_agent,
      .summary = "Remove an agent",
      .tag = "Agents" },
    ROUTE_END,
};
