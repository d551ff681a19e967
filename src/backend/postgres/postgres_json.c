#include "backend/postgres/postgres_json.h"
#include "backend/postgres/postgres.h"
#include "base/json_text.h"
#include "base/limits.h"

#include <string.h>

enum { DIMENSIONS = 6 }; /* of an array, at most */

enum kind { KIND_TEXT, KIND_BOOL, KIND_NUMBER, KIND_TIME, KIND_JSON };

/* PostgreSQL, src/include/catalog/pg_type.dat; these ids never change. */
static const struct {
    uint32_t type;
    enum kind kind;
} kinds[] = {
    { 16, KIND_BOOL },     /* bool */
    { 20, KIND_NUMBER },   /* int8 */
    { 21, KIND_NUMBER },   /* int2 */
    { 23, KIND_NUMBER },   /* int4 */
    { 700, KIND_NUMBER },  /* float4 */
    { 701, KIND_NUMBER },  /* float8 */
    { 1700, KIND_NUMBER }, /* numeric */
    { 1114, KIND_TIME },   /* timestamp */
    { 1184, KIND_TIME },   /* timestamptz */
    { 114, KIND_JSON },    /* json */
    { 3802, KIND_JSON },   /* jsonb */
};

static enum kind kind_of(uint32_t type)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (kinds[i].type == type)
            return kinds[i].kind;
    return KIND_TEXT;
}

/* --- values --- */

static struct slice rest_of(struct slice text, size_t n)
{
    return (struct slice){ text.p + n, text.n - n };
}

/* NaN and infinities are none. */
static bool is_json_number(struct slice text)
{
    return text.n > 0 && json_text_number_bytes(text) == text.n;
}

/* 2026-11-20 09:30:18.1+00 -> 2026-11-20T09:30:18.1+00:00; "infinity" stays. */
static const char *iso_time(struct arena *a, struct slice text)
{
    char *out = arena_slicedup(a, text), *space = strchr(out, ' '), *zone;
    size_t n;

    if (!space || slice_digits(slice_of(space + 1)) != 2)
        return out;
    *space = 'T';
    zone = strpbrk(space, "+-");
    n = zone ? slice_digits(slice_of(zone + 1)) : 0;
    if (n != 2 || (zone[3] != '\0' && zone[3] != ' ')) /* " BC" may follow */
        return out;
    return arena_printf(a, "%.*s:00%s", (int)(zone + 3 - out), out, zone + 3);
}

const char *postgres_json_text(struct arena *a, const struct postgres_column *c, struct slice text)
{
    enum kind kind = c->is_array ? KIND_TEXT : kind_of(c->type);

    if (kind == KIND_BOOL)
        return slice_eq_str(text, "t") ? "true" : "false";
    return kind == KIND_TIME ? iso_time(a, text) : arena_slicedup(a, text);
}

static void add_json(struct json_writer *w, struct arena *a, const char *name, struct slice text)
{
    struct json_value value;

    if (json_parse(a, text, &value, NULL) == 0)
        json_add_raw(w, name, postgres_compact_json(a, text));
    else
        json_add_slice(w, name, text);
}

static void add_value(struct json_writer *w, const char *name, uint32_t type, struct slice text)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    enum kind kind = kind_of(type);

    if (kind == KIND_BOOL && (slice_eq_str(text, "t") || slice_eq_str(text, "f")))
        json_add_bool(w, name, text.p[0] == 't');
    else if (kind == KIND_NUMBER && is_json_number(text))
        json_add_raw(w, name, arena_slicedup(a, text));
    else if (kind == KIND_TIME)
        json_add_string(w, name, iso_time(a, text));
    else if (kind == KIND_JSON)
        add_json(w, a, name, text);
    else
        json_add_slice(w, name, text);
}

/* --- arrays --- */

struct elements {
    struct json_writer *w;
    const struct postgres_column *column;
    const char *at, *end;
    struct buf element;
    int depth;
};

/* Reads one element and what stands behind it in quotes. */
static void add_element(struct elements *in)
{
    bool is_quoted = *in->at == '"';

    buf_reset(&in->element);
    for (in->at += is_quoted; in->at < in->end; in->at++) {
        if (is_quoted ? *in->at == '"' : *in->at == in->column->delimiter || *in->at == '}')
            break;
        in->at += *in->at == '\\' && in->at + 1 < in->end;
        buf_add_char(&in->element, *in->at);
    }
    in->at += is_quoted && in->at < in->end;
    if (!is_quoted && slice_eq_str(buf_slice(&in->element), "NULL"))
        json_add_null(in->w, NULL);
    else
        add_value(in->w, NULL, in->column->type, buf_slice(&in->element));
}

static void add_next(struct elements *in)
{
    if (*in->at == '{' && in->depth < DIMENSIONS) {
        json_begin_array(in->w);
        in->depth++;
        in->at++;
    } else if (*in->at == '}') {
        json_end(in->w);
        in->depth--;
        in->at++;
    } else if (*in->at == in->column->delimiter) {
        in->at++;
    } else {
        add_element(in);
    }
}

/* {a,"b c",NULL}, {{1,2},{3,4}}, [2:3]={1,2}: bounds are not told. */
static void add_array(struct json_writer *w, const char *name, const struct postgres_column *c, struct slice text)
{
    const char *braces = text.n && text.p[0] == '[' ? memmem(text.p, text.n, "={", 2) : NULL;
    struct slice body = braces ? rest_of(text, (size_t)(braces + 1 - text.p)) : text;
    struct elements in = { .w = w, .column = c, .at = body.p + 1, .end = body.p + body.n, .depth = 1 };

    if (body.n == 0 || body.p[0] != '{') {
        json_add_slice(w, name, text);
        return;
    }
    buf_init(&in.element, LIMIT_EVENT_IMAGE);
    json_begin_array_as(w, name);
    while (in.depth > 0 && in.at < in.end)
        add_next(&in);
    for (; in.depth > 0; in.depth--)
        json_end(w);
    buf_clear(&in.element);
}

void postgres_json_add(struct json_writer *w, const char *name, const struct postgres_column *c, struct slice text)
{
    if (c->is_array)
        add_array(w, name, c, text);
    else
        add_value(w, name, c->type, text);
}
