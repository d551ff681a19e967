#include "api/host.h"

#include <arpa/inet.h>
#include <assert.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CORS_EXPOSED                                                                                                          \
    "x-request-id, retry-after, x-hearth-provider, x-hearth-overhead-ms, x-hearth-queue-ms, x-hearth-voice, mcp-session-id, " \
    "content-range, content-location, location, preference-applied, x-supabase-api-version"

enum { AUTHORITY_SIZE = 300, BOUND_ADDRESSES = 64 };

struct bound {
    struct in6_addr address;
    uint16_t port;
}; /* IPv4 as ::ffff:a.b.c.d */

struct host_rules {
    struct arena *arena; /* owned; of the lists */
    const char *const *hosts, *const *origins;
    size_t n_hosts, n_origins;
    struct bound bound[BOUND_ADDRESSES];
    size_t n_bound;
    bool has_ipv6; /* this machine has IPv6, so another program may listen on ::1 */
};

static bool can_bind_ipv6(void)
{
    const struct sockaddr_in6 any_port = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool can = fd >= 0 && bind(fd, (const struct sockaddr *)&any_port, sizeof(any_port)) == 0;

    if (fd >= 0)
        close(fd);
    return can;
}

struct host_rules *host_rules_new(struct settings *s)
{
    struct host_rules *rules = xcalloc(1, sizeof(*rules));

    rules->arena = arena_new();
    rules->has_ipv6 = can_bind_ipv6();
    rules->hosts = settings_list(s, rules->arena, SETTING_HTTP_ALLOWED_HOSTS, &rules->n_hosts);
    rules->origins = settings_list(s, rules->arena, SETTING_HTTP_ALLOWED_ORIGINS, &rules->n_origins);
    return rules;
}

struct host_rules *host_rules_free(struct host_rules *rules)
{
    if (rules)
        arena_free(rules->arena);
    free(rules);
    return NULL;
}

static bool parse_address(const char *text, struct in6_addr *ret)
{
    struct in_addr v4;

    if (inet_pton(AF_INET6, text, ret) == 1)
        return true;
    if (inet_pton(AF_INET, text, &v4) != 1)
        return false;
    *ret = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
    memcpy(&ret->s6_addr[12], &v4, sizeof(v4));
    return true;
}

/* A service that listens on all addresses of a family is reached at the loopback address of that family as well. */
void host_rules_add_address(struct host_rules *rules, const char *address, uint16_t port)
{
    const char *own = strcmp(address, "0.0.0.0") == 0 ? "127.0.0.1" : strcmp(address, "::") == 0 ? "::1" : address;
    struct bound *bound = &rules->bound[rules->n_bound];

    assert(rules->n_bound < BOUND_ADDRESSES);
    bound->port = port;
    rules->n_bound += parse_address(own, &bound->address);
}

static bool is_bound(const struct host_rules *rules, const char *address, unsigned long port)
{
    struct in6_addr wanted;

    if (!parse_address(address, &wanted))
        return false;
    for (size_t i = 0; i < rules->n_bound; i++)
        if (rules->bound[i].port == port && memcmp(&rules->bound[i].address, &wanted, sizeof(wanted)) == 0)
            return true;
    return false;
}

/* `localhost` means both loopback addresses, and a browser tries one after the other: the name is the service's own
 * only when every loopback address that this machine has is bound. */
static bool is_own(const struct host_rules *rules, const char *name, const char *port_text)
{
    unsigned long port = strtoul(*port_text ? port_text : "80", NULL, 10); /* without a port: that of http */

    if (strcasecmp(name, "localhost") != 0)
        return is_bound(rules, name, port);
    return is_bound(rules, "127.0.0.1", port) && (!rules->has_ipv6 || is_bound(rules, "::1", port));
}

static bool is_listed(const char *const *list, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(list[i], text) == 0)
            return true;
    return false;
}

static bool is_port(const char *text)
{
    size_t n = strspn(text, "0123456789");

    return n >= 1 && n <= 5 && text[n] == '\0';
}

/* Splits "name:port" or "[address]:port", the port being optional (RFC 9110 section 7.2), and removes the brackets. */
static bool split_authority(const char *authority, char name[AUTHORITY_SIZE], const char **ret_port)
{
    bool is_bracketed = *authority == '[';
    const char *start = authority + is_bracketed,
               *end = is_bracketed ? strchr(start, ']') : start + strcspn(start, ":");
    const char *rest;

    if (!end || end == start || end - start >= AUTHORITY_SIZE)
        return false;
    rest = end + is_bracketed;
    if (*rest != '\0' && (*rest != ':' || !is_port(rest + 1)))
        return false;
    memcpy(name, start, (size_t)(end - start));
    name[end - start] = '\0';
    *ret_port = *rest == ':' ? rest + 1 : "";
    return true;
}

static bool is_loopback(const char *name)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (strcasecmp(name, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, name, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, name, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* The only Host header; NULL when there is none or several, which RFC 9112 section 3.2 forbids. */
static const char *host_of(const struct http_request *req)
{
    const char *host = NULL;

    for (size_t i = 0; i < req->n_headers; i++) {
        if (strcmp(req->headers[i].name, "host") != 0)
            continue;
        if (host)
            return NULL;
        host = req->headers[i].value;
    }
    return host;
}

static bool is_configured(const struct host_rules *rules, const char *host, const char *name)
{
    return is_listed(rules->hosts, rules->n_hosts, name) || is_listed(rules->hosts, rules->n_hosts, host);
}

bool host_is_allowed(const struct host_rules *rules, const struct http_request *req)
{
    const char *host = host_of(req), *port;
    char name[AUTHORITY_SIZE];

    if (!host || !split_authority(host, name, &port))
        return false;
    return is_loopback(name) || is_configured(rules, host, name);
}

bool origin_is_own(const struct host_rules *rules, const struct http_request *req)
{
    const char *origin = http_header(req, "origin"), *host = host_of(req), *authority, *port;
    char name[AUTHORITY_SIZE];
    bool is_plain;

    if (!origin)
        return false;
    is_plain = strncasecmp(origin, "http://", 7) == 0;
    if (!is_plain && strncasecmp(origin, "https://", 8) != 0)
        return false;
    authority = strchr(origin, ':') + 3;
    if (!split_authority(authority, name, &port))
        return false;
    if (host && strcasecmp(authority, host) == 0 && is_configured(rules, host, name))
        return true;
    return is_plain && is_own(rules, name, port);
}

bool origin_is_allowed(const struct host_rules *rules, const struct http_request *req)
{
    const char *origin = http_header(req, "origin");

    return !origin || is_listed(rules->origins, rules->n_origins, origin) || origin_is_own(rules, req);
}

int host_check(const struct host_rules *rules, const struct http_request *req, struct err *e)
{
    if (http_is_local(req))
        return 0;
    if (!host_is_allowed(rules, req))
        return err_set(e, -EPERM, "HOST_NOT_ALLOWED",
                       "The Host header must name this machine or a host of the setting http.allowed_hosts.");
    if (!origin_is_allowed(rules, req))
        return err_set(e, -EPERM, "ORIGIN_NOT_ALLOWED",
                       "Pages of this Origin may not use the service; see the setting http.allowed_origins.");
    return 0;
}

void host_add_cors(struct http_exchange *x)
{
    const char *origin = http_is_local(&x->request) ? NULL : http_header(&x->request, "origin");

    if (!origin)
        return;
    http_response_header(x, "access-control-allow-origin", origin);
    http_response_header(x, "access-control-expose-headers", CORS_EXPOSED);
    http_response_header(x, "vary", "origin");
}
