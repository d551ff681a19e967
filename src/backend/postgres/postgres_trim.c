#include "backend/postgres/postgres.h"
#include "base/clock.h"

enum { TRIM_EVERY_MS = 600000 };

/* Most of this work has no listener at all. Rows that another service removes at this moment are left to it. */
static const char trim_sql[] =
    "DELETE FROM {deletions} WHERE id IN (SELECT id FROM {deletions}"
    " WHERE status NOT IN ({leased}) AND created_at < {now} - interval '7 days' ORDER BY created_at LIMIT 2000"
    " FOR UPDATE SKIP LOCKED)";

int postgres_trim(struct postgres *pg, struct err *e)
{
    int64_t due_ms = atomic_load(&pg->trim_at_ms), now_ms = clock_mono_ms();
    struct postgres_call c = { .repeat = POSTGRES_REPEATABLE };

    if (now_ms < due_ms || !atomic_compare_exchange_strong(&pg->trim_at_ms, &due_ms, now_ms + TRIM_EVERY_MS))
        return 0;
    c.sql = postgres_sql(postgres_table_deletions(pg->tables), trim_sql);
    return postgres_call(pg, &c, e);
}
