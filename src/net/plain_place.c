#include "net/plain_place.h"

#include "net/url.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum { KEPT = 8, DEFAULT_PORT = 80 };

static _Thread_local struct plain_place kept[KEPT];
static _Thread_local size_t n_kept;

static void add_address(struct plain_place *p, int family, const char *host, uint16_t port)
{
    struct plain_address *to = &p->addresses[p->n_addresses];
    bool is_v6 = family == AF_INET6;

    *to = (struct plain_address){ .n = is_v6 ? sizeof(to->at.v6) : sizeof(to->at.v4) };
    to->at.any.sa_family = (sa_family_t)family;
    if (is_v6)
        to->at.v6.sin6_port = htons(port);
    else
        to->at.v4.sin_port = htons(port);
    if (inet_pton(family, host, is_v6 ? (void *)&to->at.v6.sin6_addr : (void *)&to->at.v4.sin_addr) == 1)
        p->n_addresses++;
}

/* "localhost" is both loopback addresses (RFC 6761 section 6.3), without a look-up, in libcurl's order. */
static void set_addresses(struct plain_place *p, const struct url *to)
{
    bool is_name = strcasecmp(to->host, "localhost") == 0;

    add_address(p, AF_INET6, is_name ? "::1" : to->host, to->port);
    add_address(p, AF_INET, is_name ? "127.0.0.1" : to->host, to->port);
}

static bool is_visible(const char *text)
{
    while (*text > ' ' && *text < 0x7f)
        text++;
    return *text == '\0';
}

static bool fits(int n, size_t size)
{
    return n >= 0 && (size_t)n < size;
}

static bool set_texts(struct plain_place *p, const struct url *to, const char *target)
{
    const char *before = strchr(to->host, ':') ? "[" : "", *after = *before ? "]" : "";
    char port[8] = "";

    if (to->port != DEFAULT_PORT)
        snprintf(port, sizeof(port), ":%u", to->port);
    return is_visible(target) && is_visible(to->host) &&
           fits(snprintf(p->peer, sizeof(p->peer), "%s:%u", to->host, to->port), sizeof(p->peer)) &&
           fits(snprintf(p->head, sizeof(p->head), " %s HTTP/1.1\r\nHost: %s%s%s%s\r\n", target, before, to->host,
                         after, port),
                sizeof(p->head));
}

/* n_addresses stays 0 when the URL has no place. */
static void fill(struct plain_place *p)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct url to;
    char *target;

    if (url_parse(scratch, p->url, &to, NULL) < 0 || to.is_tls || !to.is_loopback ||
        url_target(scratch, p->url, &target, NULL) < 0 || !set_texts(p, &to, target))
        return;
    set_addresses(p, &to);
}

const struct plain_place *plain_place_of(const char *url)
{
    size_t n = strlen(url);
    struct plain_place *p;

    if (n >= PLAIN_URL_CHARS || strncasecmp(url, "http:", 5) != 0)
        return NULL;
    for (size_t i = 0; i < MIN(n_kept, (size_t)KEPT); i++)
        if (strcmp(kept[i].url, url) == 0)
            return kept[i].n_addresses > 0 ? &kept[i] : NULL;
    p = &kept[n_kept++ % KEPT];
    *p = (struct plain_place){ .n_addresses = 0 };
    memcpy(p->url, url, n + 1);
    fill(p);
    return p->n_addresses > 0 ? p : NULL;
}
