#include "api/host.h"

#include <arpa/inet.h>
#include <strings.h>

#define CORS_EXPOSED "x-request-id, retry-after, x-hearth-provider, x-hearth-overhead-ms, x-hearth-queue-ms"

enum { AUTHORITY_SIZE = 300 };

struct host_rules {
    struct arena *arena;                /* owned; of the lists */
    const char *const *hosts, *const *origins;
    size_t n_hosts, n_origins;
    _Atomic uint16_t port;
};

struct host_rules *host_rules_new(struct settings *s)
{
    struct host_rules *rules = xcalloc(1, sizeof(*rules));

    rules->arena = arena_new();
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

void host_rules_set_port(struct host_rules *rules, uint16_t port)
{
    rules->port = port;
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

/* "name:port", "[address]:port" or without a port (RFC 9110 section 7.2) into its name without brackets. */
static bool split_authority(const char *authority, char name[AUTHORITY_SIZE], const char **ret_port)
{
    bool is_bracketed = *authority == '[';
    const char *start = authority + is_bracketed, *end = is_bracketed ? strchr(start, ']') : start + strcspn(start, ":");
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

bool host_is_allowed(const struct host_rules *rules, const struct http_request *req)
{
    const char *host = host_of(req), *port;
    char name[AUTHORITY_SIZE];

    if (!host || !split_authority(host, name, &port))
        return false;
    return is_loopback(name) || is_listed(rules->hosts, rules->n_hosts, name) ||
           is_listed(rules->hosts, rules->n_hosts, host);
}

/* Without a port it is that of http. */
static bool is_own_port(const struct host_rules *rules, const char *port)
{
    return strtoul(*port ? port : "80", NULL, 10) == rules->port;
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
    if (host && strcasecmp(authority, host) == 0)
        return true;
    return is_plain && split_authority(authority, name, &port) && is_loopback(name) && is_own_port(rules, port);
}

bool origin_is_allowed(const struct host_rules *rules, const struct http_request *req)
{
    const char *origin = http_header(req, "origin");

    return !origin || is_listed(rules->origins, rules->n_origins, origin) || origin_is_own(rules, req);
}

/* Exchanges of this process come from no page. */
static bool is_local(const struct http_request *req)
{
    return req->from != HTTP_FROM_TCP;
}

int host_check(const struct host_rules *rules, const struct http_request *req, struct err *e)
{
    if (is_local(req))
        return 0;
    if (!host_is_allowed(rules, req))
        return err_set(e, -EPERM, "HOST_NOT_ALLOWED", "The Host header must name this machine or a host of the setting http.allowed_hosts.");
    if (!origin_is_allowed(rules, req))
        return err_set(e, -EPERM, "ORIGIN_NOT_ALLOWED", "Pages of this Origin may not use the service; see the setting http.allowed_origins.");
    return 0;
}

void host_add_cors(struct http_exchange *x)
{
    const char *origin = is_local(&x->request) ? NULL : http_header(&x->request, "origin");

    if (!origin)
        return;
    http_response_header(x, "access-control-allow-origin", origin);
    http_response_header(x, "access-control-expose-headers", CORS_EXPOSED);
    http_response_header(x, "vary", "origin");
}
