/* What is the embedded provider's own: SQL on its file. The rig is that of the contract, on the first fixture.
 *
 *     struct rig *rig = *state;             with cmocka_unit_test_setup_teardown(test, rig_open, rig_close)
 */
#pragma once

#include "contract.h"

static inline const struct folder *rig_folder(struct rig *rig)
{
    return rig->place;
}

/* SQL on a connection that is not the backend's. */
static inline void rig_sql(struct rig *rig, const char *sql)
{
    struct sql_db *db = NULL;
    struct err e = { 0 };

    must(sql_open(rig_folder(rig)->file, NULL, &db, &e), &e);
    must(sql_script(db, "PRAGMA trusted_schema = ON; PRAGMA synchronous = OFF", &e), &e);
    must(sql_script(db, sql, &e), &e);
    sql_close(db);
}

static inline int64_t rig_number(struct rig *rig, const char *sql)
{
    struct sql_rows *rows = NULL;
    struct sql_db *db = NULL;
    struct err e = { 0 };
    int64_t n;

    must(sql_open(rig_folder(rig)->file, &(struct sql_options){ .is_readonly = true }, &db, &e), &e);
    must(sql_query_text(db, &rows, &e, sql, NULL), &e);
    assert_int_equal(sql_step(rows, &e), 1);
    n = sql_int(rows, 0);
    sql_rows_endp(&rows);
    sql_close(db);
    return n;
}
