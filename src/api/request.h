/* Reads a request by its route's row: the caller and its permission, then query and body into the row's structs. For
 * dispatch (api/dispatch.h) only, in this order; on a worker, or on the loop for ROUTE_INLINE. */
#pragma once

#include "api/route.h"
#include "identity/claim.h"

/* Who the caller is, and whether it may use the route at all; uses up no grant. -EACCES, -EPERM. PERM_BODY routes have
 * their JSON read before this. */
int request_read_caller(struct identity *id, struct request *req, struct caller *caller, struct err *e) MUST_CHECK;
/* Who pays, from the head alone; reads memory only, for the loop. -EACCES when the route needs a caller and the headers
 * name no known caller. */
int request_read_claim(struct identity *id, const struct route *route, struct http_exchange *x, struct claim *ret,
                       struct err *e) MUST_CHECK;
/* Does identifying the caller take milliseconds, so that it must not happen on the loop? */
bool request_has_to_wait(struct identity *id, const struct http_exchange *x);
/* May this request be handled on the loop (route.tries_loop)? */
bool request_suits_loop(const struct route *route, const struct http_exchange *x, const struct claim *claim);
/* Into req->query and req->body. -EINVAL VALIDATION_ERROR, INVALID_JSON. */
int request_read_query(struct request *req, struct err *e) MUST_CHECK;
int request_read_body(struct request *req, struct err *e) MUST_CHECK;
/* The last step before the handler, so that a request refused for its query or body uses up no grant and no
 * confirmation. -EPERM. */
int request_take_permission(struct identity *id, const struct request *req, const struct caller *caller,
                            struct err *e) MUST_CHECK;
