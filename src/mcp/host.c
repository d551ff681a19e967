#include "mcp/host_private.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "mcp/pins.h"

#include <stdlib.h>
#include <string.h>

enum { WAIT_STEP_MS = 100, STARTERS = LIMIT_MCP_SERVERS + 16 /* a start may wait for a person */, ANSWERERS = 32 };

const char *mcp_status_name(enum mcp_status s)
{
    static const char *const names[] = { "stopped", "starting", "running", "error" };

    return names[s];
}

/* ---- shared objects ---- */

void host_definition_unref(void *definition)
{
    struct host_definition *d = definition;

    if (d && atomic_fetch_sub(&d->n_refs, 1) == 1) {
        arena_free(d->arena);
        free(d);
    }
}

void host_list_unref(void *list)
{
    struct host_list *l = list;

    if (l && atomic_fetch_sub(&l->n_refs, 1) == 1) {
        arena_free(l->arena);
        free(l);
    }
}

struct host_server *host_server_ref(struct host_server *s)
{
    atomic_fetch_add(&s->n_refs, 1);
    return s;
}

void host_server_unref(void *server)
{
    struct host_server *s = server;

    if (!s || atomic_fetch_sub(&s->n_refs, 1) > 1)
        return;
    host_definition_unref(s->definition);
    host_list_unref(s->list);
    child_log_unref(s->log);
    free(s->name);
    free(s->why);
    free(s->why_no_list);
    free(s);
}

/* ---- jobs and waits ---- */

int host_submit(struct mcp_host *h, void (*fn)(void *arg), void *arg, struct err *e)
{
    if (!h->pool)
        return err_set(e, -EAGAIN, "NOT_READY",
                       "No service runs, so no MCP server can be started; start it with `hearth serve`.");
    if (pool_submit(h->pool, fn, arg) < 0)
        return err_set(e, -EAGAIN, "OVERLOADED", "Too many MCP servers start at this moment; try again soon.");
    h->n_jobs++;
    return 0;
}

