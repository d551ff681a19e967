#include "backend/hosted/hosted_query.h"
#include "backend/receivers.h"
#include "backend/refusals.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/wait.h"

#include <stdlib.h>
#include <string.h>

enum { READY_MS = 2000, REFUSED_MS = 60000 };

/* ---- calls of the service itself ---- */

static int hosted_is_ready(struct backend *b, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted *h = hosted_of(b);
    struct hosted_path path;
    struct hosted_reply reply;
    const struct hosted_call call = { .method = "GET", .path = &path, .total_ms = READY_MS };
    int r;

    hosted_path_init(&path, h->activities);
    hosted_path_add(&path, "select", "id");
    hosted_path_number(&path, "limit", 1);
    r = hosted_rest_call(h->rest, &call, a, &reply, e);
    hosted_path_clear(&path);
    return r;
}

/* Each column that is missing makes a promise weaker; without the attempt a lease is fenced by its time. */
static int hosted_check(struct backend *b, const struct backup_patience *patience, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted *h = hosted_of(b);
    const char **names = NULL;
    struct hosted_table *t;
    size_t n = 0;
    int r = hosted_table_names(h, false, a, &names, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++) {
        r = hosted_find_table(h, names[i], &t, e);
        if (r == 0 && !hosted_has(t, HOSTED_ATTEMPT))
            r = err_set(
                e, -EINVAL, "TABLE_UNFIT",
                "The table %s of the project lacks the column attempt, so leases are fenced by their time only: "
                "`hearth backend check` says what is missing",
                names[i]);
    }
    return r;
}

/* ---- tables ---- */

static int refuse_table(struct hosted *h, const char *name, struct err *e)
{
    return err_set(e, -ENOENT, "UNKNOWN_TABLE",
                   "The project has no table %s, and its REST interface cannot make one: `hearth backend setup %s`, or "
                   "the SQL of `hearth backend sql %s`",
                   name, name, name);
}

/* The set-up makes the table when it may. A refusal counts for a minute, so that a sweep does not repeat it at once. */
static int make_missing(struct hosted *h, const char *name, struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_HOSTED_CALL_MS, NULL, &h->is_closing);
    struct err why = { 0 };
    int r;

    if (!h->config.make_table || clock_mono_ms() < atomic_load(&h->refused_until_ms))
        return refuse_table(h, name, e);
    r = h->config.make_table(h->config.arg, name, &wait, &why);
    if (r >= 0)
        return 0;
    atomic_store(&h->refused_until_ms, clock_mono_ms() + REFUSED_MS);
    return err_set(
        e, r, why.code,
        "The project has no table %s, and it cannot be made: %s. A member who may write runs `hearth backend "
        "setup %s`, or the SQL of `hearth backend sql %s`",
        name, why.text, name, name);
}

static int hosted_ensure_table(struct backend *b, const char *declared, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted *h = hosted_of(b);
    struct err why = { 0 };
    struct hosted_table *t;
    char *name = NULL;
    int r = backend_table_name(a, declared, &name, e);

    if (r < 0)
        return r;
    if (name[0] == '_' || strcmp(name, h->deletions) == 0)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "Table name %s is reserved", name);
    r = hosted_find_table(h, name, &t, &why);
    if (r == -ENOENT) {
        err_init(&why);
        r = make_missing(h, name, &why);
        r = r < 0 ? r : hosted_find_table(h, name, &t, &why);
    }
    if (r < 0 && e)
        *e = why;
    return r < 0 ? r : hosted_events_watch(h, name, e);
}

int hosted_publications(struct backend *b, struct arena *a, struct backend_publications *ret, struct err *e)
{
    struct backend_publication *one = ARENA_NEW(a, struct backend_publication);
    const char **names = NULL;
    int r;

    *one = (struct backend_publication){ .name = b->abbr, .ops = BACKEND_INSERT | BACKEND_UPDATE | BACKEND_DELETE };
    r = hosted_table_names(hosted_of(b), true, a, &names, &one->n_tables, e);
    if (r < 0)
        return r;
    one->tables = names;
    *ret = (struct backend_publications){ one, 1 };
    return 0;
}

static void hosted_monitor(struct backend *b, struct arena *a, struct backend_monitor *ret)
{
    struct hosted *h = hosted_of(b);

    *ret = (struct backend_monitor){ .way = "realtime", .state = BACKEND_LINK_FAILED };
    if (h->realtime)
        hosted_realtime_monitor(h->realtime, a, ret);
}

int hosted_clock(struct backend *b, int64_t *ret_ms, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return hosted_now(hosted_of(b), a, ret_ms, e);
}

