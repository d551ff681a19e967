#include "store/sql_private.h"

#include "base/clock.h"

#include <sqlite3.h>

static void report_boot_id(sqlite3_context *context, int n, sqlite3_value **values)
{
    sqlite3_result_text(context, clock_boot_id(), -1, SQLITE_STATIC);
}

static void report_boot_ms(sqlite3_context *context, int n, sqlite3_value **values)
{
    sqlite3_result_int64(context, clock_boot_ms());
}

int sql_add_clock(struct sqlite3 *db)
{
    int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY, code;

    code = sqlite3_create_function(db, "boot_id", 0, flags | SQLITE_DETERMINISTIC, NULL, report_boot_id, NULL, NULL);
    return code == SQLITE_OK ? sqlite3_create_function(db, "boot_ms", 0, flags, NULL, report_boot_ms, NULL, NULL)
                             : code;
}
