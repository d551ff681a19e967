/* What changes at a server: resources that are followed, and gaps in what the server can tell. */
#include "mcp/client_private.h"

#include <string.h>

/* ---- resources that are followed; the lock is held ---- */

static size_t find_uri(const struct client_followed *f, const char *uri)
{
    size_t i = 0;

    while (i < f->n && strcmp(f->uris[i], uri) != 0)
        i++;
    return i;
}

static void drop_uri(struct client_followed *f, size_t at)
{
    free(f->uris[at]);
    f->n--;
    f->uris[at] = f->uris[f->n];
    f->since[at] = f->since[f->n];
}

int client_follow(struct mcp_client *c, const char *uri, bool is_on, uint64_t since, struct err *e)
{
    struct client_followed *f = &c->followed;
    size_t at = find_uri(f, uri);

    if ((at < f->n) == is_on)
        return 1;
    if (is_on && f->n == LIMIT_MCP_SUBSCRIPTIONS)
        return err_set(e, -E2BIG, "TOO_MANY_SUBSCRIPTIONS", "At most %d resources of one MCP server can be followed.",
                       LIMIT_MCP_SUBSCRIPTIONS);
    if (is_on) {
        f->uris[f->n] = xstrdup(uri);
        f->since[f->n++] = since;
    } else {
        drop_uri(f, at);
    }
    return 0;
}

void client_forget_followed(struct mcp_client *c)
{
    while (c->followed.n > 0)
        drop_uri(&c->followed, c->followed.n - 1);
}

/* ---- gaps ---- */

static size_t copy_uris(struct mcp_client *c, uint64_t generation, struct arena *a, const char **ret)
{
    const struct client_followed *f = &c->followed;
    size_t n = 0;

    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < f->n; i++)
        if (f->since[i] <= generation)
            ret[n++] = arena_strdup(a, f->uris[i]);
    pthread_mutex_unlock(&c->lock);
    return n;
}

static void report_lists(const struct mcp_client *c)
{
    const bool can_change[] = {
        [MCP_LIST_TOOLS] = c->about.has_changing_tools,
        [MCP_LIST_PROMPTS] = c->about.has_changing_prompts,
        [MCP_LIST_RESOURCES] = c->about.has_changing_resources,
    };

    for (size_t i = 0; i < ARRAY_SIZE(can_change); i++)
        if (can_change[i])
            c->handlers.changed(c->handlers.arg, (enum mcp_list)i);
}

void client_report_gap(struct mcp_client *c, uint64_t generation)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *uris[LIMIT_MCP_SUBSCRIPTIONS];
    size_t n = copy_uris(c, generation, a, uris);

    if (c->handlers.changed)
        report_lists(c);
    for (size_t i = 0; i < n && c->handlers.updated; i++)
        c->handlers.updated(c->handlers.arg, uris[i]);
}
