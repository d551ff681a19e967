/* What a request brings, read by its route's row: who asks and may they, then query and body into the row's structs. Of dispatch (api/dispatch.h)
 * alone, in this order; on a worker, or on the loop for ROUTE_INLINE. */
#pragma once

#include "api/route.h"
#include "identity/claim.h"

/* Who it is, and whether they may use the route at all: uses up no grant. -EACCES, -EPERM; PERM_BODY routes have their JSON read first. */
int request_read_caller(struct identity *id, struct request *req, struct caller *caller, struct err *e) MUST_CHECK;
/* Who pays, from the head alone: memory only, for the loop. -EACCES when the route needs a caller and the headers name none that is known. */
int request_read_claim(struct identity *id, const struct route *route, struct http_exchange *x, struct claim *ret, struct err *e) MUST_CHECK;
/* Does knowing who it is take milliseconds: not on the loop. */
bool request_has_to_wait(struct identity *id, const struct http_exchange *x);
/* Into req->query and req->body. -EINVAL VALIDATION_ERROR, INVALID_JSON. */
int request_read_query(struct request *req, struct err *e) MUST_CHECK;
int request_read_body(struct request *req, struct err *e) MUST_CHECK;
/* Last before the handler, so that a request refused for its query or body spends no grant and no confirmation. -EPERM. */
int request_take_permission(struct identity *id, const struct request *req, const struct caller *caller, struct err *e) MUST_CHECK;
