/* The link of one connection, and what comes from its server: requests to us, changes, log messages. */
#include "mcp/host_private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/percent.h"
#include "mcp/http.h"
#include "mcp/stdio.h"
#include "os/env.h"
#include "os/files.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- what a server wants ---- */

static void add_root(struct json_writer *w, const char *path, struct arena *a)
{
    const char *whole = sandbox_expand(a, path), *slash;
    struct buf uri;

    if (!whole)
        return;
    buf_init(&uri, 4 * LIMIT_SANDBOX_PATH);
    buf_add_str(&uri, "file://");
    for (const char *at = whole; *at; at++)
        if (*at == '/')
            buf_add_char(&uri, '/');
        else
            percent_encode(&uri, (struct slice){ at, 1 });
    slash = strrchr(whole, '/');
    json_begin_object(w);
    json_add_string(w, "uri", buf_str(&uri));
    json_add_string(w, "name", slash && slash[1] ? slash + 1 : whole);
    json_end(w);
    buf_clear(&uri);
}

static struct host_definition *definition_of(struct host_server *s)
{
    struct host_definition *d;

    pthread_mutex_lock(&s->host->lock);
    d = s->definition;
    atomic_fetch_add(&d->n_refs, 1);
    pthread_mutex_unlock(&s->host->lock);
    return d;
}

static int on_roots(void *arg, const struct mcp_server_request *request, struct json_writer *w, struct err *e)
{
    struct host_connection *c = arg;
    struct host_definition *d = definition_of(c->server);
    const struct field_strings *lists[] = { &d->server.folders, &d->server.read_folders };

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        for (size_t at = 0; at < lists[i]->n; at++)
            add_root(w, lists[i]->items[at], request->arena);
    host_definition_unref(d);
    return 0;
}

static int on_sample(void *arg, const struct mcp_server_request *request, struct buf *ret_result, struct err *e)
{
    struct host_connection *c = arg;
    const struct mcp_host_hooks *hooks = &c->server->host->config.hooks;

    return hooks->sample(hooks->arg, c->server->name, request, ret_result, e);
}

static int on_elicit(void *arg, const struct mcp_server_request *request, struct buf *ret_result, struct err *e)
{
    struct host_connection *c = arg;
    const struct mcp_host_hooks *hooks = &c->server->host->config.hooks;

    return hooks->elicit(hooks->arg, c->server->name, request, ret_result, e);
}

static void on_changed(void *arg, enum mcp_list what)
{
    struct host_connection *c = arg;
    struct host_server *s = c->server;

    if (what != MCP_LIST_TOOLS)
        return;
    pthread_mutex_lock(&s->host->lock);
    if (!s->is_list_old)
        s->old_since_ms = clock_mono_ms();
    s->is_list_old = true;
    pthread_cond_broadcast(&s->host->changed);
    pthread_mutex_unlock(&s->host->lock);
}

static void on_logged(void *arg, struct json_value params)
{
    struct host_connection *c = arg;
    struct json_value data = json_get(params, "data");
    struct slice level = json_string(json_get(params, "level"));
    struct buf line;

    buf_init(&line, LIMIT_LOG_LINE_BYTES);
    buf_add_slice(&line, level);
    buf_add_str(&line, level.n ? ": " : "");
    if (json_type(data) == JSON_STRING)
        buf_add_slice(&line, json_string(data));
    else
        json_print(&line, data);
    child_log_add_text(c->server->log, CHILD_ENTRY, buf_slice(&line));
    buf_clear(&line);
}

/* ---- the link ---- */

static int env_of(const struct mcp_server *server, struct arena *a, const char *const **ret, struct err *e)
{
    struct env_list *env = env_list_new(a);
    struct json_iter it = json_iter(server->env);
    struct json_value value;
    struct slice name;
    int r = 0;

    while (r == 0 && json_next(&it, &name, &value))
        r = env_list_set(env, arena_slicedup(a, name), json_cstr(value), e);
    *ret = env_list_strings(env);
    return r;
}

static const char *const *args_of(const struct mcp_server *server, struct arena *a)
{
    const char **args = arena_array(a, server->args.n + 1, sizeof(*args));

    for (size_t i = 0; i < server->args.n; i++)
        args[i] = server->args.items[i];
    return args;
}

