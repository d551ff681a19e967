/* The service's own tools: each row names a route of this service or a function, and everything else follows from it.
 */
#include "api/compat/mcp_api_turn.h"
#include "api/routes.h"
#include "api/trigger.h"
#include "identity/identity.h"
#include "llm/request.h"

static const struct field task_argument[] = {
    SHAPE_STRING("uuid", FIELD_REQUIRED, .format = "uuid", .help = "the task, as trigger_agent returned it"), FIELD_END
};

/* clang-format off */
static const struct mcp_api_tool tools[] = {
    { .name = "chat", .title = "Ask a language model",
      .description = "Sends messages to one of the person's language models and returns the whole answer.",
      .permission = PERM_LLM_CHAT, .route = { llm_routes, HTTP_POST, "/sdk/llm/chat" },
      .is_read_only = true, .is_open_world = true, .waits = true, .call = mcp_api_chat },
    { .name = "embed", .title = "Vectors of texts",
      .description = "Makes the embedding vectors of one text or of several.",
      .permission = PERM_LLM_EMBED, .route = { embed_routes, HTTP_POST, "/sdk/llm/embed" },
      .is_read_only = true, .is_idempotent = true, .is_open_world = true, .waits = true },
    { .name = "search_vectors", .title = "Search vectors",
      .description = "Finds the nearest entries of the caller's vectors by a vector, by words, or by a text that is embedded first (embed: true).",
      .permission = PERM_VECTORS_READ, .route = { vector_routes, HTTP_POST, "/sdk/llm/vectors/query" },
      .is_read_only = true, .is_idempotent = true, .waits = true },
    { .name = "upsert_vectors", .title = "Store vectors",
      .description = "Stores vectors or texts with metadata, replacing those of the same ids; all or nothing.",
      .permission = PERM_VECTORS_WRITE, .route = { vector_routes, HTTP_POST, "/sdk/llm/vectors/upsert" },
      .is_destructive = true, .is_idempotent = true, .waits = true },
    { .name = "list_activities", .title = "List activities",
      .description = "Lists the caller's activities, newest first.",
      .permission = PERM_ACTIVITIES_READ, .route = { activity_routes, HTTP_GET, "/activities" },
      .is_read_only = true, .is_idempotent = true },
    { .name = "add_activity", .title = "Add an activity",
      .description = "Inserts an activity; an app that listens for it has its agent work on it.",
      .permission = PERM_ACTIVITIES_WRITE, .route = { activity_routes, HTTP_POST, "/activities" } },
    { .name = "update_activity", .title = "Change an activity",
      .description = "Changes status, result, raw_data or error_message of an activity.",
      .permission = PERM_ACTIVITIES_WRITE, .route = { activity_routes, HTTP_PATCH, "/activities/:id", "id" },
      .is_destructive = true, .is_idempotent = true },
    { .name = "trigger_agent", .title = "Give an agent a task",
      .description = "Creates a task and starts the agent on it. With wait_s the call waits for the task's end; otherwise ask task_status.",
      .permission = PERM_WEBHOOK_TRIGGER, .route = { webhook_routes, HTTP_POST, "/webhooks/{token}" },
      .fields = trigger_tool_fields, .answer = mcp_api_trigger_answer,
      .is_destructive = true, .is_open_world = true, .waits = true, .takes_task = true, .call = mcp_api_trigger },
    { .name = "task_status", .title = "Status of a task",
      .description = "Tells how far a task is, with its runs.",
      .permission = PERM_TASK, .route = { task_routes, HTTP_GET, "/task/:uuid", "uuid" }, .fields = task_argument,
      .is_read_only = true, .is_idempotent = true },
    { .name = "task_result", .title = "Result of a task",
      .description = "Returns what the agent answered. While the task is not finished, `finished` is false.",
      .permission = PERM_TASK, .route = { task_routes, HTTP_GET, "/task/:uuid", "uuid" }, .fields = task_argument,
      .answer = mcp_api_result_answer, .is_read_only = true, .is_idempotent = true, .call = mcp_api_task_result },
};
/* clang-format on */

