/* The methods of the protocol: one row each; from a frame to the frame of its answer. */
#include "api/compat/mcp_api_turn.h"
#include "api/compat/v1.h"
#include "api/errors.h"
#include "base/log.h"
#include "http/sse.h"

#include <stdarg.h>

#define SERVER_INFO "io.modelcontextprotocol/serverInfo"
#define INSTRUCTIONS                                                                                                   \
    "Hearth runs on this person's machine: language models, vectors, agents and their tasks. A tool that lacks a "     \
    "permission says which; the person is asked and the call can be repeated after that."

enum { HANDSHAKE = 1, STATELESS = 2, BOTH = 3 };

/* ---- errors ---- */

int mcp_api_refuse(struct mcp_api_turn *t, int code, struct err *e, const char *fmt, ...)
{
    va_list ap;

    err_init(e);
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    snprintf(e->code, sizeof(e->code), "%s", code == JSON_RPC_INVALID_PARAMS ? "VALIDATION_ERROR" : "INVALID_REQUEST");
    t->code = code;
    return -EINVAL;
}

void mcp_api_show_error(const struct mcp_api_turn *t, int r, struct err *e)
{
    if (t->req->caller->kind != CALLER_ADMIN)
        err_strip_hidden(e);
    if (t->code || api_error_status(r, e) != 500 || strcmp(e->code, "REPLY_TOO_LARGE") == 0)
        return;
    log_warn("mcp", t->req->exchange->request.id, "%s failed: %s %s", t->frame->method, e->code, LOG_Q(e->text));
    err_init(e);
    (void)err_set(e, r, "INTERNAL_ERROR", "The service failed to answer; its log names the reason.");
}

const char *mcp_api_error_text(const struct mcp_api_turn *t, const struct err *e)
{
    const char *text = v1_error_text(NULL, e);

    for (unsigned i = 1; i < MIN(e->n_fields, ERR_MAX_FIELDS); i++)
        text = arena_printf(t->arena, "%s; `%s` %s", text, e->fields[i].field, e->fields[i].rule);
    return text;
}

void mcp_api_add_error(struct json_writer *w, const char *name, const struct err *e)
{
    json_begin_object_as(w, name);
    json_add_string(w, "code", e->code);
    for (unsigned i = 0; i < MIN(e->n_extras, ERR_MAX_EXTRAS); i++)
        if (strcmp(e->extras[i].key, "message") != 0)
            json_add_string(w, e->extras[i].key, e->extras[i].value);
    json_end(w);
}

static void write_error(struct mcp_api_turn *t, struct buf *out, int r, struct err *e)
{
    struct json_writer w;

    mcp_api_show_error(t, r, e);
    json_rpc_begin(&w, out, &t->frame->id);
    json_begin_object_as(&w, "error");
    json_add_int(&w, "code", t->code ? t->code : JSON_RPC_INTERNAL_ERROR);
    json_add_string(&w, "message", mcp_api_error_text(t, e));
    if (t->error_data)
        json_add_raw(&w, "data", t->error_data);
    else
        mcp_api_add_error(&w, "data", e);
    json_end(&w);
    json_end(&w);
}

/* ---- what handlers use ---- */

void mcp_api_progress(struct mcp_api_turn *t, double progress, double total, const char *message)
{
    struct json_writer w;
    struct buf out;

    if (json_is_absent(t->progress_token) || progress <= t->progress) /* it must increase */
        return;
    t->progress = progress;
    buf_init(&out, KIB(4));
    json_rpc_begin_notification(&w, &out, "notifications/progress");
    json_begin_object_as(&w, "params");
    json_add_value(&w, "progressToken", t->progress_token);
    json_add_double(&w, "progress", progress);
    if (total > 0)
        json_add_double(&w, "total", total);
    if (message && t->version >= MCP_API_2025_03_26)
        json_add_string(&w, "message", message);
    json_end(&w);
    json_end(&w);
    (void)!sse_push(t->stream, "message", NULL, buf_slice(&out)); /* a client that has left is seen elsewhere */
    buf_clear(&out);
}

bool mcp_api_is_cancelled(struct mcp_api_turn *t)
{
    if (atomic_load(&t->req->exchange->is_gone))
        mcp_api_cancel_running(t->req->api->mcp_api, &t->running);
    return atomic_load(&t->running.is_cancelled);
}

