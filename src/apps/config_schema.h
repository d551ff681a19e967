/* Tables with columns of their own in an app's configuration: config.backend.schema. Such a table holds the app's data;
 * it is made when the app is registered, and rows of it are no work. Pure but for app_schema_declare(); any thread.
 *
 *     "schema": { "orders": { "columns": { "id": { "type": "uuid", "key": true, "default": "gen_random_uuid()" } } } }
 *
 *     r = app_schema_read(arena, config->backend.schema, "config.backend.schema", &shapes, e);
 */
#pragma once

#include "apps/config.h"
#include "backend/query.h"

struct app_schema {
    struct table_shape *tables; /* in the arena */
    size_t n;
};

/* Adds every table's first violation to e, with its path: config.backend.schema.orders.columns.id.type. */
int app_schema_read(struct arena *a, struct json_value schema, const char *path, struct app_schema *ret,
                    struct err *e) MUST_CHECK;
/* Makes the tables that are missing. */
int app_schema_declare(struct backend *b, const struct app_config *config, struct err *e) MUST_CHECK;
