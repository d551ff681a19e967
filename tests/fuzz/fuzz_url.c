/* An address as an app or the administrator writes it, a newline, and the path to append (program text: printable
 * ASCII). The joined text is an address again, on the same host. */
#include "net/url.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static bool is_program_text(const char *path)
{
    while (*path > ' ' && *path < 0x7f)
        path++;
    return *path == '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *end = n ? memchr(bytes, '\n', n) : NULL;
    size_t length = end ? (size_t)(end - (const char *)bytes) : n;
    const char *base = arena_strndup(a, (const char *)bytes, length),
               *path = end ? arena_strndup(a, end + 1, n - length - 1) : "";
    struct url url = { 0 }, again = { 0 };
    struct err e = { 0 };
    char *joined = NULL;

    if (!is_program_text(path) || url_parse(a, base, &url, &e) < 0 || url_join(a, base, path, &joined, &e) < 0)
        return 0;
    if (url_parse(a, joined, &again, &e) < 0 || strcmp(again.host, url.host) != 0 || again.port != url.port)
        abort();
    return 0;
}
