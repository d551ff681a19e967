#include "api/page.h"

void page_add_headers(struct http_exchange *x, const char *policy)
{
    static const struct http_header headers[] = {
        { "referrer-policy", "no-referrer" }, /* an address may hold a token */
        { "x-frame-options", "DENY" },        /* for browsers that do not know frame-ancestors */
        { "cross-origin-opener-policy", "same-origin" },
        { "cross-origin-resource-policy", "same-origin" },
    };

    http_response_header(x, "content-security-policy", policy);
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        http_response_header(x, headers[i].name, headers[i].value);
}

#define POLICY                                                                                                         \
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                                \
    "require-trusted-types-for 'script'; style-src 'self'"

void page_write(struct response *res, const struct page *page)
{
    struct buf *out = response_start_raw(res, "text/html; charset=utf-8");

    page_add_headers(res->exchange, page->script ? POLICY "; script-src 'self'; connect-src 'self'" : POLICY);
    buf_printf(out,
               "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<meta name=\"color-scheme\" content=\"light dark\">\n<title>%s - Hearth</title>\n"
               "<link rel=\"stylesheet\" href=\"/assets/page.css\">\n</head>\n<body>\n<main>\n%s</main>\n",
               page->title, page->body);
    if (page->script)
        buf_printf(out, "<script src=\"/assets/%s\"></script>\n", page->script);
    buf_add_str(out, "</body>\n</html>\n");
}
