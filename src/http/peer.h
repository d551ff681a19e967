/* The connection of a request, for the layers above: the client at the other end, and what these layers found out about
 * it.
 *
 * Made when the connection is accepted and the same for all of its requests; shared by reference count, because a
 * worker may still hold a request whose client has left. Everything except the note and the descriptor is constant. Any
 * thread.
 *
 *     const struct uid *known = http_peer_note(peer);
 *     if (!known)
 *         known = http_peer_keep_note(peer, look_up(&peer->local, &peer->remote));
 */
#pragma once

#include "base/budget.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

union http_address {
    struct sockaddr any; /* any.sa_family AF_UNIX: without a path */
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

struct http_peer {
    atomic_uint n_refs;
    uint64_t serial; /* of the connection; unique in this process */
    uint64_t tag;    /* of the listener that accepted it (http_server_listen_fd()); 0: none */
    union http_address local, remote;
    void *_Atomic note;   /* owned: freed with the peer */
    pthread_mutex_t lock; /* guards fd */
    int fd;               /* borrowed from the connection; -1: closed */
};

struct http_peer *http_peer_new(const union http_address *local, const union http_address *remote, uint64_t tag,
                                int fd) MUST_CHECK;
struct http_peer *http_peer_ref(struct http_peer *p) MUST_CHECK;
struct http_peer *http_peer_unref(struct http_peer *p); /* NULL is fine; returns NULL */

/* Call immediately before the connection closes its descriptor. */
void http_peer_leave(struct http_peer *p);
/* Whether the kernel still has the TCP connection; then no other connection has used its addresses meanwhile. */
bool http_peer_is_connected(struct http_peer *p);

/* Without the port. out holds INET6_ADDRSTRLEN bytes or more. */
void http_address_text(const union http_address *address, char *out, size_t size);
/* The text of the remote address without its port; "unix". out holds INET6_ADDRSTRLEN bytes or more. */
void http_peer_text(const struct http_peer *p, char *out, size_t size);
bool http_peer_is_loopback(const struct http_peer *p);
/* The account that pays for unauthenticated requests of this connection; a reference. */
struct budget_holder *http_peer_holder(const struct http_peer *p) MUST_CHECK;

/* The note of the layer above about the connection; NULL until one is kept. */
void *http_peer_note(const struct http_peer *p);
/* Takes ownership of a block from malloc(). The first note is kept: returns it and frees the other one. */
void *http_peer_keep_note(struct http_peer *p, void *note);
