/* Rows of tables with columns of their own (backend/query.h), from the messages of the logical stream. One thread at a
 * time.
 *
 *     shape = postgres_record_shape_new(relation, &columns);
 *     row = postgres_record_row(shape, arena, table, &image);
 *     shape = postgres_record_shape_free(shape);
 */
#pragma once

#include "backend/backend.h"
#include "backend/postgres/pgoutput.h"
#include "backend/postgres/postgres_columns.h"

struct postgres_record_shape;

/* Of what the catalog does not know any more, the type is that of the message. */
struct postgres_record_shape *postgres_record_shape_new(const struct pgoutput_relation *relation,
                                                        const struct postgres_columns *columns) MUST_CHECK;
struct postgres_record_shape *postgres_record_shape_free(struct postgres_record_shape *s); /* NULL is fine */

struct postgres_record_image {
    const struct pgoutput_tuple *tuple;
    const struct pgoutput_tuple *old; /* has what the server did not send again; NULL: nothing has */
    bool is_key_only;                 /* the other columns are not known */
};

/* As backend_event describes it. NULL: a value is not known, or the record is too large for an event. */
const struct backend_row *postgres_record_row(const struct postgres_record_shape *s, struct arena *a, const char *table,
                                              const struct postgres_record_image *image);
