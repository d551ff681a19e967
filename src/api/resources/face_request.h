/* Who sent a request to the face (docs/offline-face.md): an app with a key of `hearth backend keys`, and the user who
 * signed in. On a worker. */
#pragma once

#include "api/route.h"
#include "face/caller.h"

/* The key: apikey_in_query (may be NULL or ""), or the header apikey or x-api-key; NULL: none. */
const char *face_request_key(const struct request *req, const char *apikey_in_query);
/* -ENOTSUP NOT_SERVING, -ENOENT FACE_OFF. */
int face_request_need(const struct request *req, struct err *e) MUST_CHECK;
/* The same, and as face_caller_of_request(). */
int face_request_caller(const struct request *req, const char *apikey_in_query, struct face_caller *ret,
                        struct err *e) MUST_CHECK;