int mcp_api_read_cursor(struct mcp_api_turn *t, int64_t *ret, struct err *e)
{
    struct json_value cursor = json_get(t->frame->params, "cursor");
    const char *text = json_cstr(cursor);
    char *end = NULL;
    long long offset;

    *ret = 0;
    if (json_is_absent(cursor))
        return 0;
    offset = text && *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;
    if (!end || *end || offset > INT32_MAX)
        return mcp_api_refuse(t, JSON_RPC_INVALID_PARAMS, e, "`cursor` must be a nextCursor of an earlier answer");
    *ret = offset;
    return 0;
}

int mcp_api_read_only_page(struct mcp_api_turn *t, struct err *e)
{
    int64_t offset;
    int r = mcp_api_read_cursor(t, &offset, e);

    if (r == 0 && offset > 0)
        r = mcp_api_refuse(t, JSON_RPC_INVALID_PARAMS, e, "`cursor` must be a nextCursor of an earlier answer");
    return r;
}

/* ---- the small methods ---- */

static void add_server(struct json_writer *w, const char *name)
{
    json_begin_object_as(w, name);
    json_add_string(w, "name", "hearth");
    json_add_string(w, "title", "Hearth");
    json_add_string(w, "version", HEARTH_VERSION);
    json_end(w);
}

static void add_flag(struct json_writer *w, const char *name, const char *flag, const char *other)
{
    json_begin_object_as(w, name);
    if (flag)
        json_add_bool(w, flag, true);
    if (other)
        json_add_bool(w, other, true);
    json_end(w);
}

/* 2025-11-25 alone knows tasks in this form. */
static void add_task_capability(struct json_writer *w)
{
    json_begin_object_as(w, "tasks");
    add_flag(w, "list", NULL, NULL);
    add_flag(w, "cancel", NULL, NULL);
    json_begin_object_as(w, "requests");
    json_begin_object_as(w, "tools");
    add_flag(w, "call", NULL, NULL);
    json_end(w);
    json_end(w);
    json_end(w);
}

static void add_capabilities(struct json_writer *w, enum mcp_api_version version)
{
    json_begin_object_as(w, "capabilities");
    add_flag(w, "tools", "listChanged", NULL);
    add_flag(w, "resources", "subscribe", NULL);
    add_flag(w, "prompts", NULL, NULL);
    if (version >= MCP_API_2025_03_26)
        add_flag(w, "completions", NULL, NULL);
    if (version != MCP_API_2026_07_28)
        add_flag(w, "logging", NULL, NULL);
    if (version == MCP_API_2025_11_25)
        add_task_capability(w);
    json_end(w);
}

/* The version is chosen, and the session made, by mcp_api_http.c. */
static int initialize(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    json_add_string(w, "protocolVersion", mcp_api_versions[t->version]);
    add_capabilities(w, t->version);
    add_server(w, "serverInfo");
    json_add_string(w, "instructions", INSTRUCTIONS);
    return 0;
}

static int discover(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    json_add_strings(w, "supportedVersions", &mcp_api_versions[MCP_API_2026_07_28], 1);
    add_capabilities(w, t->version);
    json_add_string(w, "instructions", INSTRUCTIONS);
    json_begin_object_as(w, "_meta");
    add_server(w, SERVER_INFO);
    json_end(w);
    return 0;
}

static int ping(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    return 0;
}

static int set_level(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    static const char *const levels[] = { "debug", "info",     "notice", "warning",
                                          "error", "critical", "alert",  "emergency" };
    struct slice level = json_string(json_get(t->frame->params, "level"));

    for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
        if (slice_eq_str(level, levels[i])) {
            mcp_api_session_set_level(t->req->api->mcp_api, t->session_id, (int)i);
            return 0;
        }
    return mcp_api_refuse(t, JSON_RPC_INVALID_PARAMS, e,
                          "`level` must be debug, info, notice, warning, error, critical, alert or emergency");
}

