#include "base/fields_rules.h"
#include "base/floats.h"

#include <string.h>

/* The size of err_field's path. */
enum { PATH_SIZE = sizeof(((struct err_field *)0)->field) };

/* What the reader of a row needs in addition to the row and the value. */
struct reader {
    void *into;
    struct arena *a;
    const char *path;
    struct err *e;
};

/* Adds what fits at `at`; returns the new end. Every present member of every request is named here. */
static size_t add_text(char *out, size_t at, const char *text, size_t n)
{
    n = MIN(n, PATH_SIZE - 1 - at);
    memcpy(out + at, text, n);
    out[at + n] = '\0';
    return at + n;
}

static void path_of_member(char *out, const char *path, const char *name)
{
    size_t at = add_text(out, 0, path, strlen(path));

    if (at > 0)
        at = add_text(out, at, ".", 1);
    add_text(out, at, name, strlen(name));
}

static void path_of_item(char *out, const char *path, size_t i)
{
    char number[INT_TEXT_SIZE];
    size_t n = int_text(number, (int64_t)i), at = add_text(out, 0, path, strlen(path));

    at = add_text(out, at, "[", 1);
    at = add_text(out, at, number, n);
    add_text(out, at, "]", 1);
}

static void *member_of(const struct reader *to, const struct field *f)
{
    return (char *)to->into + f->offset;
}

static int read_string(const struct field *f, struct json_value v, const struct reader *to)
{
    int r;

    if (json_type(v) != JSON_STRING)
        return field_refuse(f, to->path, to->e);
    r = field_check_text(f, json_string(v), to->path, to->e);
    if (r < 0)
        return r;
    *(const char **)member_of(to, f) = json_cstr(v);
    return 0;
}

static int refuse_count(const struct reader *to, const char *most_or_least, double n, enum json_type type)
{
    const char *what = type == JSON_ARRAY ? "element" : "member";

    return err_add_field(to->e, to->path, "must have at %s %.0f %s%s", most_or_least, n, what, n == 1 ? "" : "s");
}

/* Checks that v has the type, and as many elements as the row allows. */
static int check_container(const struct field *f, struct json_value v, enum json_type type, const struct reader *to)
{
    double n = (double)json_length(v);

    if (json_type(v) != type)
        return field_refuse(f, to->path, to->e);
    if (n > field_max(f))
        return refuse_count(to, "most", field_max(f), type);
    if (n < f->min)
        return refuse_count(to, "least", f->min, type);
    return 0;
}

static int read_value(const struct field *f, struct json_value v, const struct reader *to)
{
    int r = 0;

    if (f->kind == FIELD_KIND_ARRAY)
        r = check_container(f, v, JSON_ARRAY, to);
    else if (f->kind == FIELD_KIND_OBJECT && json_type(v) != JSON_OBJECT)
        r = field_refuse(f, to->path, to->e);
    if (r == 0)
        *(struct json_value *)member_of(to, f) = v;
    return r;
}

/* Once no further violation can be stored, the rest of a long list is not read. */
static bool is_enough(int r, const struct err *e)
{
    return r < 0 && (!e || e->n_fields >= ERR_MAX_FIELDS);
}

/* The items of STRINGS are limited by the row's one_of and by the default length. */
static struct field item_rule(const struct field *f)
{
    return (struct field){ .kind = FIELD_KIND_STRING, .one_of = f->one_of, .format = f->format };
}

static int read_strings(const struct field *f, struct json_value v, const struct reader *to)
{
    struct field_strings *strings = member_of(to, f);
    const struct field rule = item_rule(f);
    const char **items;
    char path[PATH_SIZE];
    struct json_value item;
    size_t n = 0;
    int r = check_container(f, v, JSON_ARRAY, to), r_item;

    if (r < 0)
        return r;
    items = arena_array(to->a, json_length(v) + 1, sizeof *items);
    for (struct json_iter it = json_iter(v); !is_enough(r, to->e) && json_next(&it, NULL, &item); n++) {
        path_of_item(path, to->path, n);
        r_item = read_string(&rule, item, &(struct reader){ &items[n], to->a, path, to->e });
        r = r_item < 0 ? r_item : r;
    }
    if (r == 0)
        *strings = (struct field_strings){ items, n };
    return r;
}

static int read_floats(const struct field *f, struct json_value v, const struct reader *to)
{
    size_t n = json_length(v), n_read;
    char path[PATH_SIZE];
    float *items;
    int r = check_container(f, v, JSON_ARRAY, to);

    if (r < 0)
        return r;
    items = arena_array(to->a, n + 1, sizeof(*items));
    n_read = json_read_floats(v, items, n);
    if (n_read < n) {
        path_of_item(path, to->path, n_read);
        return err_add_field(to->e, path, "must be a number that fits 32 bits of floating point");
    }
    *(struct json_floats *)member_of(to, f) = (struct json_floats){ items, n };
    return 0;
}

