#include "backend/postgres/postgres.h"
#include "backend/postgres/postgres_table.h"
#include "backend/refusals.h"
#include "base/clock.h"
#include "base/limits.h"

#include <poll.h>
#include <string.h>

enum { PAUSE_MS = 30, PAUSE_STEP_MS = 10 };
#define MAX_AGE_MS (INT64_C(1000) * 86400 * 3650)

/* ---- refusals ---- */

static int refuse_invalid(const struct err *why, struct err *e)
{
    return err_set(e, -EINVAL, "VALIDATION_ERROR", "The database cannot hold this value. %s", why->text);
}

static int refuse_large(const struct err *why, struct err *e)
{
    return err_set(e, -E2BIG, "TOO_LARGE", "A value is larger than its column allows. %s", why->text);
}

static int refuse_double(const struct err *why, struct err *e)
{
    return err_set(e, -EEXIST, "ALREADY_EXISTS", "A row with this id is there already");
}

static int refuse_rights(const struct err *why, struct err *e)
{
    return err_set(e, -EACCES, "STORE_DENIED", "%s: `hearth backend check` says what is missing", why->text);
}

static int refuse_unfit(const struct err *why, struct err *e)
{
    return err_set(e, -EINVAL, "TABLE_UNFIT", "%s: `hearth backend check` says what is missing", why->text);
}

static int refuse_read_only(const struct err *why, struct err *e)
{
    return err_set(e, -EROFS, "STORE_READ_ONLY", "%s", why->text);
}

static int refuse_full(const struct err *why, struct err *e)
{
    return err_set(e, -ENOSPC, "STORE_FULL", "%s", why->text);
}

static int refuse_busy(const struct err *why, struct err *e)
{
    return err_set(e, -EBUSY, "STORE_BUSY", "%s", why->text);
}

static int refuse_absent(const struct err *why, struct err *e)
{
    return err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "%s", why->text);
}

/* The first row whose beginning fits counts (PostgreSQL, Appendix A). */
static const struct {
    const char *begin;
    int (*refuse)(const struct err *why, struct err *e);
} refusals[] = {
    { "23505", refuse_double }, { "23514", refuse_large },     { "54000", refuse_large }, { "22", refuse_invalid },
    { "42501", refuse_rights }, { "42703", refuse_unfit },     { "42804", refuse_unfit }, { "42883", refuse_unfit },
    { "23", refuse_invalid },   { "25006", refuse_read_only }, { "53100", refuse_full },  { "55P03", refuse_busy },
    { "57014", refuse_busy },   { "40", refuse_busy },         { "53", refuse_absent },   { "57P", refuse_absent },
};

int postgres_refusal(const char *sqlstate, const char *table, const struct err *why, struct err *e)
{
    if (table && strcmp(sqlstate, "42P01") == 0)
        return refusals_no_table(table, e);
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
        if (strncmp(sqlstate, refusals[i].begin, strlen(refusals[i].begin)) == 0)
            return refusals[i].refuse(why, e);
    return err_set(e, -EIO, "STORE_FAILED", "%s", why->text);
}

/* ---- one attempt ---- */

struct attempt {
    struct err why;
    char sqlstate[8]; /* "": not refused */
    bool is_broken;   /* the connection broke while the statement was under way */
    int r;
};

static void run(struct postgres *pg, struct postgres_call *c, const struct net_wait *wait, struct attempt *at)
{
    struct pg_statement st = { .sql = c->sql,
                               .params = c->params,
                               .n_params = c->n_params,
                               .n_columns = c->n_columns,
                               .max_rows = c->max_rows,
                               .max_bytes = SIZE_MAX,
                               .on_row = c->on_row,
                               .arg = c->arg,
                               .ret_changes = c->on_row ? NULL : &c->n_changed,
                               .is_prepared = true };
    struct pg_link *link = NULL;

    *at = (struct attempt){ .r = postgres_pool_take(pg->pool, wait, &link, &at->why) };
    if (at->r < 0)
        return;
    if (c->on_begin)
        c->on_begin(c->arg);
    at->r = pg_link_run(link, wait, &st, &at->why);
    at->is_broken = at->r < 0 && pg_link_is_dead(link);
    if (at->r < 0 && !at->is_broken)
        snprintf(at->sqlstate, sizeof(at->sqlstate), "%s", pg_link_sqlstate(link));
    postgres_pool_give(pg->pool, &link);
}

/* A deadlock and a conflict between transactions have been rolled back. */
static bool is_undone(const struct attempt *at)
{
    return strcmp(at->sqlstate, "40001") == 0 || strcmp(at->sqlstate, "40P01") == 0;
}

static bool may_repeat(const struct postgres_call *c, const struct attempt *at)
{
    return is_undone(at) || (at->is_broken && c->repeat == POSTGRES_REPEATABLE);
}

/* Ends early when the backend closes. */
static int pause_before(const struct net_wait *wait, int64_t ms, struct err *e)
{
    int64_t until_ms = clock_mono_ms() + ms, left = 1;

    while (clock_mono_ms() < until_ms && (left = net_wait_left(wait, e)) > 0)
        (void)!poll(NULL, 0, PAUSE_STEP_MS);
    return left < 0 ? (int)left : 0;
}

int postgres_call(struct postgres *pg, struct postgres_call *c, struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_BACKEND_CALL_MS, NULL, &pg->is_closing);
    struct attempt at;
    int r = 0;

    run(pg, c, &wait, &at);
    for (int i = 1; r == 0 && i < LIMIT_BACKEND_ATTEMPTS && at.r < 0 && may_repeat(c, &at); i++) {
        r = pause_before(&wait, (int64_t)PAUSE_MS << i, e);
        if (r == 0)
            run(pg, c, &wait, &at);
    }
    if (r < 0 || at.r == 0)
        return r;
    if (at.sqlstate[0])
        return postgres_refusal(at.sqlstate, c->table, &at.why, e);
    if (e)
        *e = at.why;
    return at.r;
}

const char *postgres_number(struct arena *a, int64_t n)
{
    return arena_printf(a, "%lld", (long long)n);
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