static const struct method {
    const char *name;
    unsigned eras;
    enum mcp_api_version since; /* of the handshake era */
    bool is_cacheable;          /* the stateless era requires ttlMs and cacheScope */
    bool waits, uses_rows;
    mcp_api_method *handle;
} methods[] = {
    { "initialize", HANDSHAKE, .handle = initialize },
    { "server/discover", STATELESS, .is_cacheable = true, .handle = discover },
    { "ping", HANDSHAKE, .handle = ping },
    { "logging/setLevel", HANDSHAKE, .handle = set_level },
    { "tools/list", BOTH, .is_cacheable = true, .waits = true, .handle = mcp_api_list_tools },
    { "tools/call", BOTH, .handle = mcp_api_call_tool },
    { "resources/list", BOTH, .is_cacheable = true, .handle = mcp_api_list_resources },
    { "resources/templates/list", BOTH, .is_cacheable = true, .handle = mcp_api_list_templates },
    { "resources/read", BOTH, .is_cacheable = true, .handle = mcp_api_read_resource },
    { "resources/subscribe", HANDSHAKE, .handle = mcp_api_subscribe },
    { "resources/unsubscribe", HANDSHAKE, .handle = mcp_api_unsubscribe },
    { "prompts/list", BOTH, .is_cacheable = true, .handle = mcp_api_list_prompts },
    { "prompts/get", BOTH, .handle = mcp_api_get_prompt },
    { "completion/complete", BOTH, .handle = mcp_api_complete },
    { "tasks/get", HANDSHAKE, .since = MCP_API_2025_11_25, .handle = mcp_api_get_task },
    { "tasks/list", HANDSHAKE, .since = MCP_API_2025_11_25, .handle = mcp_api_list_tasks },
    { "tasks/result", HANDSHAKE, .since = MCP_API_2025_11_25, .waits = true, .handle = mcp_api_get_task_result },
    { "tasks/cancel", HANDSHAKE, .since = MCP_API_2025_11_25, .uses_rows = true, .handle = mcp_api_cancel_task },
};

static const struct method *find_method(const char *name, enum mcp_api_version version)
{
    unsigned era = version == MCP_API_2026_07_28 ? STATELESS : HANDSHAKE;

    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if (strcmp(methods[i].name, name) == 0 && methods[i].eras & era && version >= methods[i].since)
            return &methods[i];
    return NULL;
}

static enum mcp_api_manner manner_of_tool(const char *name)
{
    enum mcp_api_manner manner = MCP_API_AT_ONCE;

    for (const struct mcp_api_source *const *at = mcp_api_profile.tools; manner == MCP_API_AT_ONCE && *at; at++)
        manner = (*at)->manner(name);
    return manner;
}

enum mcp_api_manner mcp_api_manner_of(const struct json_rpc_frame *frame)
{
    const char *name = json_cstr(json_get(frame->params, "name"));

    if (frame->kind != JSON_RPC_REQUEST)
        return MCP_API_AT_ONCE;
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if ((methods[i].waits || methods[i].uses_rows) && strcmp(methods[i].name, frame->method) == 0)
            return methods[i].waits ? MCP_API_MAY_WAIT : MCP_API_USES_ROWS;
    return strcmp(frame->method, "tools/call") == 0 && name ? manner_of_tool(name) : MCP_API_AT_ONCE;
}

bool mcp_api_frame_waits(const struct api *api, const struct json_rpc_frame *frame)
{
    enum mcp_api_manner manner = mcp_api_manner_of(frame);

    return manner >= MCP_API_MAY_WAIT || (manner == MCP_API_USES_ROWS && api->has_remote_rows);
}

/* ---- one frame ---- */

static void begin_result(struct mcp_api_turn *t, const struct method *method, struct json_writer *w, struct buf *out)
{
    json_rpc_begin(w, out, &t->frame->id);
    json_begin_object_as(w, "result");
    if (!mcp_api_is_stateless(t))
        return;
    json_add_string(w, "resultType", "complete");
    if (!method->is_cacheable)
        return;
    json_add_int(w, "ttlMs", 0);
    json_add_string(w, "cacheScope", "private");
}

static int write_result(struct mcp_api_turn *t, struct buf *out, struct err *e)
{
    const struct method *method = find_method(t->frame->method, t->version);
    struct json_writer w;
    int r;

    if (!method) {
        t->status = mcp_api_is_stateless(t) ? 404 : 0;
        return mcp_api_refuse(t, JSON_RPC_METHOD_NOT_FOUND, e, "Method not found: %.100s", t->frame->method);
    }
    begin_result(t, method, &w, out);
    r = method->handle(t, &w, e);
    if (r < 0)
        return r;
    json_end(&w);
    json_end(&w);
    return out->overflowed ? err_set(e, -EFBIG, "REPLY_TOO_LARGE", "The answer is larger than the service allows.") : 0;
}

void mcp_api_answer(struct mcp_api_turn *t, struct buf *out)
{
    size_t before = out->n;
    struct err e;
    int r;

    err_init(&e);
    r = write_result(t, out, &e);
    if (r == 0)
        return;
    out->n = MIN(before, out->n);
    out->overflowed = false;
    write_error(t, out, r, &e);
}
