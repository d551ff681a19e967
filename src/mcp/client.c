#include "mcp/client_private.h"

#include "base/clock.h"
#include "base/cond.h"

#include <string.h>

enum { CLIENT_TEXT_BYTES = 512, CLIENT_INSTRUCTIONS_BYTES = 16 << 10 }; /* of what a server says of itself */

/* ---- what both eras say and learn ---- */

void client_add_info(const char *name, struct json_writer *w)
{
    json_begin_object_as(w, name);
    json_add_string(w, "name", "hearth");
    json_add_string(w, "title", "Hearth");
    json_add_string(w, "version", HEARTH_VERSION);
    json_end(w);
}

void client_add_capabilities(const struct mcp_client *c, const char *name, struct json_writer *w)
{
    json_begin_object_as(w, name);
    if (c->handlers.roots) {
        json_begin_object_as(w, "roots");
        json_add_bool(w, "listChanged", true);
        json_end(w);
    }
    if (c->handlers.sample) {
        json_begin_object_as(w, "sampling");
        json_end(w);
    }
    if (c->handlers.elicit) {
        json_begin_object_as(w, "elicitation");
        json_begin_object_as(w, "form");
        json_end(w);
        json_begin_object_as(w, "url");
        json_end(w);
        json_end(w);
    }
    if (c->extension) {
        json_begin_object_as(w, "extensions");
        json_begin_object_as(w, c->extension);
        json_end(w);
        json_end(w);
    }
    json_end(w);
}

/* A text of the server, cut at its maximum between two characters; NULL when there is none. */
static const char *learn_text(struct mcp_client *c, struct json_value v, size_t max)
{
    const char *text = json_cstr(v);
    size_t n = text ? strnlen(text, max) : 0;

    while (n > 0 && text[n] != '\0' && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return text && *text ? arena_strndup(c->arena, text, n) : NULL;
}

static bool has_object(struct json_value v, const char *name)
{
    return json_type(json_get(v, name)) == JSON_OBJECT;
}

static bool learn_changes(struct json_value capabilities, const char *name)
{
    return json_bool(json_get(json_get(capabilities, name), "listChanged"));
}

void client_learn(struct mcp_client *c, const char *version, struct json_value capabilities, struct json_value info,
                  struct json_value instructions)
{
    struct json_value resources = json_get(capabilities, "resources");
    struct json_value tasks = json_get(json_get(json_get(capabilities, "tasks"), "requests"), "tools");

    c->about = (struct mcp_about){
        .era = c->era->era,
        .version = version,
        .name = learn_text(c, json_get(info, "name"), CLIENT_TEXT_BYTES),
        .title = learn_text(c, json_get(info, "title"), CLIENT_TEXT_BYTES),
        .server_version = learn_text(c, json_get(info, "version"), CLIENT_TEXT_BYTES),
        .instructions = learn_text(c, instructions, CLIENT_INSTRUCTIONS_BYTES),
        .has_tools = has_object(capabilities, "tools"),
        .has_prompts = has_object(capabilities, "prompts"),
        .has_resources = json_type(resources) == JSON_OBJECT,
        .has_subscriptions = json_bool(json_get(resources, "subscribe")),
        .has_completions = has_object(capabilities, "completions"),
        .has_logging = has_object(capabilities, "logging"),
        .has_tasks = c->era->has_requests && has_object(tasks, "call"),
        .has_changing_tools = learn_changes(capabilities, "tools"),
        .has_changing_prompts = learn_changes(capabilities, "prompts"),
        .has_changing_resources = learn_changes(capabilities, "resources"),
    };
}

/* ---- failures ---- */

int client_refuse(const char *method, const struct json_rpc_error *error, struct err *e)
{
    char code[INT_TEXT_SIZE];

    int_text(code, error->code);
    if (error->code == JSON_RPC_METHOD_NOT_FOUND)
        err_set(e, -EOPNOTSUPP, "MCP_NOT_SUPPORTED", "The MCP server does not know `%.100s`: %.*s", method,
                (int)MIN(error->message.n, (size_t)300), error->message.p);
    else
        err_set(e, -EIO, "MCP_SERVER_ERROR", "The MCP server refused `%.100s` (%s): %.*s", method, code,
                (int)MIN(error->message.n, (size_t)300), error->message.p);
    err_add_extra(e, "mcp_code", code);
    return error->code == JSON_RPC_METHOD_NOT_FOUND ? -EOPNOTSUPP : -EIO;
}

int client_bad_answer(const char *method, const char *what, struct err *e)
{
    return err_set(e, -EPROTO, "MCP_BAD_ANSWER", "The MCP server's answer to `%.100s` has no valid `%.100s`.", method,
                   what);
}

int client_lacks(const char *what, struct err *e)
{
    return err_set(e, -EOPNOTSUPP, "MCP_NOT_SUPPORTED", "The MCP server has no %s.", what);
}

/* ---- what a server asks ---- */

static int answer_roots(struct mcp_client *c, const struct mcp_server_request *request, struct buf *ret_result,
                        struct err *e)
{
    struct json_writer w;
    int r;

    json_write_init(&w, ret_result);
    json_begin_object(&w);
    json_begin_array_as(&w, "roots");
    r = c->handlers.roots(c->handlers.arg, request, &w, e);
    json_end(&w);
    json_end(&w);
    return r;
}

/* Revision 2025-11-25, "Sampling": a client that has not announced sampling.tools refuses them. */
static int answer_sampling(struct mcp_client *c, const struct mcp_server_request *request, struct buf *ret_result,
                           struct err *e)
{
    static const char *const unknown[] = { "tools", "toolChoice" };

    for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
        if (!json_is_absent(json_get(request->params, unknown[i])))
            return err_set(e, -EINVAL, "VALIDATION_ERROR", "`%s` must be absent: sampling with tools is not announced",
                           unknown[i]);
    return c->handlers.sample(c->handlers.arg, request, ret_result, e);
}

static int answer_elicitation(struct mcp_client *c, const struct mcp_server_request *request, struct buf *ret_result,
                              struct err *e)
{
    struct slice mode = json_string(json_get(request->params, "mode"));
    bool is_url = slice_eq_str(mode, "url");

    if (!is_url && mode.n > 0 && !slice_eq_str(mode, "form"))
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "`mode` must be form or url");
    if (!json_cstr(json_get(request->params, "message")))
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "`message` must be a string");
    if (is_url && !json_cstr(json_get(request->params, "url")))
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "`url` must be a string");
    if (!is_url && !has_object(request->params, "requestedSchema"))
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "`requestedSchema` must be an object");
    return c->handlers.elicit(c->handlers.arg, request, ret_result, e);
}

