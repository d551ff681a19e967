/* Rows as the outbox holds them: the texts of backend_columns in their order. Pure; any thread.
 *
 *     const struct postgres_event_image image = { .json = text, .table = "orders" };
 *     r = postgres_event_row_read(a, &image, &row, e);
 */
#pragma once

#include "backend/backend.h"

struct postgres_event_image {
    struct slice json; /* an array of texts and nulls */
    const char *table; /* borrowed by the row */
};

/* -EINVAL INVALID_JSON when it is no such array: another number of elements, no text, or no id or status. */
int postgres_event_row_read(struct arena *a, const struct postgres_event_image *image, struct backend_row *ret,
                            struct err *e) MUST_CHECK;