/* ---- the list ---- */

static const struct field path_argument[] = { SHAPE_STRING("id", FIELD_REQUIRED), FIELD_END };

/* The tables whose rows are the tool's arguments; NULL-ended. */
struct tables {
    const struct field *items[4];
};

static struct tables tables_of(const struct mcp_api_tool *tool)
{
    const struct route *route = mcp_api_find_route(&tool->route);
    struct tables tables = { .items = { NULL } };
    size_t n = 0;

    if (tool->fields) {
        tables.items[n] = tool->fields;
        return tables;
    }
    if (tool->route.param)
        tables.items[n++] = path_argument;
    if (route->query)
        tables.items[n++] = route->query;
    if (route->body)
        tables.items[n++] = route->body;
    return tables;
}

static void write_required(const struct tables *tables, struct json_writer *w)
{
    json_begin_array_as(w, "required");
    for (size_t i = 0; tables->items[i]; i++)
        for (const struct field *f = tables->items[i]; f->kind != FIELD_KIND_END; f++)
            if (f->flags & FIELD_REQUIRED)
                json_add_string(w, NULL, f->name);
    json_end(w);
}

static void write_input_schema(const struct mcp_api_tool *tool, struct json_writer *w)
{
    const struct tables tables = tables_of(tool);

    json_begin_object_as(w, "inputSchema");
    json_add_string(w, "type", "object");
    json_begin_object_as(w, "properties");
    for (size_t i = 0; tables.items[i]; i++)
        for (const struct field *f = tables.items[i]; f->kind != FIELD_KIND_END; f++)
            field_write_schema(f, false, w, f->name);
    json_end(w);
    write_required(&tables, w);
    json_end(w);
}

static void write_annotations(const struct mcp_api_tool *tool, struct json_writer *w)
{
    json_begin_object_as(w, "annotations");
    json_add_string(w, "title", tool->title);
    json_add_bool(w, "readOnlyHint", tool->is_read_only);
    json_add_bool(w, "destructiveHint", tool->is_destructive);
    json_add_bool(w, "idempotentHint", tool->is_idempotent);
    json_add_bool(w, "openWorldHint", tool->is_open_world);
    json_end(w);
}

static void write_tool(const struct mcp_api_turn *t, const struct mcp_api_tool *tool, struct json_writer *w)
{
    const struct field *answer = tool->answer ? tool->answer : mcp_api_find_route(&tool->route)->answer;

    json_begin_object(w);
    json_add_string(w, "name", tool->name);
    if (t->version >= MCP_API_2025_06_18)
        json_add_string(w, "title", tool->title);
    json_add_string(w, "description", tool->description);
    write_input_schema(tool, w);
    if (t->version >= MCP_API_2025_06_18)
        fields_write_schema(answer, true, w, "outputSchema");
    if (t->version >= MCP_API_2025_03_26)
        write_annotations(tool, w);
    if (t->version == MCP_API_2025_11_25) {
        json_begin_object_as(w, "execution");
        json_add_string(w, "taskSupport", tool->takes_task ? "optional" : "forbidden");
        json_end(w);
    }
    json_end(w);
}

static int list_own(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
        bool is_denied = false;
        int r = identity_is_denied(t->req->api->identity, t->req->caller, tools[i].permission, &is_denied, e);

        if (r < 0)
            return r;
        if (!is_denied)
            write_tool(t, &tools[i], w);
    }
    return 0;
}

int mcp_api_list_tools(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    int r = mcp_api_read_only_page(t, e);

    if (r < 0)
        return r;
    json_begin_array_as(w, "tools");
    for (const struct mcp_api_source *const *at = mcp_api_profile.tools; r == 0 && *at; at++)
        r = (*at)->list(t, w, e);
    json_end(w);
    return r;
}

/* ---- a call ---- */

/* A text of the content. */
static void write_content(struct json_writer *w, struct slice text)
{
    json_begin_array_as(w, "content");
    json_begin_object(w);
    json_add_string(w, "type", "text");
    json_add_slice(w, "text", text);
    json_end(w);
    json_end(w);
}

