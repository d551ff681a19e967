/* Changes a setting that is kept in the database, for every route that does so: checks, audits, stores, applies. */
#pragma once

#include "api/route.h"

/* text NULL: removes the stored value. -EINVAL BAD_SETTING. */
int setting_change(const struct request *req, const char *key, const char *text, struct err *e) MUST_CHECK;