int client_answer(struct mcp_client *c, const char *method, const struct mcp_server_request *request,
                  struct buf *ret_result, struct err *e)
{
    if (strcmp(method, "roots/list") == 0 && c->handlers.roots)
        return answer_roots(c, request, ret_result, e);
    if (strcmp(method, "sampling/createMessage") == 0 && c->handlers.sample)
        return answer_sampling(c, request, ret_result, e);
    if (strcmp(method, "elicitation/create") == 0 && c->handlers.elicit)
        return answer_elicitation(c, request, ret_result, e);
    return err_set(e, -ENOSYS, "MCP_NOT_SUPPORTED", "Method not found");
}

static int on_request(void *arg, const char *method, const struct mcp_server_request *request, struct buf *ret_result,
                      struct err *e)
{
    struct mcp_client *c = arg;

    if (!c->era->has_requests)
        return err_set(e, -ENOSYS, "MCP_NOT_SUPPORTED", "Method not found");
    return client_answer(c, method, request, ret_result, e);
}

/* ---- what a server tells ---- */

static bool may_log(struct mcp_client *c)
{
    const int64_t second = clock_mono_ms() / 1000;
    bool may;

    pthread_mutex_lock(&c->lock);
    if (second != c->log_second)
        c->n_logs = 0;
    c->log_second = second;
    may = c->n_logs < LIMIT_MCP_LOGS_A_SECOND;
    c->n_logs += may;
    pthread_mutex_unlock(&c->lock);
    return may;
}

static void note_task_news(struct mcp_client *c)
{
    pthread_mutex_lock(&c->lock);
    c->n_task_news++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static bool take_list_change(struct mcp_client *c, const char *method)
{
    static const struct {
        const char *method;
        enum mcp_list what;
    } rows[] = { { "notifications/tools/list_changed", MCP_LIST_TOOLS },
                 { "notifications/prompts/list_changed", MCP_LIST_PROMPTS },
                 { "notifications/resources/list_changed", MCP_LIST_RESOURCES } };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].method, method) != 0)
            continue;
        if (c->handlers.changed)
            c->handlers.changed(c->handlers.arg, rows[i].what);
        return true;
    }
    return false;
}

static void take_update(struct mcp_client *c, struct json_value uri)
{
    if (c->handlers.updated && json_cstr(uri) && json_string(uri).n <= LIMIT_MCP_TARGET_URI_BYTES)
        c->handlers.updated(c->handlers.arg, json_cstr(uri));
}

static void on_notification(void *arg, const struct json_rpc_frame *frame)
{
    struct mcp_client *c = arg;

    if (take_list_change(c, frame->method))
        return;
    if (strcmp(frame->method, "notifications/resources/updated") == 0)
        take_update(c, json_get(frame->params, "uri"));
    else if (strcmp(frame->method, "notifications/message") == 0 && c->handlers.logged && may_log(c))
        c->handlers.logged(c->handlers.arg, frame->params);
    else if (strcmp(frame->method, "notifications/tasks/status") == 0)
        note_task_news(c);
    else if (strcmp(frame->method, "notifications/subscriptions/acknowledged") == 0)
        client_listen_acknowledged(c, frame->params);
}

