/* A filter, a NUL, and the raw_data that the filter is applied to. */
#include "backend/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *text = arena_slicedup(a, (struct slice){ (const char *)bytes, n });
    struct backend_row row = { .id = "1",
                               .status = "pending",
                               .retry_count = 3,
                               .attempted_by = "[\"a\"]",
                               .created_at = "2026-01-02T03:04:05Z",
                               .event = BACKEND_INSERT };
    struct filter *f = NULL, *own = NULL;
    struct json_value record;

    if (filter_parse_own(a, text, &own, NULL) == 0 && own && strlen(text) < n &&
        json_parse(a, slice_of(text + strlen(text) + 1), &record, NULL) == 0)
        filter_matches_member(own, json_get(record, filter_column(own)));
    if (filter_parse(a, text, &f, NULL) < 0)
        return 0;
    row.raw_data = strlen(text) < n ? text + strlen(text) + 1 : "{}";
    filter_matches(f, &row);
    return 0;
}
