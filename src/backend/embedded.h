/* The inside of the embedded backend, for the embedded_*.c files only.
 *
 * One SQLite file: <abbr>_activities, user tables of the same columns, <abbr>_deletions (work that a DELETE left behind),
 * _changes (the log that triggers write in the changing transaction, so that every writer's changes are told in commit
 * order), _tables and _presence. Writes go through the writer thread, reads through a connection a thread; one more
 * thread (embedded_events.c) follows the log and calls subscribers and listeners.
 */
#pragma once

#include "backend/backend.h"
#include "backend/embedded_table.h"
#include "store/readers.h"
#include "store/writer.h"

struct embedded_events;

struct embedded {
    struct backend backend;             /* first: the handle callers hold */
    char *path;                         /* owned */
    char *abbr;                         /* owned */
    struct writer *writer;              /* owned */
    struct readers *readers;            /* owned */
    struct embedded_tables *tables;     /* owned */
    struct embedded_events *events;     /* owned */
};

static inline struct embedded *embedded_of(struct backend *b)
{
    return CONTAINER_OF(b, struct embedded, backend);
}

/* A lease whose attempt is not told: the machine alone names it. Only for functions called by name. */
enum { EMBEDDED_ANY_ATTEMPT = -1 };

/* embedded_read.c: rows of a query that selects {columns}. _one: 1 a row, 0 none. _all: 1 when it stopped at LIMIT_REPLY bytes. */
int embedded_read_one(struct sql_rows *rows, const struct embedded_table *t, struct arena *a, struct backend_row *ret,
                      struct err *e) MUST_CHECK;
int embedded_read_all(struct sql_rows *rows, const struct embedded_table *t, struct arena *a, struct backend_rows *ret,
                      struct err *e) MUST_CHECK;
/* A row as the change log keeps it; absent members stay NULL or 0. */
int embedded_read_json(struct arena *a, const char *json, const char *table, struct backend_row *ret,
                       struct err *e) MUST_CHECK;
int embedded_not_found(struct err *e);
int embedded_check_json(const char *text, const char *field, bool is_object, size_t max, struct err *e) MUST_CHECK;

/* embedded_rows.c. app_id NULL: of any app. */
int embedded_read_row(struct sql_db *db, struct embedded_table *t, const char *id, const char *app_id, struct arena *a,
                      struct backend_row *ret, struct err *e) MUST_CHECK;
int embedded_insert(struct backend *b, const struct backend_new_row *in, struct arena *a, struct backend_row *ret,
                    struct err *e);
int embedded_get(struct backend *b, const char *table, const char *id, const char *app_id, struct arena *a,
                 struct backend_row *ret, struct err *e);
int embedded_list(struct backend *b, const struct backend_query *q, struct arena *a, struct backend_rows *ret,
                  struct err *e);
int embedded_update(struct backend *b, const char *table, const char *id, const char *app_id,
                    const struct backend_patch *p, struct arena *a, struct backend_row *ret, struct err *e);
int embedded_remove(struct backend *b, const char *table, const char *id, const char *app_id, struct err *e);

/* embedded_lease.c */
int embedded_claim(struct backend *b, const struct backend_claim *c, struct arena *a, struct backend_row *ret,
                   struct backend_lease *ret_lease, struct err *e);
int embedded_heartbeat(struct backend *b, const struct backend_lease *l, struct err *e);
int embedded_complete(struct backend *b, const struct backend_lease *l, const char *result_json, struct err *e);
int embedded_fail(struct backend *b, const struct backend_lease *l, const char *message, struct err *e);
int embedded_release(struct backend *b, const struct backend_lease *l, struct err *e);

/* embedded_recovery.c */
int embedded_release_machine(struct backend *b, const char *table, const char *machine_id, size_t *ret_n,
                             struct err *e);
int embedded_rearm(struct backend *b, const char *table, const char *id, struct err *e);
int embedded_replay(struct backend *b, const char *table, const char *id, struct err *e);
int embedded_recover_stale(struct backend *b, const char *table, int64_t stale_after_ms, struct arena *a,
                           struct backend_rows *ret, struct err *e);
int embedded_claimable(struct backend *b, const char *table, const struct backend_claim *as, int64_t limit,
                       struct arena *a, struct backend_rows *ret, struct err *e);

int embedded_owners(struct backend *b, const char *table, struct arena *a, struct backend_owners *ret, struct err *e);

/* embedded_events.c */
struct embedded_events *embedded_events_new(struct embedded *b, int poll_ms) MUST_CHECK;
int embedded_events_start(struct embedded_events *ev, struct err *e) MUST_CHECK;
void embedded_events_stop(struct embedded_events *ev);  /* the thread ends; wake() may still be called until free() */
struct embedded_events *embedded_events_free(struct embedded_events *ev);
void embedded_events_wake(struct embedded_events *ev);
int embedded_subscribe(struct backend *b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e);
void embedded_unsubscribe(struct backend *b, void *arg);
int embedded_broadcast(struct backend *b, const char *channel, const char *event, const char *payload_json,
                       struct err *e);
int embedded_listen(struct backend *b, const char *channel, backend_broadcast_fn *fn, void *arg, struct err *e);
void embedded_unlisten(struct backend *b, void *arg);

/* embedded_presence.c */
int embedded_presence_put(struct backend *b, const struct backend_presence *p, int64_t fresh_ms, struct err *e);
int embedded_presence_remove(struct backend *b, const char *machine_id, const char *instance, struct err *e);
int embedded_presence_list(struct backend *b, int64_t fresh_ms, struct arena *a, struct backend_presences *ret,
                           struct err *e);

/* embedded_trim.c: drops what nobody needs any more of the change log and of the work deletions left. */
int embedded_trim(struct embedded *b, struct err *e) MUST_CHECK;

/* embedded_call.c */
int embedded_call(struct backend *b, const char *function, struct json_value arguments, struct arena *a,
                  char **ret_json, struct err *e);