static int hosted_reach(struct backend *b, struct arena *a, struct backend_reach *ret, struct err *e)
{
    return hosted_rest_reach(hosted_of(b)->rest, a, ret, e);
}

/* ---- open and close ---- */

static struct backend *hosted_close(struct backend *b)
{
    struct hosted *h = hosted_of(b);

    atomic_store(&h->is_closing, true);
    hosted_events_close(h);
    h->rest = hosted_rest_free(h->rest);
    h->receivers = receivers_free(h->receivers);
    hosted_tables_free(h);
    hosted_shapes_free(h);
    pthread_mutex_destroy(&h->lock);
    free(h->deletions);
    free(h->activities);
    free(h->abbr);
    if (h->config.release)
        h->config.release(h->config.arg);
    free(h);
    return NULL;
}

static void hosted_leave(struct backend *b)
{
    atomic_store(&hosted_of(b)->is_closing, true);
}

static const struct backend_ops hosted_ops = {
    .name = "hosted",
    .close = hosted_close,
    .leave = hosted_leave,
    .is_ready = hosted_is_ready,
    .ensure_table = hosted_ensure_table,
    .insert = hosted_insert,
    .get = hosted_get,
    .list = hosted_list,
    .update = hosted_update,
    .remove = hosted_remove,
    .claim = hosted_claim,
    .heartbeat = hosted_heartbeat,
    .complete = hosted_complete,
    .fail = hosted_fail,
    .release = hosted_release,
    .release_machine = hosted_release_machine,
    .rearm = hosted_rearm,
    .replay = hosted_replay,
    .recover_stale = hosted_recover_stale,
    .claimable = hosted_claimable,
    .owners = hosted_owners,
    .check = hosted_check,
    .subscribe = hosted_subscribe,
    .unsubscribe = hosted_unsubscribe,
    .broadcast = hosted_broadcast,
    .listen = hosted_listen,
    .unlisten = hosted_unlisten,
    .presence_put = hosted_machine_put,
    .presence_remove = hosted_machine_remove,
    .presence_list = hosted_machine_list,
    .publications = hosted_publications,
    .monitor = hosted_monitor,
    .query = hosted_query,
    .shape = hosted_shape,
    .declare = hosted_declare,
    .as_user = hosted_as_user,
    .reach = hosted_reach,
    .clock = hosted_clock,
    .probe = hosted_probe,
    .follow = hosted_follow,
};

static struct hosted *make(const struct backend_hosted_config *c)
{
    struct hosted *h = xcalloc(1, sizeof(*h));
    AUTO(arena_freep) struct arena *a = arena_new();

    h->backend.ops = &hosted_ops;
    h->whole = h;
    h->backend.abbr = h->abbr = xstrdup(c->abbr);
    h->activities = xstrdup(arena_printf(a, "%s_activities", c->abbr));
    h->deletions = xstrdup(arena_printf(a, "%s_deletions", c->abbr));
    h->config = *c;
    h->receivers = receivers_new();
    pthread_mutex_init(&h->lock, NULL);
    return h;
}

static int find_activities(struct hosted *h, struct err *e)
{
    struct err why = { 0 };
    struct hosted_table *t;
    int r = hosted_find_table(h, h->activities, &t, &why);

    if (r == -ENOENT)
        return err_set(e, -ENOENT, "SCHEMA_MISSING",
                       "The project has no tables of this service: `hearth backend setup`");
    if (r < 0 && e)
        *e = why;
    return r;
}

/* A service may start before its project can be reached. */
static int check_at_open(struct hosted *h, struct err *e)
{
    struct err why = { 0 };
    int r = find_activities(h, &why);

    if (r != -EAGAIN) {
        if (r < 0 && e)
            *e = why;
        return r;
    }
    log_warn("backend", NULL, "the project of backend.project cannot be reached now, rows are there when it can: %s",
             LOG_Q(why.text));
    return 0;
}

int backend_hosted_open(const struct backend_hosted_config *c, struct backend **ret, struct err *e)
{
    struct hosted *h;
    int r = refusals_check_abbr(c->abbr, e);

    if (r < 0 && c->release)
        c->release(c->arg);
    if (r < 0)
        return r;
    h = make(c);
    r = hosted_rest_new(c, &h->is_closing, &h->rest, e);
    if (r == 0)
        r = check_at_open(h, e);
    if (r == 0 && !c->has_no_realtime)
        r = hosted_events_open(h, c, e);
    if (r < 0) {
        hosted_close(&h->backend);
        return r;
    }
    *ret = &h->backend;
    return 0;
}
