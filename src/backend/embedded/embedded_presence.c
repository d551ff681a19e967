#include "backend/embedded/embedded.h"
#include "backend/refusals.h"
#include "base/limits.h"

#define IS_GONE(age) EMBEDDED_IS_OLD("seen_at", "seen_mark", "seen_ms", age)

struct presence_put {
    const struct backend_presence *presence;
    int64_t fresh_ms;
    struct arena *arena;
};

static int read_other(struct sql_db *db, struct presence_put *c, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, "SELECT coalesce(hostname, '') FROM _presence WHERE machine_id = ?", "s",
                      c->presence->machine_id);

    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    return refusals_machine_taken(c->presence->machine_id, r > 0 ? sql_text(rows, c->arena, 0) : NULL, e);
}

/* online_at is when the machine came; the sign of life, renewed by every put, shows whether the machine is still there.
 */
static int put_presence(struct sql_db *db, void *arg, struct err *e)
{
    struct presence_put *c = arg;
    const struct backend_presence *p = c->presence;
    int r = sql_exec(
        db, e,
        "INSERT INTO _presence (machine_id, user_email, hostname, app_name, online_at, instance, seen_mark, seen_ms, seen_at)"
        " VALUES (?1, ?2, ?3, ?4, coalesce(?5, " EMBEDDED_NOW "), ?6, boot_id() || ' ' || " EMBEDDED_NOW
        ", boot_ms(), " EMBEDDED_NOW ")"
        " ON CONFLICT (machine_id) DO UPDATE SET user_email = ?2, hostname = ?3, app_name = ?4, instance = ?6,"
        " online_at = coalesce(?5, online_at), " EMBEDDED_SIGN(
            "seen_at", "seen_mark",
            "seen_ms") " WHERE instance IS NULL OR ?6 IS NULL OR instance = ?6 OR " IS_GONE("?7"),
        "ssssssi", p->machine_id, p->user_email, p->hostname, p->app_name, p->online_at, p->instance, c->fresh_ms);

    return r < 0 || sql_changes(db) ? r : read_other(db, c, e);
}

int embedded_presence_put(struct backend *b, const struct backend_presence *p, int64_t fresh_ms, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct presence_put c = { .presence = p, .fresh_ms = fresh_ms, .arena = a };

    return writer_run(embedded_of(b)->writer, put_presence, &c, e);
}

struct machine {
    const char *id, *instance;
};

static int remove_presence(struct sql_db *db, void *arg, struct err *e)
{
    const struct machine *machine = arg;

    return sql_exec(db, e, "DELETE FROM _presence WHERE machine_id = ?1 AND instance IS ?2", "ss", machine->id,
                    machine->instance);
}

int embedded_presence_remove(struct backend *b, const char *machine_id, const char *instance, struct err *e)
{
    struct machine machine = { machine_id, instance };

    return writer_run(embedded_of(b)->writer, remove_presence, &machine, e);
}

static int read_presences(struct sql_rows *rows, struct arena *a, struct backend_presences *ret, struct err *e)
{
    struct backend_presences list = { .items = arena_array(a, LIMIT_LIST, sizeof(struct backend_presence)) };
    int r;

    while ((r = sql_step(rows, e)) > 0)
        list.items[list.n++] = (struct backend_presence){
            .machine_id = sql_text(rows, a, 0),
            .user_email = sql_text(rows, a, 1),
            .hostname = sql_text(rows, a, 2),
            .app_name = sql_text(rows, a, 3),
            .online_at = sql_text(rows, a, 4),
        };
    if (r == 0)
        *ret = list;
    return r;
}

int embedded_presence_list(struct backend *b, int64_t fresh_ms, struct arena *a, struct backend_presences *ret,
                           struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(readers_get(embedded_of(b)->readers), &rows, e,
                  "SELECT machine_id, user_email, hostname, app_name, online_at FROM _presence"
                  " WHERE NOT " IS_GONE("?1") " ORDER BY online_at, machine_id LIMIT ?2",
                  "ii", fresh_ms, (int64_t)LIMIT_LIST);
    return r < 0 ? r : read_presences(rows, a, ret, e);
}