void host_job_done(struct mcp_host *h)
{
    pthread_mutex_lock(&h->lock);
    h->n_jobs--;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

int host_wait(struct mcp_host *h, const struct net_wait *wait, struct err *e)
{
    struct err why;
    int64_t left;

    err_init(&why);
    left = net_wait_left(wait, &why);
    if (left == -ETIMEDOUT)
        return err_set(e, -ETIMEDOUT, "MCP_TIMEOUT", "The server was not ready in time.");
    if (left < 0)
        return err_set(e, (int)left, why.code, "%s", why.text);
    cond_wait_until(&h->changed, &h->lock, clock_mono_us() + MIN(left, (int64_t)WAIT_STEP_MS) * 1000);
    return 0;
}

void host_report(struct mcp_host *h, const char *server)
{
    if (h->config.hooks.changed)
        h->config.hooks.changed(h->config.hooks.arg, server);
}

/* ---- the registry; under the lock ---- */

bool host_is_accepted(const struct host_definition *d)
{
    return !mcp_server_is_local(&d->server) || (d->accepted && strcmp(d->accepted, d->hash) == 0);
}

struct host_server *host_find(struct mcp_host *h, const char *name)
{
    struct host_server *s = h->servers;

    while (s && strcmp(s->name, name) != 0)
        s = s->next;
    return s;
}

enum mcp_status host_status(const struct host_server *s)
{
    return s->status == MCP_RUNNING && !mcp_client_is_open(s->connection->client) ? MCP_FAILED : s->status;
}

int host_err_unknown(struct mcp_host *h, const char *name, struct err *e)
{
    const char *names[LIMIT_MCP_SERVERS], *near;
    size_t n = 0;

    for (struct host_server *s = h->servers; s && n < ARRAY_SIZE(names); s = s->next)
        names[n++] = s->name;
    near = suggest_name(name, names, n);
    return err_set(e, -ENOENT, "SERVER_NOT_FOUND", "There is no MCP server named %.64s%s%s%s", name,
                   near ? "; did you mean " : ".", near ? near : "", near ? "?" : "");
}

static void add_server(struct mcp_host *h, struct host_definition *d)
{
    struct host_server **at = &h->servers, *s = xcalloc(1, sizeof(*s));

    while (*at)
        at = &(*at)->next;
    *s = (struct host_server){ .host = h, .name = xstrdup(d->server.name), .definition = d, .log = child_log_new() };
    atomic_init(&s->n_refs, 1);
    *at = s;
}

static void forget_server(struct mcp_host *h, struct host_server *s)
{
    struct host_server **at = &h->servers;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->is_removed = true;
    host_end(s);
    host_overtake(s);
    pthread_cond_broadcast(&h->changed);
    host_server_unref(s);
}

/* A new definition begins with no failures; what runs by the old one ends. */
static void replace_definition(struct host_server *s, struct host_definition *d)
{
    host_end(s);
    host_definition_unref(s->definition);
    s->definition = d;
    s->was_denied = false;
    s->n_failures = 0;
    s->not_before_ms = 0;
    s->n_changed_tools = 0;
    if (s->status == MCP_FAILED)
        s->status = MCP_STOPPED;
    pthread_cond_broadcast(&s->host->changed);
}

/* ---- definitions and the store ---- */

static int read_disabled_tools(const char *json, struct arena *a, struct field_strings *ret, struct err *e)
{
    struct json_value list, item;
    const char **items;
    size_t n = 0;
    int r = json_parse(a, slice_of(json), &list, e);

    if (r < 0)
        return r;
    items = arena_array(a, json_length(list) + 1, sizeof(*items));
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        if (json_cstr(item))
            items[n++] = json_cstr(item);
    *ret = (struct field_strings){ items, n };
    return 0;
}

static enum mcp_era era_named(const char *name)
{
    return !name                            ? MCP_ERA_UNKNOWN
           : strcmp(name, "stateless") == 0 ? MCP_ERA_STATELESS
           : strcmp(name, "handshake") == 0 ? MCP_ERA_HANDSHAKE
                                            : MCP_ERA_UNKNOWN;
}

static int open_row(const struct mcp_host *h, const struct mcp_server_row *row, struct host_definition *d,
                    struct err *e)
{
    struct json_value object;
    struct slice plain;
    int r = identity_unseal(h->config.identity, row->sealed, d->arena, &plain, e);

    if (r == 0)
        r = json_parse(d->arena, plain, &object, e);
    if (r == 0)
        r = fields_read(mcp_server_fields, object, &d->server, d->arena, "", e);
    if (r == 0)
        r = read_disabled_tools(row->disabled_tools, d->arena, &d->server.disabled_tools, e);
    if (r < 0)
        return r;
    mcp_server_complete(&d->server);
    d->server.is_enabled = row->is_enabled;
    d->accepted = arena_strdup(d->arena, row->accepted);
    d->era = era_named(row->era);
    d->hash = mcp_server_hash(d->arena, &d->server);
    return 0;
}

static int read_definition(const struct mcp_host *h, const struct mcp_server_row *row, struct host_definition **ret,
                           struct err *e)
{
    struct host_definition *d = xcalloc(1, sizeof(*d));
    int r;

    atomic_init(&d->n_refs, 1);
    d->arena = arena_new();
    r = open_row(h, row, d, e);
    if (r < 0)
        host_definition_unref(d);
    else
        *ret = d;
    return r;
}

int host_reload(struct mcp_host *h, const char *name, enum host_change change, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct host_definition *d = NULL;
    struct mcp_server_row row;
    struct host_server *s;
    int r = store_mcp_servers_get(h->config.store, a, name, &row, e);

    if (r == 0)
        r = read_definition(h, &row, &d, e);
    if (r < 0)
        return r;
    pthread_mutex_lock(&h->lock);
    s = host_find(h, name);
    if (!s) {
        add_server(h, d);
    } else if (change != HOST_COMMAND_CHANGED) {
        host_definition_unref(s->definition);
        s->definition = d;
        if (change == HOST_TOOLS_CHANGED) {
            host_list_unref(s->list);
            s->list = NULL;
            s->is_list_old = true;
        }
    } else {
        replace_definition(s, d);
    }
    if (s)
        host_overtake(s);
    pthread_mutex_unlock(&h->lock);
    host_report(h, name);
    return 0;
}

/* ---- changes ---- */

static int store_definition(struct mcp_host *h, const struct mcp_server *server, bool is_by_person, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_server_row row = { .name = server->name,
                                  .is_enabled = server->is_enabled,
                                  .accepted = is_by_person ? mcp_server_hash(a, server) : NULL };
    struct buf plain, sealed;
    struct json_writer w;
    int r;

    buf_init(&plain, LIMIT_MCP_DEFINITION);
    buf_init(&sealed, 2 * LIMIT_MCP_DEFINITION);
    json_write_init(&w, &plain);
    mcp_server_write(server, &w);
    identity_seal(h->config.identity, buf_slice(&plain), &sealed);
    row.sealed = buf_slice(&sealed);
    r = plain.overflowed || sealed.overflowed
            ? err_set(e, -EINVAL, "VALIDATION_ERROR", "The definition has more than LIMIT_MCP_DEFINITION (%d) bytes.",
                      LIMIT_MCP_DEFINITION)
            : store_mcp_servers_put(h->config.store, &row, e);
    buf_clear(&plain);
    buf_clear(&sealed);
    return r;
}

int mcp_host_put(struct mcp_host *h, const struct mcp_server *server, bool is_by_person, struct err *e)
{
    int r = mcp_server_check(server, h->config.data_dir, e);

    if (r == 0)
        r = store_definition(h, server, is_by_person, e);
    if (r == 0 && h->config.oauth)
        mcp_oauth_reload(h->config.oauth, server->name);
    return r < 0 ? r : host_reload(h, server->name, HOST_COMMAND_CHANGED, e);
}

static int check_known(struct mcp_host *h, const char *server, struct err *e)
{
    int r;

    pthread_mutex_lock(&h->lock);
    r = host_find(h, server) ? 0 : host_err_unknown(h, server, e);
    pthread_mutex_unlock(&h->lock);
    return r;
}

int mcp_host_remove(struct mcp_host *h, const char *server, struct err *e)
{
    struct host_server *s;
    int r = check_known(h, server, e);

    if (r == 0)
        r = store_mcp_servers_delete(h->config.store, server, e);
    if (r < 0)
        return r;
    if (h->config.oauth)
        mcp_oauth_reload(h->config.oauth, server);
    pthread_mutex_lock(&h->lock);
    s = host_find(h, server);
    if (s)
        forget_server(h, s);
    pthread_mutex_unlock(&h->lock);
    host_report(h, server);
    return 0;
}

/* The list of disabled tools with one more or one less, as JSON. */
static const char *changed_list(struct arena *a, const struct field_strings *from, const char *tool, bool is_enabled)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_MCP_DEFINITION);
    json_write_init(&w, &out);
    json_begin_array(&w);
    for (size_t i = 0; i < from->n; i++)
        if (strcmp(from->items[i], tool) != 0)
            json_add_string(&w, NULL, from->items[i]);
    if (!is_enabled)
        json_add_string(&w, NULL, tool);
    json_end(&w);
    return buf_to_arena(&out, a);
}

