/* Lists of tools with their schemas and pins, and calls. */
#include "mcp/host_private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "mcp/pins.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_REST_MS = 200, RETRY_MS = 5000 };

/* ---- one list ---- */

static bool has_name(const struct field_strings *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return false;
}

static int compare_tools(const void *x, const void *y)
{
    const struct mcp_host_tool *const *a = x, *const *b = y;

    return strcmp((*a)->tool.name, (*b)->tool.name);
}

static int compare_name(const void *name, const void *tool)
{
    return strcmp(name, (*(const struct mcp_host_tool *const *)tool)->tool.name);
}

static void take_tool(struct host_list *l, const struct mcp_tool *tool)
{
    struct mcp_host_tool *to = &l->items[l->n];
    struct err why;

    err_init(&why);
    *to = (struct mcp_host_tool){ .tool = *tool };
    if (json_schema_compile(l->arena, tool->input_schema, "inputSchema", &to->schema, &why) < 0)
        to->why_not = arena_printf(l->arena, "its schema cannot be used: %s", why.text);
    l->index[l->n] = to;
    l->names[l->n++] = tool->name;
}

/* Fills the list with what the server answered, whose memory is the list's arena already. */
static int fill(struct host_list *l, const struct mcp_tools *tools, struct host_use *use, size_t *ret_n_changed,
                struct err *e)
{
    const struct mcp_server *server = &use->definition->server;
    const char **why_not = arena_array(l->arena, tools->n + 1, sizeof(*why_not));
    int r = mcp_pins_check(use->server->host->config.store, server->name, server->is_trusted, tools->items, tools->n,
                           l->arena, why_not, e);

    if (r < 0)
        return r;
    l->items = arena_array(l->arena, tools->n + 1, sizeof(*l->items));
    l->index = arena_array(l->arena, tools->n + 1, sizeof(*l->index));
    l->names = arena_array(l->arena, tools->n + 1, sizeof(*l->names));
    for (size_t i = 0; i < tools->n; i++) {
        take_tool(l, &tools->items[i]);
        *ret_n_changed += why_not[i] != NULL;
        if (why_not[i])
            l->items[i].why_not = why_not[i];
        if (has_name(&server->disabled_tools, tools->items[i].name))
            l->items[i].why_not = arena_printf(l->arena, "it is disabled (`hearth mcp enable %.64s %.100s`)",
                                               server->name, tools->items[i].name);
    }
    qsort(l->index, l->n, sizeof(*l->index), compare_tools);
    return 0;
}

static int fetch(struct host_use *use, const struct net_wait *wait, struct host_list **ret, size_t *ret_n_changed,
                 struct err *e)
{
    struct host_list *l = xcalloc(1, sizeof(*l));
    const struct mcp_call call = { .arena = l->arena = arena_new(),
                                   .wait = wait,
                                   .quiet_ms = (int64_t)(use->definition->server.timeout_s * 1000) };
    struct mcp_tools tools = { 0 };
    int r = 0;

    atomic_init(&l->n_refs, 1);
    if (mcp_client_about(use->client)->has_tools)
        r = mcp_client_tools(use->client, &call, &tools, e);
    r = r < 0 ? host_err(use->server, r, e) : fill(l, &tools, use, ret_n_changed, e);
    if (r < 0)
        host_list_unref(l);
    else
        *ret = l;
    return r;
}

/* Under the lock. A list that came a moment ago is not asked for again, however often the server says that it changed.
 */
static bool is_usable(const struct host_server *s, bool must_be_new)
{
    return s->list && (!s->is_list_old || (!must_be_new && clock_mono_ms() - s->listed_ms < LIST_REST_MS));
}

/* Under the lock: waits until the list is usable (1) or until this thread is to fetch it (0). */
static int await_list(struct host_use *use, const struct net_wait *wait, bool must_be_new, struct err *e)
{
    struct host_server *s = use->server;
    int r = 0;

    while (r == 0 && !is_usable(s, must_be_new) && s->is_listing)
        r = host_wait(s->host, wait, e);
    return r < 0 ? r : is_usable(s, must_be_new);
}

/* Under the lock. A list of a connection or definition that has been replaced meanwhile is for this caller alone; what
 * is kept may be older than that list, and is read again. */
