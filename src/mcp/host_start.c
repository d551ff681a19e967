/* Starts and ends of connections, and the use of running ones. */
#include "mcp/host_private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/tables/mcp_servers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PERSON_WAIT_MS = 60000 /* as for permissions, decision D4 */,
    REST_MS = 1000,
    REST_MAX_MS = 60000,
    SETTLED_MS = 10000,
    TAIL_LINES = 8,
    TAIL_BYTES = 360
};

/* ---- errors ---- */

/* The last bytes of the lines that the server wrote to standard error since its start. */
static const char *tail_of(struct host_server *s, struct arena *a)
{
    struct child_line *lines = NULL;
    size_t n = child_log_lines(s->log, a, s->log_start, TAIL_LINES * 4, &lines), n_bytes;
    const char *text = "";

    for (size_t i = 0; i < n; i++)
        if (lines[i].stream == CHILD_STDERR)
            text = arena_printf(a, "%s%s%s", text, *text ? " | " : "", lines[i].text);
    n_bytes = strlen(text);
    if (n_bytes > TAIL_BYTES)
        text += n_bytes - TAIL_BYTES;
    while ((*text & 0xc0) == 0x80)
        text++;
    return text;
}

static void add_tail(struct host_server *s, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *tail = tail_of(s, a);
    size_t n = strlen(e->text);

    if (*tail && n < sizeof(e->text) && !strstr(e->text, tail)) /* the link may have quoted it */
        snprintf(e->text + n, sizeof(e->text) - n, " Its standard error ends: %s", tail);
}

/* The server answered, with an error of JSON-RPC: its standard error has nothing to do with that. */
static bool is_refusal(const struct err *e)
{
    for (unsigned i = 0; i < e->n_extras; i++)
        if (strcmp(e->extras[i].key, "mcp_code") == 0)
            return true;
    return false;
}

