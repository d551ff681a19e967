/* Rows of events, as the outbox tells them. */
#include "backend/postgres/postgres_event_row.h"
#include "backend/backend_columns.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct postgres_event_image image = { .json = { (const char *)bytes, n }, .table = "t" };
    struct backend_row row = { 0 };
    size_t n_text = 0;

    if (postgres_event_row_read(a, &image, &row, NULL) < 0)
        return 0;
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++)
        if (backend_column_is_text(&backend_columns[i]) && backend_row_text(&row, &backend_columns[i]))
            n_text += strlen(backend_row_text(&row, &backend_columns[i]));
    return n_text > SIZE_MAX / 2;
}
