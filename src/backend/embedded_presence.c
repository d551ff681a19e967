#include "backend/embedded.h"
#include "base/limits.h"

/* online_at is when the machine came; seen_at, renewed by every put, says whether it is still there. */
static int put_presence(struct sql_db *db, void *arg, struct err *e)
{
    const struct backend_presence *p = arg;

    return sql_exec(db, e,
                    "INSERT INTO _presence (machine_id, user_email, hostname, app_name, online_at)"
                    " VALUES (?1, ?2, ?3, ?4, coalesce(?5, " EMBEDDED_NOW "))"
                    " ON CONFLICT (machine_id) DO UPDATE SET user_email = ?2, hostname = ?3, app_name = ?4,"
                    " online_at = coalesce(?5, online_at), seen_at = " EMBEDDED_NOW,
                    "sssss", p->machine_id, p->user_email, p->hostname, p->app_name, p->online_at);
}

int embedded_presence_put(struct backend *b, const struct backend_presence *p, struct err *e)
{
    struct backend_presence copy = *p;

    return writer_run(embedded_of(b)->writer, put_presence, &copy, e);
}

struct machine { const char *id; };

static int remove_presence(struct sql_db *db, void *arg, struct err *e)
{
    const struct machine *machine = arg;

    return sql_exec(db, e, "DELETE FROM _presence WHERE machine_id = ?", "s", machine->id);
}

int embedded_presence_remove(struct backend *b, const char *machine_id, struct err *e)
{
    struct machine machine = { machine_id };

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
    char modifier[EMBEDDED_MODIFIER_SIZE];
    int r;

    embedded_modifier(fresh_ms, modifier);
    r = sql_query(readers_get(embedded_of(b)->readers), &rows, e,
                  "SELECT machine_id, user_email, hostname, app_name, online_at FROM _presence"
                  " WHERE seen_at >= " EMBEDDED_BEFORE("?1") " ORDER BY online_at, machine_id LIMIT ?2",
                  "si", modifier, (int64_t)LIMIT_LIST);
    return r < 0 ? r : read_presences(rows, a, ret, e);
}
