/* Objects of a JSON array as aligned columns for a person. Pure. */
#pragma once

#include "cli/command.h"

struct table_form {
    size_t width; /* of the terminal: columns are left out and cells are cut until a line fits; 0: any */
    bool is_wide; /* cells are never cut */
};

/* A heading, then one line per object; columns are as wide as their widest cell, in characters. Characters that control
 * a terminal are escaped (base/visible.h). */
void table_print(struct buf *out, struct json_value list, const struct cli_column *columns,
                 const struct table_form *form);
/* The text of one cell: "-" for an absent value. */
char *table_cell(struct arena *a, struct json_value object, const struct cli_column *column);
/* `label: value` lines of one object, members in their order, nested values as JSON. */
void table_print_object(struct buf *out, struct json_value object);
