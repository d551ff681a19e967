/* Answers of a hosted project: the first byte chooses the status, the rest is the body. */
#include "backend/hosted/hosted.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const int statuses[] = { 200, 201, 206, 302, 400, 401, 404, 409, 429, 500, 503 };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted_path path;
    const struct hosted_call call = { .method = "GET", .path = &path };
    char name[] = "sales.orders";
    struct hosted_table t = { .name = name };
    struct hosted_reply reply = { 0 };
    struct hosted_rows rows = { 0 };
    struct err e = { 0 };
    size_t n_text = 0;
    int r;

    if (n == 0)
        return 0;
    hosted_path_init(&path, t.name);
    r = hosted_rest_read(&call, statuses[bytes[0] % ARRAY_SIZE(statuses)],
                         (struct slice){ (const char *)bytes + 1, n - 1 }, a, &reply, &e);
    if (r == 0)
        r = hosted_read_rows(&t, reply.body, 100, a, &rows, &e);
    for (size_t i = 0; r == 0 && i < rows.n; i++)
        n_text += strlen(rows.items[i].row.id) + strlen(rows.items[i].row.raw_data) + strlen(rows.items[i].row.status) +
                  strlen(rows.items[i].row.attempted_by);
    hosted_path_clear(&path);
    return n_text > SIZE_MAX / 2;
}
