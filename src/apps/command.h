/* The program that is started for an app, as one JSON text: grants are decided for this text and hold as long as the
 * text stays the same (store/tables/grants.h).
 *
 * Has the names of variables but not their values, because values hold secrets and change. Pure; the text is in the
 * arena.
 */
#pragma once

#include "apps/config.h"

const char *app_command_text(struct arena *a, const struct app_config *c);
