/* Claims, and completions, of several threads in one statement; a second one reads why claims were refused. What the
 * statements say nothing about (a row that another program has locked, a lost lease) each caller does alone. */
#include "backend/backend_columns.h"
#include "backend/postgres/postgres.h"
#include "backend/postgres/postgres_statements.h"
#include "backend/refusals.h"
#include "base/limits.h"

#include <string.h>

enum { BATCHED_RESULT_BYTES = 64 << 10 }; /* a larger result travels alone */

struct joined {
    struct postgres_batched batched; /* first: groups hold a pointer to it */
    struct postgres_table *table;
    const char *row_id, *machine_id;
    void (*together)(struct postgres *pg, struct postgres_batch_group *group);
    int (*alone)(struct postgres *pg, struct joined *call, struct err *e);
    bool is_known; /* the members below say what the caller gets */
    int r;
    struct err e;
};

static struct joined *joined_of(const struct postgres_batched *call)
{
    return CONTAINER_OF(call, struct joined, batched);
}

/* A call without company keeps the others waiting as a group does, so that they become one. */
static int join(struct postgres *pg, struct postgres_batch *batch, struct joined *call, struct err *e)
{
    struct postgres_batch_group group = { .n = 0 };
    bool is_mine = postgres_batch_enter(batch, &call->batched, &group), has_left = !is_mine;
    int r;

    if (is_mine && group.n > 1) {
        call->together(pg, &group);
        postgres_batch_leave(batch, &group);
        has_left = true;
    }
    r = call->is_known ? call->r : call->alone(pg, call, e);
    if (call->is_known && r < 0 && e)
        *e = call->e;
    if (!has_left)
        postgres_batch_leave(batch, &group);
    return r;
}

static void forget(void *arg)
{
    struct postgres_batch_group *group = arg;

    for (size_t i = 0; i < group->n; i++)
        joined_of(group->calls[i])->is_known = false;
}

/* Of a failed statement. What the server refused changed nothing: each caller tries alone. */
static void spread_fault(struct postgres_batch_group *group, int r, const struct err *e)
{
    bool is_unheard = r == -EAGAIN || r == -ECANCELED;

    for (size_t i = 0; r < 0 && i < group->n; i++) {
        struct joined *call = joined_of(group->calls[i]);

        call->is_known = is_unheard;
        call->r = r;
        call->e = *e;
    }
}

static const char *list_ids(struct arena *a, const struct postgres_batch_group *group)
{
    const char *ids[BATCH_MAX];

    for (size_t i = 0; i < group->n; i++)
        ids[i] = joined_of(group->calls[i])->row_id;
    return postgres_array(a, ids, group->n);
}

static bool is_row(struct slice id, const struct joined *call)
{
    return id.n > 0 && id.n == strlen(call->row_id) && strncasecmp(id.p, call->row_id, id.n) == 0;
}

static bool are_alike(const struct joined *x, const struct joined *y)
{
    return x->table == y->table && strcmp(x->machine_id, y->machine_id) == 0;
}

/* --- claims --- */

struct claim_call {
    struct joined joined; /* first */
    const struct backend_claim *in;
    struct arena *arena;
    struct backend_row *ret;
};

static struct claim_call *claim_of(struct joined *call)
{
    return CONTAINER_OF(call, struct claim_call, joined);
}

bool postgres_claims_alike(const struct postgres_batched *a, const struct postgres_batched *b)
{
    struct claim_call *x = claim_of(joined_of(a)), *y = claim_of(joined_of(b));

    return are_alike(&x->joined, &y->joined) && x->in->stale_after_ms == y->in->stale_after_ms &&
           backend_max_machines(x->in) == backend_max_machines(y->in);
}

