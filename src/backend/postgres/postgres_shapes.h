/* The shapes of tables with columns of their own, kept for a moment: one request of the face asks for the shape of its
 * table more than once, and a busy table's shape is read a few times a second instead of with every request. Another
 * program may change a table at any time, so a kept shape is only believed for LIMIT_BACKEND_SHAPE_MS, and a statement
 * that fails with one is tried again with the shape as it is now. Of more than LIMIT_BACKEND_SHAPES the oldest is
 * dropped. Any thread.
 */
#pragma once

#include "backend/query.h"

struct postgres_shapes;
struct postgres_shapes *postgres_shapes_new(void);
struct postgres_shapes *postgres_shapes_free(struct postgres_shapes *s); /* NULL is fine; returns NULL */
/* False: none is kept, or it is too old. *ret is copied into the arena. */
bool postgres_shapes_find(struct postgres_shapes *s, const char *table, struct arena *a, struct table_shape *ret);
/* began_ms: clock_mono_ms() before the shape was read. Copies the shape, unless one was forgotten since: what was read
 * may be older than that. */
void postgres_shapes_keep(struct postgres_shapes *s, const struct table_shape *shape, int64_t began_ms);
void postgres_shapes_forget(struct postgres_shapes *s, const char *table);
