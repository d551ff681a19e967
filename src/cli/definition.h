/* The JSON files of `app add` and `agent add`: read, with a relative `working_dir` made absolute by the file's own folder, so that
 * a definition can lie beside its program wherever that is. The service itself takes absolute folders only.
 */
#pragma once

#include "cli/command.h"

/* Text that is no JSON object is handed on as it is: the service says what is wrong with it. */
int definition_read(struct cli *cli, const char *path, struct slice *ret, struct err *e) MUST_CHECK;
