#include "mcp/http_params.h"

#include "base/json_names.h"
#include "base/limits.h"
#include "mcp/http_private.h"

#include <string.h>
#include <strings.h>

enum { MOST_SAFE_BITS = 53 /* integers that JavaScript counts exactly */ };

/* One annotated property, and the value that the call has at its place. */
struct param {
    const char *header; /* the annotation */
    struct json_value value;
};

struct walk {
    struct arena *arena;
    struct param params[LIMIT_MCP_PARAMS];
    size_t n;
    unsigned depth;
};

static int err_tool(struct err *e, struct slice property, const char *rule)
{
    return err_set(e, -EINVAL, "MCP_BAD_TOOL", "The property `%.*s` of the tool's inputSchema %s.",
                   (int)MIN(property.n, (size_t)80), property.p ? property.p : "", rule);
}

static bool is_primitive(struct json_value schema)
{
    struct slice type = json_string(json_get(schema, "type"));

    return slice_eq_str(type, "string") || slice_eq_str(type, "integer") || slice_eq_str(type, "boolean");
}

static bool has_header(const struct walk *w, const char *header)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcasecmp(w->params[i].header, header) == 0)
            return true;
    return false;
}

static int take_param(struct walk *w, struct slice name, struct json_value schema, struct json_value value,
                      struct err *e)
{
    const char *header = json_cstr(json_get(schema, "x-mcp-header"));

    if (!header || strlen(header) > LIMIT_NAME_CHARS || !mcp_http_is_token(header))
        return err_tool(e, name, "has an `x-mcp-header` that is no name of a header");
    if (!is_primitive(schema))
        return err_tool(e, name, "has an `x-mcp-header` and is no string, integer or boolean");
    if (has_header(w, header))
        return err_tool(e, name, "has an `x-mcp-header` that another property has too");
    if (w->n == LIMIT_MCP_PARAMS)
        return err_tool(e, name, "is one of too many with an `x-mcp-header`");
    w->params[w->n++] = (struct param){ header, value };
    return 0;
}

static int walk_properties(struct walk *w, struct json_value schema, struct json_value value, struct err *e);

/* An annotation below anything else than `properties` makes the tool invalid. */
static int refuse_elsewhere(struct json_value v, struct slice name, unsigned depth, struct err *e)
{
    struct json_value item;
    struct slice key;
    int r = 0;

    if (depth > LIMIT_JSON_DEPTH || (json_type(v) != JSON_OBJECT && json_type(v) != JSON_ARRAY))
        return 0;
    for (struct json_iter it = json_iter(v); r == 0 && json_next(&it, &key, &item);) {
        if (json_type(v) == JSON_OBJECT && slice_eq_str(key, "x-mcp-header"))
            return err_tool(e, name, "has an `x-mcp-header` at a place that no argument always has");
        r = refuse_elsewhere(item, name, depth + 1, e);
    }
    return r;
}

static bool is_data(struct slice key)
{
    return slice_eq_str(key, "default") || slice_eq_str(key, "examples") || slice_eq_str(key, "enum") ||
           slice_eq_str(key, "const");
}

static int walk_schema(struct walk *w, struct slice name, struct json_value schema, struct json_value value,
                       struct err *e)
{
    struct json_value item;
    struct slice key;
    int r = 0;

    if (json_type(schema) != JSON_OBJECT || w->depth > LIMIT_JSON_DEPTH)
        return 0;
    w->depth++;
    for (struct json_iter it = json_iter(schema); r == 0 && json_next(&it, &key, &item);) {
        if (slice_eq_str(key, "x-mcp-header"))
            r = take_param(w, name, schema, value, e);
        else if (slice_eq_str(key, "properties"))
            r = walk_properties(w, item, value, e);
        else if (!is_data(key))
            r = refuse_elsewhere(item, name, 0, e);
    }
    w->depth--;
    return r;
}

static int walk_properties(struct walk *w, struct json_value properties, struct json_value value, struct err *e)
{
    struct json_index *index = json_index_new(w->arena);
    struct json_value item;
    struct slice name;
    int r = 0;

    if (json_type(properties) != JSON_OBJECT)
        return 0;
    for (struct json_iter it = json_iter(properties); r == 0 && json_next(&it, &name, &item);)
        r = walk_schema(w, name, item,
                        json_type(value) == JSON_OBJECT ? json_index_get(index, value, name) : (struct json_value){ 0 },
                        e);
    return r;
}

int mcp_params_check(struct json_value input_schema, struct err *e)
{
    struct http_call_header *headers;
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n;

    return mcp_params_of(input_schema, (struct json_value){ 0 }, a, &headers, &n, e);
}

/* NULL: no header (absent, null, or of a type that the schema's own check refuses). */
static const char *text_of(struct arena *a, struct json_value v)
{
    int64_t number = json_int(v), most = INT64_C(1) << MOST_SAFE_BITS;

    switch (json_type(v)) {
    case JSON_STRING:
        return json_cstr(v);
    case JSON_BOOL:
        return json_bool(v) ? "true" : "false";
    case JSON_INT:
        return number > -most && number < most ? arena_printf(a, "%lld", (long long)number) : NULL;
    default:
        return NULL;
    }
}

int mcp_params_of(struct json_value input_schema, struct json_value arguments, struct arena *a,
                  struct http_call_header **ret, size_t *ret_n, struct err *e)
{
    struct http_call_header *headers = arena_array(a, LIMIT_MCP_PARAMS, sizeof(*headers));
    struct walk w = { .arena = a };
    size_t n = 0;
    int r = walk_schema(&w, SLICE_LIT(""), input_schema, arguments, e);

    for (size_t i = 0; r == 0 && i < w.n; i++) {
        const char *text = text_of(a, w.params[i].value);

        if (text && strlen(text) > LIMIT_MCP_HEADER_BYTES / 2)
            r = err_set(e, -E2BIG, "MCP_TOO_LARGE",
                        "The argument for the header Mcp-Param-%s is too long for a header.", w.params[i].header);
        else if (text)
            headers[n++] = (struct http_call_header){ arena_printf(a, "Mcp-Param-%s", w.params[i].header),
                                                      mcp_http_value(a, text) };
    }
    if (r < 0)
        return r;
    *ret = headers;
    *ret_n = n;
    return 0;
}
