/* Chooses which connection is closed when the service has its maximum of connections, and reserves places for the
 * administrator.
 *
 * Loop thread only. A new connection replaces an older connection that does no work: the oldest that has its last
 * answer, else the oldest that never sent a request, else the oldest in the middle of a head, else the oldest idle
 * between requests (RFC 9112 section 9.5 lets a server close those). So silent connections, however many, cannot block
 * others. While every connection is at work, LIMIT_RESERVED_CONNECTIONS more are accepted, on which only the
 * administrator is served. The Unix socket has places and a descriptor of its own.
 */
#pragma once

#include "http/server_state.h"

struct http_connection;

/* Admits and counts the connection; false: there is no place left. */
bool http_crowd_enter(struct http_server *s, struct http_connection *c) MUST_CHECK;
void http_crowd_leave(struct http_server *s, struct http_connection *c);
/* Closes one idle connection to free its descriptor. False: there is none. */
bool http_crowd_give_way(struct http_server *s, bool is_unix);
/* The number of TCP connections for which the process has descriptors, at most `wanted`. */
size_t http_crowd_maximum(size_t wanted);

/* Opens the spare descriptor reserved for the Unix socket. */
void http_spare_keep(struct http_server *s);
bool http_spare_give_up(struct http_server *s);
