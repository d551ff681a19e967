/* Row store with events: one interface over the embedded SQLite file, PostgreSQL and the hosted service.
 *
 * A backend holds activities and user tables, makes claims as conditional updates and reports row events. Calls are for
 * any worker thread and block; callbacks come on a thread of the backend and must be quick (pass the work on). Rows and
 * lists are copied into the caller's arena. A lease is (table, row, machine, attempt): every call with a lease changes
 * the row only while the row still holds that lease, and returns -ESTALE LEASE_LOST otherwise (architecture section 4).
 * Time is judged only by the database's clock; between programs of one host by the clock of the host's boot, which no
 * step of the wall clock moves.
 *
 *     struct backend_lease lease;
 *     struct backend_claim claim = { .table = t, .row_id = id, .machine_id = me };
 *     r = backend_claim(b, &claim, arena, &row, &lease, e);
 *     ... work ...
 *     r = backend_complete(b, &lease, result_json, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

enum backend_op { BACKEND_INSERT = 1, BACKEND_UPDATE = 2, BACKEND_DELETE = 4 }; /* also a mask */
const char *backend_op_name(enum backend_op op);                                /* "INSERT", ... */

/* Columns of the specification's Activities table, and our own. Strings are NULL when the column is NULL. */
struct backend_row {
    const char *table;
    const char *id;     /* UUID text */
    const char *app_id; /* owning app; NULL: written by another program, work of any app that lists the table */
    const char *user_id;
    const char *raw_data; /* JSON object text */
    const char *old_data; /* JSON or NULL */
    const char *status;   /* pending, claimed, processing, completed, failed, or free text of the app */
    const char *locked_by, *locked_at, *completed_at, *error_message;
    const char *attempted_by; /* JSON array of machine ids */
    int64_t retry_count;
    const char *result; /* JSON or NULL */
    const char *created_at;
    int64_t attempt;          /* raised by every claim */
    enum backend_op event;    /* the kind of event that made this row work: decides the handler */
    const char *source_table; /* of a DELETE: the table the row was in; else NULL */
    bool is_dirty;            /* raw_data changed after the last claim */
};

struct backend_rows {
    struct backend_row *items;
    size_t n;
};

/* A committed change, borrowed for the call. old_row is NULL on INSERT, new_row on DELETE. `work` is the row to claim
 * for the change (a DELETE's tombstone), NULL when there is none. is_lease_only: only lease and outcome columns
 * changed; the rows then have only id, app_id, status, locked_by, retry_count, attempt, event, source_table and
 * is_dirty. A heartbeat alone is not reported. Of a table with columns of its own (backend/query.h) a row has the id
 * (the key's text), user_id and locked_by when there are such columns, the status or "", event 0, and in raw_data the
 * whole record as JSON. */
struct backend_event {
    int64_t sequence;
    enum backend_op op;
    const char *table;
    const struct backend_row *new_row, *old_row, *work;
    bool is_lease_only;
};

struct backend_lease {
    const char *table, *row_id, *machine_id;
    int64_t attempt;
};
/* A lease without an attempt number: only the machine names it. Only for functions called by name. */
enum { BACKEND_ANY_ATTEMPT = -1 };

struct backend_claim {
    const char *table, *row_id, *machine_id;
    int64_t stale_after_ms; /* a lease older than this may be taken over */
    int64_t max_machines;   /* rows that failed on this many machines are quarantined: -EDQUOT QUARANTINED; 0: 3 */
};

struct backend_position { /* of a row in the order of creation */
    const char *created_at, *id;
};

struct backend_reach {     /* where apps reach the rows by themselves */
    const char *url, *key; /* key: for anonymous callers and users */
};

struct backend_new_row {
    const char *table, *id /* NULL: generated */, *app_id, *user_id, *raw_data;
};

struct backend_query {
    const char *table;
    const char *app_id;    /* only rows of this app; NULL: all (developer key, sweep) */
    const char *user_id;   /* only rows of this user, a UUID in lower case; NULL: of all */
    const char *status;    /* NULL: any */
    int64_t limit, offset; /* newest first */
};

/* NULL members stay unchanged. Setting status to pending frees the row for every machine again. */
struct backend_patch {
    const char *status, *result, *raw_data, *error_message;
};
struct backend_update_request {
    const char *table, *id;
    const char *app_id; /* whose row it must be; NULL: of any app */
    const struct backend_patch *patch;
};

