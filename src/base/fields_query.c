#include "base/fields_rules.h"

#include "base/percent.h"
#include <assert.h>

struct query_pair {
    struct slice name, value; /* as sent, encoded */
};

static struct slice cut_at(struct slice *rest, char separator)
{
    const char *end = rest->n > 0 ? memchr(rest->p, separator, rest->n) : NULL;
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    struct slice before = { rest->p, n };

    n += end != NULL;
    *rest = (struct slice){ rest->p + n, rest->n - n };
    return before;
}

static struct query_pair next_pair(struct slice *query)
{
    struct slice value = cut_at(query, '&');
    struct slice name = cut_at(&value, '=');

    return (struct query_pair){ name, value };
}

/* The first value of the name counts. A name that cannot be decoded matches no field. */
static bool find_value(const char *query, const char *name, struct arena *a, struct slice *ret)
{
    struct slice rest = slice_of(query);
    struct query_pair pair;
    char *decoded;

    while (rest.n > 0) {
        pair = next_pair(&rest);
        if (percent_decode(a, pair.name, true, &decoded, NULL) == 0 && strcmp(decoded, name) == 0) {
            *ret = pair.value;
            return true;
        }
    }
    return false;
}

static int read_text(const struct field *f, char *text, void *into, struct err *e)
{
    int r = field_check_text(f, slice_of(text), f->name, e);

    if (r == 0)
        *(const char **)((char *)into + f->offset) = text;
    return r;
}

/* Numbers and booleans are spelled as in JSON. */
static int read_scalar(const struct field *f, const char *text, void *into, struct arena *a, struct err *e)
{
    struct json_value v;

    if (json_parse(a, slice_of(text), &v, NULL) < 0)
        return field_refuse(f, f->name, e);
    return field_store_scalar(f, v, into, f->name, e);
}

static int read_value(const struct field *f, struct slice value, void *into, struct arena *a, struct err *e)
{
    char *text;
    int r = percent_decode(a, value, true, &text, NULL);

    if (r < 0)
        return err_add_field(e, f->name, "must be percent-encoded UTF-8 without a NUL character");
    r = f->kind == FIELD_KIND_STRING ? read_text(f, text, into, e) : read_scalar(f, text, into, a, e);
    if (r == 0)
        field_mark_present(f, into);
    return r;
}

static int read_row(const struct field *f, const char *query, void *into, struct arena *a, struct err *e)
{
    struct slice value;
    bool is_given = find_value(query, f->name, a, &value);

    assert(f->kind >= FIELD_KIND_STRING && f->kind <= FIELD_KIND_BOOL);
    field_store_default(f, into);
    if (is_given && (value.n > 0 || f->kind == FIELD_KIND_STRING))
        return read_value(f, value, into, a, e);
    return f->flags & FIELD_REQUIRED ? err_add_field(e, f->name, "is required") : 0;
}

int fields_read_query(const struct field *table, const char *query, void *into, struct arena *a, struct err *e)
{
    int r = 0, r_row;

    for (const struct field *f = table; f->kind != FIELD_KIND_END; f++) {
        r_row = read_row(f, query ? query : "", into, a, e);
        r = r_row < 0 ? r_row : r;
    }
    return r;
}
