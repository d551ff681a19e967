/* Header values that are read on their own: Accept-Encoding and Cookie. */
#include "http/gzip.h"
#include "http/http.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *value = arena_slicedup(a, (struct slice){ (const char *)data, size });
    struct http_header header = { "cookie", value };
    struct http_request request = { .headers = &header, .n_headers = 1 };
    const char *cookie = http_cookie(a, &request, "sid");

    assert(!cookie || (strstr(value, "sid=") && !strchr(cookie, ';')));
    assert(!http_accepts_gzip(value) || strpbrk(value, "gG*"));
    return 0;
}
