#include "backend/postgres/postgres.h"
#include "backend/refusals.h"
#include "base/limits.h"

static const char *sql_of(struct postgres *pg, const char *template)
{
    return postgres_sql(postgres_table_activities(pg->tables), template);
}

/* --- put and remove --- */

struct other {
    struct arena *arena;
    const char *hostname;
};

static int take_other(void *arg, const struct pg_row *row, struct err *e)
{
    struct other *other = arg;
    struct slice text = SLICE_LIT("");
    int r = pg_row_text(row, 0, LIMIT_BACKEND_ROW_BYTES, &text, e);

    if (r == 0)
        other->hostname = arena_slicedup(other->arena, text);
    return r;
}

static int refuse_taken(struct postgres *pg, const char *machine_id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct other other = { .arena = a };
    struct postgres_call c = {
        .sql = sql_of(pg, "SELECT coalesce(hostname, '') FROM {presence} WHERE machine_id = $1"),
        .params = { machine_id },
        .n_params = 1,
        .repeat = POSTGRES_REPEATABLE,
        .n_columns = 1,
        .max_rows = 1,
        .on_row = take_other,
        .arg = &other,
    };
    int r = postgres_call(pg, &c, e);

    return r < 0 ? r : refusals_machine_taken(machine_id, other.hostname, e);
}

/* Every service calls this at an interval, so it also removes what is old. online_at is when the machine came; the sign
 * of life, renewed by every put, shows whether the machine is still there.
 */
int postgres_presence_put(struct backend *b, const struct backend_presence *p, int64_t fresh_ms, struct err *e)
{
    static const char sql[] =
        "INSERT INTO {presence} AS p (machine_id, user_email, hostname, app_name, online_at, instance, seen_at)"
        " VALUES ($1, $2, $3, $4, coalesce($5::timestamptz, {now}), $6, {now})"
        " ON CONFLICT (machine_id) DO UPDATE SET user_email = $2, hostname = $3, app_name = $4, instance = $6,"
        " online_at = coalesce($5::timestamptz, p.online_at), seen_at = {now}"
        " WHERE p.instance IS NULL OR $6 IS NULL OR p.instance = $6 OR " POSTGRES_IS_OLD("p.seen_at", "$7::bigint");
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres *pg = postgres_of(b);
    struct postgres_call c = { .sql = sql_of(pg, sql),
                               .params = { p->machine_id, p->user_email, p->hostname, p->app_name, p->online_at,
                                           p->instance, postgres_ms(a, fresh_ms) },
                               .n_params = 7,
                               .repeat = POSTGRES_REPEATABLE };
    int r = postgres_call(pg, &c, e);

    if (r < 0)
        return r;
    return c.n_changed ? postgres_trim(pg, e) : refuse_taken(pg, p->machine_id, e);
}

int postgres_presence_remove(struct backend *b, const char *machine_id, const char *instance, struct err *e)
{
    struct postgres *pg = postgres_of(b);
    struct postgres_call c = {
        .sql = sql_of(pg, "DELETE FROM {presence} WHERE machine_id = $1 AND instance IS NOT DISTINCT FROM $2"),
        .params = { machine_id, instance },
        .n_params = 2,
        .repeat = POSTGRES_REPEATABLE,
    };

    return postgres_call(pg, &c, e);
}

/* --- list --- */

struct machines {
    struct arena *arena;
    struct backend_presences list;
};

static int take_machine(void *arg, const struct pg_row *row, struct err *e)
{
    struct machines *machines = arg;
    struct backend_presence *p = &machines->list.items[machines->list.n];
    const char **members[] = { &p->machine_id, &p->user_email, &p->hostname, &p->app_name, &p->online_at };
    int r = 0;

    *p = (struct backend_presence){ 0 };
    for (int i = 0; r == 0 && i < (int)ARRAY_SIZE(members); i++) {
        struct slice text = SLICE_LIT("");

        if (pg_row_is_null(row, i))
            continue;
        r = pg_row_text(row, i, LIMIT_STRING_DEFAULT, &text, e);
        *members[i] = arena_slicedup(machines->arena, text);
    }
    if (r == 0)
        machines->list.n++;
    return r;
}

static void forget_machines(void *arg)
{
    ((struct machines *)arg)->list.n = 0;
}

int postgres_presence_list(struct backend *b, int64_t fresh_ms, struct arena *a, struct backend_presences *ret,
                           struct err *e)
{
    static const char sql[] =
        "SELECT machine_id, user_email, hostname, app_name,"
        " to_char(online_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
        " FROM {presence} WHERE NOT " POSTGRES_IS_OLD("seen_at",
                                                      "$1::bigint") " ORDER BY online_at, machine_id LIMIT $2::bigint";
    struct machines machines = { .arena = a,
                                 .list = { .items = arena_array(a, LIMIT_LIST, sizeof(struct backend_presence)) } };
    struct postgres *pg = postgres_of(b);
    struct postgres_call c = { .sql = sql_of(pg, sql),
                               .params = { postgres_ms(a, fresh_ms), postgres_number(a, LIMIT_LIST) },
                               .n_params = 2,
                               .repeat = POSTGRES_REPEATABLE,
                               .n_columns = 5,
                               .max_rows = LIMIT_LIST,
                               .on_row = take_machine,
                               .on_begin = forget_machines,
                               .arg = &machines };
    int r = postgres_call(pg, &c, e);

    if (r == 0)
        *ret = machines.list;
    return r;
}
