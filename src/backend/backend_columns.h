/* The columns of a backend row, defined once for every implementation: their names in tables and JSON, and their
 * members in struct backend_row. Constant; any thread.
 *
 *     for (size_t i = 0; i < BACKEND_N_COLUMNS; i++)
 *         backend_row_set_text(&row, &backend_columns[i], text_of(i));
 */
#pragma once

#include "backend/backend.h"

enum backend_column_kind { COLUMN_TEXT, COLUMN_TIME, COLUMN_JSON, COLUMN_INT, COLUMN_BOOL, COLUMN_EVENT };

struct backend_column {
    const char *name;
    enum backend_column_kind kind;
    size_t offset; /* of the member of struct backend_row */
    bool is_slim;  /* part of every event, also of events that changed the lease only */
};

enum { BACKEND_N_COLUMNS = 18 };
extern const struct backend_column backend_columns[BACKEND_N_COLUMNS];

const struct backend_column *backend_column_find(struct slice name); /* NULL: no such column */
bool backend_column_is_text(const struct backend_column *c);         /* the member is a const char * */
const char *backend_row_text(const struct backend_row *row, const struct backend_column *c);
int64_t backend_row_int(const struct backend_row *row, const struct backend_column *c);
/* The text of a text column (borrowed), or the name of an event. */
void backend_row_set_text(struct backend_row *row, const struct backend_column *c, const char *text);
void backend_row_set_int(struct backend_row *row, const struct backend_column *c, int64_t value);
/* An unknown name that another program wrote counts as INSERT, the first event of a row. */
enum backend_op backend_op_of_name(const char *name);
/* A copy whose texts are in the arena. */
void backend_row_copy(struct arena *a, const struct backend_row *from, struct backend_row *to);