static int read_floats_b64(const struct field *f, struct json_value v, const struct reader *to)
{
    struct slice text = json_string(v);
    size_t n = floats_in_base64(text), n_finite;
    char path[PATH_SIZE];
    float *items;

    if (json_type(v) != JSON_STRING)
        return field_refuse(f, to->path, to->e);
    if ((double)n > field_max(f))
        return err_add_field(to->e, to->path, "must hold at most %.0f numbers", field_max(f));
    items = arena_array(to->a, n + 1, sizeof(*items));
    if (!floats_read_base64(text, items, n))
        return err_add_field(to->e, to->path, "must be padded base64 of float32 numbers, 4 bytes each");
    if ((double)n < f->min)
        return err_add_field(to->e, to->path, "must hold at least %.0f number%s", f->min, f->min == 1 ? "" : "s");
    n_finite = floats_count_finite(items, n);
    if (n_finite < n) {
        path_of_item(path, to->path, n_finite);
        return err_add_field(to->e, path, "must be a finite number");
    }
    *(struct json_floats *)member_of(to, f) = (struct json_floats){ items, n };
    return 0;
}

static int read_string_map(const struct field *f, struct json_value v, const struct reader *to)
{
    const struct field rule = item_rule(f);
    char path[PATH_SIZE];
    struct slice key;
    struct json_value item;
    const char *text;
    int r = check_container(f, v, JSON_OBJECT, to), r_item;

    if (r < 0)
        return r;
    for (struct json_iter it = json_iter(v); !is_enough(r, to->e) && json_next(&it, &key, &item);) {
        path_of_member(path, to->path, key.p);
        if (memchr(key.p, 0, key.n))
            r_item = err_add_field(to->e, to->path, "must not have a name with a NUL character");
        else
            r_item = read_string(&rule, item, &(struct reader){ &text, to->a, path, to->e });
        r = r_item < 0 ? r_item : r;
    }
    if (r == 0)
        *(struct json_value *)member_of(to, f) = v;
    return r;
}

static int read_struct(const struct field *f, struct json_value v, const struct reader *to)
{
    if (json_type(v) != JSON_OBJECT)
        return field_refuse(f, to->path, to->e);
    return fields_read(f->fields, v, member_of(to, f), to->a, to->path, to->e);
}

static int read_list(const struct field *f, struct json_value v, const struct reader *to)
{
    const struct field rule = { .kind = FIELD_KIND_STRUCT, .fields = f->fields };
    char path[PATH_SIZE];
    struct json_value item;
    char *items;
    size_t n = 0;
    int r = check_container(f, v, JSON_ARRAY, to), r_item;

    if (r < 0)
        return r;
    items = arena_array(to->a, json_length(v) + 1, f->item_size);
    for (struct json_iter it = json_iter(v); !is_enough(r, to->e) && json_next(&it, NULL, &item); n++) {
        path_of_item(path, to->path, n);
        r_item = read_struct(&rule, item, &(struct reader){ items + n * f->item_size, to->a, path, to->e });
        r = r_item < 0 ? r_item : r;
    }
    if (r == 0)
        *(struct field_list *)member_of(to, f) = (struct field_list){ items, n };
    return r;
}

static int read_present(const struct field *f, struct json_value v, const struct reader *to)
{
    switch (f->kind) {
    case FIELD_KIND_STRING:
        return read_string(f, v, to);
    case FIELD_KIND_OBJECT:
    case FIELD_KIND_ARRAY:
    case FIELD_KIND_ANY:
        return read_value(f, v, to);
    case FIELD_KIND_STRINGS:
        return read_strings(f, v, to);
    case FIELD_KIND_FLOATS:
        return read_floats(f, v, to);
    case FIELD_KIND_FLOATS_B64:
        return read_floats_b64(f, v, to);
    case FIELD_KIND_STRING_MAP:
        return read_string_map(f, v, to);
    case FIELD_KIND_STRUCT:
        return read_struct(f, v, to);
    case FIELD_KIND_LIST:
        return read_list(f, v, to);
    default:
        return field_store_scalar(f, v, to->into, to->path, to->e);
    }
}

/* Stores the defaults of a whole table and of the structs embedded in it. */
static void store_defaults(const struct field *table, void *into)
{
    for (const struct field *f = table; f->kind != FIELD_KIND_END; f++) {
        if (f->kind == FIELD_KIND_STRUCT)
            store_defaults(f->fields, (char *)into + f->offset);
        else
            field_store_default(f, into);
    }
}

static int read_row(const struct field *f, struct json_value v, const struct reader *to)
{
    int r = json_is_absent(v) ? err_add_field(to->e, to->path, "is required") : read_present(f, v, to);

    if (r == 0)
        field_mark_present(f, to->into);
    return r;
}

int fields_read(const struct field *table, struct json_value object, void *into, struct arena *a, const char *path,
                struct err *e)
{
    char path_row[PATH_SIZE];
    int r = 0, r_row;

    if (!json_is_absent(object) && json_type(object) != JSON_OBJECT)
        return *path ? err_add_field(e, path, "must be an object")
                     : err_set(e, -EINVAL, "VALIDATION_ERROR", "The JSON must be an object");
    store_defaults(table, into);
    for (const struct field *f = table; f->kind != FIELD_KIND_END; f++) {
        struct json_value v = json_get(object, f->name);

        if (json_is_absent(v) && !(f->flags & FIELD_REQUIRED))
            continue;
        path_of_member(path_row, path, f->name);
        r_row = read_row(f, v, &(struct reader){ into, a, path_row, e });
        r = r_row < 0 ? r_row : r;
    }
    return r;
}
