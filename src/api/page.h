/* Pages of the service's own: one style, at most one script, both below /assets (api/resources/static_files.c); nothing
 * is loaded from other addresses, and neither style nor script stands in the page. No other page can frame it or keep a
 * handle on it. */
#pragma once

#include "api/route.h"

struct page {
    const char *title;  /* plain text */
    const char *body;   /* HTML of our own; untrusted text reaches a page only through its script's textContent */
    const char *script; /* its name below /assets; may be NULL */
};

/* Answers with the page; the status is the caller's. */
void page_write(struct response *res, const struct page *page);
/* The headers of every page and of its parts. policy: the content-security-policy. */
void page_add_headers(struct http_exchange *x, const char *policy);
