#include "backend/postgres/postgres_session.h"
#include "base/limits.h"
#include "base/util.h"

#include <string.h>

enum { ROUNDS = 4, SETTING_BYTES = 200 };

/* ---- which process answers ---- */

static int take_pid(void *arg, const struct pg_row *row, struct err *e)
{
    return pg_row_int(row, 0, 0, INT32_MAX, arg, e);
}

static int find_pid(struct pg_link *link, const struct net_wait *wait, int64_t *ret, struct err *e)
{
    const struct pg_statement st = {
        .sql = "SELECT pg_backend_pid()", .n_columns = 1, .max_rows = 1, .on_row = take_pid, .arg = ret
    };

    return pg_link_run(link, wait, &st, e);
}

static int refuse(struct err *e)
{
    return err_set(
        e, -EOPNOTSUPP, "STORE_UNAVAILABLE",
        "backend.url leads through a pooler that changes sessions, so no event comes and the sweep finds the "
        "rows: set backend.events_url to the database itself");
}

/* The process changes, or answers another connection as well. A pooler gives the last one that became free first. */
static int compare(struct pg_link *link, struct pg_link *other, int64_t pid, const struct net_wait *wait, struct err *e)
{
    int64_t own = pid, others = 0;
    int r = 0;

    for (int i = 0; r == 0 && i < ROUNDS; i++) {
        r = find_pid(other, wait, &others, e);
        if (r == 0)
            r = find_pid(link, wait, &own, e);
        if (r == 0 && (own != pid || others == own))
            return refuse(e);
    }
    return r;
}

int postgres_session_check(struct pg_link *link, postgres_connect_fn *connect, void *arg, const struct net_wait *wait,
                           struct err *e)
{
    struct pg_link *other = NULL;
    int64_t pid = 0;
    int r = find_pid(link, wait, &pid, e);

    if (r < 0 || pid == pg_link_pid(link))
        return r;
    r = connect(arg, false, wait, &other, e);
    if (r == 0)
        r = compare(link, other, pid, wait, e);
    pg_link_close(other);
    return r;
}

int postgres_session_connect(void *arg, bool is_replication, const struct net_wait *wait, struct pg_link **ret,
                             struct err *e)
{
    struct postgres_place place = *(const struct postgres_place *)arg;

    place.is_replication = is_replication;
    if (place.events_url)
        place.url = place.events_url;
    return postgres_pool_connect(&place, wait, ret, e);
}

/* ---- what is lacking ---- */

static void add(struct postgres_missings *missings, const char *what, const char *sql)
{
    if (missings->n < LIMIT_LIST)
        missings->items[missings->n++] = (struct postgres_missing){ what, sql };
}

static int check_events(const struct postgres_place *place, const struct net_wait *wait,
                        struct postgres_missings *missings, struct err *e)
{
    struct postgres_place arg = *place;
    struct pg_link *link = NULL;
    struct err why = { 0 };
    int r = postgres_session_connect(&arg, false, wait, &link, e);

    if (r == 0)
        r = postgres_session_check(link, postgres_session_connect, &arg, wait, &why);
    pg_link_close(link);
    if (r == -EOPNOTSUPP) {
        add(missings, "a session of its own for the events: backend.url leads through a pooler that changes sessions",
            "-- no SQL: hearth settings set backend.events_url 'host=... dbname=...' (the database without the pooler)");
        return 0;
    }
    if (r < 0 && e && why.text[0])
        *e = why;
    return r;
}

struct zone {
    struct arena *arena;
    const char *zone, *role, *database; /* role and database quoted for SQL */
};

static int take_zone(void *arg, const struct pg_row *row, struct err *e)
{
    struct zone *z = arg;
    const char **const to[] = { &z->zone, &z->role, &z->database };
    struct slice text;
    int r = 0;

    for (int i = 0; r == 0 && i < (int)ARRAY_SIZE(to); i++) {
        r = pg_row_text(row, i, SETTING_BYTES, &text, e);
        if (r == 0)
            *to[i] = arena_slicedup(z->arena, text);
    }
    return r;
}

/* A pooler that refuses options leaves the time zone to the role. */
static int check_zone(const struct postgres_place *place, const struct net_wait *wait, struct arena *a,
                      struct postgres_missings *missings, struct err *e)
{
    struct zone z = { .arena = a };
    const struct pg_statement st = { .sql = "SELECT current_setting('TimeZone'), quote_ident(current_user),"
                                            " quote_ident(current_database())",
                                     .n_columns = 3,
                                     .max_rows = 1,
                                     .on_row = take_zone,
                                     .arg = &z };
    struct pg_link *link = NULL;
    int r = postgres_pool_connect(place, wait, &link, e);

    if (r == 0)
        r = pg_link_run(link, wait, &st, e);
    pg_link_close(link);
    if (r == 0 && strcmp(z.zone, "UTC") != 0 && strcmp(z.zone, "Etc/UTC") != 0)
        add(missings, arena_printf(a, "times in UTC: sessions of backend.url have the time zone %s", z.zone),
            arena_printf(a, "ALTER ROLE %s IN DATABASE %s SET TimeZone = 'UTC';", z.role, z.database));
    return r;
}

int postgres_session_lacks(const struct postgres_place *place, struct arena *a, struct postgres_missings *missings,
                           struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_STORE_CONNECT_MS, NULL, NULL);
    int r = check_zone(place, &wait, a, missings, e);

    return r < 0 ? r : check_events(place, &wait, missings, e);
}