static void keep(struct host_use *use, struct host_list *l, size_t n_changed)
{
    struct host_server *s = use->server;

    if (!s->connection || s->connection->client != use->client || s->definition != use->definition) {
        s->is_list_old = true;
        return;
    }
    host_list_unref(s->list);
    s->list = l;
    atomic_fetch_add(&l->n_refs, 1);
    s->n_changed_tools = n_changed;
    s->listed_ms = clock_mono_ms();
}

static void note_failure(struct host_server *s, int r, const struct err *e)
{
    free(s->why_no_list);
    s->why_no_list = NULL;
    if (r < 0 && r != -ECANCELED && e)
        *err_place(&s->why_no_list) = *e;
}

static int renew(struct host_use *use, const struct net_wait *wait, struct host_list **ret, struct err *e)
{
    struct host_server *s = use->server;
    struct mcp_host *h = s->host;
    size_t n_changed = 0;
    struct err why;
    int r;

    err_init(&why);
    s->is_listing = true;
    s->is_list_old = false; /* a change during the request makes it old again */
    pthread_mutex_unlock(&h->lock);
    r = fetch(use, wait, ret, &n_changed, &why);
    pthread_mutex_lock(&h->lock);
    s->is_listing = false;
    if (r == 0)
        keep(use, *ret, n_changed);
    else
        s->is_list_old = true;
    if (r < 0)
        s->old_since_ms = clock_mono_ms() + RETRY_MS;
    note_failure(s, r, &why);
    pthread_cond_broadcast(&h->changed);
    if (r < 0 && e)
        *e = why;
    return r;
}

int host_list(struct host_use *use, const struct net_wait *wait, bool must_be_new, struct host_list **ret,
              struct err *e)
{
    struct host_server *s = use->server;
    int r;

    pthread_mutex_lock(&s->host->lock);
    r = await_list(use, wait, must_be_new, e);
    if (r == 0) {
        r = renew(use, wait, ret, e);
    } else if (r > 0) {
        *ret = s->list;
        atomic_fetch_add(&s->list->n_refs, 1);
        r = 0;
    }
    pthread_mutex_unlock(&s->host->lock);
    return r;
}

/* ---- for api and agents ---- */

/* The limits of a call: a whole time, and the definition's time of silence. */
static struct mcp_call limited(const struct host_use *use, const struct mcp_call *call)
{
    struct mcp_call ret = *call;

    if (!ret.quiet_ms)
        ret.quiet_ms = (int64_t)(use->definition->server.timeout_s * 1000);
    return ret;
}

/* Over HTTP a server may forget the session; it has not handled the request then, which goes over a new connection.
 */
static bool must_reconnect(struct host_use *use, int r, struct err *e)
{
    struct host_server *s = use->server;

    if (r != -ENOTCONN)
        return false;
    pthread_mutex_lock(&s->host->lock);
    if (s->connection && s->connection->client == use->client)
        host_end(s);
    pthread_mutex_unlock(&s->host->lock);
    if (e)
        err_init(e);
    return true;
}

int mcp_host_tools(struct mcp_host *h, const char *server, const struct mcp_call *call, struct mcp_host_tools *ret,
                   struct err *e)
{
    struct host_list *list = NULL;
    struct host_use use;
    bool is_again = false;
    int r;

    do {
        r = host_use(h, server, call->wait, &use, e);
        if (r < 0)
            return r;
        r = host_list(&use, call->wait, true, &list, e);
        is_again = !is_again && must_reconnect(&use, r, e);
        host_unuse(&use);
    } while (is_again);
    if (r < 0)
        return r;
    arena_defer(call->arena, host_list_unref, list);
    *ret = (struct mcp_host_tools){ list->items, list->n };
    return 0;
}

static const struct mcp_host_tool *look_up(const struct host_list *list, const char *tool)
{
    const struct mcp_host_tool *const *found =
        list->n ? bsearch(tool, list->index, list->n, sizeof(*list->index), compare_name) : NULL;

    return found ? *found : NULL;
}

int host_list_check(const struct host_list *list, const char *server, const char *tool, struct err *e)
{
    const char *near;

    if (look_up(list, tool))
        return 0;
    near = suggest_name(tool, list->names, list->n);
    return err_set(e, -ENOENT, "TOOL_NOT_FOUND", "The MCP server %.64s has no tool %.100s%s%.100s%s", server, tool,
                   near ? "; did you mean " : ".", near ? near : "", near ? "?" : "");
}

