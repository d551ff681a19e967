/* Resources, and the completion of their and the prompts' arguments. */
#include "api/compat/mcp_api_turn.h"
#include "api/resources/task_shapes.h"
#include "api/routes.h"

enum { COMPLETED_VALUES = 100 /* the protocol's maximum */ };

/* ---- what lists share ---- */

/* An app sees its own tasks, a developer key and the administrator all. */
int mcp_api_tasks_page(struct mcp_api_turn *t, int64_t offset, int64_t limit, struct task_row **ret, size_t *ret_n,
                       struct err *e)
{
    const struct caller *caller = t->req->caller;
    const struct task_filter filter = { .source_app = caller->kind == CALLER_APP ? caller->app_id : NULL,
                                        .limit = limit,
                                        .offset = offset };

    return store_tasks_list(t->req->api->store, t->arena, &filter, ret, ret_n, e);
}

void mcp_api_add_next(struct mcp_api_turn *t, struct json_writer *w, int64_t offset, size_t n)
{
    if (n > LIMIT_MCP_PAGE)
        json_add_string(w, "nextCursor", arena_printf(t->arena, "%lld", (long long)offset + LIMIT_MCP_PAGE));
}

/* ---- tasks ---- */

/* NULL: not the address of a task. */
static const char *task_of_uri(const char *uri)
{
    size_t n = strlen(MCP_API_TASK_URI);

    return strncmp(uri, MCP_API_TASK_URI, n) == 0 && uuid_is_valid(slice_of(uri + n)) ? uri + n : NULL;
}

static void write_task_resource(struct mcp_api_turn *t, struct json_writer *w, const struct task_row *row)
{
    json_begin_object(w);
    json_add_string(w, "uri", arena_printf(t->arena, MCP_API_TASK_URI "%s", row->uuid));
    json_add_string(w, "name", row->uuid);
    if (t->version >= MCP_API_2025_06_18)
        json_add_string(w, "title", row->title);
    json_add_string(w, "description", arena_printf(t->arena, "%s: %s", row->title ? row->title : "", row->status));
    json_add_string(w, "mimeType", "application/json");
    json_end(w);
}

/* Clients read the list when they start, so a missing permission asks the person nothing here. */
static int list_tasks(struct mcp_api_turn *t, int64_t offset, struct json_writer *w, size_t *ret_n, struct err *e)
{
    struct task_row *rows = NULL;
    bool may = false;
    int r = identity_has_grant(t->req->api->identity, t->req->caller, PERM_TASK, &may, e);

    if (r == 0 && may)
        r = mcp_api_tasks_page(t, offset, LIMIT_MCP_PAGE + 1, &rows, ret_n, e);
    for (size_t i = 0; r == 0 && rows && i < MIN(*ret_n, (size_t)LIMIT_MCP_PAGE); i++)
        write_task_resource(t, w, &rows[i]);
    return r;
}

static int read_task(struct mcp_api_turn *t, const char *uri, struct mcp_api_content *ret, struct err *e)
{
    static const struct mcp_api_route route = { task_routes, HTTP_GET, "/task/:uuid", "uuid" };
    const char *uuid = task_of_uri(uri);
    struct json_value arguments = { 0 };
    int r;

    if (!uuid)
        return 0;
    r = json_parse(t->arena, slice_of(arena_printf(t->arena, "{\"uuid\":\"%s\"}", uuid)), &arguments, e);
    if (r == 0)
        r = mcp_api_call_route(t, &route, arguments, &ret->text, e);
    return r < 0 ? r : 1;
}

int mcp_api_complete_task(struct mcp_api_turn *t, struct mcp_api_completion *c, struct err *e)
{
    struct task_row *rows = NULL;
    bool may = false;
    size_t n = 0;
    int r = identity_has_grant(t->req->api->identity, t->req->caller, PERM_TASK, &may, e);

    if (r == 0 && may)
        r = mcp_api_tasks_page(t, 0, LIMIT_LIST, &rows, &n, e);
    for (size_t i = 0; r == 0 && rows && i < n; i++)
        mcp_api_add_value(c, rows[i].uuid);
    return r;
}

static int complete_uuid(struct mcp_api_turn *t, struct mcp_api_completion *c, struct err *e)
{
    int r;

    if (!slice_eq_str(c->argument, "uuid"))
        return 0;
    r = mcp_api_complete_task(t, c, e);
    return r < 0 ? r : 1;
}

const struct mcp_api_kind mcp_api_task_kind = {
    .uri_template = MCP_API_TASK_URI "{uuid}",
    .name = "task",
    .title = "Task",
    .description = "A task with its result and its runs.",
    .list = list_tasks,
    .read = read_task,
    .complete = complete_uuid,
};

/* ---- the methods ---- */

int mcp_api_list_resources(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    int64_t offset;
    size_t n = 0;
    int r = mcp_api_read_cursor(t, &offset, e);

    if (r < 0)
        return r;
    json_begin_array_as(w, "resources");
    for (const struct mcp_api_kind *const *at = mcp_api_profile.resources; r == 0 && *at; at++) {
        size_t n_kind = 0;

        r = (*at)->list(t, offset, w, &n_kind, e);
        n = MAX(n, n_kind);
    }
    json_end(w);
    mcp_api_add_next(t, w, offset, n);
    return r;
}

static void write_template(const struct mcp_api_turn *t, const struct mcp_api_kind *kind, struct json_writer *w)
{
    json_begin_object(w);
    json_add_string(w, "uriTemplate", kind->uri_template);
    json_add_string(w, "name", kind->name);
    if (t->version >= MCP_API_2025_06_18)
        json_add_string(w, "title", kind->title);
    json_add_string(w, "description", kind->description);
    json_add_string(w, "mimeType", "application/json");
    json_end(w);
}