static void on_gap(void *arg)
{
    client_report_gap(arg, UINT64_MAX);
}

static void on_closed(void *arg, const struct err *why)
{
    struct mcp_client *c = arg;

    pthread_mutex_lock(&c->lock);
    c->is_closed = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (c->handlers.closed)
        c->handlers.closed(c->handlers.arg, why);
}

/* ---- opening and closing ---- */

static struct mcp_client *client_new(const struct mcp_client_config *config)
{
    struct mcp_client *c = xcalloc(1, sizeof(*c));

    atomic_init(&c->n_refs, 1);
    c->extension = config->extension;
    if (config->handlers)
        c->handlers = *config->handlers;
    if (!config->pool) { /* nobody answers: nothing is announced */
        c->handlers.roots = NULL;
        c->handlers.sample = NULL;
        c->handlers.elicit = NULL;
    }
    c->arena = arena_new();
    pthread_mutex_init(&c->lock, NULL);
    cond_init(&c->changed);
    return c;
}

static struct mcp_client *client_free(struct mcp_client *c)
{
    mcp_peer_free(c->peer);
    client_forget_followed(c);
    arena_free(c->tools_arena);
    arena_free(c->arena);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return NULL;
}

/* The error of an era that did not fit says nothing about the next attempt. */
static int begin_as(struct mcp_client *c, const struct mcp_era_ops *era, const struct net_wait *wait, int64_t wait_ms,
                    struct err *e)
{
    struct err own = { 0 };
    int r;

    c->era = era;
    r = era->begin(c, wait, wait_ms, &own);
    if (r < 0 && e)
        *e = own;
    return r;
}

/* A server that ended at the probe gets no second message. One that was only slow has locked itself into the stateless
 * era, refuses the handshake, and is asked once more. */
static int find_era(struct mcp_client *c, const struct mcp_client_config *config, const struct net_wait *wait,
                    enum mcp_era *ret_era, struct err *e)
{
    const bool is_known = config->era != MCP_ERA_UNKNOWN;
    const int64_t probe_ms = is_known ? 0 : config->probe_ms > 0 ? config->probe_ms : LIMIT_MCP_PROBE_MS;
    const struct mcp_era_ops *first = config->era == MCP_ERA_HANDSHAKE ? &mcp_handshake_era : &mcp_stateless_era;
    const struct mcp_era_ops *second = first == &mcp_handshake_era ? &mcp_stateless_era : &mcp_handshake_era;
    int r = begin_as(c, first, wait, probe_ms, e);

    if (r == -EPIPE && !is_known && !mcp_peer_is_open(c->peer)) {
        *ret_era = MCP_ERA_HANDSHAKE;
        return err_prefix(e, -EAGAIN, "The MCP server ended when it was asked for its version");
    }
    if (r == -ENOPROTOOPT)
        r = begin_as(c, second, wait, 0, e);
    if (r == -ENOPROTOOPT && !is_known)
        r = begin_as(c, first, wait, 0, e);
    if (r == -ENOPROTOOPT)
        r = -EPROTO;
    if (r == 0)
        *ret_era = c->era->era;
    return r;
}

int mcp_client_open(struct mcp_link *link, const struct mcp_client_config *config, const struct net_wait *wait,
                    struct mcp_client **ret, enum mcp_era *ret_era, struct err *e)
{
    struct mcp_client *c = client_new(config);
    const struct mcp_peer_config peer = { .link = link,
                                          .pool = config->pool,
                                          .on = { .on_notification = on_notification,
                                                  .on_gap = on_gap,
                                                  .on_request = on_request,
                                                  .on_closed = on_closed,
                                                  .arg = c } };
    int r;

    c->era = &mcp_handshake_era; /* frames may come before the first one is sent */
    *ret_era = config->era;
    r = mcp_peer_open(&peer, &c->peer, e);
    if (r == 0)
        r = find_era(c, config, wait, ret_era, e);
    if (r < 0) {
        mcp_client_unref(c);
        return r;
    }
    *ret = c;
    return 0;
}

void mcp_client_close(struct mcp_client *c)
{
    if (!c->peer)
        return;
    mcp_peer_close(c->peer);
    client_listen_end(c);
}

bool mcp_client_is_open(const struct mcp_client *c)
{
    return mcp_peer_is_open(c->peer);
}

struct mcp_client *mcp_client_ref(struct mcp_client *c)
{
    atomic_fetch_add(&c->n_refs, 1);
    return c;
}

struct mcp_client *mcp_client_unref(struct mcp_client *c)
{
    if (!c || atomic_fetch_sub(&c->n_refs, 1) > 1)
        return NULL;
    mcp_client_close(c);
    return client_free(c);
}

const struct mcp_about *mcp_client_about(const struct mcp_client *c)
{
    return &c->about;
}

void mcp_client_counts(const struct mcp_client *c, struct mcp_counts *ret)
{
    mcp_peer_counts(c->peer, ret);
}
