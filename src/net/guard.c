#include "net/guard.h"

#include "net/resolve.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ifaddrs.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { OWN_PORTS = 8, NO_EMBEDDED = 0, HOST_CHARS = 256 };

/* A host as written in settings, URLs and by clients: "name", "name:port", "1.2.3.4:port", "fc00::1",
 * "[fc00::1]:port".
 */
struct host {
    char name[HOST_CHARS]; /* without brackets, port and the final dot of an absolute name */
    uint16_t port;         /* 0: no port was given */
    bool is_address;
    unsigned char address[16]; /* in IPv6 form */
};

struct guard {
    struct host *private_hosts; /* owned */
    size_t n_private_hosts;
    bool is_public_only;
    uint16_t own_ports[OWN_PORTS];
    size_t n_own_ports;
};

static _Atomic(const struct guard *) guard_of_service; /* the guard of the running service */

/* The first matching range counts. From IANA's registries of special-purpose addresses (RFC 6890), plus the metadata
 * addresses of clouds. */
static const struct range {
    unsigned char prefix[16];
    unsigned char n_bits;
    unsigned char embedded_at; /* offset of an embedded IPv4 address, which decides instead; NO_EMBEDDED: none */
    enum guard_verdict verdict;
    const char *rule;
} v4_ranges[] = {
    { { 0 }, 8, .verdict = GUARD_FORBIDDEN, .rule = "unspecified, 0.0.0.0/8" },
    { { 169, 254, 169, 254 }, 32, .verdict = GUARD_FORBIDDEN, .rule = "cloud metadata, 169.254.169.254" },
    { { 100, 100, 100, 200 }, 32, .verdict = GUARD_FORBIDDEN, .rule = "cloud metadata, 100.100.100.200" },
    { { 168, 63, 129, 16 }, 32, .verdict = GUARD_FORBIDDEN, .rule = "cloud metadata, 168.63.129.16" },
    { { 169, 254 }, 16, .verdict = GUARD_FORBIDDEN, .rule = "link-local, 169.254.0.0/16" },
    { { 127 }, 8, .verdict = GUARD_LOOPBACK, .rule = "loopback, 127.0.0.0/8" },
    { { 10 }, 8, .verdict = GUARD_PRIVATE, .rule = "private, 10.0.0.0/8" },
    { { 172, 16 }, 12, .verdict = GUARD_PRIVATE, .rule = "private, 172.16.0.0/12" },
    { { 192, 168 }, 16, .verdict = GUARD_PRIVATE, .rule = "private, 192.168.0.0/16" },
    { { 100, 64 }, 10, .verdict = GUARD_PRIVATE, .rule = "carrier-grade NAT, 100.64.0.0/10" },
    { { 198, 18 }, 15, .verdict = GUARD_PRIVATE, .rule = "benchmarking, 198.18.0.0/15" },
    { { 192, 0, 0 }, 24, .verdict = GUARD_FORBIDDEN, .rule = "reserved, 192.0.0.0/24" },
    { { 192, 0, 2 }, 24, .verdict = GUARD_FORBIDDEN, .rule = "documentation, 192.0.2.0/24" },
    { { 198, 51, 100 }, 24, .verdict = GUARD_FORBIDDEN, .rule = "documentation, 198.51.100.0/24" },
    { { 203, 0, 113 }, 24, .verdict = GUARD_FORBIDDEN, .rule = "documentation, 203.0.113.0/24" },
    { { 192, 88, 99 }, 24, .verdict = GUARD_FORBIDDEN, .rule = "6to4 relay, 192.88.99.0/24" },
    { { 224 }, 4, .verdict = GUARD_FORBIDDEN, .rule = "multicast, 224.0.0.0/4" },
    { { 240 }, 4, .verdict = GUARD_FORBIDDEN, .rule = "reserved or broadcast, 240.0.0.0/4" },
    { { 0 }, 0, .verdict = GUARD_PUBLIC, .rule = "public" },
};

