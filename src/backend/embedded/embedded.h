/* The internals of the embedded backend, for the embedded_*.c files only.
 *
 * One SQLite file: <abbr>_activities, user tables with the same columns, <abbr>_deletions (work that a DELETE left),
 * _changes (the log that triggers write in the changing transaction, so that the changes of every writer are reported
 * in commit order), _tables and _presence. Writes go through the writer thread, reads through one connection per
 * thread; another thread (embedded_events.c) follows the log and calls subscribers and listeners.
 */
#pragma once

#include "backend/backend.h"
#include "backend/embedded/embedded_table.h"
#include "store/readers.h"
#include "store/writer.h"

struct embedded_events;

struct embedded {
    struct backend backend;         /* first: callers hold a pointer to it */
    char *path, *abbr;              /* owned */
    struct writer *writer;          /* owned */
    struct readers *readers;        /* owned */
    struct embedded_tables *tables; /* owned */
    struct embedded_events *events; /* owned */
};

static inline struct embedded *embedded_of(struct backend *b)
{
    return CONTAINER_OF(b, struct embedded, backend);
}

/* embedded_read.c: rows of a query that selects {columns}. _one: 1 a row, 0 none. _all: 1 when reading stopped at
 * LIMIT_REPLY bytes. */
int embedded_read_one(struct sql_rows *rows, const struct embedded_table *t, struct arena *a, struct backend_row *ret,
                      struct err *e) MUST_CHECK;
int embedded_read_all(struct sql_rows *rows, const struct embedded_table *t, struct arena *a, struct backend_rows *ret,
                      struct err *e) MUST_CHECK;
/* A row in the form of the change log; absent members stay NULL or 0. */
int embedded_read_json(struct arena *a, const char *json, const char *table, struct backend_row *ret,
                       struct err *e) MUST_CHECK;

/* embedded_rows.c. app_id NULL: rows of any app. */
int embedded_read_row(struct sql_db *db, struct embedded_table *t, const char *id, const char *app_id, struct arena *a,
                      struct backend_row *ret, struct err *e) MUST_CHECK;
int embedded_insert(struct backend *b, const struct backend_new_row *in, struct arena *a, struct backend_row *ret,
                    struct err *e);
int embedded_get(struct backend *b, const char *table, const char *id, const char *app_id, struct arena *a,
                 struct backend_row *ret, struct err *e);
int embedded_list(struct backend *b, const struct backend_query *q, struct arena *a, struct backend_rows *ret,
                  struct err *e);
int embedded_update(struct backend *b, const struct backend_update_request *request, struct arena *a,
                    struct backend_row *ret, struct err *e);
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
int embedded_claimable(struct backend *b, const char *table, const struct backend_claim *as,
                       const struct backend_position *before, int64_t limit, struct arena *a, struct backend_rows *ret,
                       struct err *e);

int embedded_owners(struct backend *b, int64_t max_machines, struct arena *a, struct backend_owners *ret,
                    struct err *e);

/* embedded_events.c */
struct embedded_events *embedded_events_new(struct embedded *b, int poll_ms) MUST_CHECK;
int embedded_events_start(struct embedded_events *ev, struct err *e) MUST_CHECK;
void embedded_events_stop(struct embedded_events *ev); /* the thread ends; embedded_events_wake() may still be called
                                                          until embedded_events_free() */
struct embedded_events *embedded_events_free(struct embedded_events *ev);
void embedded_events_wake(struct embedded_events *ev);
int embedded_subscribe(struct backend *b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e);
void embedded_unsubscribe(struct backend *b, void *arg);
int embedded_broadcast(struct backend *b, const char *channel, const char *event, const char *payload_json,
                       struct err *e);
int embedded_listen(struct backend *b, const char *channel, backend_broadcast_fn *fn, void *arg, struct err *e);
void embedded_unlisten(struct backend *b, void *arg);
void embedded_monitor(struct backend *b, struct arena *a, struct backend_monitor *ret);

/* embedded_presence.c */
int embedded_presence_put(struct backend *b, const struct backend_presence *p, int64_t fresh_ms, struct err *e);
int embedded_presence_remove(struct backend *b, const char *machine_id, const char *instance, struct err *e);
int embedded_presence_list(struct backend *b, int64_t fresh_ms, struct arena *a, struct backend_presences *ret,
                           struct err *e);

/* embedded_trim.c: removes entries of the change log and work of deletions that are not needed any more. */
int embedded_trim(struct embedded *b, struct err *e) MUST_CHECK;
