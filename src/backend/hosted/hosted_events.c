/* What the realtime service tells, as the contract's events. A deletion is told by its tombstone's insertion, which has
 * the whole row; where a project has no table of deletions, by the deletion itself, which leaves no work. */
#include "backend/backend_columns.h"
#include "backend/hosted/hosted_query.h"
#include "backend/receivers.h"
#include "backend/refusals.h"
#include "backend/status.h"

#include <string.h>

/* ---- changes ---- */

static void report(struct hosted *h, struct backend_event *event)
{
    event->sequence = atomic_fetch_add(&h->sequence, 1) + 1;
    receivers_begin(h->receivers);
    receivers_event(h->receivers, event);
    receivers_end(h->receivers);
}

static void report_gap(void *arg, const char *table)
{
    struct hosted *h = arg;

    receivers_begin(h->receivers);
    receivers_gap(h->receivers);
    receivers_end(h->receivers);
}

static bool is_same(struct json_value one, struct json_value other, const char *name, struct arena *a)
{
    return strcmp(json_to_str(a, json_get(one, name)), json_to_str(a, json_get(other, name))) == 0;
}

static bool are_same(const struct hosted_change *r, const char *const *names, size_t n, struct arena *a)
{
    for (size_t i = 0; i < n; i++)
        if (!is_same(r->record, r->old_record, names[i], a))
            return false;
    return true;
}

/* The old row may be its key alone: then a row that does not wait is taken for one whose lease has changed. */
static bool is_lease_only(const struct hosted_change *c, const struct backend_row *row, bool has_old, struct arena *a)
{
    static const char *const data[] = { "raw_data", "revision", "app_id", "user_id" };

    return has_old ? are_same(c, data, ARRAY_SIZE(data), a) : strcmp(row->status, STATUS_PENDING) != 0;
}

static bool is_sign_of_life(const struct hosted_change *c, struct arena *a)
{
    static const char *const lease[] = { "status",        "locked_by",    "attempt",    "retry_count", "completed_at",
                                         "error_message", "attempted_by", "event_type", "result" };

    return !is_same(c->record, c->old_record, "locked_at", a) && are_same(c, lease, ARRAY_SIZE(lease), a);
}

static void report_update(struct hosted *h, const struct hosted_change *c, struct arena *a)
{
    struct hosted_row row, old;
    struct backend_event event = { .op = BACKEND_UPDATE, .table = c->table, .new_row = &row.row, .old_row = &row.row };
    bool has_old = hosted_read_row(c->table, c->old_record, a, &old, NULL) == 0;

    if (hosted_read_row(c->table, c->record, a, &row, NULL) < 0) {
        report_gap(h, c->table);
        return;
    }
    if (has_old)
        event.old_row = &old.row;
    event.is_lease_only = is_lease_only(c, &row.row, has_old, a);
    if (!has_old || !event.is_lease_only || !is_sign_of_life(c, a))
        report(h, &event);
}

static void report_insert(struct hosted *h, const struct hosted_change *c, struct arena *a)
{
    struct hosted_row row;
    const struct backend_event plain = { .op = BACKEND_INSERT, .table = c->table, .new_row = &row.row };
    struct backend_event event = plain;

    if (hosted_read_row(c->table, c->record, a, &row, NULL) < 0)
        report_gap(h, c->table);
    else
        report(h, &event);
}

/* The tombstone's old_data is the row that was deleted. */
static void report_tombstone(struct hosted *h, const struct hosted_change *c, struct arena *a)
{
    struct hosted_row work, old;
    struct json_value record = { 0 };
    struct backend_event event = { .op = BACKEND_DELETE, .old_row = &old.row, .work = &work.row };

    if (hosted_read_row(h->deletions, c->record, a, &work, NULL) < 0 || !work.row.source_table || !work.row.old_data ||
        json_parse(a, slice_of(work.row.old_data), &record, NULL) < 0 ||
        hosted_read_row(work.row.source_table, record, a, &old, NULL) < 0) {
        report_gap(h, c->table);
        return;
    }
    event.table = work.row.source_table;
    report(h, &event);
}

static void report_delete(struct hosted *h, const struct hosted_change *c, struct arena *a)
{
    struct hosted_row old;
    struct backend_event event = { .op = BACKEND_DELETE, .table = c->table, .old_row = &old.row };

    if (atomic_load(&h->has_deletions) == HOSTED_DELETIONS_THERE)
        return;
    if (hosted_read_row(c->table, c->old_record, a, &old, NULL) < 0)
        report_gap(h, c->table);
    else
        report(h, &event);
}

/* Of a table with columns of its own. The old record of a deletion may be its key alone. */
static bool report_own(struct hosted *h, const struct hosted_change *c, struct arena *a)
{
    struct backend_row row = { 0 }, old = { 0 };
    struct backend_event event = { .op = c->op, .table = c->table };

    if (json_type(c->record) == JSON_OBJECT && hosted_shape_read(h, c->table, c->record, a, &row))
        event.new_row = &row;
    if (json_type(c->old_record) == JSON_OBJECT && hosted_shape_read(h, c->table, c->old_record, a, &old))
        event.old_row = &old;
    if (!event.new_row && !event.old_row)
        return false;
    report(h, &event);
    return true;
}

void hosted_events_take(struct hosted *h, const struct hosted_change *c)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    bool is_tombstone = strcmp(c->table, h->deletions) == 0;

    if (c->is_cut)
        report_gap(h, c->table);
    else if (report_own(h, c, a))
        return;
    else if (is_tombstone && c->op == BACKEND_INSERT)
        report_tombstone(h, c, a);
    else if (c->op == BACKEND_INSERT)
        report_insert(h, c, a);
    else if (c->op == BACKEND_UPDATE)
        report_update(h, c, a);
    else if (!is_tombstone)
        report_delete(h, c, a);
}

