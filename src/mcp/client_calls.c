/* Operations with one result: calls of tools, resources, prompts, completion, and the small ones. */
#include "mcp/client_private.h"
#include "mcp/http_params.h"

#include <string.h>

#define ERROR_HEAD "MCP error "

/* ---- tools ---- */

struct tool_call {
    const char *tool;
    struct json_value arguments;
    int64_t ttl_ms; /* as a task that is kept so long; 0: no task */
};

static void add_tool_call(const void *arg, struct json_writer *w)
{
    const struct tool_call *t = arg;

    json_add_string(w, "name", t->tool);
    if (json_type(t->arguments) == JSON_OBJECT) {
        json_add_value(w, "arguments", t->arguments);
    } else {
        json_begin_object_as(w, "arguments");
        json_end(w);
    }
    if (t->ttl_ms > 0) {
        json_begin_object_as(w, "task");
        json_add_int(w, "ttl", t->ttl_ms);
        json_end(w);
    }
}

/* Prepares the call of a tool that the last list showed as special. */
static int prepare_call(struct mcp_client *c, const struct mcp_call *call, struct tool_call *t,
                        struct client_request *q, struct err *e)
{
    struct http_call_header *headers = NULL;
    int r = 0;

    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; r == 0 && i < c->n_tools; i++) {
        const struct client_tool *tool = &c->tools[i];

        if (strcmp(tool->name, t->tool) != 0)
            continue;
        if (tool->must_be_task)
            t->ttl_ms = MAX(net_wait_left(call->wait, NULL), INT64_C(1));
        if (!json_is_absent(tool->schema))
            r = mcp_params_of(tool->schema, t->arguments, call->arena, &headers, &q->n_headers, e);
    }
    pthread_mutex_unlock(&c->lock);
    q->headers = headers;
    return r;
}

/* Whether a person was shown one of the addresses. Whether the call is then made again is for its caller to say. */
static bool offer_addresses(struct mcp_client *c, const struct mcp_call *call, const struct json_rpc_error *error)
{
    struct json_iter it = json_iter(json_get(error->data, "elicitations"));
    struct json_value params;
    bool was_shown = false;

    if (error->code != MCP_URL_NEEDED)
        return false;
    for (int n = 0; n < LIMIT_MCP_ROUND_INPUTS && json_next(&it, NULL, &params); n++) {
        const struct net_wait wait = net_wait_part(call->wait, LIMIT_MCP_REQUEST_MS);
        const struct mcp_server_request request = { params, call->arena, &wait, call->caller };
        struct buf answer;

        buf_init(&answer, LIMIT_MCP_FRAME);
        was_shown = client_answer(c, "elicitation/create", &request, &answer, NULL) == 0 || was_shown;
        buf_clear(&answer);
    }
    return was_shown;
}

/* A refusal as the result of a tool, which is what a model and an app read. */
static int result_of_error(const struct mcp_call *call, const struct json_rpc_error *error, bool was_shown,
                           struct mcp_result *ret, struct err *e)
{
    struct json_value content;
    struct json_writer w;
    struct buf text, out;
    int r;

    buf_init(&text, LIMIT_MCP_FRAME);
    if (error->message.n < strlen(ERROR_HEAD) || memcmp(error->message.p, ERROR_HEAD, strlen(ERROR_HEAD)) != 0)
        buf_printf(&text, ERROR_HEAD "%lld: ", (long long)error->code); /* some servers say it themselves */
    buf_add_slice(&text, error->message);
    if (was_shown)
        buf_add_str(&text, " A person was shown the address to open; after that the call can be made again.");
    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_array(&w);
    json_begin_object(&w);
    json_add_string(&w, "type", "text");
    json_add_slice(&w, "text", buf_slice(&text));
    json_end(&w);
    json_end(&w);
    r = json_parse(call->arena, buf_slice(&out), &content, e);
    buf_clear(&text);
    buf_clear(&out);
    if (r == 0)
        *ret = (struct mcp_result){ .content = content, .is_error = true };
    return r;
}

