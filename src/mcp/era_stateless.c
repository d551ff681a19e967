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
        r = mcp_client_listen(c, e);
    return r;
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

    *ret = (struct filter){ .about = &c->about, .n_uris = l->n_uris };
    for (size_t i = 0; i < l->n_uris; i++)
        ret->uris[i] = arena_strdup(a, l->uris[i]);
    l->running = l->wanted;
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
                                   .meta = c };
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

int mcp_client_listen(struct mcp_client *c, struct err *e)
{
    int r;

    pthread_mutex_lock(&c->lock);
    r = renew_listening(c, e);
    pthread_mutex_unlock(&c->lock);
    return r;
}

void client_listen_acknowledged(struct mcp_client *c)
{
    pthread_mutex_lock(&c->lock);
    c->listening.acknowledged = c->listening.running;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
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

/* ---- resources that are followed ---- */

static size_t find_uri(const struct mcp_listening *l, const char *uri)
{
    size_t i = 0;

    while (i < l->n_uris && strcmp(l->uris[i], uri) != 0)
        i++;
    return i;
}

/* 1: nothing changes. */
static int change_uris(struct mcp_listening *l, const char *uri, bool is_on, struct err *e)
{
    size_t at = find_uri(l, uri);

    if ((at < l->n_uris) == is_on)
        return 1;
    if (is_on && l->n_uris == LIMIT_MCP_SUBSCRIPTIONS)
        return err_set(e, -E2BIG, "TOO_MANY_SUBSCRIPTIONS", "At most %d resources of one MCP server can be followed.",
                       LIMIT_MCP_SUBSCRIPTIONS);
    if (is_on) {
        l->uris[l->n_uris++] = xstrdup(uri);
        return 0;
    }
    free(l->uris[at]);
    l->uris[at] = l->uris[--l->n_uris];
    return 0;
}

static int await_acknowledgement(struct mcp_client *c, const struct mcp_call *call, struct err *e)
{
    struct mcp_listening *l = &c->listening;
    const uint64_t wanted = l->wanted;
    int64_t left_ms = 1;

    while (left_ms > 0 && l->acknowledged < wanted && !*l->refusal && !c->is_closed) {
        left_ms = net_wait_left(call->wait, e);
        if (left_ms > 0)
            cond_wait_until(&c->changed, &c->lock, clock_mono_us() + MIN(left_ms, INT64_C(50)) * 1000);
    }
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
    r = change_uris(&c->listening, uri, is_on, e);
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
