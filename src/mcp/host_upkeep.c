/* The thread that stops idle servers, pings quiet ones and reads changed lists of tools again. */
#include "mcp/host_private.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/thread.h"

#include <string.h>

enum { DEBOUNCE_MS = 200, PING_WAIT_MS = 10000, LOOK_MS = 3600000 };

/* ---- jobs ---- */

static void refresh(void *arg)
{
    struct host_server *s = arg;
    struct mcp_host *h = s->host;
    const struct net_wait wait =
        net_wait_of(settings_ms(h->config.settings, SETTING_MCP_START_S), NULL, &h->is_leaving);
    struct host_list *list = NULL;
    struct host_use use;
    int r;

    if (host_use_running(s, &use)) {
        r = host_list(&use, &wait, true, &list, NULL);
        if (r == 0)
            host_list_unref(list);
        host_lose_silent(&use, r, "It did not answer when its tools were listed.");
        host_unuse(&use);
        host_report(h, s->name);
    }
    pthread_mutex_lock(&h->lock);
    s->is_refreshing = false;
    pthread_mutex_unlock(&h->lock);
    host_server_unref(s);
    host_job_done(h);
}

/* A server that does not answer a ping does not run, whatever its process does. */
static void ping(void *arg)
{
    struct host_server *s = arg;
    struct mcp_host *h = s->host;
    const struct net_wait wait = net_wait_of(PING_WAIT_MS, NULL, &h->is_leaving);
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct mcp_call call = { .arena = a, .wait = &wait };
    struct host_use use;
    int r;

    if (host_use_running(s, &use)) {
        r = mcp_client_ping(use.client, &call, NULL);
        host_lose_silent(&use, r, "It did not answer a ping.");
        host_unuse(&use);
        if (r == -ETIMEDOUT)
            host_report(h, s->name);
    }
    pthread_mutex_lock(&h->lock);
    s->is_pinging = false;
    s->pinged_ms = clock_mono_ms();
    pthread_mutex_unlock(&h->lock);
    host_server_unref(s);
    host_job_done(h);
}

/* ---- what is due; under the lock ---- */

static void begin(struct host_server *s, void (*fn)(void *arg), bool *flag)
{
    if (host_submit(s->host, fn, host_server_ref(s), NULL) < 0)
        host_server_unref(s);
    else
        *flag = true;
}

struct due {
    int64_t stop_ms, ping_ms; /* INT64_MAX: never */
};

static struct due due_of(const struct host_server *s)
{
    struct settings *settings = s->host->config.settings;
    int64_t idle_ms = settings_ms(settings, SETTING_MCP_IDLE_STOP_S),
            ping_ms = settings_ms(settings, SETTING_MCP_PING_S);

    return (struct due){ .stop_ms = idle_ms ? s->used_ms + idle_ms : INT64_MAX,
                         .ping_ms = ping_ms ? MAX(s->used_ms, s->pinged_ms) + ping_ms : INT64_MAX };
}

/* The server is used, pinged or listed at its own time; *next_ms is brought forward to the next of these times. */
static bool look_at(struct host_server *s, int64_t now_ms, int64_t *next_ms)
{
    const struct due due = due_of(s);
    bool is_quiet = s->n_calls == 0 && !s->is_pinging && !s->is_refreshing;

    if (s->status != MCP_RUNNING)
        return false;
    if (s->is_list_old && s->list && !s->is_refreshing) {
        if (now_ms >= s->old_since_ms + DEBOUNCE_MS)
            begin(s, refresh, &s->is_refreshing);
        else
            *next_ms = MIN(*next_ms, s->old_since_ms + DEBOUNCE_MS);
        return false;
    }
    if (!is_quiet)
        return false;
    if (now_ms >= due.stop_ms) {
        host_end(s);
        child_log_note(s->log, "ended: nobody used it for %lld s (mcp.idle_stop_s)",
                       (long long)(due.stop_ms - s->used_ms) / 1000);
        return true;
    }
    if (now_ms >= due.ping_ms)
        begin(s, ping, &s->is_pinging);
    *next_ms = MIN(*next_ms, due.stop_ms);
    if (!s->is_pinging)
        *next_ms = MIN(*next_ms, due.ping_ms);
    return false;
}

/* Returns a server that has just been ended, with a reference; NULL: none. */
static struct host_server *look_round(struct mcp_host *h, int64_t *next_ms)
{
    int64_t now_ms = clock_mono_ms();

    *next_ms = now_ms + LOOK_MS;
    for (struct host_server *s = h->servers; s; s = s->next)
        if (look_at(s, now_ms, next_ms))
            return host_server_ref(s);
    return NULL;
}

static void *upkeep(void *arg)
{
    struct mcp_host *h = arg;
    pthread_mutex_lock(&h->lock);
    while (!h->is_stopping) {
        struct host_server *ended = look_round(h, &h->next_look_ms);

        if (!ended) {
            cond_wait_until(&h->changed, &h->lock, h->next_look_ms * 1000);
            continue;
        }
        pthread_mutex_unlock(&h->lock);
        host_report(h, ended->name);
        host_server_unref(ended);
        pthread_mutex_lock(&h->lock);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

bool host_upkeep_is_late(const struct host_server *s)
{
    const struct due due = due_of(s);

    return s->n_calls == 0 && MIN(due.stop_ms, due.ping_ms) < s->host->next_look_ms;
}

int host_upkeep_start(struct mcp_host *h, struct err *e)
{
    if (thread_start(&h->upkeep, "mcp-upkeep", upkeep, h) < 0)
        return err_set(e, -EAGAIN, "INTERNAL_ERROR", "The thread of the MCP servers could not be started.");
    h->has_upkeep = true;
    return 0;
}

void host_upkeep_stop(struct mcp_host *h)
{
    if (h->has_upkeep)
        pthread_join(h->upkeep, NULL);
    h->has_upkeep = false;
}
