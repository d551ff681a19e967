/* From an exchange to an answer: the server, the Unix socket and the command line reach handlers only through dispatch.
 */
#pragma once

#include "api/route.h"
#include "base/pool.h"

struct dispatch;
struct foreign_clients;

struct dispatch_config {
    struct api *api;                   /* handed to handlers */
    const struct route *const *tables; /* NULL-ended list of route tables (api/routes.h) */
    struct settings *settings;
    struct identity *identity;
    struct pool *short_pool, *long_pool; /* NULL: handlers run in the calling thread (command line without a service) */
    struct loop *loop;                   /* where large requests wait for memory; NULL: they do not wait */
};

/* Checks every row (permission known, handler there, fields complete, no path twice): -EINVAL names the row. */
int dispatch_open(const struct dispatch_config *c, struct dispatch **ret, struct err *e) MUST_CHECK;
struct dispatch *dispatch_close(struct dispatch *d);
/* Takes over the exchange. For http_server_config.on_request (loop thread, after dispatch_head()) and for local
 * exchanges. */
void dispatch_request(struct dispatch *d, struct http_exchange *x);
/* For http_server_config.on_head: checks Host, Origin, route, caller and the caller's budgets before a body is read. */
bool dispatch_head(struct dispatch *d, struct http_exchange *x, size_t *ret_max_body);
/* For http_server_config.on_refused: metrics and one log line. */
void dispatch_refused(struct dispatch *d, const char *request_id, int status, const char *code);
/* For http_server_config.write_refusal: writes the error in the form of the routes of this path. */
void dispatch_write_refusal(struct dispatch *d, struct http_exchange *x, const struct err *why, int status,
                            struct buf *out);
/* Adds an address that the service has bound: its pages are the service's own. Call before the first request. */
void dispatch_add_address(struct dispatch *d, const char *address, uint16_t port);
/* Clients that use another product word; owned by dispatch. */
struct foreign_clients *dispatch_foreign_clients(const struct dispatch *d);
/* Every row once for each of its paths (aliases included), for `hearth routes` and OpenAPI. */
void dispatch_each_route(const struct dispatch *d, void (*fn)(const struct route *r, const char *path, void *arg),
                         void *arg);
