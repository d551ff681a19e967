/* A filter on metadata, a newline, and the metadata that the filter is applied to. */
#include "vector/vector_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *end = n ? memchr(bytes, '\n', n) : NULL;
    size_t length = end ? (size_t)(end - (const char *)bytes) : n;
    struct json_value filter, metadata = { 0 };
    struct vector_filter f = { 0 };
    struct err e = { 0 };

    if (json_parse(a, (struct slice){ (const char *)bytes, length }, &filter, NULL) < 0 ||
        vector_filter_parse(a, filter, &f, &e) < 0)
        return 0;
    if (end && json_parse(a, (struct slice){ end + 1, n - length - 1 }, &metadata, NULL) < 0)
        return 0;
    vector_filter_matches(&f, metadata);
    return 0;
}