struct backend_presence {
    const char *machine_id, *user_email, *hostname, *app_name, *online_at;
    const char *instance; /* the service, because machine ids can be copied; NULL: not given. Only for presence_put */
};
struct backend_presences {
    struct backend_presence *items;
    size_t n;
};

/* Waiting rows by table, by the app (or other caller) they belong to (NULL: no owner), and by the reason why no machine
 * may take them. */
enum backend_stuck {
    BACKEND_NOT_STUCK,
    BACKEND_STUCK_ATTEMPTS, /* too many machines have failed the rows */
    BACKEND_STUCK_STATUS    /* the status differs from one of ours only in case or spaces */
};
struct backend_owner {
    const char *table, *app_id, *status;
    enum backend_stuck stuck;
    int64_t n_waiting;
};
struct backend_owners {
    struct backend_owner *items;
    size_t n;
};

/* A set of tables whose changes are reported under one name (specification, Custom table). */
struct backend_publication {
    const char *name;
    unsigned ops;              /* mask of enum backend_op */
    const char *const *tables; /* names as backend_table_name() returns them, in order */
    size_t n_tables;
};
struct backend_publications {
    struct backend_publication *items;
    size_t n;
};

struct backend;
struct backup_patience; /* store/backup.h */
struct backend_monitor; /* backend/monitor.h */
struct query;           /* backend/query.h */
struct query_reply;
struct table_shape;
struct table_probe;
typedef void backend_event_fn(void *arg, const struct backend_event *event);
typedef void backend_broadcast_fn(void *arg, const char *channel, const char *event, const char *payload_json);

/* A gap was found or the connection came back: changes in between are unknown, so sweep now. */
typedef void backend_gap_fn(void *arg);

struct backend_ops {
    const char *name;
    struct backend *(*close)(struct backend *b);
    void (*leave)(struct backend *b); /* NULL: no call waits for a peer */
    int (*is_ready)(struct backend *b, struct err *e);
    int (*ensure_table)(struct backend *b, const char *table, struct err *e);
    int (*insert)(struct backend *b, const struct backend_new_row *in, struct arena *a, struct backend_row *ret,
                  struct err *e);
    int (*get)(struct backend *b, const char *table, const char *id, const char *app_id, struct arena *a,
               struct backend_row *ret, struct err *e);
    int (*list)(struct backend *b, const struct backend_query *q, struct arena *a, struct backend_rows *ret,
                struct err *e);
    int (*update)(struct backend *b, const struct backend_update_request *request, struct arena *a,
                  struct backend_row *ret, struct err *e);
    int (*remove)(struct backend *b, const char *table, const char *id, const char *app_id, struct err *e);
    int (*claim)(struct backend *b, const struct backend_claim *c, struct arena *a, struct backend_row *ret,
                 struct backend_lease *ret_lease, struct err *e);
    int (*heartbeat)(struct backend *b, const struct backend_lease *l, struct err *e);
    int (*heartbeats)(struct backend *b, const struct backend_lease *leases, size_t n, int *ret,
                      struct err *e); /* NULL: one after the other */
    int (*complete)(struct backend *b, const struct backend_lease *l, const char *result_json, struct err *e);
    int (*fail)(struct backend *b, const struct backend_lease *l, const char *message, struct err *e);
    int (*release)(struct backend *b, const struct backend_lease *l, struct err *e);
    int (*release_machine)(struct backend *b, const char *table, const char *machine_id, size_t *ret_n, struct err *e);
    int (*rearm)(struct backend *b, const char *table, const char *id, struct err *e);
    int (*replay)(struct backend *b, const char *table, const char *id, struct err *e);
    int (*recover_stale)(struct backend *b, const char *table, int64_t stale_after_ms, struct arena *a,
                         struct backend_rows *ret, struct err *e);
    int (*claimable)(struct backend *b, const char *table, const struct backend_claim *as,
                     const struct backend_position *before, int64_t limit, struct arena *a, struct backend_rows *ret,
                     struct err *e);
    int (*owners)(struct backend *b, int64_t max_machines, struct arena *a, struct backend_owners *ret, struct err *e);
    int (*check)(struct backend *b, const struct backup_patience *patience, struct err *e);
    int (*subscribe)(struct backend *b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e);
    void (*unsubscribe)(struct backend *b, void *arg);
    int (*broadcast)(struct backend *b, const char *channel, const char *event, const char *payload_json,
                     struct err *e);
    int (*listen)(struct backend *b, const char *channel, backend_broadcast_fn *fn, void *arg, struct err *e);
    void (*unlisten)(struct backend *b, void *arg);
    int (*presence_put)(struct backend *b, const struct backend_presence *p, int64_t fresh_ms, struct err *e);
    int (*presence_remove)(struct backend *b, const char *machine_id, const char *instance, struct err *e);
    int (*presence_list)(struct backend *b, int64_t fresh_ms, struct arena *a, struct backend_presences *ret,
                         struct err *e);
    /* How changes arrive, table by table (backend/monitor.h); does not wait for a peer. */
    void (*monitor)(struct backend *b, struct arena *a, struct backend_monitor *ret);
    int (*publications)(struct backend *b, struct arena *a, struct backend_publications *ret, struct err *e);
    /* Of tables with columns of their own: backend/query.h. */
    int (*query)(struct backend *b, const struct query *q, struct arena *a, struct query_reply *ret, struct err *e);
    int (*shape)(struct backend *b, const char *table, struct arena *a, struct table_shape *ret, struct err *e);
    int (*declare)(struct backend *b, const struct table_shape *declared, struct err *e);
    /* NULL: the place knows no users, and callers choose rows by user_id. */
    int (*as_user)(struct backend *b, const char *token, struct arena *a, struct backend **ret, struct err *e);
    /* NULL: over the face of this service. */
    int (*reach)(struct backend *b, struct arena *a, struct backend_reach *ret, struct err *e);
    /* For Custom Mode; each may be NULL. */
    int (*clock)(struct backend *b, int64_t *ret_ms, struct err *e); /* NULL: the clock of this machine */
    int (*probe)(struct backend *b, const char *table, struct arena *a, struct table_probe *ret,
                 struct err *e);                                        /* NULL: as shape */
    int (*follow)(struct backend *b, const char *table, struct err *e); /* NULL: every known table is followed */
    /* A claim waits for the app that owns the table; NULL: no claim does. */
    bool (*needs_app_lock)(struct backend *b, const char *table);
};

