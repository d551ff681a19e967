#include "http/peer.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct http_peer *http_peer_new(const union http_address *local, const union http_address *remote, uint64_t tag, int fd)
{
    static atomic_uint_fast64_t n_made;
    struct http_peer *p = xcalloc(1, sizeof(*p));

    atomic_init(&p->n_refs, 1);
    p->serial = atomic_fetch_add(&n_made, 1) + 1;
    p->tag = tag;
    p->local = *local;
    p->remote = *remote;
    pthread_mutex_init(&p->lock, NULL);
    p->fd = fd;
    return p;
}

struct http_peer *http_peer_ref(struct http_peer *p)
{
    atomic_fetch_add(&p->n_refs, 1);
    return p;
}

struct http_peer *http_peer_unref(struct http_peer *p)
{
    if (p && atomic_fetch_sub(&p->n_refs, 1) == 1) {
        free(atomic_load(&p->note));
        pthread_mutex_destroy(&p->lock);
        free(p);
    }
    return NULL;
}

void http_peer_leave(struct http_peer *p)
{
    pthread_mutex_lock(&p->lock);
    p->fd = -1;
    pthread_mutex_unlock(&p->lock);
}

/* While the lock is held, the descriptor's number cannot be reused for another connection. */
bool http_peer_is_connected(struct http_peer *p)
{
    struct tcp_info info = { 0 };
    socklen_t size = sizeof(info);
    bool is_known;

    pthread_mutex_lock(&p->lock);
    is_known = p->fd >= 0 && getsockopt(p->fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    pthread_mutex_unlock(&p->lock);
    return is_known && (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT);
}

void http_address_text(const union http_address *address, char *out, size_t size)
{
    bool is_v6 = address->any.sa_family == AF_INET6;
    const void *bytes = is_v6 ? (const void *)&address->in6.sin6_addr : (const void *)&address->in.sin_addr;

    if (!inet_ntop(address->any.sa_family, bytes, out, (socklen_t)size))
        out[0] = '\0';
}

void http_peer_text(const struct http_peer *p, char *out, size_t size)
{
    if (p->remote.any.sa_family == AF_UNIX)
        snprintf(out, size, "unix");
    else
        http_address_text(&p->remote, out, size);
}

bool http_peer_is_loopback(const struct http_peer *p)
{
    const union http_address *from = &p->remote;

    if (from->any.sa_family == AF_INET)
        return ntohl(from->in.sin_addr.s_addr) >> 24 == 127;
    return from->any.sa_family == AF_UNIX ||
           (from->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&from->in6.sin6_addr));
}

/* An IPv6 network has one account, because a single machine may use all of its addresses. */
struct budget_holder *http_peer_holder(const struct http_peer *p)
{
    union http_address from = p->remote;
    char text[INET6_ADDRSTRLEN];

    if (from.any.sa_family == AF_UNIX)
        return budget_holder_get(HOLDER_ADMIN, "");
    if (p->tag || http_peer_is_loopback(p))
        return budget_holder_get(HOLDER_NOBODY, "");
    if (from.any.sa_family == AF_INET6)
        memset(&from.in6.sin6_addr.s6_addr[8], 0, 8);
    http_address_text(&from, text, sizeof(text));
    return budget_holder_get(HOLDER_ADDRESS, text);
}

void *http_peer_note(const struct http_peer *p)
{
    return atomic_load(&p->note);
}

void *http_peer_keep_note(struct http_peer *p, void *note)
{
    void *kept = NULL;

    if (atomic_compare_exchange_strong(&p->note, &kept, note))
        return note;
    free(note);
    return kept;
}
