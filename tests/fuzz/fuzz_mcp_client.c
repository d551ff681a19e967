/* Each line is a frame of an MCP server, delivered when the client has sent its next request: opening, lists, calls,
 * questions, tasks. A line that begins with @ comes in the answer of that request, with what follows up to a second @
 * before the frame itself. The first byte chooses the era that is tried first. */
#include "mcp/client.h"

#include "base/json_rpc.h"
#include "base/limits.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FUZZ_WAIT_MS = 60 };

struct fuzz_link {
    struct mcp_link link;
    struct mcp_link_events on;
    struct slice rest;
    bool has_closed;
    int64_t n_requests; /* about the id of the last one */
};

static int fuzz_start(struct mcp_link *l, const struct mcp_link_events *on, struct err *e)
{
    ((struct fuzz_link *)l)->on = *on;
    return 0;
}

static void fuzz_deliver(struct fuzz_link *f, struct slice line)
{
    const struct json_rpc_id request = { .kind = JSON_RPC_ID_INT, .number = f->n_requests };
    const char *second = line.n > 0 && line.p[0] == '@' ? memchr(line.p + 1, '@', line.n - 1) : NULL;
    size_t n = second ? (size_t)(second - line.p) : 0;

    if (!second) {
        f->on.on_frame(f->on.arg, line, NULL);
        return;
    }
    f->on.on_frame(f->on.arg, (struct slice){ line.p + 1, n - 1 }, &request);
    f->on.on_frame(f->on.arg, (struct slice){ second + 1, line.n - n - 1 }, &request);
}

/* The stream of changes, on a thread of its own, gets no frame. */
static int fuzz_send(struct mcp_link *l, const struct mcp_send *s, struct err *e)
{
    struct fuzz_link *f = (struct fuzz_link *)l;
    const char *end = f->rest.n > 0 ? memchr(f->rest.p, '\n', f->rest.n) : NULL;
    size_t n = end ? (size_t)(end - f->rest.p) : f->rest.n;

    if (s->is_request && strcmp(s->method, "subscriptions/listen") != 0) {
        const struct slice line = { f->rest.p, n };

        f->rest = (struct slice){ f->rest.p + n + (end != NULL), f->rest.n - n - (end != NULL) };
        f->n_requests++;
        fuzz_deliver(f, line);
    }
    return s->is_request ? err_set(e, -EPROTO, "MCP_NO_ANSWER", "no answer") : 0;
}

static struct mcp_link *fuzz_close(struct mcp_link *l)
{
    struct fuzz_link *f = (struct fuzz_link *)l;
    struct err e = { 0 };

    assert(!f->has_closed);
    f->has_closed = true;
    f->on.on_closed(f->on.arg, &e);
    return NULL;
}

static const struct mcp_link_ops fuzz_ops = {
    .name = "fuzz", .start = fuzz_start, .send = fuzz_send, .close = fuzz_close
};

static int fuzz_elicit(void *arg, const struct mcp_server_request *request, struct buf *ret, struct err *e)
{
    buf_add_str(ret, "{\"action\":\"accept\",\"content\":{}}");
    return 0;
}

static void fuzz_updated(void *arg, const char *uri)
{
    assert(strlen(uri) <= LIMIT_MCP_TARGET_URI_BYTES);
}

static const char *check_tools(struct mcp_client *c, const struct mcp_call *call)
{
    struct mcp_tools tools;
    struct err e = { 0 };

    if (mcp_client_tools(c, call, &tools, &e) < 0) {
        assert(*e.code && *e.text);
        return "t";
    }
    assert(tools.n <= LIMIT_MCP_ITEMS);
    for (size_t i = 0; i < tools.n; i++) {
        assert(*tools.items[i].name && strlen(tools.items[i].name) <= LIMIT_MCP_NAME_BYTES);
        assert(json_type(tools.items[i].input_schema) == JSON_OBJECT);
    }
    return tools.n > 0 ? tools.items[0].name : "t";
}

static void check_call(struct mcp_client *c, const struct mcp_call *call, const char *tool)
{
    struct mcp_result result;
    struct err e = { 0 };

    if (mcp_client_call(c, call, tool, (struct json_value){ 0 }, &result, &e) == 0)
        assert(json_type(result.content) == JSON_ARRAY);
    else
        assert(*e.code && *e.text);
}

static void check_others(struct mcp_client *c, const struct mcp_call *call)
{
    const struct mcp_completion what = { "ref/prompt", "p", "a", "v", { 0 } };
    struct mcp_resources resources;
    struct mcp_prompts prompts;
    struct json_value v;
    const char *text;

    if (mcp_client_resources(c, call, &resources, NULL) == 0)
        assert(resources.n <= LIMIT_MCP_ITEMS);
    if (mcp_client_templates(c, call, &resources, NULL) == 0)
        assert(resources.n <= LIMIT_MCP_ITEMS);
    if (mcp_client_prompts(c, call, &prompts, NULL) == 0)
        assert(prompts.n <= LIMIT_MCP_ITEMS);
    if (mcp_client_read(c, call, "a:b", &v, NULL) == 0)
        assert(json_type(v) == JSON_ARRAY);
    if (mcp_client_prompt(c, call, "p", (struct json_value){ 0 }, &text, &v, NULL) == 0)
        assert(json_type(v) == JSON_ARRAY);
    if (mcp_client_complete(c, call, &what, &v, NULL) == 0)
        assert(json_type(v) == JSON_OBJECT);
}

/* Answers what the server asks; one for all inputs. */
static struct pool *answerers(void)
{
    static const struct pool_config config = { .name = "answer", .n_max = 4, .max_waiting = 64 };
    static struct pool *pool;

    if (!pool && pool_start(&config, &pool, NULL) < 0)
        abort();
    return pool;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mcp_handlers handlers = { .elicit = fuzz_elicit, .updated = fuzz_updated };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct fuzz_link link = { .link.ops = &fuzz_ops };
    const struct net_wait wait = net_wait_of(FUZZ_WAIT_MS, NULL, NULL);
    const struct mcp_caller caller = { .name = "fuzz" };
    const struct mcp_call call = { .arena = a, .wait = &wait, .quiet_ms = FUZZ_WAIT_MS, .caller = &caller };
    struct mcp_client_config config = { .handlers = &handlers, .pool = answerers() };
    struct mcp_client *c;
    enum mcp_era era;

    if (size == 0)
        return 0;
    link.rest = (struct slice){ (const char *)data + 1, size - 1 };
    config.era = data[0] == 'h' ? MCP_ERA_HANDSHAKE : data[0] == 's' ? MCP_ERA_STATELESS : MCP_ERA_UNKNOWN;
    if (mcp_client_open(&link.link, &config, &wait, &c, &era, NULL) < 0)
        return 0;
    assert(era == mcp_client_about(c)->era && mcp_client_about(c)->version);
    check_call(c, &call, check_tools(c, &call));
    check_others(c, &call);
    mcp_client_unref(c);
    assert(link.has_closed);
    return 0;
}
