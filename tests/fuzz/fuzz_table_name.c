/* Names of tables as apps write them. A name that is taken is the same when it is read again, and its parts, quoted as
 * SQL does, name it. */
#include "backend/backend.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>
#include <string.h>

static const char *quoted(struct arena *a, const char *part)
{
    struct buf out;

    buf_init(&out, LIMIT_TABLE_NAME);
    buf_add_char(&out, '"');
    for (; *part; part++)
        buf_printf(&out, *part == '"' ? "\"\"" : "%c", *part);
    buf_add_char(&out, '"');
    return buf_to_arena(&out, a);
}

static void check_part(const char *part)
{
    assert(*part && strlen(part) <= LIMIT_TABLE_NAME_PART && utf8_is_valid(slice_of(part)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *declared = arena_strndup(a, (const char *)data, size);
    char *name = NULL, *again = NULL;
    struct table_parts parts;
    struct err e = { 0 };

    if (backend_table_name(a, declared, &name, &e) < 0) {
        assert(strcmp(e.code, "VALIDATION_ERROR") == 0 && *e.text);
        (void)backend_table_parts(a, declared);
        return 0;
    }
    assert(strlen(name) <= LIMIT_TABLE_NAME);
    parts = backend_table_parts(a, name);
    check_part(parts.schema);
    check_part(parts.table);
    assert(backend_table_name(a, name, &again, NULL) == 0 && strcmp(again, name) == 0);
    declared = arena_printf(a, "%s.%s", quoted(a, parts.schema), quoted(a, parts.table));
    assert(backend_table_name(a, declared, &again, NULL) == 0 && strcmp(again, name) == 0);
    return 0;
}
