/* The options of `hearth mcp add` that say how to log in. */
#pragma once

#include "cli/command.h"

/* Adds the option's value, when it was given. */
void mcp_add_given(struct cli *cli, struct json_writer *w, const char *option, const char *name);
/* Adds the members of a login; reads the file with the key. Errors of cli_read_file(). */
int mcp_add_login(struct cli *cli, struct json_writer *w, struct err *e) MUST_CHECK;
