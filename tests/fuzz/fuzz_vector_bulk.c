/* The body of a bulk upsert of vectors: what is taken is whole, and its numbers are those of the body. */
#include "api/resources/vector_bulk.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check(const struct vector_batch *b, struct slice body)
{
    size_t n_row = b->n_dimensions * sizeof(float);

    assert(b->n >= 1 && b->n <= LIMIT_VECTORS_PER_CALL && b->n_dimensions >= 1 && b->n_dimensions <= LIMIT_DIMENSIONS);
    assert(b->n * n_row < body.n);
    for (size_t i = 0; i < b->n; i++) {
        assert(b->items[i].id && b->items[i].metadata[0] == '{');
        assert(strlen(b->items[i].metadata) <= LIMIT_VECTOR_METADATA);
        assert(memcmp(b->items[i].vector, body.p + body.n - (b->n - i) * n_row, n_row) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct slice body = { (const char *)bytes, n };
    struct vector_bulk bulk = { 0 };
    struct err e = { 0 };
    int r = vector_bulk_read(a, body, &bulk, &e);

    assert(r == 0 || (*e.code && *e.text));
    if (r == 0)
        check(&bulk.batch, body);
    return 0;
}
