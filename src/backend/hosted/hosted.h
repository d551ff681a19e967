/* The hosted backend's own parts, private to this folder. A table that the service set up has columns of its own
 * (attempt, app_id and so on); a table that another set-up made may lack each of them, and is served with weaker
 * promises (docs/hosted.md). */
#pragma once

#include "backend/hosted/hosted_rest.h"
#include "base/json_write.h"

#include <pthread.h>

struct hosted_own;
struct receivers;

enum { HOSTED_STALE_MS = 5 * 60 * 1000 }; /* of <abbr>_fn_claim_task: specification, Limits */
#define HOSTED_LEASED "(claimed,processing)"

/* Whether the project has <abbr>_deletions. While that is unknown its channel is tried, and it is asked again. */
enum hosted_deletions { HOSTED_DELETIONS_UNKNOWN, HOSTED_DELETIONS_THERE, HOSTED_DELETIONS_MISSING };

/* Columns that a table may lack; a mask. */
enum {
    HOSTED_APP_ID = 1,
    HOSTED_ATTEMPT = 2,
    HOSTED_EVENT_TYPE = 4,
    HOSTED_SOURCE_TABLE = 8,
    HOSTED_IS_DIRTY = 16,
    HOSTED_CLAIMED_BY = 32,
    HOSTED_REVISION = 64,
    HOSTED_HANDLED_REVISION = 128,
    HOSTED_SEQ = 256
};

/* Functions that a project may lack, or that take other arguments there; a mask. */
enum hosted_function { HOSTED_CLAIM = 1, HOSTED_COMPLETE = 2, HOSTED_FAIL = 4 };

struct hosted_table {
    struct hosted_table *next;
    char *name;          /* owned; as backend_table_name() returns it */
    atomic_uint has;     /* mask of the columns above */
    atomic_bool is_read; /* `has` is what the project said */
};

struct hosted {
    struct backend backend;
    struct hosted
        *whole; /* itself; of a user's view: the backend, which has the tables and what is known of functions */
    char *abbr, *activities, *deletions; /* owned */
    const char *user;                    /* whose new rows are; NULL: as they say */
    struct backend_hosted_config config; /* its texts are not kept */
    atomic_int has_deletions;            /* enum hosted_deletions */
    struct hosted_rest *rest;
    struct hosted_realtime *realtime; /* NULL: none */
    struct receivers *receivers;
    atomic_bool is_closing;
    atomic_uint lacks;             /* mask of enum hosted_function, as calls have found out */
    atomic_llong sequence;         /* of events */
    atomic_llong refused_until_ms; /* no table is made before */
    pthread_mutex_t lock;          /* guards tables and shapes */
    struct hosted_table *tables;   /* owned */
    struct hosted_own *shapes;     /* owned; hosted_shape.c */
    size_t n_shapes;
};

static inline struct hosted *hosted_of(struct backend *b)
{
    return CONTAINER_OF(b, struct hosted, backend);
}

/* ---- hosted.c ---- */

int hosted_publications(struct backend *b, struct arena *a, struct backend_publications *ret, struct err *e) MUST_CHECK;
int hosted_clock(struct backend *b, int64_t *ret_ms, struct err *e) MUST_CHECK;

/* ---- hosted_user.c ---- */

int hosted_as_user(struct backend *b, const char *token, struct arena *a, struct backend **ret,
                   struct err *e) MUST_CHECK;

/* ---- hosted_table.c ---- */

/* The table, once the project has said that it is there and which columns it has. -ENOENT UNKNOWN_TABLE. */
int hosted_find_table(struct hosted *h, const char *name, struct hosted_table **ret, struct err *e) MUST_CHECK;
void hosted_tables_free(struct hosted *h);
static inline bool hosted_has(struct hosted_table *t, unsigned column)
{
    return atomic_load(&t->has) & column;
}
const char *hosted_columns(struct hosted_table *t, struct arena *a); /* id,user_id,... */
/* Every table with work that is known here or that the project's list names; with_declared: those with columns of their
 * own as well. */
int hosted_table_names(struct hosted *h, bool with_declared, struct arena *a, const char ***ret, size_t *ret_n,
                       struct err *e) MUST_CHECK;

/* ---- hosted_read.c ---- */

