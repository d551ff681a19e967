#include "api/page.h"

#include "base/base64.h"
#include "base/hash.h"

#define STYLE \
    "body{margin:0 auto;max-width:40rem;padding:2.5rem 1.5rem;font:1.05rem/1.6 system-ui,sans-serif;overflow-wrap:break-word}" \
    "h1{line-height:1.2}code{white-space:nowrap}[hidden]{display:none}" \
    "button{font:inherit;padding:.4rem 1rem;border:1px solid;border-radius:.4rem;background:transparent;color:inherit;cursor:pointer}"

static void add_source(struct buf *policy, const char *directive, const char *text)
{
    unsigned char hash[HASH_BYTES];

    hash_sha256(slice_of(text), hash);
    buf_printf(policy, "; %s 'sha256-", directive);
    base64_encode(policy, (struct slice){ (const char *)hash, sizeof(hash) });
    buf_add_char(policy, '\'');
}

static void add_policy(struct http_exchange *x, const struct page *page)
{
    struct buf policy;

    buf_init(&policy, 1024);
    buf_add_str(&policy, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'");
    add_source(&policy, "style-src", STYLE);
    if (page->script) {
        add_source(&policy, "script-src", page->script);
        buf_add_str(&policy, "; connect-src 'self'");
    }
    http_response_header(x, "content-security-policy", buf_str(&policy));
    buf_clear(&policy);
}

void page_write(struct response *res, const struct page *page)
{
    static const struct http_header headers[] = {
        { "referrer-policy", "no-referrer" },           /* its address held a token */
        { "x-frame-options", "DENY" },                  /* for browsers that do not know frame-ancestors */
        { "cross-origin-opener-policy", "same-origin" },
        { "cross-origin-resource-policy", "same-origin" },
    };
    struct buf *out = response_start_raw(res, "text/html; charset=utf-8");

    add_policy(res->exchange, page);
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        http_response_header(res->exchange, headers[i].name, headers[i].value);
    buf_printf(out,
               "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<meta name=\"color-scheme\" content=\"light dark\">\n<title>%s - Hearth</title>\n"
               "<style>" STYLE "</style>\n</head>\n<body>\n<main>\n%s</main>\n",
               page->title, page->body);
    if (page->script)
        buf_printf(out, "<script>%s</script>\n", page->script);
    buf_add_str(out, "</body>\n</html>\n");
}
