/* The rows that a caller of the activities reaches, and with whose rights (specification, "Activities (proxy to the
 * backend)"). On a worker.
 */
#pragma once

#include "api/route.h"

struct activity_rows {
    struct backend *backend;
    const char *table; /* of activities */
    const char *user;  /* only rows of this user; NULL: of any */
};

/* A developer key without an app and the administrator have the rights of the service. An app has those of the user
 * whose backend token it has synchronised when it requires user authentication. A place that knows users itself (the
 * hosted service) judges the token, and other apps are anonymous there. Elsewhere the user is told by a token that was
 * signed for this machine (docs/offline-face.md); a token of another service names nobody, and its app sees its rows as
 * without the setting. -EPERM BACKEND_TOKEN_REQUIRED without a token or with an anonymous one; -EACCES JWT_EXPIRED,
 * JWT_NOT_YET; -EINVAL MALFORMED_JWT. */
int activity_rows(struct request *req, struct activity_rows *ret, struct err *e) MUST_CHECK;
