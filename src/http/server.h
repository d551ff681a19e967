/* The HTTP/1.1 server on the loop.
 *
 * Connections are libevent events on non-blocking sockets; the bytes are read by one strict parser (http/head.h,
 * chunked.h). The parser refuses everything ambiguous: duplicate or signed Content-Length, Content-Length with
 * Transfer-Encoding, a space before the colon, folded headers, control bytes, bare line feeds, a head above its limits,
 * a body above the limit of its route, a head or a body that takes too long (RFC 9112 sections 5, 6, 11.2). Each
 * refusal is the JSON envelope with x-request-id. Started and stopped on the loop thread (or before it runs).
 */
#pragma once

#include "base/loop.h"
#include "http/http.h"

struct http_server;

enum { HTTP_PACE_MS = 10000 };

struct http_server_config {
    int head_timeout_ms;   /* first byte of a head to its end: default 10000 */
    int body_timeout_ms;   /* from the end of the head to the end of the body, which must arrive at LIMIT_PACE_BYTES in
                              each HTTP_PACE_MS: default 30000 */
    int idle_timeout_ms;   /* between requests of one connection: default 75000 */
    int write_timeout_ms;  /* a client accepts no byte of its answer: default 60000 */
    int socket_silence_ms; /* a WebSocket whose client sends nothing is closed: default 60000 */
    int comment_every_ms;  /* silence of an event stream: default 15000 */
    size_t
        max_connections; /* over TCP; default LIMIT_CONNECTIONS, fewer when the process may not open that many files */
    /* A head is complete and its body not yet read: decides whether the request may continue and how large its body may
     * be. False: x->response is the answer, sent immediately. Called on the loop; must not block, must not send. */
    bool (*on_head)(void *arg, struct http_exchange *x, size_t *ret_max_body);
    /* A complete request has arrived. Called on the loop; must not block. The callee owns x until it is sent or
     * streamed. */
    void (*on_request)(void *arg, struct http_exchange *x);
    /* A request was refused before it became an exchange (for metrics and one log line). */
    void (*on_refused)(void *arg, const char *request_id, int status, const char *code);
    /* Writes the body of a refusal whose target is known; when it writes nothing, the envelope is sent. May be NULL. */
    void (*write_refusal)(void *arg, struct http_exchange *x, const struct err *e, int status, struct buf *out);
    /* Whether this process may use the Unix socket. NULL: every process of this user and of root may. */
    bool (*may_use_socket)(void *arg, pid_t pid);
    void *arg;
};

int http_server_start(struct loop *l, const struct http_server_config *c, struct http_server **ret,
                      struct err *e) MUST_CHECK;
/* address "127.0.0.1", "::1", "0.0.0.0"; port 0 picks one. May be called several times. */
int http_server_listen(struct http_server *s, const char *address, uint16_t port, uint16_t *ret_port,
                       struct err *e) MUST_CHECK;
/* Unix socket made with mode 0600; a connection from a uid (SO_PEERCRED) other than ours or root is closed
 * immediately. */
int http_server_listen_unix(struct http_server *s, const char *path, struct err *e) MUST_CHECK;
/* Takes ownership of a TCP socket that is bound and perhaps listening already, for example in the network namespace of
 * a child. tag, not 0, identifies its owner: requests that arrive through the socket carry the tag in http_peer.tag.
 * Loop thread. */
int http_server_listen_fd(struct http_server *s, int fd, uint64_t tag, struct err *e) MUST_CHECK;
/* The owner of the tag has ended: closes the listeners of this tag and the connections they accepted. Loop thread. */
void http_server_unlisten(struct http_server *s, uint64_t tag);
/* Stops accepting; idle connections are closed, in several turns of the loop; running exchanges go on, with
 * `connection: close`. */
void http_server_drain(struct http_server *s);
/* Closes up to LIMIT_CLOSED_A_TURN connections, whatever they do. True: there are more. Before http_server_stop(), in
 * calls of its own, so that many connections do not hold the loop. */
bool http_server_close_some(struct http_server *s);
size_t http_server_in_flight(const struct http_server *s); /* exchanges not yet ended, streams included */
/* Closes everything; exchanges still held by workers get is_gone, and their later answers are dropped safely. */
struct http_server *http_server_stop(struct http_server *s);