int mcp_api_write_result(struct mcp_api_turn *t, struct json_writer *w, const struct mcp_api_result *result,
                         struct err *e)
{
    write_content(w, result->text ? slice_of(result->text) : result->structured);
    if (t->version >= MCP_API_2025_06_18)
        json_add_raw(w, "structuredContent", arena_slicedup(t->arena, result->structured));
    return 0;
}

void mcp_api_write_failure(struct mcp_api_turn *t, struct json_writer *w, int r, struct err *e)
{
    mcp_api_show_error(t, r, e);
    write_content(w, slice_of(mcp_api_error_text(t, e)));
    json_add_bool(w, "isError", true);
    json_begin_object_as(w, "_meta");
    mcp_api_add_error(w, "hearth/error", e);
    json_end(w);
}

static int call_tool(struct mcp_api_turn *t, const struct mcp_api_tool *tool, struct json_value arguments,
                     struct json_writer *w, struct err *e)
{
    struct mcp_api_result result = { 0 };
    int r = tool->call ? tool->call(t, tool, arguments, &result, e)
                       : mcp_api_call_route(t, &tool->route, arguments, &result.structured, e);

    if (r == 0)
        return mcp_api_write_result(t, w, &result, e);
    if (atomic_load(&t->running.is_cancelled))
        return mcp_api_refuse(t, MCP_API_REFUSED, e, "The request was cancelled.");
    mcp_api_write_failure(t, w, r, e);
    return 0;
}

static const struct mcp_api_tool *find_tool(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
    return NULL;
}

static int call_own(struct mcp_api_turn *t, const char *name, struct json_value arguments, struct json_writer *w,
                    struct err *e)
{
    const struct mcp_api_tool *tool = find_tool(name);
    bool as_task = t->version == MCP_API_2025_11_25 && !json_is_absent(json_get(t->frame->params, "task"));
    int r;

    if (!tool)
        return 0;
    if (as_task && !tool->takes_task)
        return mcp_api_refuse(t, JSON_RPC_METHOD_NOT_FOUND, e, "The tool %s cannot run as a task.", name);
    r = as_task ? mcp_api_trigger_as_task(t, arguments, w, e) : call_tool(t, tool, arguments, w, e);
    return r < 0 ? r : 1;
}

static enum mcp_api_manner manner_of_own(const char *name)
{
    const struct mcp_api_tool *tool = find_tool(name);

    if (tool && tool->waits)
        return MCP_API_MAY_WAIT;
    return tool && mcp_api_find_route(&tool->route)->uses_rows ? MCP_API_USES_ROWS : MCP_API_AT_ONCE;
}

const struct mcp_api_source mcp_api_own_tools = { .list = list_own, .call = call_own, .manner = manner_of_own };

static int read_arguments(struct mcp_api_turn *t, struct json_value *ret, struct err *e)
{
    struct json_value arguments = json_get(t->frame->params, "arguments");

    if (json_is_absent(arguments))
        return json_parse(t->arena, SLICE_LIT("{}"), ret, e);
    if (json_type(arguments) != JSON_OBJECT)
        return mcp_api_refuse(t, JSON_RPC_INVALID_PARAMS, e, "`arguments` must be an object");
    *ret = arguments;
    return 0;
}

int mcp_api_call_tool(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    const char *name = json_cstr(json_get(t->frame->params, "name"));
    struct json_value arguments = { 0 };
    int r = 0;

    if (!name)
        return mcp_api_refuse(t, JSON_RPC_INVALID_PARAMS, e, "`name` must be the name of a tool");
    r = read_arguments(t, &arguments, e);
    if (r < 0)
        return r;
    for (const struct mcp_api_source *const *at = mcp_api_profile.tools; r == 0 && *at; at++)
        r = (*at)->call(t, name, arguments, w, e);
    if (r == 0)
        return mcp_api_refuse(t, JSON_RPC_INVALID_PARAMS, e, "Unknown tool: %.100s", name);
    return r < 0 ? r : 0;
}
