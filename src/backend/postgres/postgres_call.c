#include "backend/postgres/postgres.h"
#include "backend/postgres/postgres_outbox_schema.h"
#include "backend/postgres/postgres_table.h"
#include "backend/refusals_sql.h"
#include "base/clock.h"
#include "base/limits.h"

#include <poll.h>
#include <string.h>

enum { PAUSE_MS = 30, PAUSE_STEP_MS = 10 };
#define MAX_AGE_MS (INT64_C(1000) * 86400 * 3650)

/* ---- one attempt ---- */

struct attempt {
    struct err why;
    char sqlstate[8]; /* "": not refused */
    bool is_broken;   /* the connection broke while the statement was under way */
    bool was_sent;
    bool is_flooded; /* a row was too large to be read */
    int r;
};

static bool is_over(const struct net_wait *wait)
{
    return clock_mono_ms() >= wait->deadline_ms;
}

static void run(struct postgres *pg, struct postgres_call *c, const struct net_wait *wait, struct attempt *at)
{
    struct pg_statement st = { .sql = c->sql,
                               .params = c->many_params ? c->many_params : c->params,
                               .n_params = c->n_params,
                               .n_columns = c->n_columns,
                               .max_rows = c->max_rows,
                               .max_bytes = SIZE_MAX,
                               .on_row = c->on_row,
                               .arg = c->arg,
                               .ret_changes = c->on_row ? NULL : &c->n_changed,
                               .is_prepared = !c->is_one_off };
    struct pg_link *link = NULL;

    *at = (struct attempt){ 0 };
    at->r = postgres_pool_take(pg->pool, wait, &link, &at->why);
    if (at->r < 0)
        return;
    if (c->on_begin)
        c->on_begin(c->arg);
    at->was_sent = true;
    at->r = pg_link_run(link, wait, &st, &at->why);
    at->is_broken = at->r < 0 && pg_link_is_dead(link);
    at->is_flooded = at->r < 0 && pg_link_is_flooded(link);
    if (at->r < 0 && !at->is_broken)
        snprintf(at->sqlstate, sizeof(at->sqlstate), "%s", pg_link_sqlstate(link));
    postgres_pool_give(pg->pool, &link);
    if (is_over(wait))
        postgres_pool_close_idle(pg->pool);
}

static bool may_repeat(const struct postgres_call *c, const struct attempt *at)
{
    return refusals_is_undone(at->sqlstate) || (at->is_broken && c->repeat == POSTGRES_REPEATABLE);
}

/* Such a statement does not catch what goes wrong in the outbox; the same one that does not say so does. Not of one
 * that the server ended while it waited. */
static bool may_drop_leases(const struct postgres_call *c, const struct attempt *at)
{
    static const char *const waits[] = { "40", "55", "57" };
    bool has_waited = false;

    for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
        has_waited = has_waited || strncmp(at->sqlstate, waits[i], 2) == 0;
    return at->sqlstate[0] && !has_waited && strncmp(c->sql, POSTGRES_SAYS_LEASES, strlen(POSTGRES_SAYS_LEASES)) == 0;
}

/* Ends early when the backend closes. */
static int pause_before(const struct net_wait *wait, int64_t ms, struct err *e)
{
    int64_t until_ms = clock_mono_ms() + ms, left = 1;

    while (clock_mono_ms() < until_ms && (left = net_wait_left(wait, e)) > 0)
        (void)!poll(NULL, 0, PAUSE_STEP_MS);
    return left < 0 ? (int)left : 0;
}

/* What became of a change that was under way, nobody here knows. */
static int refuse_unheard(const struct postgres_call *c, const struct net_wait *wait, const struct attempt *at,
                          struct err *e)
{
    const char *fate = at->was_sent && c->repeat == POSTGRES_ONCE ? "; the change may have been made all the same" : "";

    if (is_over(wait))
        return err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "The database did not answer within %g seconds%s",
                       (double)wait->total_ms / 1e3, fate);
    return err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "%s%s", at->why.text, fate);
}

