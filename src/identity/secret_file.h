/* A file of the data folder that holds one secret, sealed under <data>/master.key (0600; identity/seal.h). Any thread.
 *
 *     r = secret_file_write(data_dir, "backend.password", bytes, e);
 *     r = secret_file_read(data_dir, "backend.password", 8192, arena, &bytes, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* max: bytes of the secret. *ret: {NULL, 0} when there is no such file. -EFBIG; -EBADMSG UNSEAL_FAILED when it was
 * sealed under another key. */
int secret_file_read(const char *data_dir, const char *name, size_t max, struct arena *a, struct slice *ret,
                     struct err *e) MUST_CHECK;
int secret_file_write(const char *data_dir, const char *name, struct slice secret, struct err *e) MUST_CHECK;