/* Results before 2025-06-18 may have no content; every result here has one. */
static int result_of(const struct mcp_call *call, const char *method, struct json_value result, struct mcp_result *ret,
                     struct err *e)
{
    struct json_value content = json_get(result, "content"), structured = json_get(result, "structuredContent");
    int r = 0;

    if (json_is_absent(content))
        r = json_parse(call->arena, SLICE_LIT("[]"), &content, e);
    else if (json_type(content) != JSON_ARRAY)
        r = client_bad_answer(method, "content", e);
    if (r < 0)
        return r;
    if (json_is_absent(structured)) /* null */
        structured = (struct json_value){ 0 };
    *ret = (struct mcp_result){
        .content = content,
        .structured = structured,
        .is_error = json_bool(json_get(result, "isError")),
    };
    return 0;
}

static int call_to_the_end(struct mcp_client *c, const struct mcp_call *call, const struct client_request *q,
                           struct mcp_result *ret, struct err *e)
{
    struct json_rpc_error error = { 0 };
    struct json_value result = { 0 };
    int r = mcp_client_send(c, call, q, &result, &error, NULL, e);

    if (r == 0 && json_type(json_get(result, "task")) == JSON_OBJECT)
        r = client_finish_task(c, call, json_get(result, "task"), &result, &error, e);
    if (r == 1)
        return result_of_error(call, &error, offer_addresses(c, call, &error), ret, e);
    return r < 0 ? r : result_of(call, q->method, result, ret, e);
}

int mcp_client_call(struct mcp_client *c, const struct mcp_call *call, const char *tool, struct json_value arguments,
                    struct mcp_result *ret, struct err *e)
{
    struct mcp_peer_task task;
    struct tool_call t = { tool, arguments, 0 };
    struct client_request q = {
        .method = "tools/call", .name = tool, .add_params = add_tool_call, .arg = &t, .task = &task
    };
    int r;

    if (!c->about.has_tools)
        return client_lacks("tools", e);
    r = prepare_call(c, call, &t, &q, e);
    if (r < 0)
        return r;
    mcp_peer_begin_task(c->peer, &task, call->caller);
    r = call_to_the_end(c, call, &q, ret, e);
    mcp_peer_end_task(c->peer, &task);
    return r;
}

/* ---- resources ---- */

static void add_uri(const void *arg, struct json_writer *w)
{
    json_add_string(w, "uri", arg);
}

static int check_resource(const struct mcp_client *c, const char *uri, struct err *e)
{
    if (!c->about.has_resources)
        return client_lacks("resources", e);
    if (!*uri || strlen(uri) > LIMIT_MCP_TARGET_URI_BYTES)
        return err_add_field(e, "uri", "must be a string of 1 to %d bytes", LIMIT_MCP_TARGET_URI_BYTES);
    return 0;
}

int mcp_client_read(struct mcp_client *c, const struct mcp_call *call, const char *uri, struct json_value *ret,
                    struct err *e)
{
    const struct client_request q = { "resources/read", uri, add_uri, uri };
    struct json_value result = { 0 };
    int r = check_resource(c, uri, e);

    if (r == 0)
        r = mcp_client_send(c, call, &q, &result, NULL, NULL, e);
    if (r < 0)
        return r;
    if (json_type(json_get(result, "contents")) != JSON_ARRAY)
        return client_bad_answer(q.method, "contents", e);
    *ret = json_get(result, "contents");
    return 0;
}

static int change_subscription(struct mcp_client *c, const struct mcp_call *call, const char *uri, bool is_on,
                               struct err *e)
{
    int r = check_resource(c, uri, e);

    if (r == 0 && !c->about.has_subscriptions)
        r = client_lacks("resources that can be followed", e);
    return r < 0 ? r : c->era->subscribe(c, call, uri, is_on, e);
}