struct backend {
    const struct backend_ops *ops;
    const char *abbr; /* owned by the implementation: names <abbr>_activities, <abbr>_deletions, <abbr>_fn_... */
};

/* The contract of each function, for every implementation:
 *
 * leave            the service stops and waits no longer: calls that wait, and all later ones, end with -ECANCELED
 *                  SHUTTING_DOWN. close() follows.
 * is_ready         with a deadline of its own, shorter than that of other calls.
 * ensure_table     "schema.table" or "table", see backend_table_name(). Idempotent.
 * insert           raw_data, result and old_data come back as the same JSON value; an implementation may print it in
 *                  other words (jsonb sorts members). user_id is a UUID where the implementation's column is one.
 * list             at most LIMIT_LIST rows (limit 0: LIMIT_LIST_DEFAULT); -E2BIG TOO_LARGE when the rows exceed
 *                  LIMIT_REPLY together.
 * update           a status other than claimed and processing ends the lease: its holder gets -ESTALE.
 * get              -ENOENT NOT_FOUND "Activity not found", also for another app's row.
 * claim            0; -ENOENT; -EBUSY ALREADY_LOCKED with extra locked_by; -EPERM ALREADY_ATTEMPTED; -EDQUOT
 *                  QUARANTINED; -EBUSY NOT_CLAIMABLE for a row that is finished or has a status of the app's own.
 *                  Claims from pending or failed, from a stale lease, and from completed only when the row is dirty
 *                  and rearm() was called. A pending row with old_data was changed before it was claimed: its event
 *                  stays unchanged, and an app that lists only UPDATE wants the row too.
 * heartbeat        refreshes locked_at; -ESTALE.
 * complete         from claimed or processing; sets result and completed_at, clears the lock; -ESTALE. A repeat
 *                  with the same lease after success returns 0 (the row has completed with that attempt and
 *                  machine).
 * fail             status failed, lock cleared, machine appended to attempted_by, retry_count + 1, error_message
 *                  (its first LIMIT_STRING_DEFAULT characters); -ESTALE; a repeat returns 0.
 * release          back to pending, lock cleared, attempted_by unchanged: for an orderly stop of the service;
 *                  -ESTALE.
 * release_machine  the same for every row of that machine in the table: rows that a killed service left (at start,
 *                  with the service's own machine id).
 * rearm            a dirty completed or failed row becomes pending again for every machine (event UPDATE); -ESTALE
 *                  when the row is not dirty any more.
 * replay           a person repeats the work: failed or completed (quarantined too) becomes pending, attempted_by
 *                  empty, retry_count 0.
 * recover_stale    every claimed or processing row whose locked_at is older than stale_after, in the future or no
 *                  time at all becomes pending; returns those rows.
 * claimable        the newest `limit` rows that `as` could claim now, the oldest of them first; dirty rows are
 *                  included. With `before` the newest of those that are older than that place, whose row may have
 *                  been deleted. Fewer rows when they exceed LIMIT_REPLY together, but at least one.
 * owners           at most LIMIT_LIST, those with the most pending rows first.
 * presence_put     -EADDRINUSE MACHINE_ID_TAKEN while another instance has reported this machine id within
 *                  fresh_ms.
 * subscribe        events in commit order, only after commit, of every table; one subscriber per `arg`.
 * publications     every table that ensure_table made, and <abbr>_activities.
 * as_user          a view of b with the rights that the place gives to the user of this token (NULL: to an anonymous
 *                  caller), for insert, get, list, update, remove and functions_call(); lives as long as b and the
 *                  arena, and is not closed. A row that is hidden from the user is -ENOENT NOT_FOUND; -EPERM
 *                  ROW_REFUSED; -EINVAL MALFORMED_JWT; -EACCES JWT_EXPIRED, JWT_NOT_YET, JWT_SIGNATURE.
 * clock            milliseconds since 1970 by the clock that judges leases.
 * probe            any table as it is, made by whomever; n_columns 0 when there is none. Changes nothing.
 * follow           the changes of a table with columns of its own are reported from now on. Idempotent.
 */
