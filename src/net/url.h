/* Addresses of upstreams: absolute http and https URLs, parsed once by libcurl's URL API (RFC 3986). Any thread.
 *
 * A user name or password in a URL is refused: secrets have fields of their own.
 *
 *     r = url_join(arena, "https://api.example.org/v1/", "chat/completions", &url, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct url {
    const char *scheme, *host; /* lower-case scheme; host without brackets; both in the arena */
    uint16_t port;             /* the default port when the URL has none */
    bool is_tls, is_loopback;  /* loopback: 127.0.0.0/8, ::1, localhost and names below it */
};

/* -EINVAL BAD_URL; the text quotes no secret. */
int url_parse(struct arena *a, const char *text, struct url *ret, struct err *e) MUST_CHECK;

/* Path and query as a request line has them (RFC 9112 section 3.2.1): "/v1/models?limit=10". -EINVAL BAD_URL. */
int url_target(struct arena *a, const char *text, char **ret, struct err *e) MUST_CHECK;

/* The target of a redirect from base: location is absolute or relative to base (RFC 3986, section 5.2). Its fragment is
 * dropped. */
int url_follow(struct arena *a, const char *base, const char *location, char **ret, struct err *e) MUST_CHECK;

/* Appends path to the path of base with one slash between them; the query of base is kept, a fragment is dropped. path
 * is program text like "models" or "v1/models?limit=1000" (its query precedes that of base). */
int url_join(struct arena *a, const char *base, const char *path, char **ret, struct err *e) MUST_CHECK;