int mcp_api_list_templates(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    json_begin_array_as(w, "resourceTemplates");
    for (const struct mcp_api_kind *const *at = mcp_api_profile.resources; *at; at++)
        if ((*at)->uri_template)
            write_template(t, *at, w);
    json_end(w);
    return 0;
}

/* The stateless era has no code of its own for it. */
static int no_resource(struct mcp_api_turn *t, const char *uri, struct err *e)
{
    struct json_writer w;
    struct buf out;
    int code = mcp_api_is_stateless(t) ? JSON_RPC_INVALID_PARAMS : MCP_API_NO_RESOURCE;
    int r = mcp_api_refuse(t, code, e, "There is no resource %.256s", uri);

    buf_init(&out, KIB(4));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "uri", uri);
    json_end(&w);
    t->error_data = buf_to_arena(&out, t->arena);
    return r;
}

static int read_uri(struct mcp_api_turn *t, const char **ret, struct err *e)
{
    struct json_value uri = json_get(t->frame->params, "uri");

    *ret = json_cstr(uri);
    if (!*ret || json_string(uri).n > LIMIT_MCP_URI_BYTES)
        return mcp_api_refuse(t, JSON_RPC_INVALID_PARAMS, e, "`uri` must be a string of at most %d bytes",
                              LIMIT_MCP_URI_BYTES);
    return 0;
}

int mcp_api_read_content(struct mcp_api_turn *t, const char *uri, struct mcp_api_content *ret, struct err *e)
{
    int r = 0;

    for (const struct mcp_api_kind *const *at = mcp_api_profile.resources; r == 0 && *at; at++)
        r = (*at)->read(t, uri, ret, e);
    if (r == 0 || r == -ENOENT)
        return no_resource(t, uri, e);
    if (r < 0)
        t->code = MCP_API_REFUSED;
    return r < 0 ? r : 0;
}

void mcp_api_write_contents(struct json_writer *w, const char *uri, const struct mcp_api_content *content)
{
    json_add_string(w, "uri", uri);
    json_add_string(w, "mimeType", content->mime_type ? content->mime_type : "application/json");
    json_add_slice(w, content->is_blob ? "blob" : "text", content->text);
}

int mcp_api_read_resource(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    const char *uri = NULL;
    struct mcp_api_content content = { 0 };
    int r = read_uri(t, &uri, e);

    if (r == 0)
        r = mcp_api_read_content(t, uri, &content, e);
    if (r < 0)
        return r;
    json_begin_array_as(w, "contents");
    json_begin_object(w);
    mcp_api_write_contents(w, uri, &content);
    json_end(w);
    json_end(w);
    return 0;
}

int mcp_api_subscribe(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    const char *uri = NULL;
    struct mcp_api_content content = { 0 };
    int r = read_uri(t, &uri, e);

    if (r == 0)
        r = mcp_api_read_content(t, uri, &content, e); /* it is there and the caller may read it */
    return r < 0 ? r : mcp_api_session_follow(t->req->api->mcp_api, t->session_id, uri, true, e);
}

int mcp_api_unsubscribe(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    const char *uri = NULL;
    int r = read_uri(t, &uri, e);

    return r < 0 ? r : mcp_api_session_follow(t->req->api->mcp_api, t->session_id, uri, false, e);
}

/* ---- completion ---- */

void mcp_api_add_value(struct mcp_api_completion *c, const char *value)
{
    bool fits = c->typed.n <= strlen(value) && slice_eq((struct slice){ value, c->typed.n }, c->typed);

    if (fits && c->n++ < COMPLETED_VALUES)
        json_add_string(c->w, NULL, value);
}

static int complete_template(struct mcp_api_turn *t, struct slice uri, struct mcp_api_completion *c, struct err *e)
{
    int r = 0;

    for (const struct mcp_api_kind *const *at = mcp_api_profile.resources; r == 0 && *at; at++)
        if ((*at)->uri_template && (*at)->complete && slice_eq_str(uri, (*at)->uri_template))
            r = (*at)->complete(t, c, e);
    return r;
}

static int complete_prompt(struct mcp_api_turn *t, struct slice name, struct mcp_api_completion *c, struct err *e)
{
    int r = 0;

    for (const struct mcp_api_prompts *const *at = mcp_api_profile.prompts; r == 0 && *at; at++)
        r = (*at)->complete(t, name, c, e);
    return r;
}

static int complete(struct mcp_api_turn *t, struct mcp_api_completion *c, struct err *e)
{
    struct json_value ref = json_get(t->frame->params, "ref");
    struct slice type = json_string(json_get(ref, "type"));

    if (slice_eq_str(type, "ref/resource"))
        return complete_template(t, json_string(json_get(ref, "uri")), c, e);
    return slice_eq_str(type, "ref/prompt") ? complete_prompt(t, json_string(json_get(ref, "name")), c, e) : 0;
}

int mcp_api_complete(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    struct json_value argument = json_get(t->frame->params, "argument");
    struct mcp_api_completion c = { .argument = json_string(json_get(argument, "name")),
                                    .typed = json_string(json_get(argument, "value")),
                                    .w = w };
    int r;

    json_begin_object_as(w, "completion");
    json_begin_array_as(w, "values");
    r = complete(t, &c, e);
    json_end(w);
    json_add_int(w, "total", (int64_t)c.n);
    json_add_bool(w, "hasMore", c.n > COMPLETED_VALUES);
    json_end(w);
    if (r == 0)
        return mcp_api_refuse(
            t, JSON_RPC_INVALID_PARAMS, e,
            "`ref` and `argument` must name a prompt or a resource template and one of its arguments");
    return MIN(r, 0);
}
