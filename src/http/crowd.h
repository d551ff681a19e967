/* When the service has as many connections as it allows: who gives way, and what is kept for the administrator.
 *
 * Loop thread only. A newcomer takes the place of the connection that has longest been of no use to anybody: one that has its last answer, one
 * that never sent a request, one that is still in a head, one that is idle between requests (RFC 9112 section 9.5 lets a server close
 * those). So silent connections, however many, keep nobody out. While every connection is at work, LIMIT_RESERVED_CONNECTIONS more are
 * accepted, in which only the administrator is served. The Unix socket has places and a descriptor of its own.
 */
#pragma once

#include "http/server_state.h"

struct http_connection;

/* Counts the connection in; false: there is no place for it at all. */
bool http_crowd_enter(struct http_server *s, struct http_connection *c) MUST_CHECK;
void http_crowd_leave(struct http_server *s, struct http_connection *c);
/* Closes one connection of no use, so that its descriptor is free. False: there is none. */
bool http_crowd_give_way(struct http_server *s, bool is_unix);
/* How many TCP connections the process has descriptors for, at most `wanted`. */
size_t http_crowd_maximum(size_t wanted);

/* The descriptor kept for the Unix socket. */
void http_spare_keep(struct http_server *s);
bool http_spare_give_up(struct http_server *s);
