/* The parts of the decorator of Custom Mode, shared by the files of this folder only. */
#pragma once

#include "backend/custom/custom.h"
#include "backend/query.h"
#include "backend/status.h"
#include "base/json.h"
#include "base/limits.h"

#include <pthread.h>

/* ---- custom_table.c: the set of tables and what is known of their columns ---- */

/* The columns that have a meaning here. The first three and a key are required. */
enum custom_column {
    CUSTOM_STATUS,
    CUSTOM_LOCKED_BY,
    CUSTOM_LOCKED_AT,
    CUSTOM_N_REQUIRED,
    CUSTOM_COMPLETED_AT = CUSTOM_N_REQUIRED,
    CUSTOM_ERROR_MESSAGE,
    CUSTOM_RESULT,
    CUSTOM_RETRY_COUNT,
    CUSTOM_ATTEMPTED_BY,
    CUSTOM_UPDATED_AT,
    CUSTOM_CREATED_AT,
    CUSTOM_USER_ID,
    CUSTOM_N_COLUMNS
};
extern const char *const custom_column_names[CUSTOM_N_COLUMNS];

enum { CUSTOM_KEY_SIZE = 64 };
bool custom_type_fits(enum custom_column column, enum table_type type);

struct custom_facts {
    char key[CUSTOM_KEY_SIZE];
    enum table_type key_type;
    enum table_type types[CUSTOM_N_COLUMNS];
    bool has[CUSTOM_N_COLUMNS];
};

/* A table for the time of one call: names and facts are copies in the caller's arena. */
struct custom_view {
    const char *table, *app_id;
    unsigned events;
    struct custom_facts facts;
};

struct custom_tables;
struct custom_tables *custom_tables_new(void) MUST_CHECK;
struct custom_tables *custom_tables_free(struct custom_tables *ts);
void custom_tables_set(struct custom_tables *ts, const struct custom_table *tables, size_t n);
size_t custom_tables_count(struct custom_tables *ts);
/* False: no table of Custom Mode. Reads nothing; the view has no facts yet when has_facts says so. */
bool custom_tables_find(struct custom_tables *ts, const char *table, struct arena *a, struct custom_view *ret,
                        bool *ret_has_facts);
void custom_tables_learn(struct custom_tables *ts, const char *table, const struct custom_facts *facts);
void custom_tables_forget(struct custom_tables *ts, const char *table); /* the facts of one table */
/* The tables now; names in the arena. */
const char **custom_tables_names(struct custom_tables *ts, struct arena *a, size_t *ret_n);
/* -EINVAL TABLE_UNFIT: the first thing that the shape lacks. */
int custom_facts_read(const struct table_shape *shape, struct custom_facts *ret, struct err *e) MUST_CHECK;

/* ---- custom_memory.c: what this process knows of leases, beside the table. Bounded; it may forget. ---- */

struct custom_memory;
struct custom_memory *custom_memory_new(void) MUST_CHECK;
struct custom_memory *custom_memory_free(struct custom_memory *m);

struct custom_lease_note {
    char machine[LIMIT_NAME_CHARS * 4 + 1];
    int64_t attempt;
    bool is_unknown;   /* a lock was taken from the app, and what became of it is unknown */
    const char *ended; /* the status of the stored end; NULL: none is known */
};
bool custom_memory_get(struct custom_memory *m, const char *table, const char *id, struct custom_lease_note *ret);
void custom_memory_put(struct custom_memory *m, const char *table, const char *id,
                       const struct custom_lease_note *note);
/* The same while the note still is the one that was seen; false: another thread has put one since. */
bool custom_memory_replace(struct custom_memory *m, const char *table, const char *id,
                           const struct custom_lease_note *seen, const struct custom_lease_note *note) MUST_CHECK;

/* ---- custom_rest.c: apps that did not answer are left in peace for a while ---- */

struct custom_rests;
struct custom_rests *custom_rests_new(void) MUST_CHECK;
struct custom_rests *custom_rests_free(struct custom_rests *rs);
/* -EHOSTUNREACH APP_UNREACHABLE while the app rests; of those who come after its rest one may try. */
int custom_rests_enter(struct custom_rests *rs, const char *app_id, struct err *e) MUST_CHECK;
void custom_rests_clear(struct custom_rests *rs);
/* After a try: answered, or did not (the rest begins, or doubles). */
void custom_rests_leave(struct custom_rests *rs, const char *app_id, bool has_answered);

/* ---- custom.c ---- */

struct custom_subscriber;
struct custom {
    struct backend backend;
    struct backend_ops ops; /* those of every decorator, with the inner backend's name */
    struct custom_config config;
    struct custom_tables *tables;
    struct custom_memory *memory;
    struct custom_rests *rests;
    struct custom_deliveries *deliveries;
    pthread_mutex_t lock; /* subscribers */
    struct custom_subscriber *subscribers;
};

static inline struct custom *custom_of(struct backend *b)
{
    return CONTAINER_OF(b, struct custom, backend);
}

bool custom_is(const struct backend *b);
/* 1 with a view that has its facts; 0: not of Custom Mode; -EINVAL TABLE_UNFIT and the errors of backend_shape. */
int custom_find(struct custom *c, const char *table, struct arena *a, struct custom_view *ret, struct err *e);
/* Milliseconds since 1970 by the database's clock. */
int custom_now(struct custom *c, int64_t *ret_ms, struct err *e) MUST_CHECK;