int host_err(struct host_server *s, int r, struct err *e)
{
    static const char *const kept[] = { "MCP_LOGIN_REQUIRED", "MCP_NOT_SUPPORTED", "SHUTTING_DOWN",
                                        "NOT_READY",          "OVERLOADED",        "SERVER_NOT_TRUSTED" };
    char why[300];

    if (!e || r >= 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        if (strcmp(e->code, kept[i]) == 0)
            return r;
    snprintf(why, sizeof(why), "%s", e->text);
    if (r == -ENOTCONN) /* the session is lost, and the request was not handled */
        return err_set(e, r, "MCP_SERVER_ERROR", "The MCP server %.64s has forgotten the session: %s", s->name, why);
    if (r == -ETIMEDOUT)
        return err_set(e, -ETIMEDOUT, "MCP_TIMEOUT", "The MCP server %.64s did not answer in time.", s->name);
    err_set(e, -EIO, "MCP_SERVER_ERROR", "The MCP server %.64s failed: %s", s->name, why);
    if (!is_refusal(e))
        add_tail(s, e);
    return -EIO;
}

/* ---- the end of a connection ---- */

static void free_connection(struct host_connection *c)
{
    host_server_unref(c->server);
    free(c);
}

static void close_connection(void *arg)
{
    struct host_connection *c = arg;
    struct mcp_host *h = c->server->host;

    mcp_client_close(c->client);
    mcp_client_unref(c->client);
    pthread_mutex_lock(&h->lock);
    c->server->is_ending = false;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    free_connection(c);
    host_job_done(h);
}

static void set_why(struct host_server *s, int r, const struct err *why)
{
    s->why_r = r;
    if (why)
        *err_place(&s->why) = *why;
}

static void forget_why(struct host_server *s)
{
    free(s->why);
    s->why = NULL;
}

void host_end(struct host_server *s)
{
    struct host_connection *c = s->connection;
    int r;

    if (!c)
        return;
    s->connection = NULL;
    s->status = MCP_STOPPED;
    s->is_ending = true;
    host_list_unref(s->list);
    s->list = NULL;
    /* A connection has one such job, and the pool runs while connections exist. */
    r = host_submit(s->host, close_connection, c, NULL);
    assert(r == 0);
    (void)r;
    pthread_cond_broadcast(&s->host->changed);
}

static int64_t rest_ms(unsigned n_failures)
{
    if (n_failures < 2) /* one failure may be chance */
        return 0;
    return n_failures > 7 ? REST_MAX_MS : MIN((int64_t)REST_MS << (n_failures - 2), (int64_t)REST_MAX_MS);
}

/* Under the lock. The next start waits longer after each failure in a row. */
static void fail(struct host_server *s, int r, const struct err *why)
{
    bool is_refused = strcmp(why->code, "SERVER_NOT_TRUSTED") == 0 || r == -ECANCELED;

    set_why(s, r, why);
    s->status = is_refused ? MCP_STOPPED : MCP_FAILED;
    if (is_refused)
        return;
    s->n_failures++;
    s->not_before_ms = clock_mono_ms() + rest_ms(s->n_failures);
}

void host_lose(struct host_server *s, const char *why)
{
    struct err e;

    err_init(&e);
    host_err(s, err_set(&e, -EPIPE, "MCP_CLOSED", "%s", why), &e);
    if (clock_mono_ms() - s->started_ms >= SETTLED_MS)
        s->n_failures = 0;
    host_end(s);
    fail(s, -EIO, &e);
    child_log_note(s->log, "%s", e.text);
}

void host_lose_silent(struct host_use *use, int r, const char *why)
{
    struct host_server *s = use->server;

    pthread_mutex_lock(&s->host->lock);
    if (r == -ETIMEDOUT && s->connection && s->connection->client == use->client)
        host_lose(s, why);
    pthread_mutex_unlock(&s->host->lock);
}

/* On a thread of the connection, once. */
void host_on_closed(void *arg, const struct err *why)
{
    struct host_connection *c = arg;
    struct host_server *s = c->server;
    struct mcp_host *h = s->host;
    bool is_lost;

    pthread_mutex_lock(&h->lock);
    c->has_ended = true;
    is_lost = s->connection == c;
    if (is_lost)
        host_lose(s, why->text);
    pthread_mutex_unlock(&h->lock);
    if (is_lost)
        host_report(h, s->name);
}

/* ---- the start ---- */

static int64_t last_line(struct child_log *log, struct arena *a)
{
    struct child_line *lines = NULL;

    return child_log_lines(log, a, 0, 1, &lines) ? lines[0].number : 0;
}

/* A server that ended at the probe of its era is started once more. */
static int connect_server(struct host_start *st, struct host_connection *c, struct err *e)
{
    int r;

    st->server->log_start = last_line(st->server->log, st->arena);
    r = host_open_client(st, c, e);
    if (r != -EAGAIN || strcmp(e->code, "MCP_ERA_RETRY") != 0)
        return r;
    err_init(e);
    c->has_ended = false;
    return host_open_client(st, c, e);
}

static int err_overtaken(struct err *e)
{
    return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The server was stopped or changed while it started.");
}

static int err_not_trusted(const char *name, struct err *e)
{
    return err_set(e, -EPERM, "SERVER_NOT_TRUSTED",
                   "Nobody has accepted the command of the MCP server %.64s yet: `hearth mcp accept %.64s` shows it.",
                   name, name);
}

/* Whether the definition of the start is still the one in force. Under the lock. */
static bool is_in_force(const struct host_start *st)
{
    const struct host_server *s = st->server;

    return !s->host->is_stopping && !s->is_removed && s->definition->server.is_enabled &&
           strcmp(s->definition->hash, st->definition->hash) == 0;
}

void host_overtake(struct host_server *s)
{
    struct host_start *st = s->start;

    if (st && (!is_in_force(st) || (s->waits_for_person && host_is_accepted(s->definition))))
        atomic_store(&st->is_overtaken, true);
}

/* 1: a person has to be asked; 0: one has accepted the command. */
static int begin_question(struct host_start *st, struct err *e)
{
    struct host_server *s = st->server;
    int r;

    pthread_mutex_lock(&s->host->lock);
    r = !is_in_force(st)                                ? err_overtaken(e)
        : host_is_accepted(s->definition)               ? 0
        : !s->host->config.hooks.trust || s->was_denied ? err_not_trusted(s->name, e)
                                                        : 1;
    s->waits_for_person = r == 1;
    pthread_cond_broadcast(&s->host->changed);
    pthread_mutex_unlock(&s->host->lock);
    return r;
}

/* r: what the person said. 1: the command is allowed; 0: it was accepted in another way meanwhile. */
static int end_question(struct host_start *st, int r, struct err *e)
{
    struct host_server *s = st->server;

    pthread_mutex_lock(&s->host->lock);
    s->waits_for_person = false;
    if (!is_in_force(st)) {
        r = err_overtaken(e);
    } else if (host_is_accepted(s->definition)) {
        atomic_store(&st->is_overtaken, false);
        err_init(e);
        r = 0;
    } else if (r == 0 || r == -EAGAIN) {
        s->was_denied = r == 0;
        r = err_not_trusted(s->name, e);
    }
    pthread_cond_broadcast(&s->host->changed);
    pthread_mutex_unlock(&s->host->lock);
    return r;
}

/* Whether a person allows the command; asked once for every command. */
static int check_trust(struct host_start *st, struct err *e)
{
    const struct mcp_host_config *c = &st->server->host->config;
    const struct mcp_server *server = &st->definition->server;
    const struct mcp_trust_question question = { .server = server->name,
                                                 .shown = mcp_server_shown(st->arena, c->sandbox, server) };
    int r = begin_question(st, e);

    if (r == 1)
        r = end_question(st, c->hooks.trust(c->hooks.arg, &question, &st->wait, e), e);
    if (r == 1)
        r = store_mcp_servers_set_accepted(c->store, server->name, st->definition->hash, e);
    else
        return r;
    return r < 0 ? r : host_reload(st->server->host, server->name, HOST_NOTE_CHANGED, e);
}

/* Under the lock. */
static bool was_overtaken(const struct host_start *st)
{
    return atomic_load(&st->is_overtaken) || !is_in_force(st);
}

/* r: how the start went. Under the lock. */
static int check_wanted(const struct host_start *st, const struct host_connection *c, int r, struct err *e)
{
    if (was_overtaken(st))
        return err_overtaken(e);
    if (r == 0 && c->has_ended)
        return err_set(e, -EPIPE, "MCP_CLOSED", "It ended right after its start.");
    return r;
}

/* Under the lock. */
static void install(struct host_start *st, struct host_connection *c)
{
    struct host_server *s = st->server;

    s->connection = c;
    s->status = MCP_RUNNING;
    s->pid = st->pid;
    s->started_ms = s->used_ms = s->pinged_ms = clock_mono_ms();
    clock_now_text(s->started_at);
    s->is_list_old = true;
    forget_why(s);
}

/* Takes the connection, which on failure ends here. */
static int finish_start(struct host_start *st, struct host_connection *c, int r, struct err *e)
{
    struct host_server *s = st->server;

    if (r < 0)
        r = host_err(s, r, e);
    pthread_mutex_lock(&s->host->lock);
    s->start = NULL;
    r = check_wanted(st, c, r, e);
    if (r == 0)
        install(st, c);
    else
        fail(s, r, e);
    if (was_overtaken(st)) /* those who wait start what is in force now */
        forget_why(s);
    s->n_starts++;
    pthread_cond_broadcast(&s->host->changed);
    pthread_mutex_unlock(&s->host->lock);
    if (r < 0) {
        if (c->client)
            mcp_client_close(c->client);
        mcp_client_unref(c->client);
        free_connection(c);
    }
    return r;
}

static void keep_era(struct host_start *st)
{
    static const char *const names[] = { NULL, "handshake", "stateless" };
    struct mcp_host *h = st->server->host;
    int r;

    if (st->era == st->definition->era)
        return;
    r = store_mcp_servers_set_era(h->config.store, st->server->name, names[st->era], NULL);
    if (r == 0)
        r = host_reload(h, st->server->name, HOST_NOTE_CHANGED, NULL);
    (void)r; /* the verdict is found out again */
}

/* So that the number of tools shows, and changed definitions are noticed before the first call. */
static void list_first(struct host_start *st)
{
    struct host_use use;
    struct host_list *list = NULL;
    int r;

    if (host_use(st->server->host, st->server->name, &st->wait, &use, NULL) < 0)
        return;
    r = host_list(&use, &st->wait, true, &list, NULL);
    if (r == 0)
        host_list_unref(list);
    host_lose_silent(&use, r, "It did not answer when its tools were listed.");
    host_unuse(&use);
}

static struct net_wait start_wait(struct host_start *st)
{
    struct mcp_host *h = st->server->host;

    return net_wait_of(settings_ms(h->config.settings, SETTING_MCP_START_S), &st->is_overtaken, &h->is_leaving);
}

static void run_start(void *arg)
{
    struct host_start *st = arg;
    struct mcp_host *h = st->server->host;
    struct host_connection *c = xcalloc(1, sizeof(*c));
    struct err e;
    int r;

    err_init(&e);
    c->server = host_server_ref(st->server);
    st->arena = arena_new();
    st->wait = start_wait(st);
    st->era = st->definition->era;
    host_report(h, st->server->name);
    r = check_trust(st, &e);
    if (r == 0) {
        st->wait = start_wait(st);
        r = connect_server(st, c, &e);
    }
    r = finish_start(st, c, r, &e);
    if (!atomic_load(&st->is_overtaken))
        keep_era(st);
    if (r == 0)
        list_first(st);
    else
        child_log_note(st->server->log, "%s", e.text);
    host_report(h, st->server->name);
    arena_free(st->arena);
    host_definition_unref(st->definition);
    host_server_unref(st->server);
    free(st);
    host_job_done(h);
}

/* Under the lock. */
static int begin_start(struct host_server *s, struct err *e)
{
    int64_t left_ms = s->not_before_ms - clock_mono_ms();
    struct host_start *st;
    int r;

    if (s->status == MCP_FAILED && left_ms > 0) {
        if (e && s->why)
            *e = *s->why;
        if (e)
            e->retry_after_ms = left_ms;
        return s->why_r;
    }
    st = xcalloc(1, sizeof(*st));
    st->server = host_server_ref(s);
    st->definition = s->definition;
    atomic_fetch_add(&s->definition->n_refs, 1);
    r = host_submit(s->host, run_start, st, e);
    if (r < 0) {
        host_definition_unref(st->definition);
        host_server_unref(st->server);
        free(st);
        return r;
    }
    s->status = MCP_STARTING;
    s->start = st;
    return 0;
}

/* ---- use ---- */

static int check_usable(struct mcp_host *h, const struct host_server *s, struct err *e)
{
    if (h->is_stopping)
        return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The service is stopping.");
    if (!s->definition->server.is_enabled)
        return err_set(e, -EPERM, "SERVER_DISABLED", "The MCP server %.64s is disabled; `hearth mcp enable %.64s`.",
                       s->name, s->name);
    if (s->n_calls >= LIMIT_MCP_SERVER_CALLS)
        return err_set(e, -EAGAIN, "TOO_MANY_CALLS",
                       "LIMIT_MCP_SERVER_CALLS (%d) calls of the MCP server %.64s run already; try again soon.",
                       LIMIT_MCP_SERVER_CALLS, s->name);
    return 0;
}

/* Waits until the server runs; under the lock. *ret is borrowed. */
static int await_running(struct mcp_host *h, const char *name, const struct net_wait *wait, struct host_server **ret,
                         struct err *e)
{
    int64_t person_until_ms = clock_mono_ms() + PERSON_WAIT_MS;
    uint64_t n_starts = 0;
    bool has_waited = false;

    for (;;) {
        struct host_server *s = host_find(h, name);
        int r;

        if (!s)
            return host_err_unknown(h, name, e);
        r = check_usable(h, s, e);
        if (r < 0)
            return r;
        if (host_status(s) == MCP_RUNNING) {
            *ret = s;
            return 0;
        }
        if (has_waited && s->status != MCP_STARTING && s->status != MCP_RUNNING && s->n_starts != n_starts && s->why) {
            if (e)
                *e = *s->why;
            return s->why_r;
        }
        if (s->waits_for_person && clock_mono_ms() >= person_until_ms) /* the question stays */
            return err_not_trusted(s->name, e);
        if (!has_waited)
            n_starts = s->n_starts;
        has_waited = true;
        if (s->status != MCP_STARTING && s->status != MCP_RUNNING && !s->is_ending)
            r = begin_start(s, e);
        if (r == 0)
            r = host_wait(h, wait, e);
        if (r < 0)
            return r;
    }
}

/* Under the lock. */
static void hold(struct host_server *s, struct host_use *ret)
{
    s->n_calls++;
    atomic_fetch_add(&s->definition->n_refs, 1);
    *ret = (struct host_use){ host_server_ref(s), s->definition, mcp_client_ref(s->connection->client), false };
}

int host_use(struct mcp_host *h, const char *name, const struct net_wait *wait, struct host_use *ret, struct err *e)
{
    struct host_server *s = NULL;
    int r;

    pthread_mutex_lock(&h->lock);
    r = await_running(h, name, wait, &s, e);
    if (s) {
        s->used_ms = clock_mono_ms();
        hold(s, ret);
    }
    pthread_mutex_unlock(&h->lock);
    return r;
}

bool host_use_running(struct host_server *s, struct host_use *ret)
{
    bool is_running;

    pthread_mutex_lock(&s->host->lock);
    is_running = s->status == MCP_RUNNING;
    if (is_running) {
        hold(s, ret);
        ret->is_upkeep = true;
    }
    pthread_mutex_unlock(&s->host->lock);
    return is_running;
}

void host_unuse(struct host_use *use)
{
    struct host_server *s = use->server;

    mcp_client_unref(use->client);
    pthread_mutex_lock(&s->host->lock);
    s->n_calls--;
    if (!use->is_upkeep)
        s->used_ms = clock_mono_ms();
    if (host_upkeep_is_late(s))
        pthread_cond_broadcast(&s->host->changed);
    pthread_mutex_unlock(&s->host->lock);
    host_definition_unref(use->definition);
    host_server_unref(s);
}
