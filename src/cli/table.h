/* Objects of a JSON array as aligned columns for a person. Pure. */
#pragma once

#include "cli/command.h"

/* A heading, then one line an object; columns are as wide as their widest cell, in characters. What would steer a terminal is escaped (base/visible.h). */
void table_print(struct buf *out, struct json_value list, const struct cli_column *columns);
/* One cell's text: "-" for what is absent. */
char *table_cell(struct arena *a, struct json_value object, const struct cli_column *column);
/* `label: value` lines of one object, members in their order, nested values as JSON. */
void table_print_object(struct buf *out, struct json_value object);
