#include "backend/postgres/postgres.h"
#include "backend/postgres/postgres_statements.h"
#include "backend/refusals.h"
#include "backend/status.h"
#include "base/uuid.h"

/* --- claim --- */

static const char claim_sql[] = POSTGRES_SAYS_LEASES POSTGRES_CLAIM("{table}") " RETURNING {columns}";

/* Why the statement changed nothing; by now another machine may have ended its lease. */
static int refuse_claim(struct postgres *pg, struct postgres_table *t, const struct backend_claim *in, struct arena *a,
                        struct err *e)
{
    struct backend_row row;
    int r = postgres_read_row(pg, t, in->row_id, NULL, a, &row, e);

    return r < 0 ? r : refusals_claim(in, &row, e);
}

/* Not repeated on a broken connection: the lease that it may have taken goes stale. */
int postgres_claim_alone(struct postgres *pg, struct postgres_table *t, const struct backend_claim *in, struct arena *a,
                         struct backend_row *ret, struct err *e)
{
    struct postgres_call c = { .params = { in->row_id, in->machine_id, postgres_ms(a, in->stale_after_ms),
                                           postgres_number(a, backend_max_machines(in)) },
                               .n_params = 4 };
    struct postgres_reader reader;
    int r;

    postgres_read_into(&c, &reader, postgres_table_name(t), a, 1);
    r = postgres_call_on(pg, t, claim_sql, &c, e);
    if (r == 0 && reader.rows.n == 0)
        r = refuse_claim(pg, t, in, a, e);
    if (r == 0)
        *ret = reader.rows.items[0];
    return r;
}

int postgres_claim(struct backend *b, const struct backend_claim *in, struct arena *a, struct backend_row *ret,
                   struct backend_lease *ret_lease, struct err *e)
{
    struct postgres *pg = postgres_of(b);
    struct backend_row row = { 0 };
    struct postgres_table *t;
    int r = postgres_find_table(pg, in->table, &t, e);

    if (r == 0 && !uuid_is_valid(slice_of(in->row_id)))
        r = refusals_no_row(e);
    if (r == 0)
        r = postgres_claim_joined(pg, t, in, a, &row, e);
    if (r < 0)
        return r;
    *ret = row;
    *ret_lease = (struct backend_lease){
        .table = ret->table, .row_id = ret->id, .machine_id = arena_strdup(a, in->machine_id), .attempt = ret->attempt
    };
    return 0;
}

/* --- calls of the holder --- */

static const char heartbeat_sql[] = "UPDATE {table} SET locked_at = {now}" POSTGRES_IS_HELD;
static const char release_sql[] =
    "UPDATE {table} SET status = 'pending', locked_by = NULL, locked_at = NULL" POSTGRES_IS_HELD;
static const char complete_sql[] = POSTGRES_SAYS_LEASES POSTGRES_COMPLETE("{table}");
static const char fail_sql[] = POSTGRES_FAIL("{table}");

struct row_change {
    const struct backend_lease *lease;
    const char *template, *value; /* $4; only complete and fail have one */
    bool has_value;
    const char *end_status; /* the status that a repeated call finds; NULL: a repeated call is refused */
};

struct found {
    bool is_there;
};

static int take_any(void *arg, const struct pg_row *row, struct err *e)
{
    ((struct found *)arg)->is_there = true;
    return 0;
}

/* Whether this very attempt has ended so already: a repeated call, or a repeated statement, is a success. */
static int check_repeat(struct postgres *pg, struct postgres_table *t, const struct row_change *change,
                        const char *attempt, struct err *e)
{
    static const char sql[] = "SELECT 1 FROM {table} WHERE id = $1::uuid AND claimed_by = $2"
                              " AND (attempt = $3::bigint OR $3::bigint = -1) AND status = $4";
    struct found found = { false };
    struct postgres_call c = { .sql = postgres_sql(t, sql),
                               .params = { change->lease->row_id, change->lease->machine_id, attempt,
                                           change->end_status },
                               .n_params = 4,
                               .table = postgres_table_name(t),
                               .repeat = POSTGRES_REPEATABLE,
                               .n_columns = 1,
                               .max_rows = 1,
                               .on_row = take_any,
                               .arg = &found };
    int r = change->end_status ? postgres_call(pg, &c, e) : 0;

    return r < 0 || found.is_there ? r : refusals_lease_lost(change->lease, e);
}

static int find_lease(struct postgres *pg, const struct backend_lease *l, struct postgres_table **ret, struct err *e)
{
    int r = postgres_find_table(pg, l->table, ret, e);

    return r == 0 && !uuid_is_valid(slice_of(l->row_id)) ? refusals_lease_lost(l, e) : r;
}

