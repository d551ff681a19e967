/* The set-up of a project of the hosted service through its management API, for the provider's row of
 * backend_providers.c. The steps are SQL that may be run again; each is one request. A step that fails is named, and
 * the set-up may be repeated.
 */
#pragma once

#include "backend/backend_providers.h"

/* The whole as one text for the project's SQL editor or psql. */
char *hosted_setup_text(const struct backend_place *place, const struct backend_setup *setup, struct arena *a);
/* -EACCES STORE_DENIED "Access Denied": the account may not write to the project. */
int hosted_setup_run(const struct backend_place *place, const struct backend_setup *setup, struct arena *a,
                     struct err *e);
int hosted_setup_lacks(const struct backend_place *place, const struct backend_setup *setup, struct arena *a,
                       struct backend_lacks *ret, struct err *e);