static void on_change(void *arg, const struct hosted_change *c)
{
    hosted_events_take(arg, c);
}

static void on_broadcast(void *arg, const char *topic, const char *event, const char *payload_json)
{
    struct hosted *h = arg;

    receivers_begin(h->receivers);
    receivers_broadcast(h->receivers, topic, event, payload_json);
    receivers_end(h->receivers);
}

/* ---- open and close ---- */

int hosted_events_watch(struct hosted *h, const char *table, struct err *e)
{
    return h->realtime ? hosted_realtime_watch(h->realtime, table, NULL, e) : 0;
}

static int find_deletions(struct hosted *h, struct err *e)
{
    struct err why = { 0 };
    struct hosted_table *t;
    int r = hosted_find_table(h, h->deletions, &t, &why);

    if (r == 0 || r == -ENOENT)
        atomic_store(&h->has_deletions, r == 0 ? HOSTED_DELETIONS_THERE : HOSTED_DELETIONS_MISSING);
    if (r == -ENOENT || r == -EAGAIN)
        return 0;
    if (r < 0 && e)
        *e = why;
    return r;
}

void hosted_events_settle(struct hosted *h)
{
    if (atomic_load(&h->has_deletions) != HOSTED_DELETIONS_UNKNOWN || find_deletions(h, NULL) < 0)
        return;
    if (h->realtime && atomic_load(&h->has_deletions) == HOSTED_DELETIONS_MISSING)
        hosted_realtime_unwatch(h->realtime, h->deletions, NULL);
}

int hosted_events_open(struct hosted *h, const struct backend_hosted_config *c, struct err *e)
{
    const struct hosted_realtime_config config = { .url = c->url,
                                                   .key = c->key,
                                                   .abbr = c->abbr,
                                                   .guard = c->guard,
                                                   .token = c->token,
                                                   .on_change = on_change,
                                                   .on_gap = report_gap,
                                                   .on_broadcast = on_broadcast,
                                                   .arg = h };
    int r = find_deletions(h, e);

    if (r == 0)
        r = hosted_realtime_open(&config, &h->realtime, e);
    if (r == 0)
        r = hosted_events_watch(h, h->activities, e);
    if (r == 0 && atomic_load(&h->has_deletions) != HOSTED_DELETIONS_MISSING)
        r = hosted_events_watch(h, h->deletions, e);
    return r;
}

void hosted_events_close(struct hosted *h)
{
    h->realtime = hosted_realtime_close(h->realtime);
}

int hosted_subscribe(struct backend *b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e)
{
    return receivers_subscribe(hosted_of(b)->receivers, fn, on_gap, arg, e);
}

void hosted_unsubscribe(struct backend *b, void *arg)
{
    receivers_unsubscribe(hosted_of(b)->receivers, arg);
}

/* ---- broadcasts ---- */

static int no_realtime(struct err *e)
{
    return err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "This backend has no connection to the realtime service");
}

int hosted_broadcast(struct backend *b, const char *channel, const char *event, const char *payload_json, struct err *e)
{
    const struct hosted_broadcast message = { .topic = channel, .event = event, .payload_json = payload_json };
    struct hosted *h = hosted_of(b);

    return h->realtime ? hosted_realtime_broadcast(h->realtime, &message, e) : no_realtime(e);
}

/* A topic stays joined after its last listener has left, until the backend closes: its broadcasts find no receiver. */
int hosted_listen(struct backend *b, const char *channel, backend_broadcast_fn *fn, void *arg, struct err *e)
{
    struct hosted *h = hosted_of(b);
    int r = h->realtime ? hosted_realtime_listen(h->realtime, channel, false, e) : 0;

    if (r == 0)
        receivers_listen(h->receivers, channel, fn, arg);
    return r;
}

void hosted_unlisten(struct backend *b, void *arg)
{
    receivers_unlisten(hosted_of(b)->receivers, arg);
}

/* ---- presence ---- */

/* Of two services with one machine id, the later one goes. */
static const struct backend_presence *find_rival(const struct backend_presences *list,
                                                 const struct backend_presence *mine)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct backend_presence *p = &list->items[i];

        if (strcmp(p->machine_id, mine->machine_id) != 0)
            continue;
        if (mine->instance && p->instance && strcmp(p->instance, mine->instance) != 0)
            return p;
        return NULL;
    }
    return NULL;
}

/* The record is told once; that the machine is there shows the connection itself. */
int hosted_machine_put(struct backend *b, const struct backend_presence *p, int64_t fresh_ms, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted *h = hosted_of(b);
    struct backend_presences list = { 0 };
    const struct backend_presence *rival;
    int r = h->realtime ? hosted_realtime_presences(h->realtime, a, &list, NULL) : -EAGAIN;

    rival = r == 0 ? find_rival(&list, p) : NULL;
    if (rival)
        return refusals_machine_taken(p->machine_id, rival->hostname, e);
    return h->realtime ? hosted_realtime_track(h->realtime, p, e) : 0;
}

int hosted_machine_remove(struct backend *b, const char *machine_id, const char *instance, struct err *e)
{
    struct hosted *h = hosted_of(b);

    if (h->realtime)
        hosted_realtime_untrack(h->realtime);
    return 0;
}

int hosted_machine_list(struct backend *b, int64_t fresh_ms, struct arena *a, struct backend_presences *ret,
                        struct err *e)
{
    struct hosted *h = hosted_of(b);

    *ret = (struct backend_presences){ 0 };
    return h->realtime ? hosted_realtime_presences(h->realtime, a, ret, e) : 0;
}
