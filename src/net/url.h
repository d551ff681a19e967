/* Addresses of upstreams: absolute http and https URLs, parsed once by libcurl's URL API (RFC 3986). Any thread.
 *
 * A user name or password in an address is refused: secrets have their own place.
 *
 *     r = url_join(arena, "https://api.example.org/v1/", "chat/completions", &url, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct url {
    const char *scheme, *host;          /* lower-case scheme; host without brackets; both in the arena */
    uint16_t port;                      /* also when the address does not tell it */
    bool is_tls, is_loopback;           /* loopback: 127.0.0.0/8, ::1, localhost and names below it */
};

/* -EINVAL BAD_URL with a sentence that quotes no secret. */
int url_parse(struct arena *a, const char *text, struct url *ret, struct err *e) MUST_CHECK;

/* base with path put behind its own path, one slash between; a query of base stays behind, a fragment is dropped. path is program text like
 * "models" or "v1/models?limit=1000" (its query goes before that of base). */
int url_join(struct arena *a, const char *base, const char *path, char **ret, struct err *e) MUST_CHECK;
