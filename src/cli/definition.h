/* Reads the JSON files of `app add` and `agent add`, and makes a relative `working_dir` absolute by the file's folder,
 * so that a definition can lie beside its program in any folder. The service itself accepts only absolute folders.
 */
#pragma once

#include "cli/command.h"

/* Text that is no JSON object is passed on unchanged: the service reports the mistake. */
int definition_read(struct cli *cli, const char *path, struct slice *ret, struct err *e) MUST_CHECK;
/* The service refused the definition in this file: puts its name before a reason that names no field. Returns r. */
int definition_refused(const char *path, int r, struct err *e);
