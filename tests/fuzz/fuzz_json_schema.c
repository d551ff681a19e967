/* A schema and a value, as {"schema": …, "value": …}: read, and the value checked. A value that fits is one that fits
 * without a report too, and a violation has a rule. Each input also serves as a pattern. */
#include "base/json_schema.h"
#include "base/limits.h"
#include "base/pattern.h"

#include <assert.h>
#include <string.h>

static void check(const struct json_schema *schema, struct json_value v)
{
    struct err e = { 0 };
    int r = json_schema_apply(schema, v, "value", &e);

    assert(r == 0 || r == -EINVAL);
    assert((r == 0) == (e.n_fields == 0));
    assert(r == 0 || *e.fields[0].rule);
    assert(json_schema_apply(schema, v, "value", NULL) == r);
}

static void search(struct slice text)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char why[PATTERN_WHY_SIZE] = "";
    const struct pattern *p = pattern_new(a, text, why);
    size_t n_steps = 0;

    assert(p || *why);
    if (p)
        (void)!pattern_search(p, SLICE_LIT("aab1 \xf0\x9f\x98\x80-{}"), &n_steps, 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct slice text = { (const char *)data, size };
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct json_schema *schema = NULL;
    struct json_value root = { 0 };
    struct err e = { 0 };
    int r;

    search(text);
    if (json_parse(a, text, &root, NULL) < 0)
        return 0;
    r = json_schema_compile(a, json_get(root, "schema"), "schema", &schema, &e);
    assert((r == 0) == (e.n_fields == 0));
    assert((r == 0) == (schema != NULL));
    if (r == 0)
        check(schema, json_get(root, "value"));
    return 0;
}
