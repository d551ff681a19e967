#include "net/url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <strings.h>

/* The addresses of a few providers are read again for each request; what each thread has read last is kept. */
enum { KEPT = 8, KEPT_TEXT = 256, KEPT_HOST = 128 };

struct kept_url {
    char text[KEPT_TEXT], host[KEPT_HOST];
    uint16_t port;
    bool is_tls, is_loopback;
};

struct kept_join {
    char base[KEPT_TEXT], path[KEPT_HOST], url[KEPT_TEXT + KEPT_HOST];
};

static _Thread_local struct kept_url kept_urls[KEPT];
static _Thread_local struct kept_join kept_joins[KEPT];
static _Thread_local size_t n_kept_urls, n_kept_joins;

static bool fits(const char *text, size_t size)
{
    return text && strlen(text) < size;
}

/* The text fits. */
static void keep_text(char *to, const char *text)
{
    memcpy(to, text, strlen(text) + 1);
}

static bool recall_url(struct arena *a, const char *text, struct url *ret)
{
    for (size_t i = 0; i < MIN(n_kept_urls, (size_t)KEPT); i++) {
        const struct kept_url *kept = &kept_urls[i];

        if (strcmp(kept->text, text) != 0)
            continue;
        *ret = (struct url){ .scheme = arena_strdup(a, kept->is_tls ? "https" : "http"),
                             .host = arena_strdup(a, kept->host),
                             .port = kept->port,
                             .is_tls = kept->is_tls,
                             .is_loopback = kept->is_loopback };
        return true;
    }
    return false;
}

static void keep_url(const char *text, const struct url *url)
{
    struct kept_url *to = &kept_urls[n_kept_urls % KEPT];

    if (!fits(text, sizeof(to->text)) || !fits(url->host, sizeof(to->host)))
        return;
    n_kept_urls++;
    keep_text(to->text, text);
    keep_text(to->host, url->host);
    to->port = url->port;
    to->is_tls = url->is_tls;
    to->is_loopback = url->is_loopback;
}

static const char *recall_join(const char *base, const char *path)
{
    for (size_t i = 0; i < MIN(n_kept_joins, (size_t)KEPT); i++)
        if (strcmp(kept_joins[i].path, path) == 0 && strcmp(kept_joins[i].base, base) == 0)
            return kept_joins[i].url;
    return NULL;
}

static void keep_join(const char *base, const char *path, const char *url)
{
    struct kept_join *to = &kept_joins[n_kept_joins % KEPT];

    if (!fits(base, sizeof(to->base)) || !fits(path, sizeof(to->path)) || !fits(url, sizeof(to->url)))
        return;
    n_kept_joins++;
    keep_text(to->base, base);
    keep_text(to->path, path);
    keep_text(to->url, url);
}

static void url_cleanup(CURLU **handle)
{
    curl_url_cleanup(*handle);
}

static void text_cleanup(char **text)
{
    curl_free(*text);
}

/* A part as text in the arena; NULL when missing. */
static char *part_of(struct arena *a, CURLU *handle, CURLUPart part, unsigned flags)
{
    AUTO(text_cleanup) char *text = NULL;

    if (curl_url_get(handle, part, &text, flags) != CURLUE_OK)
        return NULL;
    return arena_strdup(a, text);
}

static int open_handle(const char *text, CURLU **ret, struct err *e)
{
    AUTO(url_cleanup) CURLU *handle = curl_url();
    AUTO(text_cleanup) char *user = NULL;
    AUTO(text_cleanup) char *password = NULL;
    CURLUcode code =
        handle ? curl_url_set(handle, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) : CURLUE_OUT_OF_MEMORY;

    if (code != CURLUE_OK)
        return err_set(e, -EINVAL, "BAD_URL", "The address must be a URL like https://host/path (%s).",
                       curl_url_strerror(code));
    if (curl_url_get(handle, CURLUPART_USER, &user, 0) == CURLUE_OK ||
        curl_url_get(handle, CURLUPART_PASSWORD, &password, 0) == CURLUE_OK)
        return err_set(e, -EINVAL, "BAD_URL",
                       "The address must not hold a user name or password; give the key by itself.");
    *ret = TAKE(handle);
    return 0;
}