static const struct range v6_ranges[] = {
    { { 0 }, 128, .verdict = GUARD_FORBIDDEN, .rule = "unspecified, ::" },
    { { [15] = 1 }, 128, .verdict = GUARD_LOOPBACK, .rule = "loopback, ::1" },
    { { [10] = 0xff, 0xff }, 96, 12, GUARD_FORBIDDEN, "IPv4-mapped, ::ffff:0:0/96" },
    { { 0 }, 96, .verdict = GUARD_FORBIDDEN, .rule = "IPv4-compatible, ::/96" },
    { { 0x00, 0x64, 0xff, 0x9b }, 96, 12, GUARD_FORBIDDEN, "NAT64, 64:ff9b::/96" },
    { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, .verdict = GUARD_FORBIDDEN, .rule = "local NAT64, 64:ff9b:1::/48" },
    { { 0x01 }, 64, .verdict = GUARD_FORBIDDEN, .rule = "discard, 100::/64" },
    { { 0x20, 0x01, 0x00, 0x00 }, 32, .verdict = GUARD_FORBIDDEN, .rule = "Teredo, 2001::/32" },
    { { 0x20, 0x01, 0x0d, 0xb8 }, 32, .verdict = GUARD_FORBIDDEN, .rule = "documentation, 2001:db8::/32" },
    { { 0x20, 0x02 }, 16, 2, GUARD_FORBIDDEN, "6to4, 2002::/16" },
    { { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54 },
      128,
      .verdict = GUARD_FORBIDDEN,
      .rule = "cloud metadata, fd00:ec2::254" },
    { { 0xfc }, 7, .verdict = GUARD_PRIVATE, .rule = "unique local, fc00::/7" },
    { { 0xfe, 0x80 }, 10, .verdict = GUARD_FORBIDDEN, .rule = "link-local, fe80::/10" },
    { { 0xfe, 0xc0 }, 10, .verdict = GUARD_FORBIDDEN, .rule = "site-local, fec0::/10" },
    { { 0xff }, 8, .verdict = GUARD_FORBIDDEN, .rule = "multicast, ff00::/8" },
    { { 0 }, 0, .verdict = GUARD_PUBLIC, .rule = "public" },
};

/* ---- hosts ---- */

/* Length of the name in text, and where its port begins (NULL: no port). Two colons without brackets are an address
 * (RFC 5952). */
static size_t split_port(const char *text, const char **ret_port)
{
    const char *colon = strchr(text, ':'), *end = text + strlen(text);

    *ret_port = NULL;
    if (*text == '[') {
        end = strchr(text, ']');
        end = end ? end : text + strlen(text);
        *ret_port = *end && end[1] == ':' ? end + 2 : NULL;
    } else if (colon && !strchr(colon + 1, ':')) {
        end = colon;
        *ret_port = colon + 1;
    }
    return (size_t)(end - text);
}

static bool read_address(const char *name, unsigned char ret[16])
{
    memset(ret, 0, 16);
    ret[10] = ret[11] = 0xff;
    return inet_pton(AF_INET, name, ret + 12) == 1 || inet_pton(AF_INET6, name, ret) == 1;
}

static struct host read_host(const char *text)
{
    struct host host = { .port = 0 };
    const char *port;
    size_t n = split_port(text, &port), skip = *text == '[';

    n = MIN(n - MIN(n, skip), sizeof(host.name) - 1);
    memcpy(host.name, text + skip, n);
    if (n > 1 && host.name[n - 1] == '.')
        host.name[n - 1] = '\0';
    host.port = port ? (uint16_t)strtoul(port, NULL, 10) : 0;
    host.is_address = read_address(host.name, host.address);
    return host;
}

struct guard *guard_new(const struct guard_config *c)
{
    struct guard *g = xcalloc(1, sizeof(*g));

    g->is_public_only = c->is_public_only;
    g->private_hosts = xcalloc(c->n_private_hosts + 1, sizeof(*g->private_hosts));
    while (g->n_private_hosts < c->n_private_hosts) {
        g->private_hosts[g->n_private_hosts] = read_host(c->private_hosts[g->n_private_hosts]);
        g->n_private_hosts++;
    }
    return g;
}

struct guard *guard_free(struct guard *g)
{
    if (!g)
        return NULL;
    free(g->private_hosts);
    free(g);
    return NULL;
}

