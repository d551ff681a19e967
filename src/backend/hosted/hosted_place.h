/* The row `hosted` of backend_providers.c: a backend as the settings and the sealed keys say. Any thread. */
#pragma once

#include "backend/backend_providers.h"

/* Errors of hosted_project_read() and backend_hosted_open(). */
int hosted_place_open(const struct backend_place *place, struct arena *a, struct backend **ret,
                      struct err *e) MUST_CHECK;
/* Of backend.project: -EINVAL BAD_SETTING. */
int backend_hosted_check(const char *url, const char *data_dir, struct err *e) MUST_CHECK;
