/* Rows of a backend's database through their reader: each line is a row (fuzz_rows.h). */
#include "fuzz_rows.h"

#include "backend/backend_columns.h"
#include "backend/postgres/postgres.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_row(const struct backend_row *row)
{
    assert(row->id && row->status && row->raw_data && row->created_at && row->attempted_by);
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++)
        if (backend_column_is_text(&backend_columns[i]) && backend_row_text(row, &backend_columns[i]))
            (void)strlen(backend_row_text(row, &backend_columns[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice rest = { (const char *)bytes, n };
    struct postgres_call c = { 0 };
    struct postgres_reader reader;
    struct pg_statement st;
    struct pg_tally tally = { 0 };
    int r = 0;

    postgres_read_into(&c, &reader, "svc_activities", a, 100);
    st = (struct pg_statement){ .n_columns = c.n_columns, .max_rows = c.max_rows, .on_row = c.on_row, .arg = c.arg };
    while (r == 0 && rest.n > 0) {
        PGresult *row = row_of(take_until(&rest, '\n'));

        r = pg_row_take((const struct pg_row *)row, &st, &tally, NULL);
        PQclear(row);
    }
    for (size_t i = 0; i < reader.rows.n; i++)
        check_row(&reader.rows.items[i]);
    return 0;
}