static bool is_loopback(const char *host)
{
    size_t n = strlen(host);
    struct in_addr address;

    if (strcmp(host, "::1") == 0 || strcasecmp(host, "localhost") == 0)
        return true;
    if (n > 10 && strcasecmp(host + n - 10, ".localhost") == 0)
        return true;
    return inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

static char *without_brackets(char *host)
{
    size_t n = strlen(host);

    if (n < 2 || host[0] != '[')
        return host;
    host[n - 1] = '\0';
    return host + 1;
}

/* libcurl decodes a host's %XX; the characters that follow from it must be those of a host. */
static bool has_host_characters(const char *host)
{
    for (; *host; host++)
        if ((unsigned char)*host <= ' ' || *host == 0x7f || strchr("%/\\?#@<>^`{|}\"", *host))
            return false;
    return true;
}

/* libcurl reads a host of digits as an IPv4 address, but not before it has decoded %XX: "%32" is the host "2", which in
 * the printed address is 0.0.0.2. */
static bool is_same_when_printed(struct arena *a, CURLU *handle, const char *host)
{
    AUTO(url_cleanup) CURLU *again = curl_url();
    const char *text = part_of(a, handle, CURLUPART_URL, 0), *printed = NULL;

    if (again && text && curl_url_set(again, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK)
        printed = part_of(a, again, CURLUPART_HOST, 0);
    return printed && strcmp(printed, host) == 0;
}

static int read_parts(struct arena *a, CURLU *handle, struct url *ret, struct err *e)
{
    char *host = part_of(a, handle, CURLUPART_HOST, 0), *port = part_of(a, handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);

    ret->scheme = part_of(a, handle, CURLUPART_SCHEME, 0);
    ret->is_tls = ret->scheme && strcmp(ret->scheme, "https") == 0;
    if (!ret->scheme || (!ret->is_tls && strcmp(ret->scheme, "http") != 0))
        return err_set(e, -EINVAL, "BAD_URL", "The address must begin with http:// or https://.");
    if (!host || !*host || !port)
        return err_set(e, -EINVAL, "BAD_URL", "The address names no host.");
    if (!has_host_characters(host) || !is_same_when_printed(a, handle, host))
        return err_set(e, -EINVAL, "BAD_URL", "The address has characters in its host that no host has.");
    ret->host = without_brackets(host);
    ret->port = (uint16_t)strtoul(port, NULL, 10);
    ret->is_loopback = is_loopback(ret->host);
    return 0;
}

int url_parse(struct arena *a, const char *text, struct url *ret, struct err *e)
{
    AUTO(url_cleanup) CURLU *handle = NULL;
    struct url parts = { 0 };
    int r;

    if (recall_url(a, text, ret))
        return 0;
    r = open_handle(text, &handle, e);
    if (r == 0)
        r = read_parts(a, handle, &parts, e);
    if (r < 0)
        return r;
    keep_url(text, &parts);
    *ret = parts;
    return 0;
}

int url_target(struct arena *a, const char *text, char **ret, struct err *e)
{
    AUTO(url_cleanup) CURLU *handle = NULL;
    const char *path, *query;
    int r = open_handle(text, &handle, e);

    if (r < 0)
        return r;
    path = part_of(a, handle, CURLUPART_PATH, 0);
    query = part_of(a, handle, CURLUPART_QUERY, 0);
    *ret = arena_printf(a, "%s%s%s", path ? path : "/", query ? "?" : "", query ? query : "");
    return 0;
}

/* Joins "a=1" and "b=2" in this order; either may be missing. */
static const char *join_queries(struct arena *a, const char *first, const char *second)
{
    if (!first || !*first)
        return second;
    return second && *second ? arena_printf(a, "%s&%s", first, second) : first;
}

static int put_together(struct arena *a, CURLU *handle, const char *path, char **ret, struct err *e)
{
    const char *before = part_of(a, handle, CURLUPART_PATH, 0), *query = strchr(path, '?');
    size_t n = before ? strlen(before) : 0;
    CURLUcode code;

    while (n > 0 && before[n - 1] == '/')
        n--;
    before = arena_printf(a, "%.*s/%.*s", (int)n, before ? before : "", (int)strcspn(path, "?"), path);
    query = join_queries(a, query ? query + 1 : NULL, part_of(a, handle, CURLUPART_QUERY, 0));
    code = curl_url_set(handle, CURLUPART_PATH, before, 0);
    if (code == CURLUE_OK)
        code = curl_url_set(handle, CURLUPART_QUERY, query, 0);
    if (code == CURLUE_OK)
        code = curl_url_set(handle, CURLUPART_FRAGMENT, NULL, 0);
    if (code != CURLUE_OK)
        return err_set(e, -EINVAL, "BAD_URL", "The address cannot be extended by a path (%s).",
                       curl_url_strerror(code));
    *ret = part_of(a, handle, CURLUPART_URL, 0);
    return *ret ? 0 : err_set(e, -EINVAL, "BAD_URL", "The address cannot be extended by a path.");
}

int url_follow(struct arena *a, const char *base, const char *location, char **ret, struct err *e)
{
    AUTO(url_cleanup) CURLU *handle = NULL;
    AUTO(url_cleanup) CURLU *checked = NULL;
    struct url parts = { 0 };
    int r = open_handle(base, &handle, e);

    if (r < 0)
        return r;
    if (curl_url_set(handle, CURLUPART_URL, location, CURLU_URLENCODE | CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK ||
        curl_url_set(handle, CURLUPART_FRAGMENT, NULL, 0) != CURLUE_OK)
        return err_set(e, -EINVAL, "BAD_URL", "It leads to something that is no address.");
    *ret = part_of(a, handle, CURLUPART_URL, 0);
    r = open_handle(*ret ? *ret : "", &checked, e);
    return r < 0 ? r : read_parts(a, checked, &parts, e);
}

int url_join(struct arena *a, const char *base, const char *path, char **ret, struct err *e)
{
    AUTO(url_cleanup) CURLU *handle = NULL;
    const char *kept = recall_join(base, path);
    struct url parts = { 0 };
    int r;

    if (kept) {
        *ret = arena_strdup(a, kept);
        return 0;
    }
    r = open_handle(base, &handle, e);
    if (r == 0)
        r = read_parts(a, handle, &parts, e);
    if (r == 0)
        r = put_together(a, handle, path, ret, e);
    if (r == 0)
        keep_join(base, path, *ret);
    return r;
}