static int enable_tool(struct mcp_host *h, const char *server, const char *tool, bool is_enabled, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_server_row row;
    struct field_strings tools = { 0 };
    int r = store_mcp_servers_get(h->config.store, a, server, &row, e);

    if (r == 0)
        r = read_disabled_tools(row.disabled_tools, a, &tools, e);
    if (r == 0 && !is_enabled && tools.n >= LIMIT_MCP_ITEMS)
        r = err_set(e, -EINVAL, "VALIDATION_ERROR", "At most LIMIT_MCP_ITEMS (%d) tools can be disabled.",
                    LIMIT_MCP_ITEMS);
    return r < 0 ? r
                 : store_mcp_servers_set_disabled_tools(h->config.store, server,
                                                        changed_list(a, &tools, tool, is_enabled), e);
}

/* Whether the server has the tool, as far as its tools are known: those of a server that does not run are not. */
static int check_tool(struct mcp_host *h, const char *server, const char *tool, struct err *e)
{
    const struct host_server *s;
    int r = 0;

    pthread_mutex_lock(&h->lock);
    s = host_find(h, server);
    if (s && s->list)
        r = host_list_check(s->list, server, tool, e);
    pthread_mutex_unlock(&h->lock);
    return r;
}

int mcp_host_enable(struct mcp_host *h, const char *server, const char *tool, bool is_enabled, struct err *e)
{
    int r = check_known(h, server, e);

    if (r == 0 && tool && !is_enabled)
        r = check_tool(h, server, tool, e);
    if (r == 0)
        r = tool ? enable_tool(h, server, tool, is_enabled, e)
                 : store_mcp_servers_set_enabled(h->config.store, server, is_enabled, e);
    return r < 0 ? r : host_reload(h, server, tool ? HOST_TOOLS_CHANGED : HOST_COMMAND_CHANGED, e);
}