static int open_child(struct host_start *st, struct mcp_link **ret, struct err *e)
{
    const struct mcp_host_config *c = &st->server->host->config;
    const struct mcp_server *server = &st->definition->server;
    const char *own_dir = arena_printf(st->arena, "%s/mcp/%s", c->data_dir, server->name);
    struct sandbox_definition *sandbox = ARENA_NEW(st->arena, struct sandbox_definition);
    struct child_spec spec = { .label = arena_printf(st->arena, "mcp %s", server->name),
                               .command = server->command,
                               .args = args_of(server, st->arena),
                               .working_dir = server->working_dir ? server->working_dir : own_dir,
                               .sandbox = sandbox,
                               .own_dir = own_dir,
                               .log = st->server->log };
    int r = dir_make(own_dir, e);

    *sandbox = mcp_server_sandbox(st->arena, server);
    if (r == 0)
        r = env_of(server, st->arena, &spec.env, e);
    if (r == 0)
        r = mcp_stdio_open(&(struct mcp_stdio_config){ c->supervisor, &spec }, ret, e);
    if (r == 0)
        st->pid = mcp_stdio_pid(*ret);
    return r;
}

static enum mcp_oauth_way way_of(const char *grant)
{
    if (strcmp(grant, "machine") == 0)
        return MCP_OAUTH_MACHINE;
    return strcmp(grant, "enterprise") == 0 ? MCP_OAUTH_ENTERPRISE : MCP_OAUTH_PERSON;
}

struct mcp_oauth_target host_target_of(const struct mcp_server *server)
{
    return (struct mcp_oauth_target){ .server = server->name,
                                      .url = server->url,
                                      .client_id = server->client_id,
                                      .client_secret = server->client_secret,
                                      .client_metadata_url = server->client_metadata_url,
                                      .scope = server->scope,
                                      .private_key = server->private_key,
                                      .key_id = server->key_id,
                                      .way = way_of(server->grant),
                                      .identity_provider = server->identity_provider,
                                      .identity_client_id = server->identity_client_id,
                                      .identity_client_secret = server->identity_client_secret };
}

static bool has_authorization(const struct mcp_http_config *c)
{
    for (size_t i = 0; i < c->n_headers; i++)
        if (strcasecmp(c->headers[i].name, "authorization") == 0)
            return true;
    return false;
}

static int open_remote(struct host_start *st, struct mcp_link **ret, struct err *e)
{
    const struct mcp_server *server = &st->definition->server;
    struct mcp_oauth *oauth = st->server->host->config.oauth;
    const struct mcp_oauth_target target = host_target_of(server);
    struct http_call_header *headers = arena_array(st->arena, LIMIT_MCP_HEADERS, sizeof(*headers));
    struct mcp_http_config c = { .url = server->url, .headers = headers };
    struct mcp_authorizer authorizer;
    struct json_iter it = json_iter(server->headers);
    struct json_value value;
    struct slice name;
    int r = 0;

    while (c.n_headers < LIMIT_MCP_HEADERS && json_next(&it, &name, &value))
        headers[c.n_headers++] = (struct http_call_header){ arena_slicedup(st->arena, name), json_cstr(value) };
    if (oauth && !has_authorization(&c)) {
        r = mcp_oauth_authorizer(oauth, &target, &authorizer, e);
        c.authorizer = &authorizer;
    }
    if (r < 0)
        return r;
    return strcmp(server->type, "sse") == 0 ? mcp_sse_open(&c, ret, e) : mcp_http_open(&c, ret, e);
}

static int open_link(struct host_start *st, struct mcp_link **ret, struct err *e)
{
    return mcp_server_is_local(&st->definition->server) ? open_child(st, ret, e) : open_remote(st, ret, e);
}

static const char *extension_of(const struct mcp_server *server)
{
    return mcp_server_is_local(server) ? NULL : mcp_oauth_extension(way_of(server->grant));
}

int host_open_client(struct host_start *st, struct host_connection *c, struct err *e)
{
    const struct mcp_host_hooks *hooks = &st->server->host->config.hooks;
    const struct mcp_handlers handlers = { .roots = on_roots,
                                           .sample = hooks->sample ? on_sample : NULL,
                                           .elicit = hooks->elicit ? on_elicit : NULL,
                                           .changed = on_changed,
                                           .logged = on_logged,
                                           .closed = host_on_closed,
                                           .arg = c };
    const struct mcp_client_config config = { .era = st->era,
                                              .extension = extension_of(&st->definition->server),
                                              .handlers = &handlers,
                                              .pool = st->server->host->answerers };
    struct mcp_link *link = NULL;
    int r = open_link(st, &link, e);

    return r < 0 ? r : mcp_client_open(link, &config, &st->wait, &c->client, &st->era, e);
}
