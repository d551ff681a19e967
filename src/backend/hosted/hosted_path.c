#include "backend/hosted/hosted_rest.h"
#include "base/percent.h"

#include <string.h>

static void init(struct hosted_path *p)
{
    *p = (struct hosted_path){ .schema = "public" };
    buf_init(&p->out, LIMIT_HOSTED_PATH);
    buf_add_str(&p->out, "rest/v1/");
}

void hosted_path_init(struct hosted_path *p, const char *table)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    const struct table_parts parts = backend_table_parts(a, table);

    init(p);
    p->table = table;
    p->is_dots = strcmp(parts.table, ".") == 0 || strcmp(parts.table, "..") == 0;
    snprintf(p->schema, sizeof(p->schema), "%s", parts.schema);
    percent_encode(&p->out, slice_of(parts.table));
}

void hosted_path_init_function(struct hosted_path *p, const char *name)
{
    init(p);
    buf_add_str(&p->out, "rpc/");
    percent_encode(&p->out, slice_of(name));
}

void hosted_path_clear(struct hosted_path *p)
{
    buf_clear(&p->out);
}

static void begin_parameter(struct hosted_path *p, const char *name)
{
    buf_add_char(&p->out, p->has_query ? '&' : '?');
    percent_encode(&p->out, slice_of(name));
    buf_add_char(&p->out, '=');
    p->has_query = true;
}

void hosted_path_add(struct hosted_path *p, const char *name, const char *value)
{
    begin_parameter(p, name);
    percent_encode(&p->out, slice_of(value));
}

void hosted_path_number(struct hosted_path *p, const char *name, int64_t value)
{
    begin_parameter(p, name);
    buf_printf(&p->out, "%lld", (long long)value);
}

void hosted_path_filter(struct hosted_path *p, const char *column, const char *op, const char *value)
{
    begin_parameter(p, column);
    buf_printf(&p->out, "%s.", value ? op : "is");
    percent_encode(&p->out, slice_of(value ? value : "null"));
}

void hosted_quote(struct buf *out, const char *text)
{
    buf_add_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, *text);
    }
    buf_add_char(out, '"');
}

const char *hosted_array_of(struct arena *a, const char *text)
{
    struct buf out;

    buf_init(&out, LIMIT_HOSTED_PATH);
    buf_add_char(&out, '{');
    hosted_quote(&out, text);
    buf_add_char(&out, '}');
    return buf_to_arena(&out, a);
}
