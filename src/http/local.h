/* An exchange without a socket: the command line and tests call the handlers directly.
 *
 *     struct http_exchange *x = http_local_new(HTTP_POST, "/api/keys", "", body);
 *     dispatch(x);
 *     http_local_wait(x, &status, &reply);    then http_local_free(x)
 */
#pragma once

#include "http/http.h"

struct http_exchange *http_local_new(enum http_method method, const char *path, const char *query,
                                     struct slice json_body) MUST_CHECK;
/* Waits for the answer; the reply is borrowed from the exchange. A streamed answer is collected whole. */
void http_local_wait(struct http_exchange *x, int *ret_status, struct slice *ret_reply);
struct http_exchange *http_local_free(struct http_exchange *x);
