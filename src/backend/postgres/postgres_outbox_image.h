/* How the outbox holds a row: as two composite values. `lease` has what every event tells; `rest` has what may be
 * large, and is NULL where only the lease changed or the row is too large. The writer stores the columns as they are,
 * which costs it half of what their texts do; the reader's statement makes the texts. Pure; any thread.
 *
 *     postgres_image_put_fields(out, POSTGRES_IMAGE_LEASE);              id text, app_id text, ...
 *     postgres_image_put_row(out, POSTGRES_IMAGE_LEASE, 'n');            ROW(n.id::text, n.app_id, ...)
 *     postgres_image_put_record(out, POSTGRES_IMAGE_REST, 'n');          the same of a record as JSON
 *     postgres_image_put_texts(out, "new");                              texts in the order of backend_columns
 */
#pragma once

#include "base/buf.h"

enum postgres_image_part { POSTGRES_IMAGE_LEASE, POSTGRES_IMAGE_REST };

/* The fields of the composite type. */
void postgres_image_put_fields(struct buf *out, enum postgres_image_part part);
/* Of the row of a table with work that has this alias. */
void postgres_image_put_row(struct buf *out, enum postgres_image_part part, char row);
/* Of a variable `o` or `n` of the type jsonb; the names of the key's columns are the arguments of the trigger. */
void postgres_image_put_record(struct buf *out, enum postgres_image_part part, char record);
/* Of the columns <side> and <side>_rest of the row `o` of the outbox; NULL where one is missing. */
void postgres_image_put_texts(struct buf *out, const char *side);