struct hosted_row {
    struct backend_row row;
    const char *claimed_by;
    int64_t revision, seq;
};
struct hosted_rows {
    struct hosted_row *items;
    size_t n;
};

/* Rows as the project sent them, checked: an array of at most max_rows objects, each id once. */
int hosted_read_rows(struct hosted_table *t, struct json_value list, size_t max_rows, struct arena *a,
                     struct hosted_rows *ret, struct err *e) MUST_CHECK;
/* One record of a table; *ret is not set on an error. */
int hosted_read_row(const char *table, struct json_value record, struct arena *a, struct hosted_row *ret,
                    struct err *e) MUST_CHECK;
struct backend_rows hosted_plain_rows(const struct hosted_rows *rows, struct arena *a);

/* ---- hosted_rows.c ---- */

/* GET with the conditions of `path`, which is cleared. */
int hosted_select(struct hosted *h, struct hosted_table *t, struct hosted_path *path, size_t max_rows, struct arena *a,
                  struct hosted_rows *ret, struct err *e) MUST_CHECK;
/* The same with these columns only, id and created_at among them. */
int hosted_select_columns(struct hosted *h, struct hosted_table *t, struct hosted_path *path, const char *columns,
                          size_t max_rows, struct arena *a, struct hosted_rows *ret, struct err *e) MUST_CHECK;
/* -ENOENT NOT_FOUND; app_id NULL: of any app */
int hosted_get_row(struct hosted *h, struct hosted_table *t, const char *id, const char *app_id, struct arena *a,
                   struct hosted_row *ret, struct err *e) MUST_CHECK;

/* A change of the rows that fulfil the conditions of `path`: PATCH with the members that were written to `w`. */
struct hosted_patch {
    struct hosted_table *table;
    struct hosted_path path;
    struct buf text;
    struct json_writer w;
    bool is_repeatable, is_slim; /* slim: of the rows only the ids are read */
};
void hosted_patch_begin(struct hosted_patch *c, struct hosted_table *t, const char *id /* NULL: no condition yet */);
/* Ends and frees the change. ret: the rows as they are now. */
int hosted_patch_run(struct hosted *h, struct hosted_patch *c, size_t max_rows, struct arena *a,
                     struct hosted_rows *ret, struct err *e) MUST_CHECK;
void hosted_patch_drop(struct hosted_patch *c); /* instead of run */
/* Writes status, locked_by and locked_at of a row that waits. */
void hosted_patch_set_free(struct hosted_patch *c);
/* The same, and for every machine again. */
void hosted_patch_set_new(struct hosted_patch *c);

/* -EPERM ROW_REFUSED: a row that is seen, but not changed. */
int hosted_refuse_hidden(struct err *e);
int hosted_insert(struct backend *b, const struct backend_new_row *in, struct arena *a, struct backend_row *ret,
                  struct err *e) MUST_CHECK;
int hosted_get(struct backend *b, const char *table, const char *id, const char *app_id, struct arena *a,
               struct backend_row *ret, struct err *e) MUST_CHECK;
int hosted_list(struct backend *b, const struct backend_query *q, struct arena *a, struct backend_rows *ret,
                struct err *e) MUST_CHECK;
int hosted_update(struct backend *b, const struct backend_update_request *request, struct arena *a,
                  struct backend_row *ret, struct err *e) MUST_CHECK;
int hosted_remove(struct backend *b, const char *table, const char *id, const char *app_id, struct err *e) MUST_CHECK;

/* ---- hosted_claim.c and hosted_lease.c ---- */

struct hosted_function_call {
    enum hosted_function function;
    const char *name;       /* after <abbr>_fn_ */
    const struct buf *body; /* an object of its arguments */
    bool is_repeatable;
};
/* The answer as it came. -ENOENT FUNCTION_NOT_FOUND. */
int hosted_send_function(struct hosted *h, const struct hosted_function_call *f, struct arena *a,
                         struct hosted_reply *ret, struct err *e) MUST_CHECK;
/* The answer, an object with `success`. -ENOSYS without a text: the project has no such function for this table, and
 * the same must be done by a conditional change. */
int hosted_call_function(struct hosted *h, const struct hosted_function_call *call, struct arena *a,
                         struct json_value *ret, struct err *e) MUST_CHECK;