void guard_add_own_port(struct guard *g, uint16_t port)
{
    if (g->n_own_ports < OWN_PORTS)
        g->own_ports[g->n_own_ports++] = port;
}

/* ---- the kind of an address ---- */

static bool is_within(const unsigned char *bytes, const struct range *r)
{
    size_t n_whole = r->n_bits / 8;
    unsigned rest = r->n_bits % 8, mask = rest ? (0xff00U >> rest) & 0xffU : 0;

    return memcmp(bytes, r->prefix, n_whole) == 0 && (rest == 0 || ((bytes[n_whole] ^ r->prefix[n_whole]) & mask) == 0);
}

static const struct range *range_of(const unsigned char *bytes, const struct range *ranges)
{
    while (!is_within(bytes, ranges))
        ranges++;
    return ranges;
}

/* Loopback inside NAT64 or 6to4 is refused; an IPv4-mapped address is judged as the IPv4 address. */
static enum guard_verdict judge_v6(const unsigned char *bytes, const char **ret_rule)
{
    const struct range *r = range_of(bytes, v6_ranges), *inner;
    struct in6_addr address;

    *ret_rule = r->rule;
    if (r->embedded_at == NO_EMBEDDED)
        return r->verdict;
    inner = range_of(bytes + r->embedded_at, v4_ranges);
    memcpy(&address, bytes, sizeof(address));
    if (inner->verdict == GUARD_PUBLIC || IN6_IS_ADDR_V4MAPPED(&address)) {
        *ret_rule = inner->rule;
        return inner->verdict;
    }
    return GUARD_FORBIDDEN;
}

static const void *bytes_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    return address->sa_family == AF_INET6 ? &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr : NULL;
}

static uint16_t port_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
    return address->sa_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port) : 0;
}

enum guard_verdict guard_judge(const struct sockaddr *address, const char **ret_rule)
{
    const unsigned char *bytes = bytes_of(address);
    const struct range *r;

    if (!bytes) {
        *ret_rule = "neither IPv4 nor IPv6";
        return GUARD_FORBIDDEN;
    }
    if (address->sa_family == AF_INET6)
        return judge_v6(bytes, ret_rule);
    r = range_of(bytes, v4_ranges);
    *ret_rule = r->rule;
    return r->verdict;
}

bool guard_is_near(const char *text)
{
    struct host host = read_host(text);
    const char *rule;

    if (!host.is_address)
        return !strchr(host.name, '.');
    return judge_v6(host.address, &rule) != GUARD_PUBLIC;
}

void guard_address_text(const struct sockaddr *address, char ret[GUARD_TEXT_CHARS])
{
    const void *bytes = bytes_of(address);

    if (!bytes || !inet_ntop(address->sa_family, bytes, ret, GUARD_TEXT_CHARS))
        snprintf(ret, GUARD_TEXT_CHARS, "an unknown address");
}

/* ---- whether an address is allowed ---- */

/* Converts an IPv4 address to IPv6 form, so that both forms can be compared. */
static bool plain_v6(const struct sockaddr *address, unsigned char ret[16])
{
    const void *bytes = bytes_of(address);

    memset(ret, 0, 16);
    if (!bytes)
        return false;
    if (address->sa_family == AF_INET6) {
        memcpy(ret, bytes, 16);
    } else {
        ret[10] = ret[11] = 0xff;
        memcpy(ret + 12, bytes, 4);
    }
    return true;
}

static bool is_of_this_machine(const struct sockaddr *address)
{
    unsigned char wanted[16], own[16];
    struct ifaddrs *list = NULL;
    bool found = false;

    if (!plain_v6(address, wanted) || getifaddrs(&list) < 0)
        return true; /* unknown: assume the worst */
    for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next)
        found = i->ifa_addr && plain_v6(i->ifa_addr, own) && memcmp(wanted, own, sizeof(own)) == 0;
    freeifaddrs(list);
    return found;
}

static bool is_own_port(const struct guard *g, uint16_t port)
{
    for (size_t i = 0; i < g->n_own_ports; i++)
        if (g->own_ports[i] == port)
            return true;
    return false;
}

