/* The user on whose behalf an app reaches its rows (specification, "Activities (proxy to the backend)"). On a worker.
 */
#pragma once

#include "api/route.h"

/* NULL for a caller without a user: only apps that require user authentication have one. The user is told by a token
 * that was signed for this machine (docs/offline-face.md); the token of another service names nobody here, and its app
 * sees its rows as without the setting. -EPERM BACKEND_TOKEN_REQUIRED without a token or with an anonymous one; -EACCES
 * JWT_EXPIRED, JWT_NOT_YET. */
int activity_user(struct request *req, const char **ret, struct err *e) MUST_CHECK;
