#include "net/url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <strings.h>

static void url_cleanup(CURLU **handle)
{
    curl_url_cleanup(*handle);
}

static void text_cleanup(char **text)
{
    curl_free(*text);
}

/* A part as arena text, NULL when it is not there. */
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
    CURLUcode code = handle ? curl_url_set(handle, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) : CURLUE_OUT_OF_MEMORY;

    if (code != CURLUE_OK)
        return err_set(e, -EINVAL, "BAD_URL", "The address must be a URL like https://host/path (%s).", curl_url_strerror(code));
    if (curl_url_get(handle, CURLUPART_USER, &user, 0) == CURLUE_OK || curl_url_get(handle, CURLUPART_PASSWORD, &password, 0) == CURLUE_OK)
        return err_set(e, -EINVAL, "BAD_URL", "The address must not hold a user name or password; give the key by itself.");
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

static int read_parts(struct arena *a, CURLU *handle, struct url *ret, struct err *e)
{
    char *host = part_of(a, handle, CURLUPART_HOST, 0), *port = part_of(a, handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);

    ret->scheme = part_of(a, handle, CURLUPART_SCHEME, 0);
    ret->is_tls = ret->scheme && strcmp(ret->scheme, "https") == 0;
    if (!ret->scheme || (!ret->is_tls && strcmp(ret->scheme, "http") != 0))
        return err_set(e, -EINVAL, "BAD_URL", "The address must begin with http:// or https://.");
    if (!host || !*host || !port)
        return err_set(e, -EINVAL, "BAD_URL", "The address names no host.");
    ret->host = without_brackets(host);
    ret->port = (uint16_t)strtoul(port, NULL, 10);
    ret->is_loopback = is_loopback(ret->host);
    return 0;
}

int url_parse(struct arena *a, const char *text, struct url *ret, struct err *e)
{
    AUTO(url_cleanup) CURLU *handle = NULL;
    struct url parts = { 0 };
    int r = open_handle(text, &handle, e);

    if (r == 0)
        r = read_parts(a, handle, &parts, e);
    if (r < 0)
        return r;
    *ret = parts;
    return 0;
}

/* "a=1" before "b=2"; either may be missing. */
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
        return err_set(e, -EINVAL, "BAD_URL", "The address cannot be extended by a path (%s).", curl_url_strerror(code));
    *ret = part_of(a, handle, CURLUPART_URL, 0);
    return 0;
}

int url_join(struct arena *a, const char *base, const char *path, char **ret, struct err *e)
{
    AUTO(url_cleanup) CURLU *handle = NULL;
    struct url parts = { 0 };
    int r = open_handle(base, &handle, e);

    if (r == 0)
        r = read_parts(a, handle, &parts, e);
    return r < 0 ? r : put_together(a, handle, path, ret, e);
}