/* A connection to an unspecified address reaches loopback. */
static bool is_unspecified(const struct sockaddr *address)
{
    static const unsigned char zero[16];
    const void *bytes = bytes_of(address);

    return bytes && memcmp(bytes, zero, address->sa_family == AF_INET ? 4 : 16) == 0;
}

static bool is_itself(const struct guard *g, const struct sockaddr *address)
{
    const char *rule;

    return is_own_port(g, port_of(address)) &&
           (guard_judge(address, &rule) == GUARD_LOOPBACK || is_unspecified(address) || is_of_this_machine(address));
}

void guard_set_own(const struct guard *g)
{
    atomic_store(&guard_of_service, g);
}

int guard_check_self(const char *host, const struct sockaddr *address, struct err *e)
{
    const struct guard *g = atomic_load(&guard_of_service);

    if (!g || !is_itself(g, address))
        return 0;
    return err_set(e, -EPERM, "CONNECT_FAILED",
                   "%.100s is this service itself, which would wait for itself: give another address.", host);
}

/* Whether the requested name or its address is listed; an entry with a port allows only that port. */
static bool is_listed(const struct guard *g, const char *requested, const struct sockaddr *address)
{
    struct host host = read_host(requested);
    unsigned char bytes[16];
    bool has_bytes = plain_v6(address, bytes);

    for (size_t i = 0; i < g->n_private_hosts; i++) {
        const struct host *listed = &g->private_hosts[i];

        if (listed->port && listed->port != port_of(address))
            continue;
        if (strcmp(listed->name, "*") == 0)
            return true;
        if (listed->is_address ? has_bytes && memcmp(listed->address, bytes, sizeof(bytes)) == 0
                               : strcasecmp(listed->name, host.name) == 0)
            return true;
    }
    return false;
}

int guard_check(const struct guard *g, const char *host, const struct sockaddr *address, struct err *e)
{
    char text[GUARD_TEXT_CHARS];
    const char *rule;
    enum guard_verdict verdict = guard_judge(address, &rule);

    guard_address_text(address, text);
    if (verdict == GUARD_FORBIDDEN)
        return err_set(e, -EPERM, "ADDRESS_REFUSED", "%.100s is at %s, where apps may send nothing (%s).", host, text,
                       rule);
    if ((verdict == GUARD_PRIVATE || (verdict == GUARD_LOOPBACK && g->is_public_only)) && !is_listed(g, host, address))
        return err_set(e, -EPERM, "ADDRESS_REFUSED",
                       "%.100s is at %s, an address of %s (%s): apps may name it when the setting net.private_hosts "
                       "lists it.",
                       host, text, verdict == GUARD_PRIVATE ? "the local network" : "this machine", rule);
    if (is_itself(g, address))
        return err_set(e, -EPERM, "ADDRESS_REFUSED", "%.100s at %s, port %u, is this service itself.", host, text,
                       port_of(address));
    return 0;
}

int guard_check_all(const struct guard *g, const char *host, const struct addrinfo *answer, struct guard_addresses *ret,
                    struct err *e)
{
    struct guard_addresses found = { .n = 0 };
    int r;

    for (const struct addrinfo *i = answer; i; i = i->ai_next) {
        r = guard_check(g, host, i->ai_addr, e);
        if (r < 0)
            return r;
        if (found.n < GUARD_ADDRESSES)
            memcpy(&found.items[found.n++], i->ai_addr, MIN(sizeof(found.items[0]), (size_t)i->ai_addrlen));
    }
    if (found.n == 0)
        return err_set(e, -EHOSTUNREACH, "DNS_FAILED", "The name %.100s has no address.", host);
    *ret = found;
    return 0;
}

int guard_resolve(const struct guard *g, const char *host, uint16_t port, const struct net_wait *w,
                  struct guard_addresses *ret, struct err *e)
{
    struct addrinfo *answer = NULL;
    int r = net_resolve(host, port, w, &answer, e);

    if (r < 0)
        return r;
    r = guard_check_all(g, host, answer, ret, e);
    freeaddrinfo(answer);
    return r;
}