#define backend_insert(b, ...) ((b)->ops->insert((b), __VA_ARGS__))
#define backend_get(b, ...) ((b)->ops->get((b), __VA_ARGS__))
#define backend_list(b, ...) ((b)->ops->list((b), __VA_ARGS__))
#define backend_update(b, ...) ((b)->ops->update((b), __VA_ARGS__))
#define backend_remove(b, ...) ((b)->ops->remove((b), __VA_ARGS__))
#define backend_claim(b, ...) ((b)->ops->claim((b), __VA_ARGS__))
#define backend_heartbeat(b, ...) ((b)->ops->heartbeat((b), __VA_ARGS__))
/* Of n leases, in as few round trips as the backend can; ret[i] as backend_heartbeat() returns it, e is of the last
 * refusal. An error: the rows cannot be reached, and ret is not set. */
int backend_heartbeats(struct backend *b, const struct backend_lease *leases, size_t n, int *ret,
                       struct err *e) MUST_CHECK;
#define backend_complete(b, ...) ((b)->ops->complete((b), __VA_ARGS__))
#define backend_fail(b, ...) ((b)->ops->fail((b), __VA_ARGS__))
#define backend_release(b, ...) ((b)->ops->release((b), __VA_ARGS__))
#define backend_close(b) ((b) ? (b)->ops->close(b) : NULL)
/* May the same call succeed later although nothing was changed? The database is away or busy (-EAGAIN
 * STORE_UNAVAILABLE, -EBUSY, -ETIMEDOUT). */
bool backend_error_passes(int r);

/* table_name.c. "public.orders" -> "orders"; "sales.orders" stays; a part that is no word of letters, digits and
 * underscores is in double quotes, as in SQL: sales."my orders". Quotes that need not be are dropped, and the case of a
 * name counts with and without them. -EINVAL when the text is no table name. */
#define BACKEND_TABLE_RULE                                                                                             \
    "table or schema.table, each 1 to %d bytes: letters, digits and underscores and not beginning with a digit, or "   \
    "anything in double quotes, a quote in it doubled"
int backend_table_name(struct arena *a, const char *declared, char **ret, struct err *e) MUST_CHECK;
/* Of a name as backend_table_name() returns it: as the catalog has them, without quotes. */
struct table_parts {
    const char *schema, *table;
};
struct table_parts backend_table_parts(struct arena *a, const char *name);
/* The number of machines in attempted_by (NULL or no JSON: none), and whether this machine is one of them. */
size_t backend_count_machines(const char *attempted_by, const char *machine_id, bool *ret_has);
/* The array with this machine, once; NULL or no JSON counts as empty. */
const char *backend_add_machine(struct arena *a, const char *attempted_by, const char *machine_id);
int64_t backend_max_machines(const struct backend_claim *claim);
