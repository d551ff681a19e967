/* The embedded backend: one SQLite file that several services may share, each as its own machine, and that other
 * programs may write. The caller closes it with backend_close().
 *
 *     r = backend_embedded_open(&(struct backend_embedded_config){ .path = path, .abbr = "svc" }, &backend, e);
 */
#pragma once

#include "backend/backend.h"

struct instance;
struct backend_embedded_config {
    const char *path;
    const char *abbr;          /* names the tables and functions */
    struct instance *instance; /* the owner of the file; NULL: no owner */
    int poll_ms; /* interval at which other processes' writes are looked for (PRAGMA data_version); 0: 50 */
};
int backend_embedded_open(const struct backend_embedded_config *c, struct backend **ret, struct err *e) MUST_CHECK;
/* Whether the file can be a backend's: a database that is not one of data_dir's own, or a new file in a folder that can
 * be written. -EINVAL BAD_SETTING. */
int backend_embedded_check(const char *path, const char *data_dir, struct err *e) MUST_CHECK;
/* Only refuses the databases of data_dir that are not the backend's. */
int backend_embedded_check_own(const char *path, const char *data_dir, struct err *e) MUST_CHECK;
