/* Changing a setting that is kept in the database, for every route that does: checked, audited, stored, taken. */
#pragma once

#include "api/route.h"

/* text NULL: removes it there. -EINVAL BAD_SETTING. */
int setting_change(const struct request *req, const char *key, const char *text, struct err *e) MUST_CHECK;
