/* The password of the backend's database: <data>/backend.password, sealed under <data>/master.key. Any thread.
 *
 *     r = backend_password_write(data_dir, "secret", e);
 *     r = backend_password_read(data_dir, arena, &password, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* *ret NULL: none is kept. -EBADMSG UNSEAL_FAILED when it was sealed under another key. */
int backend_password_read(const char *data_dir, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
int backend_password_write(const char *data_dir, const char *password, struct err *e) MUST_CHECK;
