/* The HTTP/1.1 server on the loop.
 *
 * Connections are libevent events on non-blocking sockets; the bytes are read by one strict parser (http/head.h, chunked.h).
 * It refuses every doubt: duplicate or signed Content-Length, Content-Length with Transfer-Encoding, a space before the
 * colon, folded headers, control bytes, bare line feeds, a head above its limits, a body above the limit of its route,
 * a head or a body that takes too long (RFC 9112 sections 5, 6, 11.2). Each refusal is the JSON envelope with x-request-id.
 * Started and stopped on the loop thread (or before it runs).
 */
#pragma once

#include "base/loop.h"
#include "http/http.h"

struct http_server;

enum { HTTP_PACE_MS = 10000 };

struct http_server_config {
    int head_timeout_ms;                /* first byte of a head to its end: default 10000 */
    int body_timeout_ms;                /* end of head to the whole body, which keeps a pace of LIMIT_PACE_BYTES in HTTP_PACE_MS: default 30000 */
    int idle_timeout_ms;                /* between requests of one connection: default 75000 */
    int write_timeout_ms;               /* a client takes no byte of its answer: default 60000 */
    int comment_every_ms;               /* silence of an event stream: default 15000 */
    size_t max_connections;             /* over TCP; default LIMIT_CONNECTIONS, and fewer when the process may not open so many files */
    /* A head is complete and nothing of its body is read yet: may this request go on, and with how large a body? False: x->response is the
     * answer, sent at once. Called on the loop; must not block, must not send. */
    bool (*on_head)(void *arg, struct http_exchange *x, size_t *ret_max_body);
    /* One whole request has arrived. Called on the loop; must not block. Owns x until it is sent or streamed. */
    void (*on_request)(void *arg, struct http_exchange *x);
    /* A request was refused before it became an exchange (for metrics and one log line). */
    void (*on_refused)(void *arg, const char *request_id, int status, const char *code);
    /* Writes the body of a refusal whose target is known; nothing: the envelope. May be NULL. */
    void (*write_refusal)(void *arg, struct http_exchange *x, const struct err *e, int status, struct buf *out);
    /* May this process use the Unix socket? NULL: every one of this user and of root. */
    bool (*may_use_socket)(void *arg, pid_t pid);
    void *arg;
};

int http_server_start(struct loop *l, const struct http_server_config *c, struct http_server **ret, struct err *e) MUST_CHECK;
/* address "127.0.0.1", "::1", "0.0.0.0"; port 0 picks one. May be called several times. */
int http_server_listen(struct http_server *s, const char *address, uint16_t port, uint16_t *ret_port, struct err *e) MUST_CHECK;
/* Unix socket made with mode 0600; a connection of another uid (SO_PEERCRED) than ours or root is closed at once. */
int http_server_listen_unix(struct http_server *s, const char *path, struct err *e) MUST_CHECK;
/* Takes over a TCP socket that is bound and perhaps listening already, e.g. in the network namespace of a child. tag, not 0, says
 * whose it is: requests that arrive through it carry it in http_peer.tag. Loop thread. */
int http_server_listen_fd(struct http_server *s, int fd, uint64_t tag, struct err *e) MUST_CHECK;
/* Its owner has ended: closes the listeners of this tag and the connections they accepted. Loop thread. */
void http_server_unlisten(struct http_server *s, uint64_t tag);
/* Stops accepting; idle connections are closed; running exchanges go on, with `connection: close`. */
void http_server_drain(struct http_server *s);
size_t http_server_in_flight(const struct http_server *s);      /* exchanges not yet ended, streams included */
size_t http_server_connections(const struct http_server *s);
/* Closes everything; exchanges still with workers become gone and their answers are dropped safely when they come. */
struct http_server *http_server_stop(struct http_server *s);