static int find_tool(const struct host_list *list, const char *server, const char *tool,
                     const struct mcp_host_tool **ret, struct err *e)
{
    const struct mcp_host_tool *found;
    int r = host_list_check(list, server, tool, e);

    if (r < 0)
        return r;
    found = look_up(list, tool);
    if (found->why_not)
        return err_set(e, -EPERM, "TOOL_DISABLED", "The tool %.100s of the MCP server %.64s cannot be called: %.300s.",
                       tool, server, found->why_not);
    *ret = found;
    return 0;
}

static int check_arguments(const struct mcp_host_tool *tool, struct json_value arguments, struct arena *a,
                           struct err *e)
{
    struct json_value given = arguments;
    int r = 0;

    if (json_is_absent(given))
        r = json_parse(a, slice_of("{}"), &given, e);
    return r < 0 ? r : json_schema_apply(tool->schema, given, "arguments", e);
}

static int call_tool(struct host_use *use, const char *tool, struct json_value arguments, const struct mcp_call *call,
                     struct mcp_result *ret, struct err *e)
{
    const struct mcp_host_tool *found = NULL;
    struct host_list *list = NULL;
    int r = host_list(use, call->wait, false, &list, e);

    if (r < 0)
        return r;
    r = find_tool(list, use->server->name, tool, &found, e);
    if (found)
        r = check_arguments(found, arguments, call->arena, e);
    if (r == 0)
        r = host_err(use->server, mcp_client_call(use->client, call, tool, arguments, ret, e), e);
    host_list_unref(list);
    return r;
}

/* One use of the server; a second one after the loss of a session. */
static int use_and_call(struct mcp_host *h, const char *server, const char *tool, struct json_value arguments,
                        const struct mcp_call *call, struct mcp_result *ret, struct err *e)
{
    bool is_again = false;
    int r;

    do {
        struct mcp_call with_limits;
        struct host_use use;

        r = host_use(h, server, call->wait, &use, e);
        if (r < 0)
            return r;
        with_limits = limited(&use, call);
        r = call_tool(&use, tool, arguments, &with_limits, ret, e);
        is_again = !is_again && must_reconnect(&use, r, e);
        host_unuse(&use);
    } while (is_again);
    return r;
}

/* ---- calls of one caller at the same time; under the lock ---- */

static int admit(struct mcp_host *h, const char *name, struct err *e)
{
    struct host_caller *c = h->callers;

    while (c && strcmp(c->name, name) != 0)
        c = c->next;
    if (c && c->n_calls >= LIMIT_MCP_CALLER_CALLS)
        return err_set(e, -EAGAIN, "TOO_MANY_CALLS",
                       "LIMIT_MCP_CALLER_CALLS (%d) tool calls of this caller run already; try again soon.",
                       LIMIT_MCP_CALLER_CALLS);
    if (!c) {
        c = xcalloc(1, sizeof(*c) + strlen(name) + 1);
        memcpy(c->name, name, strlen(name) + 1);
        c->next = h->callers;
        h->callers = c;
    }
    c->n_calls++;
    return 0;
}

static void dismiss(struct mcp_host *h, const char *name)
{
    struct host_caller **at = &h->callers, *c;

    while (strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    c = *at;
    if (--c->n_calls > 0)
        return;
    *at = c->next;
    free(c);
}

int mcp_host_call(struct mcp_host *h, const char *server, const char *tool, struct json_value arguments,
                  const struct mcp_call *call, struct mcp_result *ret, struct err *e)
{
    const char *caller = call->caller ? call->caller->name : "";
    int r;

    pthread_mutex_lock(&h->lock);
    r = admit(h, caller, e);
    pthread_mutex_unlock(&h->lock);
    if (r < 0)
        return r;
    r = use_and_call(h, server, tool, arguments, call, ret, e);
    pthread_mutex_lock(&h->lock);
    dismiss(h, caller);
    pthread_mutex_unlock(&h->lock);
    return r;
}

static void end_use(void *use)
{
    host_unuse(use);
}

int mcp_host_client(struct mcp_host *h, const char *server, const struct mcp_call *call, struct mcp_client **ret,
                    struct err *e)
{
    struct host_use *use = ARENA_NEW(call->arena, struct host_use);
    int r = host_use(h, server, call->wait, use, e);

    if (r < 0)
        return r;
    arena_defer(call->arena, end_use, use);
    *ret = use->client;
    return 0;
}