/* Of two calls for one row only one has it. */
static int take_claimed(void *arg, const struct pg_row *row, struct err *e)
{
    struct postgres_batch_group *group = arg;
    struct postgres_reader reader = { 0 };
    struct slice id = SLICE_LIT("");
    struct joined *call = NULL;
    int r = pg_row_text(row, 0, LIMIT_SETTING_BYTES, &id, e);

    for (size_t i = 0; r == 0 && !call && i < group->n; i++)
        if (!joined_of(group->calls[i])->is_known && is_row(id, joined_of(group->calls[i])))
            call = joined_of(group->calls[i]);
    if (r == 0 && !call)
        r = pg_fault(e, "it has claimed a row that was not named");
    if (r < 0)
        return r;
    reader.arena = claim_of(call)->arena;
    reader.table = arena_strdup(reader.arena, postgres_table_name(call->table));
    call->r = 0;
    call->is_known = true;
    return postgres_read_one(&reader, row, claim_of(call)->ret, e);
}

/* Of a row that cannot be claimed, for all calls that named it. */
static int take_refused(void *arg, const struct pg_row *row, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres_batch_group *group = arg;
    struct postgres_reader reader = { .arena = a };
    struct backend_row found = { 0 };
    int r;

    reader.table = postgres_table_name(joined_of(group->calls[0])->table);
    r = postgres_read_one(&reader, row, &found, e);
    for (size_t i = 0; r == 0 && i < group->n; i++) {
        struct joined *call = joined_of(group->calls[i]);

        if (call->is_known || !is_row(slice_of(found.id), call))
            continue;
        call->r = refusals_claim(claim_of(call)->in, &found, &call->e);
        call->is_known = true;
    }
    return r;
}

static size_t count_unknown(const struct postgres_batch_group *group)
{
    size_t n = 0;

    for (size_t i = 0; i < group->n; i++)
        n += !joined_of(group->calls[i])->is_known;
    return n;
}

/* A row that this statement does not name is locked by another program or gone: its caller tries alone. */
static void read_refusals(struct postgres *pg, struct postgres_batch_group *group, struct postgres_call *claimed)
{
    static const char sql[] =
        "SELECT {columns} FROM {table} WHERE id = ANY ($1::uuid[]) AND NOT (" POSTGRES_MAY_CLAIM ")";
    struct postgres_call c = { .n_params = claimed->n_params,
                               .repeat = POSTGRES_REPEATABLE,
                               .n_columns = BACKEND_N_COLUMNS,
                               .max_rows = group->n,
                               .on_row = take_refused,
                               .arg = group };

    memcpy(c.params, claimed->params, sizeof(c.params));
    (void)!postgres_call_on(pg, joined_of(group->calls[0])->table, sql, &c, NULL);
}

static void claim_together(struct postgres *pg, struct postgres_batch_group *group)
{
    static const char sql[] =
        POSTGRES_SAYS_LEASES POSTGRES_CLAIM_SET("{table}") " WHERE " POSTGRES_IS_FREE_ROW " AND " POSTGRES_MAY_CLAIM
                                                           " RETURNING {columns}";
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct joined *first = joined_of(group->calls[0]);
    const struct backend_claim *in = claim_of(joined_of(group->calls[0]))->in;
    struct postgres_call c = { .params = { list_ids(a, group), in->machine_id, postgres_ms(a, in->stale_after_ms),
                                           postgres_number(a, backend_max_machines(in)) },
                               .n_params = 4,
                               .n_columns = BACKEND_N_COLUMNS,
                               .max_rows = group->n,
                               .on_row = take_claimed,
                               .on_begin = forget,
                               .arg = group };
    struct err e = { 0 };
    int r = postgres_call_on(pg, first->table, sql, &c, &e);

    spread_fault(group, r, &e);
    if (r == 0 && count_unknown(group) > 0)
        read_refusals(pg, group, &c);
}

static int claim_alone(struct postgres *pg, struct joined *call, struct err *e)
{
    struct claim_call *c = claim_of(call);

    return postgres_claim_alone(pg, call->table, c->in, c->arena, c->ret, e);
}