int mcp_client_subscribe(struct mcp_client *c, const struct mcp_call *call, const char *uri, struct err *e)
{
    return change_subscription(c, call, uri, true, e);
}

int mcp_client_unsubscribe(struct mcp_client *c, const struct mcp_call *call, const char *uri, struct err *e)
{
    return change_subscription(c, call, uri, false, e);
}

/* ---- prompts and completion ---- */

struct prompt_call {
    const char *name;
    struct json_value arguments;
};

static void add_prompt_call(const void *arg, struct json_writer *w)
{
    const struct prompt_call *p = arg;

    json_add_string(w, "name", p->name);
    if (json_type(p->arguments) == JSON_OBJECT)
        json_add_value(w, "arguments", p->arguments);
}

int mcp_client_prompt(struct mcp_client *c, const struct mcp_call *call, const char *name, struct json_value arguments,
                      const char **ret_description, struct json_value *ret_messages, struct err *e)
{
    const struct prompt_call p = { name, arguments };
    const struct client_request q = { "prompts/get", name, add_prompt_call, &p };
    struct json_value result = { 0 };
    int r = c->about.has_prompts ? mcp_client_send(c, call, &q, &result, NULL, NULL, e) : client_lacks("prompts", e);

    if (r < 0)
        return r;
    if (json_type(json_get(result, "messages")) != JSON_ARRAY)
        return client_bad_answer(q.method, "messages", e);
    *ret_description = json_cstr(json_get(result, "description"));
    *ret_messages = json_get(result, "messages");
    return 0;
}

static void add_completion(const void *arg, struct json_writer *w)
{
    const struct mcp_completion *what = arg;

    json_begin_object_as(w, "ref");
    json_add_string(w, "type", what->ref_type);
    json_add_string(w, strcmp(what->ref_type, "ref/prompt") == 0 ? "name" : "uri", what->ref);
    json_end(w);
    json_begin_object_as(w, "argument");
    json_add_string(w, "name", what->argument);
    json_add_string(w, "value", what->value);
    json_end(w);
    if (json_type(what->context) == JSON_OBJECT) {
        json_begin_object_as(w, "context");
        json_add_value(w, "arguments", what->context);
        json_end(w);
    }
}

int mcp_client_complete(struct mcp_client *c, const struct mcp_call *call, const struct mcp_completion *what,
                        struct json_value *ret, struct err *e)
{
    const struct client_request q = { "completion/complete", NULL, add_completion, what };
    struct json_value result = { 0 };
    int r = c->about.has_completions ? mcp_client_send(c, call, &q, &result, NULL, NULL, e)
                                     : client_lacks("completions", e);

    if (r < 0)
        return r;
    if (json_type(json_get(json_get(result, "completion"), "values")) != JSON_ARRAY)
        return client_bad_answer(q.method, "completion", e);
    *ret = json_get(result, "completion");
    return 0;
}

/* ---- the small ones ---- */

int mcp_client_log_level(struct mcp_client *c, const struct mcp_call *call, const char *level, struct err *e)
{
    static const char *const levels[] = { "debug", "info",     "notice", "warning",
                                          "error", "critical", "alert",  "emergency" };

    if (!c->about.has_logging)
        return client_lacks("log messages", e);
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
        if (strcmp(levels[i], level) == 0)
            return c->era->log_level(c, call, level, e);
    return err_add_field(e, "level", "must be debug, info, notice, warning, error, critical, alert or emergency");
}

int mcp_client_ping(struct mcp_client *c, const struct mcp_call *call, struct err *e)
{
    const struct mcp_request q = {
        .method = c->era->ping, .version = c->about.version, .add_meta = c->era->add_meta, .meta = c
    };
    struct mcp_reply reply;

    return mcp_peer_call(c->peer, &q, call, &reply, e);
}

int mcp_client_roots_changed(struct mcp_client *c, const struct net_wait *wait, struct err *e)
{
    return c->era->roots_changed ? c->era->roots_changed(c, wait, e) : 0;
}