static int refuse(const struct postgres_call *c, const struct net_wait *wait, const struct attempt *at, struct err *e)
{
    if (at->sqlstate[0] && c->refuse)
        return c->refuse(c, at->sqlstate, &at->why, e);
    if (at->sqlstate[0])
        return refusals_sqlstate(at->sqlstate, c->table, &at->why, e);
    if (at->is_flooded)
        return err_set(e, -E2BIG, at->why.code, "%s", at->why.text);
    if (at->r != -ECANCELED && (at->is_broken || is_over(wait)))
        return refuse_unheard(c, wait, at, e);
    if (e)
        *e = at->why;
    return at->r;
}

int postgres_call(struct postgres *pg, struct postgres_call *c, struct err *e)
{
    const struct net_wait wait = net_wait_of(c->most_ms ? c->most_ms : pg->call_ms, NULL, &pg->is_closing);
    struct attempt at;
    int r = c->takes_any ? 0 : postgres_check_fit(pg, c->most_ms, e);

    if (r < 0)
        return r;
    run(pg, c, &wait, &at);
    if (may_drop_leases(c, &at)) {
        c->sql += strlen(POSTGRES_SAYS_LEASES);
        run(pg, c, &wait, &at);
    }
    for (int i = 1; r == 0 && i < LIMIT_BACKEND_ATTEMPTS && at.r < 0 && may_repeat(c, &at); i++) {
        r = pause_before(&wait, (int64_t)PAUSE_MS << i, e);
        if (r == 0)
            run(pg, c, &wait, &at);
    }
    return at.r == 0 || r == -ECANCELED ? r : refuse(c, &wait, &at, e);
}

int postgres_call_all(struct postgres *pg, const struct pg_statement *statements, size_t n, int *ret, struct err *e)
{
    const struct net_wait wait = net_wait_of(pg->call_ms, NULL, &pg->is_closing);
    const struct postgres_call repeatable = { .repeat = POSTGRES_REPEATABLE };
    struct attempt at = { .r = 0 };
    struct pg_link *link = NULL;
    int r = postgres_check_fit(pg, 0, e);

    if (r < 0)
        return r;
    at.r = postgres_pool_take(pg->pool, &wait, &link, &at.why);
    if (at.r == 0) {
        at.r = pg_link_run_all(link, &wait, statements, n, ret, &at.why);
        at.is_broken = at.r < 0;
        postgres_pool_give(pg->pool, &link);
    }
    return at.r < 0 ? refuse(&repeatable, &wait, &at, e) : 0;
}

const char *postgres_number(struct arena *a, int64_t n)
{
    return arena_printf(a, "%lld", (long long)n);
}

static void add_item(struct buf *out, const char *item)
{
    if (!item) {
        buf_add_str(out, "NULL");
        return;
    }
    buf_add_char(out, '"');
    for (; *item; item++) {
        if (*item == '"' || *item == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, *item);
    }
    buf_add_char(out, '"');
}

const char *postgres_array(struct arena *a, const char *const *items, size_t n)
{
    struct buf out;

    buf_init(&out, LIMIT_BACKEND_ROW_BYTES);
    for (size_t i = 0; i < n; i++) {
        buf_add_char(&out, i ? ',' : '{');
        add_item(&out, items[i]);
    }
    buf_add_char(&out, '}');
    return buf_to_arena(&out, a);
}

/* Intervals beyond the age of anything stored would overflow. */
const char *postgres_ms(struct arena *a, int64_t ms)
{
    return postgres_number(a, MAX(MIN(ms, MAX_AGE_MS), 0));
}

int postgres_call_on(struct postgres *pg, struct postgres_table *t, const char *template, struct postgres_call *c,
                     struct err *e)
{
    c->sql = postgres_sql(t, template);
    c->table = postgres_table_name(t);
    return postgres_call(pg, c, e);
}