static int accept_command(struct mcp_host *h, const char *server, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_server_info info;
    int r = mcp_host_server(h, server, a, &info, e);

    return r < 0 ? r : store_mcp_servers_set_accepted(h->config.store, server, mcp_server_hash(a, info.server), e);
}

int mcp_host_accept(struct mcp_host *h, const char *server, const char *tool, const char *hash, struct err *e)
{
    int r = tool ? 0 : accept_command(h, server, e);

    if (r == 0)
        r = mcp_pins_accept(h->config.store, server, tool, hash, e);
    return r < 0 ? r : host_reload(h, server, HOST_TOOLS_CHANGED, e);
}

int mcp_host_restart(struct mcp_host *h, const char *server, struct err *e)
{
    struct host_server *s;
    int r = 0;

    pthread_mutex_lock(&h->lock);
    s = host_find(h, server);
    if (!s) {
        r = host_err_unknown(h, server, e);
    } else {
        host_end(s);
        s->n_failures = 0;
        s->not_before_ms = 0;
    }
    pthread_mutex_unlock(&h->lock);
    return r;
}

/* ---- open and close ---- */

/* A row that cannot be read is left out: its name shows in the store's list, and its definition can be written again.
 */
static int load(struct mcp_host *h, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_server_row *rows = NULL;
    size_t n = 0;
    int r = store_mcp_servers_list(h->config.store, a, &rows, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++) {
        struct host_definition *d = NULL;
        struct err why;

        err_init(&why);
        if (read_definition(h, &rows[i], &d, &why) == 0)
            add_server(h, d);
        else
            h->n_unusable++;
    }
    return r;
}

static void end_store_thread(void *store)
{
    store_thread_end(store);
}

static int start_pools(struct mcp_host *h, struct err *e)
{
    /* A server has at most one job of each kind. */
    const struct pool_config starts = { .name = "mcp",
                                        .n_max = STARTERS,
                                        .max_waiting = 8 * LIMIT_MCP_SERVERS,
                                        .on_thread_end = end_store_thread,
                                        .arg = h->config.store },
                             answers = { .name = "mcp-asked",
                                         .n_max = ANSWERERS,
                                         .max_waiting = LIMIT_MCP_REQUESTS_WAITING,
                                         .on_thread_end = end_store_thread,
                                         .arg = h->config.store };
    int r;

    r = pool_start(&starts, &h->pool, e);
    if (r == 0)
        r = pool_start(&answers, &h->answerers, e);
    return r < 0 ? r : host_upkeep_start(h, e);
}

int mcp_host_open(const struct mcp_host_config *c, struct mcp_host **ret, struct err *e)
{
    struct mcp_host *h = xcalloc(1, sizeof(*h));
    int r;

    h->config = *c;
    pthread_mutex_init(&h->lock, NULL);
    cond_init(&h->changed);
    r = load(h, e);
    if (r == 0 && c->supervisor)
        r = start_pools(h, e);
    if (r < 0)
        mcp_host_close(h);
    else
        *ret = h;
    return r;
}

size_t mcp_host_n_unusable(const struct mcp_host *h)
{
    return h->n_unusable;
}

void mcp_host_stop(struct mcp_host *h)
{
    if (!h || h->is_stopping)
        return;
    atomic_store(&h->is_leaving, true);
    pthread_mutex_lock(&h->lock);
    h->is_stopping = true;
    for (struct host_server *s = h->servers; s; s = s->next)
        host_end(s);
    pthread_cond_broadcast(&h->changed);
    while (h->n_jobs > 0)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
    host_upkeep_stop(h);
    if (h->pool)
        pool_finish(h->pool);
    if (h->answerers)
        pool_finish(h->answerers);
}

struct mcp_host *mcp_host_close(struct mcp_host *h)
{
    if (!h)
        return NULL;
    mcp_host_stop(h);
    pool_stop(h->pool);
    pool_stop(h->answerers);
    for (struct host_server *s = h->servers, *next; s; s = next) {
        next = s->next;
        host_server_unref(s);
    }
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
    return NULL;
}