int postgres_claim_joined(struct postgres *pg, struct postgres_table *t, const struct backend_claim *in,
                          struct arena *a, struct backend_row *ret, struct err *e)
{
    struct claim_call call = { .joined = { .table = t,
                                           .row_id = in->row_id,
                                           .machine_id = in->machine_id,
                                           .together = claim_together,
                                           .alone = claim_alone },
                               .in = in,
                               .arena = a,
                               .ret = ret };

    return join(pg, pg->claims, &call.joined, e);
}

/* --- completions --- */

struct completion {
    struct joined joined; /* first */
    const struct backend_lease *lease;
    const char *result; /* NULL: none */
};

static struct completion *completion_of(struct joined *call)
{
    return CONTAINER_OF(call, struct completion, joined);
}

bool postgres_completions_alike(const struct postgres_batched *a, const struct postgres_batched *b)
{
    return are_alike(joined_of(a), joined_of(b));
}

static int take_completed(void *arg, const struct pg_row *row, struct err *e)
{
    struct postgres_batch_group *group = arg;
    struct slice id = SLICE_LIT("");
    int64_t attempt = 0;
    int r = pg_row_text(row, 0, LIMIT_SETTING_BYTES, &id, e);

    if (r == 0)
        r = pg_row_int(row, 1, INT64_MIN, INT64_MAX, &attempt, e);
    for (size_t i = 0; r == 0 && i < group->n; i++) {
        struct joined *call = joined_of(group->calls[i]);

        if (!call->is_known && completion_of(call)->lease->attempt == attempt && is_row(id, call)) {
            call->r = 0;
            call->is_known = true;
            break;
        }
    }
    return r;
}

static void complete_together(struct postgres *pg, struct postgres_batch_group *group)
{
    static const char sql[] = POSTGRES_SAYS_LEASES POSTGRES_COMPLETE_SET("{table}", "given_result") //
        " FROM unnest($1::uuid[], $3::bigint[], $4::text[]) AS given (given_id, given_attempt, given_result)"
        " WHERE id = given_id AND " POSTGRES_IS_FREE_ROW
        " AND " POSTGRES_MAY_END("$2", "given_attempt") " RETURNING id::text, given_attempt";
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct joined *first = joined_of(group->calls[0]);
    const char *attempts[BATCH_MAX], *results[BATCH_MAX];
    struct postgres_call c = { .n_params = 4,
                               .n_columns = 2,
                               .max_rows = group->n,
                               .repeat = POSTGRES_REPEATABLE,
                               .on_row = take_completed,
                               .on_begin = forget,
                               .arg = group };
    struct err e = { 0 };

    for (size_t i = 0; i < group->n; i++) {
        const struct completion *one = completion_of(joined_of(group->calls[i]));

        attempts[i] = postgres_number(a, one->lease->attempt);
        results[i] = one->result;
    }
    c.params[0] = list_ids(a, group);
    c.params[1] = first->machine_id;
    c.params[2] = postgres_array(a, attempts, group->n);
    c.params[3] = postgres_array(a, results, group->n);
    spread_fault(group, postgres_call_on(pg, first->table, sql, &c, &e), &e);
}

static int complete_alone(struct postgres *pg, struct joined *call, struct err *e)
{
    const struct completion *c = completion_of(call);

    return postgres_complete_alone(pg, c->lease, c->result, e);
}

int postgres_complete_joined(struct postgres *pg, struct postgres_table *t, const struct backend_lease *l,
                             const char *result_json, struct err *e)
{
    struct completion call = { .joined = { .table = t,
                                           .row_id = l->row_id,
                                           .machine_id = l->machine_id,
                                           .together = complete_together,
                                           .alone = complete_alone },
                               .lease = l,
                               .result = result_json };

    if (result_json && strlen(result_json) > BATCHED_RESULT_BYTES)
        return postgres_complete_alone(pg, l, result_json, e);
    return join(pg, pg->completions, &call.joined, e);
}
