/* What there is: the servers with their state, their logs, what the authorization knows of them. */
#include "mcp/host_private.h"

#include "base/limits.h"

#include <string.h>

/* Under the lock. The definition is held until the arena ends. */
static void describe(struct host_server *s, struct arena *a, struct mcp_server_info *ret)
{
    const struct mcp_server *server = &s->definition->server;
    enum mcp_status status = host_status(s);
    const struct mcp_about *about = status == MCP_RUNNING ? mcp_client_about(s->connection->client) : NULL;

    atomic_fetch_add(&s->definition->n_refs, 1);
    arena_defer(a, host_definition_unref, s->definition);
    *ret = (struct mcp_server_info){
        .server = server,
        .status = status,
        .error = status == MCP_FAILED && s->status == MCP_RUNNING ? "Its connection has ended."
                 : status == MCP_FAILED && s->why                 ? arena_strdup(a, s->why->text)
                 : s->why_no_list                                 ? arena_strdup(a, s->why_no_list->text)
                                                                  : NULL,
        .pid = status == MCP_RUNNING ? s->pid : 0,
        .n_tools = status == MCP_RUNNING && s->list ? s->list->n : 0,
        .started_at = status == MCP_RUNNING ? arena_strdup(a, s->started_at) : NULL,
        .protocol = about ? arena_strdup(a, about->version) : NULL,
        .instructions = about ? arena_strdup(a, about->instructions) : NULL,
        .needs_trust = !host_is_accepted(s->definition),
        .n_changed_tools = s->n_changed_tools,
    };
}

int mcp_host_servers(struct mcp_host *h, struct arena *a, struct mcp_server_infos *ret, struct err *e)
{
    size_t n = 0;

    pthread_mutex_lock(&h->lock);
    for (const struct host_server *s = h->servers; s && n < LIMIT_MCP_SERVERS; s = s->next)
        n++;
    *ret = (struct mcp_server_infos){ .items = arena_array(a, n + 1, sizeof(*ret->items)) };
    for (struct host_server *s = h->servers; ret->n < n; s = s->next)
        describe(s, a, &ret->items[ret->n++]);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

int mcp_host_server(struct mcp_host *h, const char *server, struct arena *a, struct mcp_server_info *ret, struct err *e)
{
    struct host_server *s;
    int r = 0;

    pthread_mutex_lock(&h->lock);
    s = host_find(h, server);
    if (s)
        describe(s, a, ret);
    else
        r = host_err_unknown(h, server, e);
    pthread_mutex_unlock(&h->lock);
    return r;
}

int mcp_host_target(struct mcp_host *h, const char *server, struct arena *a, struct mcp_oauth_target *ret,
                    struct err *e)
{
    struct mcp_server_info info = { 0 };
    int r = mcp_host_server(h, server, a, &info, e);

    if (r < 0)
        return r;
    if (mcp_server_is_local(info.server))
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "The MCP server %.64s runs on this machine and knows no login.",
                       server);
    *ret = host_target_of(info.server);
    return 0;
}

int mcp_host_err(struct mcp_host *h, const char *server, int r, struct err *e)
{
    struct host_server *s;

    pthread_mutex_lock(&h->lock);
    s = host_find(h, server);
    if (s)
        host_server_ref(s);
    pthread_mutex_unlock(&h->lock);
    if (!s)
        return r;
    r = host_err(s, r, e);
    host_server_unref(s);
    return r;
}

int mcp_host_log(struct mcp_host *h, const char *server, struct arena *a, const char **ret, struct err *e)
{
    struct host_server *s;
    int r = 0;

    pthread_mutex_lock(&h->lock);
    s = host_find(h, server);
    if (s)
        *ret = child_log_text(s->log, a);
    else
        r = host_err_unknown(h, server, e);
    pthread_mutex_unlock(&h->lock);
    return r;
}