static int run_change(struct postgres *pg, const struct row_change *change, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct backend_lease *l = change->lease;
    struct postgres_call c = { .params = { l->row_id, l->machine_id, postgres_number(a, l->attempt), change->value },
                               .n_params = change->has_value ? 4 : 3,
                               .repeat = POSTGRES_REPEATABLE };
    struct postgres_table *t;
    int r = find_lease(pg, l, &t, e);

    if (r < 0)
        return r;
    r = postgres_call_on(pg, t, change->template, &c, e);
    return r < 0 || c.n_changed ? r : check_repeat(pg, t, change, c.params[2], e);
}

int postgres_heartbeat(struct backend *b, const struct backend_lease *l, struct err *e)
{
    return run_change(postgres_of(b), &(struct row_change){ .lease = l, .template = heartbeat_sql }, e);
}

enum { PIPELINE = 64 };

static int find_tables(struct postgres *pg, const struct backend_lease *leases, size_t n, const char **ret_sql,
                       struct err *e)
{
    struct postgres_table *t;
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        r = postgres_find_table(pg, leases[i].table, &t, e);
        if (r == 0)
            ret_sql[i] = postgres_sql(t, heartbeat_sql);
    }
    return r;
}

static int beat_together(struct postgres *pg, const struct backend_lease *leases, size_t n, int *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct pg_statement statements[PIPELINE];
    const char *sql[PIPELINE], *params[PIPELINE][3];
    int64_t n_changed[PIPELINE] = { 0 };
    int r = find_tables(pg, leases, n, sql, e);

    for (size_t i = 0; i < n && r == 0; i++) {
        params[i][0] = leases[i].row_id;
        params[i][1] = leases[i].machine_id;
        params[i][2] = postgres_number(a, leases[i].attempt);
        statements[i] = (struct pg_statement){
            .sql = sql[i], .params = params[i], .n_params = 3, .ret_changes = &n_changed[i], .is_prepared = true
        };
    }
    if (r == 0)
        r = postgres_call_all(pg, statements, n, ret, e);
    for (size_t i = 0; i < n && r == 0; i++)
        ret[i] = ret[i] == 0 && n_changed[i] == 0 ? -ESTALE : ret[i];
    return r;
}

/* What the server refused, as a name that a pooler mixed up, is done alone. */
int postgres_heartbeats(struct backend *b, const struct backend_lease *leases, size_t n, int *ret, struct err *e)
{
    struct postgres *pg = postgres_of(b);
    bool is_none_there; /* of the tables */
    int r = 0;

    for (size_t at = 0, n_now; r == 0 && at < n; at += n_now) {
        n_now = MIN(n - at, (size_t)PIPELINE);
        r = beat_together(pg, leases + at, n_now, ret + at, e);
        is_none_there = r == -ENOENT;
        for (size_t i = at; (r == 0 || is_none_there) && i < at + n_now; i++)
            if (is_none_there || ret[i] == -EIO)
                ret[i] = postgres_heartbeat(b, &leases[i], e);
        r = is_none_there ? 0 : r;
    }
    return r;
}

/* A release whose answer was lost and that is repeated finds no lease: the caller then knows as much as before. */
int postgres_release(struct backend *b, const struct backend_lease *l, struct err *e)
{
    return run_change(postgres_of(b), &(struct row_change){ .lease = l, .template = release_sql }, e);
}

int postgres_complete_alone(struct postgres *pg, const struct backend_lease *l, const char *result_json, struct err *e)
{
    const struct row_change change = {
        .lease = l, .template = complete_sql, .value = result_json, .has_value = true, .end_status = STATUS_COMPLETED
    };

    return run_change(pg, &change, e);
}

int postgres_complete(struct backend *b, const struct backend_lease *l, const char *result_json, struct err *e)
{
    struct postgres *pg = postgres_of(b);
    struct postgres_table *t = NULL;
    int r = refusals_check_result(result_json, e);

    if (r == 0)
        r = find_lease(pg, l, &t, e);
    return r < 0 ? r : postgres_complete_joined(pg, t, l, result_json, e);
}

int postgres_fail(struct backend *b, const struct backend_lease *l, const char *message, struct err *e)
{
    const struct row_change change = {
        .lease = l, .template = fail_sql, .value = message, .has_value = true, .end_status = STATUS_FAILED
    };

    return run_change(postgres_of(b), &change, e);
}
