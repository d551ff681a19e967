/* What is started for an app, as one JSON text: grants are decided for it and hold as long as it is the same (store/grants.h).
 *
 * Names of variables, not their values: those hold secrets and change. Pure; the text lands in the arena.
 */
#pragma once

#include "apps/config.h"

const char *app_command_text(struct arena *a, const struct app_config *c);
