/* 2026-07-28: server/discover; every request says version, client and capabilities in `_meta`. */
#include "mcp/client_private.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/thread.h"

#include <string.h>

#define STATELESS_VERSION "2026-07-28"
#define META "io.modelcontextprotocol/"

enum {
    LISTEN_PAUSE_MS = 1000, /* before a stream of changes that ended is opened again; doubled each time */
    LISTEN_PAUSE_MOST_MS = 60000,
    LISTEN_FIRST_MS = 1000, /* how long the opening waits for the first stream */
    LISTEN_LOOK_MS = 50,    /* interval at which a waiting thread looks at its flags */
};
#define LISTEN_FOR_EVER_MS (INT64_C(10) * 365 * 86400 * 1000)

static void stateless_add_meta(const void *client, struct json_writer *w)
{
    struct mcp_client *c = (struct mcp_client *)client;
    char level[sizeof(c->log_level)];

    pthread_mutex_lock(&c->lock);
    memcpy(level, c->log_level, sizeof(level));
    pthread_mutex_unlock(&c->lock);
    json_add_string(w, META "protocolVersion", STATELESS_VERSION);
    client_add_capabilities(c, META "clientCapabilities", w);
    client_add_info(META "clientInfo", w);
    if (*level)
        json_add_string(w, META "logLevel", level);
}

