/* Rows as the outbox and the logical stream hold them. Pure; any thread.
 *
 *     r = postgres_event_row_read(a, image, "orders", &row, e);
 */
#pragma once

#include "backend/backend.h"

/* A JSON object of columns in which a JSON column is a text; absent members stay NULL or 0, others are ignored. -EINVAL
 * when it is no such object. */
int postgres_event_row_read(struct arena *a, struct slice image, const char *table, struct backend_row *ret,
                            struct err *e) MUST_CHECK;
