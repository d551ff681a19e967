/* Threads as resources: what was said in a thread, as far as the caller had it said. */
#include "api/compat/mcp_api_turn.h"
#include "identity/identity.h"
#include "store/tables/conversations.h"

enum { SHOWN_TURNS = 50 };

/* The administrator sees what everyone said. */
static const char *scope_of(const struct mcp_api_turn *t)
{
    return t->req->caller->kind == CALLER_ADMIN ? NULL : t->req->caller->scope;
}

/* Clients read the list when they start, so a missing permission asks the person nothing here. */
static int find_threads(struct mcp_api_turn *t, int64_t limit, int64_t offset, struct conversation_row **ret,
                        size_t *ret_n, struct err *e)
{
    bool may = false;
    int r = identity_has_grant(t->req->api->identity, t->req->caller, PERM_THREADS, &may, e);

    if (r < 0 || !may)
        return r;
    return store_conversations_list(t->req->api->store, t->arena, scope_of(t), limit, offset, ret, ret_n, e);
}

static int list_threads(struct mcp_api_turn *t, int64_t offset, struct json_writer *w, size_t *ret_n, struct err *e)
{
    struct conversation_row *rows = NULL;
    int r = find_threads(t, LIMIT_MCP_PAGE + 1, offset, &rows, ret_n, e);

    for (size_t i = 0; r == 0 && rows && i < MIN(*ret_n, (size_t)LIMIT_MCP_PAGE); i++) {
        json_begin_object(w);
        json_add_string(
            w, "uri", arena_printf(t->arena, MCP_API_THREAD_URI "%s/%s", rows[i].workspace_slug, rows[i].thread_slug));
        json_add_string(w, "name", rows[i].thread_slug);
        if (t->version >= MCP_API_2025_06_18)
            json_add_string(w, "title", rows[i].name);
        json_add_string(w, "description", arena_printf(t->arena, "a conversation, begun %s", rows[i].created_at));
        json_add_string(w, "mimeType", "application/json");
        json_end(w);
    }
    return r;
}

/* ---- one thread ---- */

/* False: not the address of a thread. */
static bool read_uri(struct arena *a, const char *uri, const char **ret_workspace, const char **ret_thread)
{
    size_t n = strlen(MCP_API_THREAD_URI);
    const char *at = uri + n, *slash;

    if (strncmp(uri, MCP_API_THREAD_URI, n) != 0)
        return false;
    slash = strchr(at, '/');
    if (!slash || slash == at || !slash[1] || strchr(slash + 1, '/'))
        return false;
    *ret_workspace = arena_slicedup(a, (struct slice){ at, (size_t)(slash - at) });
    *ret_thread = slash + 1;
    return true;
}

static int write_messages(const struct mcp_api_turn *t, int64_t turn_id, struct json_writer *w, struct err *e)
{
    struct message_row *rows = NULL;
    size_t n = 0;
    int r = store_messages_of_turn(t->req->api->store, t->arena, turn_id, &rows, &n, e);

    json_begin_array_as(w, "messages");
    for (size_t i = 0; r == 0 && i < n; i++)
        json_add_raw(w, NULL, rows[i].message);
    json_end(w);
    return r;
}

static int write_turn(const struct mcp_api_turn *t, const struct turn_row *turn, struct json_writer *w, struct err *e)
{
    int r;

    json_begin_object(w);
    json_add_string(w, "id", turn->uuid);
    json_add_string(w, "agent", turn->agent_name);
    json_add_string(w, "state", turn->state);
    json_add_string(w, "why", turn->why);
    json_add_string(w, "error", turn->error);
    json_add_string(w, "provider", turn->provider);
    json_add_string(w, "model", turn->model);
    json_add_string(w, "started_at", turn->started_at);
    json_add_string(w, "ended_at", turn->ended_at);
    r = write_messages(t, turn->id, w, e);
    json_end(w);
    return r;
}

/* The newest turns of the caller, oldest first. */
static int write_turns(const struct mcp_api_turn *t, int64_t thread_id, struct json_writer *w, struct err *e)
{
    const struct turns_list_request request = { .thread_id = thread_id, .limit = SHOWN_TURNS, .newest_first = true };
    const char *scope = scope_of(t);
    struct turn_row *turns = NULL;
    size_t n = 0;
    int r = store_turns_list(t->req->api->store, t->arena, &request, &turns, &n, e);

    json_begin_array_as(w, "turns");
    for (size_t i = n; r == 0 && i > 0; i--)
        if (!scope || strcmp(turns[i - 1].scope, scope) == 0)
            r = write_turn(t, &turns[i - 1], w, e);
    json_end(w);
    return r;
}

static int write_thread(const struct mcp_api_turn *t, const struct conversation_row *thread, struct slice *ret,
                        struct err *e)
{
    struct json_writer w;
    struct buf out;
    int r;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "workspace", thread->workspace_slug);
    json_add_string(&w, "thread", thread->thread_slug);
    json_add_string(&w, "name", thread->name);
    json_add_string(&w, "created_at", thread->created_at);
    r = write_turns(t, thread->thread_id, &w, e);
    json_end(&w);
    if (r == 0)
        r = buf_check(&out, e);
    ret->n = out.n;
    ret->p = buf_to_arena(&out, t->arena);
    return r;
}

static int read_thread(struct mcp_api_turn *t, const char *uri, struct mcp_api_content *ret, struct err *e)
{
    const char *workspace = NULL, *slug = NULL;
    struct conversation_row thread = { 0 };
    int r;

    if (!read_uri(t->arena, uri, &workspace, &slug))
        return 0;
    r = identity_require(t->req->api->identity, t->req->caller, PERM_THREADS, e);
    if (r == 0)
        r = store_conversations_get(t->req->api->store, t->arena, scope_of(t), workspace, slug, &thread, e);
    if (r == 0)
        r = write_thread(t, &thread, &ret->text, e);
    return r < 0 ? r : 1;
}

/* ---- completion ---- */

int mcp_api_complete_thread(struct mcp_api_turn *t, struct mcp_api_completion *c, struct err *e)
{
    struct conversation_row *rows = NULL;
    size_t n = 0;
    int r = find_threads(t, LIMIT_LIST, 0, &rows, &n, e);

    for (size_t i = 0; r == 0 && rows && i < n; i++)
        mcp_api_add_value(c, arena_printf(t->arena, "%s/%s", rows[i].workspace_slug, rows[i].thread_slug));
    return r;
}

static int complete_part(struct mcp_api_turn *t, struct mcp_api_completion *c, struct err *e)
{
    bool is_workspace = slice_eq_str(c->argument, "workspace");
    struct conversation_row *rows = NULL;
    size_t n = 0;
    int r;

    if (!is_workspace && !slice_eq_str(c->argument, "thread"))
        return 0;
    r = find_threads(t, LIMIT_LIST, 0, &rows, &n, e);
    for (size_t i = 0; r == 0 && rows && i < n; i++)
        if (!is_workspace)
            mcp_api_add_value(c, rows[i].thread_slug);
        else if (i == 0 || strcmp(rows[i].workspace_slug, rows[i - 1].workspace_slug) != 0)
            mcp_api_add_value(c, rows[i].workspace_slug);
    return r < 0 ? r : 1;
}

const struct mcp_api_kind mcp_api_thread_kind = {
    .uri_template = MCP_API_THREAD_URI "{workspace}/{thread}",
    .name = "thread",
    .title = "Thread",
    .description = "A conversation with an agent: its last 50 turns with their messages.",
    .list = list_threads,
    .read = read_thread,
    .complete = complete_part,
};