static int stateless_log_level(struct mcp_client *c, const struct mcp_call *call, const char *level, struct err *e)
{
    pthread_mutex_lock(&c->lock);
    snprintf(c->log_level, sizeof(c->log_level), "%s", level);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

/* ---- the stream of changes: subscriptions/listen ---- */

/* A copy of the filter, for one request. */
struct filter {
    const struct mcp_about *about;
    char *uris[LIMIT_MCP_SUBSCRIPTIONS];
    size_t n_uris;
};

static void add_filter(const void *arg, struct json_writer *w)
{
    const struct filter *f = arg;

    json_begin_object_as(w, "notifications");
    if (f->about->has_changing_tools)
        json_add_bool(w, "toolsListChanged", true);
    if (f->about->has_changing_prompts)
        json_add_bool(w, "promptsListChanged", true);
    if (f->about->has_changing_resources)
        json_add_bool(w, "resourcesListChanged", true);
    if (f->n_uris > 0)
        json_add_strings(w, "resourceSubscriptions", (const char *const *)f->uris, f->n_uris);
    json_end(w);
}

/* Begins the next request; the lock is held. */
static void take_filter(struct mcp_client *c, struct arena *a, struct filter *ret)
{
    struct mcp_listening *l = &c->listening;

    *ret = (struct filter){ .about = &c->about, .n_uris = c->followed.n };
    for (size_t i = 0; i < ret->n_uris; i++)
        ret->uris[i] = arena_strdup(a, c->followed.uris[i]);
    l->running = l->wanted;
    l->state = LISTEN_SENT;
    atomic_store(&l->is_stale, false);
}

/* Negative: it makes no sense to ask again. */
static int listen_once(struct mcp_client *c, struct arena *a, const struct filter *f, struct err *e)
{
    const struct net_wait wait = net_wait_of(LISTEN_FOR_EVER_MS, &c->listening.is_stale, NULL);
    const struct mcp_call call = { .arena = a, .wait = &wait };
    const struct mcp_request q = { .method = "subscriptions/listen",
                                   .version = STATELESS_VERSION,
                                   .add_params = add_filter,
                                   .arg = f,
                                   .add_meta = stateless_add_meta,
                                   .meta = c,
                                   .ret_id = &c->listening.request };
    struct mcp_reply reply = { 0 };
    int r = mcp_peer_call(c->peer, &q, &call, &reply, e);

    if (r == 0 && reply.is_error)
        return client_refuse("subscriptions/listen", &reply.error, e);
    return 0;
}

static void pause_listening(struct mcp_client *c, int64_t pause_ms)
{
    struct mcp_listening *l = &c->listening;
    const int64_t until_us = clock_mono_us() + pause_ms * 1000;

    while (!l->is_ending && l->wanted == l->running && cond_wait_until(&c->changed, &c->lock, until_us))
        ;
}

static void end_request(struct mcp_client *c, int r, const struct err *e, int64_t *pause_ms)
{
    struct mcp_listening *l = &c->listening;

    l->state = LISTEN_NONE;
    l->has_gap = true;
    if (r < 0)
        snprintf(l->refusal, sizeof(l->refusal), "%.199s", e->text);
    pthread_cond_broadcast(&c->changed);
    while (r < 0 && !l->is_ending && l->wanted == l->running)
        pthread_cond_wait(&c->changed, &c->lock); /* until the filter changes */
    pause_listening(c, *pause_ms);
    *pause_ms = l->wanted != l->running ? LISTEN_PAUSE_MS : MIN(2 * *pause_ms, (int64_t)LISTEN_PAUSE_MOST_MS);
}

static void *listen_main(void *arg)
{
    struct mcp_client *c = arg;
    struct mcp_listening *l = &c->listening;
    int64_t pause_ms = LISTEN_PAUSE_MS;

    pthread_mutex_lock(&c->lock);
    while (!l->is_ending && mcp_peer_is_open(c->peer)) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct err e = { 0 };
        struct filter f;
        int r;

        take_filter(c, a, &f);
        pthread_mutex_unlock(&c->lock);
        r = listen_once(c, a, &f, &e);
        pthread_mutex_lock(&c->lock);
        end_request(c, r, &e, &pause_ms);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* The lock is held. */
static int renew_listening(struct mcp_client *c, struct err *e)
{
    struct mcp_listening *l = &c->listening;
    int r = 0;

    l->wanted++;
    l->refusal[0] = '\0';
    atomic_store(&l->is_stale, true);
    pthread_cond_broadcast(&c->changed);
    if (!l->has_thread && !l->is_ending) {
        r = thread_start_sized(&l->thread, "mcp-listen", LIMIT_MCP_STACK, listen_main, c);
        l->has_thread = r == 0;
    }
    return r < 0 ? err_errno(e, -r, "cannot start a thread for an MCP server") : 0;
}

/* The lock is held. Negative: the wait is over. */
static int64_t wait_a_little(struct mcp_client *c, const struct net_wait *wait, struct err *e)
{
    int64_t left_ms = net_wait_left(wait, e);

    if (left_ms > 0)
        cond_wait_until(&c->changed, &c->lock, clock_mono_us() + MIN(left_ms, (int64_t)LISTEN_LOOK_MS) * 1000);
    return left_ms;
}

/* The caller reads the lists next, and a change before the acknowledgement would not be told. A server that does not
 * acknowledge in time is used without; its late acknowledgement is reported. */
static int begin_listening(struct mcp_client *c, const struct net_wait *wait, struct err *e)
{
    const struct net_wait part = net_wait_part(wait, LISTEN_FIRST_MS);
    struct mcp_listening *l = &c->listening;
    int64_t left_ms = 1;
    int r;

    pthread_mutex_lock(&c->lock);
    r = renew_listening(c, e);
    while (r == 0 && left_ms > 0 && l->acknowledged == 0 && !l->has_gap && !c->is_closed)
        left_ms = wait_a_little(c, &part, e);
    l->has_gap = l->has_gap || l->acknowledged == 0;
    pthread_mutex_unlock(&c->lock);
    return r == 0 && left_ms == -ECANCELED ? -ECANCELED : r;
}

/* The lock is held. Over stdio the late one of an earlier request may come. */
static bool is_acknowledgement(const struct mcp_listening *l, struct json_value params)
{
    const struct json_rpc_id id = json_rpc_id_from(json_get(json_get(params, "_meta"), META "subscriptionId"));

    return l->state == LISTEN_SENT && (id.kind != JSON_RPC_ID_INT || id.number == atomic_load(&l->request));
}

/* One a request counts, so a server does not decide how often a gap is reported. */
void client_listen_acknowledged(struct mcp_client *c, struct json_value params)
{
    struct mcp_listening *l = &c->listening;
    uint64_t before = 0;
    bool had_gap = false;

    pthread_mutex_lock(&c->lock);
    if (is_acknowledgement(l, params)) {
        before = l->acknowledged;
        had_gap = l->has_gap;
        l->acknowledged = l->running;
        l->state = LISTEN_OPEN;
        l->has_gap = false;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    if (had_gap)
        client_report_gap(c, before);
}

void client_listen_end(struct mcp_client *c)
{
    struct mcp_listening *l = &c->listening;
    bool has_thread;

    pthread_mutex_lock(&c->lock);
    l->is_ending = true;
    atomic_store(&l->is_stale, true);
    has_thread = l->has_thread;
    l->has_thread = false;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (has_thread)
        pthread_join(l->thread, NULL);
}

/* ---- the beginning ---- */

static bool lists_version(struct json_value versions)
{
    struct json_iter it = json_iter(versions);
    struct json_value v;

    while (json_type(versions) == JSON_ARRAY && json_next(&it, NULL, &v))
        if (slice_eq_str(json_string(v), STATELESS_VERSION))
            return true;
    return false;
}

/* -32022 comes from a server of this era; whether it has a version in common with us stands in its data. It may list
 * versions of the handshake too, which are tried then. */
static int judge_refusal(const struct json_rpc_error *error, struct err *e)
{
    client_refuse("server/discover", error, e);
    if (error->code == MCP_UNSUPPORTED_VERSION && lists_version(json_get(error->data, "supported")))
        return err_set(e, -EPROTO, "MCP_VERSION", "The MCP server refuses the version that it lists as supported.");
    return -ENOPROTOOPT;
}

static int take_discovered(struct mcp_client *c, struct json_value result, struct err *e)
{
    struct json_value versions = json_get(result, "supportedVersions");

    if (json_type(versions) != JSON_ARRAY) {
        client_bad_answer("server/discover", "supportedVersions", e);
        return -ENOPROTOOPT; /* a server that answers every method with something */
    }
    if (!lists_version(versions)) {
        err_set(e, -EPROTO, "MCP_VERSION", "The MCP server speaks no version of the protocol that is known.");
        return -ENOPROTOOPT;
    }
    client_learn(c, STATELESS_VERSION, json_get(result, "capabilities"),
                 json_get(json_get(result, "_meta"), META "serverInfo"), json_get(result, "instructions"));
    return 0;
}

static int explain_failure(struct mcp_client *c, const struct net_wait *wait, int r)
{
    bool is_over = net_wait_left(wait, NULL) < 0;

    if (!mcp_peer_is_open(c->peer))
        return -EPIPE;
    return !is_over && (r == -ETIMEDOUT || r == -EPROTO || r == -ENOTCONN) ? -ENOPROTOOPT : r;
}

static int stateless_begin(struct mcp_client *c, const struct net_wait *wait, int64_t wait_ms, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait part = net_wait_part(wait, wait_ms > 0 ? wait_ms : wait->total_ms);
    const struct mcp_call call = { .arena = a, .wait = &part };
    const struct mcp_request discover = { .method = "server/discover",
                                          .version = STATELESS_VERSION,
                                          .add_meta = stateless_add_meta,
                                          .meta = c,
                                          .must_not_be_cancelled = true };
    struct mcp_reply reply;
    int r = mcp_peer_call(c->peer, &discover, &call, &reply, e);

    if (r < 0)
        return explain_failure(c, wait, r);
    if (reply.is_error)
        return judge_refusal(&reply.error, e);
    r = take_discovered(c, reply.result, e);
    if (r == 0 && (c->about.has_changing_tools || c->about.has_changing_prompts || c->about.has_changing_resources))
        r = begin_listening(c, wait, e);
    return r;
}

/* ---- resources that are followed ---- */

static int await_acknowledgement(struct mcp_client *c, const struct mcp_call *call, struct err *e)
{
    struct mcp_listening *l = &c->listening;
    const uint64_t wanted = l->wanted;
    int64_t left_ms = 1;

    while (left_ms > 0 && l->acknowledged < wanted && !*l->refusal && !c->is_closed)
        left_ms = wait_a_little(c, call->wait, e);
    if (l->acknowledged >= wanted)
        return 0;
    if (*l->refusal)
        return err_set(e, -EIO, "MCP_SERVER_ERROR", "%s", l->refusal);
    return left_ms < 0 ? (int)left_ms : err_set(e, -EPIPE, "MCP_CLOSED", "The connection to the MCP server has ended.");
}

static int stateless_subscribe(struct mcp_client *c, const struct mcp_call *call, const char *uri, bool is_on,
                               struct err *e)
{
    int r;

    pthread_mutex_lock(&c->lock);
    r = client_follow(c, uri, is_on, c->listening.wanted + 1, e);
    if (r == 0)
        r = renew_listening(c, e);
    if (r == 0 && is_on)
        r = await_acknowledgement(c, call, e);
    pthread_mutex_unlock(&c->lock);
    return MIN(r, 0);
}

const struct mcp_era_ops mcp_stateless_era = {
    .era = MCP_ERA_STATELESS,
    .begin = stateless_begin,
    .add_meta = stateless_add_meta,
    .ping = "server/discover",
    .log_level = stateless_log_level,
    .subscribe = stateless_subscribe,
    .has_inputs = true,
};