static inline bool hosted_has_function(struct hosted *h, struct hosted_table *t, enum hosted_function function)
{
    return hosted_has(t, HOSTED_ATTEMPT) && !(atomic_load(&h->whole->lacks) & function);
}
/* Newest first; rows of one time in the order of their insertion, or, where that is not kept, of their ids. */
static inline const char *hosted_newest_first(struct hosted_table *t)
{
    return hosted_has(t, HOSTED_SEQ) ? "created_at.desc,seq.desc" : "created_at.desc,id.desc";
}
/* Its first LIMIT_STRING_DEFAULT characters. */
const char *hosted_cut_message(struct arena *a, const char *message);

int hosted_claim(struct backend *b, const struct backend_claim *in, struct arena *a, struct backend_row *ret,
                 struct backend_lease *ret_lease, struct err *e) MUST_CHECK;
int hosted_heartbeat(struct backend *b, const struct backend_lease *l, struct err *e) MUST_CHECK;
int hosted_complete(struct backend *b, const struct backend_lease *l, const char *result_json,
                    struct err *e) MUST_CHECK;
int hosted_fail(struct backend *b, const struct backend_lease *l, const char *message, struct err *e) MUST_CHECK;
int hosted_release(struct backend *b, const struct backend_lease *l, struct err *e) MUST_CHECK;

/* ---- hosted_recovery.c ---- */

/* By the database's clock, or, where <abbr>_fn_now is missing, by the clock of what answers there, in whole seconds. */
int hosted_now(struct hosted *h, struct arena *a, int64_t *ret_wall_ms, struct err *e) MUST_CHECK;
/* locked_at.lt."...",locked_at.gt."...",locked_at.is.null: the lease is old, of the future or of no time. */
void hosted_add_stale(struct buf *out, int64_t now_ms, int64_t stale_after_ms);

int hosted_release_machine(struct backend *b, const char *table, const char *machine_id, size_t *ret_n,
                           struct err *e) MUST_CHECK;
int hosted_rearm(struct backend *b, const char *table, const char *id, struct err *e) MUST_CHECK;
int hosted_replay(struct backend *b, const char *table, const char *id, struct err *e) MUST_CHECK;
int hosted_recover_stale(struct backend *b, const char *table, int64_t stale_after_ms, struct arena *a,
                         struct backend_rows *ret, struct err *e) MUST_CHECK;
int hosted_claimable(struct backend *b, const char *table, const struct backend_claim *as,
                     const struct backend_position *before, int64_t limit, struct arena *a, struct backend_rows *ret,
                     struct err *e) MUST_CHECK;
int hosted_owners(struct backend *b, int64_t max_machines, struct arena *a, struct backend_owners *ret,
                  struct err *e) MUST_CHECK;

/* ---- hosted_events.c: changes, broadcasts and presence by the realtime service ---- */

int hosted_events_watch(struct hosted *h, const char *table, struct err *e) MUST_CHECK;
/* Before each sweep: a project that was away at the start is asked for its deletions. */
void hosted_events_settle(struct hosted *h);
/* A change as the realtime service tells it, to the subscribers. */
void hosted_events_take(struct hosted *h, const struct hosted_change *c);
int hosted_events_open(struct hosted *h, const struct backend_hosted_config *c, struct err *e) MUST_CHECK;
void hosted_events_close(struct hosted *h);
int hosted_subscribe(struct backend *b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg,
                     struct err *e) MUST_CHECK;
void hosted_unsubscribe(struct backend *b, void *arg);
int hosted_broadcast(struct backend *b, const char *channel, const char *event, const char *payload_json,
                     struct err *e) MUST_CHECK;
int hosted_listen(struct backend *b, const char *channel, backend_broadcast_fn *fn, void *arg,
                  struct err *e) MUST_CHECK;
void hosted_unlisten(struct backend *b, void *arg);
int hosted_machine_put(struct backend *b, const struct backend_presence *p, int64_t fresh_ms, struct err *e) MUST_CHECK;
int hosted_machine_remove(struct backend *b, const char *machine_id, const char *instance, struct err *e) MUST_CHECK;
int hosted_machine_list(struct backend *b, int64_t fresh_ms, struct arena *a, struct backend_presences *ret,
                        struct err *e) MUST_CHECK;