/* ---- custom_record.c: records ---- */

/* A value of a record as text: NULL when it is null or missing. */
const char *custom_text(struct arena *a, struct json_value record, const char *name);
/* Milliseconds since 1970; -1: no time. */
int64_t custom_time(struct json_value record, const char *name);
/* False for a record without a usable key; texts in the arena. A status that is no text is "". */
bool custom_record_read(const struct custom_view *v, struct json_value record, struct arena *a,
                        struct backend_row *ret) MUST_CHECK;
/* Do both records have the same data, but for the columns of the lease and the outcome? */
bool custom_record_is_same_data(struct json_value one, struct json_value other);
bool custom_record_is_beat(struct json_value one, struct json_value other); /* only times differ */
/* What the memory and the stored ends add: attempt, the end on its way, the machines that tried. Reads the store. */
void custom_row_complete(struct custom *c, struct arena *a, struct backend_row *row);

/* ---- custom_statement.c: statements about one table ---- */

enum { CUSTOM_MAX_TESTS = 8, CUSTOM_STATUS_WORDS = 8 };

/* A conjunction that grows; its texts are borrowed. */
struct custom_where {
    struct query_condition tests[CUSTOM_MAX_TESTS], all;
    const char *values[CUSTOM_MAX_TESTS];
};
void custom_where_init(struct custom_where *w);
void custom_where_add(struct custom_where *w, const struct query_condition *cond);
void custom_where_test(struct custom_where *w, const char *column, enum query_op op, const char *value);
void custom_where_in(struct custom_where *w, const char *column, const char *const *values, size_t n);
void custom_where_status(struct custom_where *w, struct arena *a, enum status_class of);
/* The row of this lease, while the lease is in force. */
void custom_where_lease(struct custom_where *w, const struct custom_view *v, const struct backend_lease *l,
                        struct arena *a);

struct custom_records {
    struct json_value *items;
    size_t n;
};
struct custom_page {
    const struct query_condition *where;
    int64_t limit, offset;
};
/* Newest first, by created_at where there is such a column. -E2BIG TOO_LARGE when the rows are too large together. */
int custom_select(struct custom *c, const struct custom_view *v, const struct custom_page *page, struct arena *a,
                  struct custom_records *ret, struct err *e) MUST_CHECK;
/* The same with fewer rows, one at least: page->limit is halved until they fit. */
int custom_select_some(struct custom *c, const struct custom_view *v, struct custom_page *page, struct arena *a,
                       struct custom_records *ret, struct err *e) MUST_CHECK;
int custom_count(struct custom *c, const struct custom_view *v, const struct query_condition *where, int64_t *ret,
                 struct err *e) MUST_CHECK;
/* -ENOENT NOT_FOUND. */
int custom_select_one(struct custom *c, const struct custom_view *v, const char *id, struct arena *a,
                      struct json_value *ret, struct err *e) MUST_CHECK;
/* Sets the columns of the object; ret: the rows that changed. */
int custom_change(struct custom *c, const struct custom_view *v, const char *object,
                  const struct query_condition *where, struct arena *a, struct custom_records *ret,
                  struct err *e) MUST_CHECK;
extern const char custom_set_free[]; /* the object that gives a row back */

/* ---- the operations ---- */

int custom_get(struct custom *c, const struct custom_view *v, const char *id, const char *app_id, struct arena *a,
               struct backend_row *ret, struct err *e);
int custom_list(struct custom *c, const struct custom_view *v, const struct backend_query *q, struct arena *a,
                struct backend_rows *ret, struct err *e);
int custom_update(struct custom *c, const struct custom_view *v, const struct backend_update_request *request,
                  struct arena *a, struct backend_row *ret, struct err *e);
int custom_replay(struct custom *c, const struct custom_view *v, const char *id, struct err *e);
int custom_claim(struct custom *c, const struct custom_view *v, const struct backend_claim *in, struct arena *a,
                 struct backend_row *ret, struct backend_lease *ret_lease, struct err *e);
int custom_heartbeat(struct custom *c, const struct custom_view *v, const struct backend_lease *l, struct err *e);
int custom_end(struct custom *c, const struct custom_view *v, const struct backend_lease *l, bool is_fail,
               const char *content, struct err *e);
int custom_release(struct custom *c, const struct custom_view *v, const struct backend_lease *l, struct err *e);
int custom_release_machine(struct custom *c, const struct custom_view *v, const char *machine_id, size_t *ret_n,
                           struct err *e);
int custom_recover_stale(struct custom *c, const struct custom_view *v, int64_t stale_after_ms, struct arena *a,
                         struct backend_rows *ret, struct err *e);
int custom_claimable(struct custom *c, const struct custom_view *v, const struct backend_claim *as,
                     const struct backend_position *before, int64_t limit, struct arena *a, struct backend_rows *ret,
                     struct err *e);
int custom_owners(struct custom *c, struct arena *a, struct backend_owners *ret, struct err *e);
/* An enum custom_hold, or an error. */
int custom_hold(struct custom *c, const struct custom_view *v, const struct backend_lease *l, struct err *e);
extern const struct custom_delivery_calls custom_delivery_calls; /* arg: struct custom */

int custom_subscribe(struct backend *b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e);
void custom_unsubscribe(struct backend *b, void *arg);
