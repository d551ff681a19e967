/* One byte for the type, then a text and a JSON value of it: whatever is accepted is read again as the same value. */
#include "backend/query_values.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static bool is_same(const struct query_value *a, const struct query_value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == QUERY_VALUE_TEXT)
        return slice_eq(a->text, b->text);
    return a->kind == QUERY_VALUE_INT ? a->i == b->i : memcmp(&a->d, &b->d, sizeof(a->d)) == 0;
}

/* The stored form of times, UUIDs and JSON is one that is read without a change. */
static void check_stored_form(struct arena *a, enum table_type type, const struct query_value *v)
{
    struct query_value again;

    if (v->kind != QUERY_VALUE_TEXT || table_type_is_array(type))
        return;
    if (query_value_read(a, type, v->text, &again, NULL) < 0 || !is_same(v, &again))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    enum table_type type = n ? (enum table_type)(bytes[0] % (TABLE_OTHER + 1)) : TABLE_TEXT;
    struct slice text = { (const char *)bytes + (n > 0), n - (n > 0) };
    struct query_value v;
    struct json_value json;

    text = slice_of(arena_slicedup(a, text)); /* up to the first NUL, as texts of queries are */
    if (query_value_read(a, type, text, &v, NULL) == 0)
        check_stored_form(a, type, &v);
    if (json_parse(a, text, &json, NULL) == 0 && query_value_of_json(a, type, json, &v, NULL) == 0)
        check_stored_form(a, type, &v);
    return 0;
}
