/* Pages of the service's own: one style, at most one script, nothing loaded from anywhere. Both are named in the page's policy by their SHA-256
 * (CSP3, section 2.3.1), so that no other style or script runs in it, and no other page can frame it or keep a handle on it. */
#pragma once

#include "api/route.h"

struct page {
    const char *title;                  /* plain text */
    const char *body;                   /* HTML of our own; foreign text reaches a page through its script's textContent only */
    const char *script;                 /* may be NULL */
};

/* Answers with the page; the status is the caller's. */
void page_write(struct response *res, const struct page *page);
