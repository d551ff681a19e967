/* 2024-10-07 to 2025-11-25: initialize, notifications/initialized, then a session. */
#include "mcp/client_private.h"

#include <string.h>

/* The newest first: it is the one that is proposed. */
static const char *const handshake_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
                                                  "2024-10-07" };

static void add_initialize(const void *arg, struct json_writer *w)
{
    const struct mcp_client *c = arg;

    json_add_string(w, "protocolVersion", handshake_versions[0]);
    client_add_capabilities(c, "capabilities", w);
    client_add_info("clientInfo", w);
}

/* Lifecycle, "Version negotiation": a client that does not know the answered version disconnects. */
static int take_initialized(struct mcp_client *c, struct json_value result, struct err *e)
{
    struct slice version = json_string(json_get(result, "protocolVersion"));

    for (size_t i = 0; i < ARRAY_SIZE(handshake_versions); i++) {
        if (!slice_eq_str(version, handshake_versions[i]))
            continue;
        client_learn(c, handshake_versions[i], json_get(result, "capabilities"), json_get(result, "serverInfo"),
                     json_get(result, "instructions"));
        return 0;
    }
    return err_set(e, -EPROTO, "MCP_VERSION", "The MCP server speaks version %.*s of the protocol, which is not known.",
                   (int)MIN(version.n, (size_t)40), version.n ? version.p : "(none)");
}

/* A server that only knows the stateless era refuses the version, or does not know the method. */
static int judge_refusal(const struct json_rpc_error *error, struct err *e)
{
    client_refuse("initialize", error, e);
    return error->code == MCP_UNSUPPORTED_VERSION || error->code == JSON_RPC_METHOD_NOT_FOUND ? -ENOPROTOOPT : -EIO;
}

static int handshake_confirm(struct mcp_client *c, const struct net_wait *wait, struct err *e)
{
    const struct mcp_request initialized = { .method = "notifications/initialized", .version = c->about.version };
    int r = mcp_peer_notify(c->peer, &initialized, wait, e);

    return r < 0 ? r : mcp_peer_listen(c->peer, c->about.version, e);
}

static int handshake_begin(struct mcp_client *c, const struct net_wait *wait, int64_t wait_ms, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait part = net_wait_part(wait, wait_ms > 0 ? wait_ms : wait->total_ms);
    const struct mcp_call call = { .arena = a, .wait = &part };
    const struct mcp_request initialize = {
        .method = "initialize", .add_params = add_initialize, .arg = c, .must_not_be_cancelled = true
    };
    struct mcp_reply reply;
    int r = mcp_peer_call(c->peer, &initialize, &call, &reply, e);

    if (r < 0)
        return r;
    if (reply.is_error)
        return judge_refusal(&reply.error, e);
    r = take_initialized(c, reply.result, e);
    return r < 0 ? r : handshake_confirm(c, wait, e);
}

static void add_level(const void *arg, struct json_writer *w)
{
    json_add_string(w, "level", arg);
}

static int handshake_log_level(struct mcp_client *c, const struct mcp_call *call, const char *level, struct err *e)
{
    const struct client_request q = { .method = "logging/setLevel", .add_params = add_level, .arg = level };
    struct json_value result = { 0 };

    return mcp_client_send(c, call, &q, &result, NULL, NULL, e);
}

static int handshake_roots_changed(struct mcp_client *c, const struct net_wait *wait, struct err *e)
{
    const struct mcp_request changed = { .method = "notifications/roots/list_changed", .version = c->about.version };

    return c->handlers.roots ? mcp_peer_notify(c->peer, &changed, wait, e) : 0;
}

static void add_uri(const void *arg, struct json_writer *w)
{
    json_add_string(w, "uri", arg);
}

static int follow(struct mcp_client *c, const char *uri, bool is_on, struct err *e)
{
    int r;

    pthread_mutex_lock(&c->lock);
    r = client_follow(c, uri, is_on, 0, e);
    pthread_mutex_unlock(&c->lock);
    return r;
}

static int handshake_subscribe(struct mcp_client *c, const struct mcp_call *call, const char *uri, bool is_on,
                               struct err *e)
{
    const struct client_request q = { .method = is_on ? "resources/subscribe" : "resources/unsubscribe",
                                      .add_params = add_uri,
                                      .arg = uri };
    struct json_value result = { 0 };
    int r = follow(c, uri, is_on, e), sent;

    if (r < 0)
        return r;
    sent = mcp_client_send(c, call, &q, &result, NULL, NULL, e);
    if (sent < 0 && is_on && r == 0)
        (void)!follow(c, uri, false, NULL);
    return sent;
}

const struct mcp_era_ops mcp_handshake_era = {
    .era = MCP_ERA_HANDSHAKE,
    .begin = handshake_begin,
    .ping = "ping",
    .log_level = handshake_log_level,
    .roots_changed = handshake_roots_changed,
    .subscribe = handshake_subscribe,
    .has_requests = true,
};
