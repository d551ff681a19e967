/* The columns of a table as a hosted project tells them. */
#include "backend/hosted/hosted_query.h"
#include "base/limits.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct table_shape shape = { 0 };
    bool is_listed = false;
    struct err e = { 0 };
    size_t n_text = 0;

    if (hosted_shape_parse("orders", arena_strndup(a, (const char *)bytes, n), a, &shape, &is_listed, &e) < 0)
        return 0;
    if (shape.n_columns > LIMIT_HOSTED_COLUMNS)
        __builtin_trap();
    for (size_t i = 0; i < shape.n_columns; i++) {
        const struct table_column *c = &shape.columns[i];

        n_text += strlen(c->name) + strlen(c->type_name) + (c->default_text ? strlen(c->default_text) : 0);
        if (!table_shape_column(&shape, slice_of(c->name)) || !table_type_word(c->type))
            __builtin_trap();
    }
    return n_text > SIZE_MAX / 2;
}
