#include "backend/embedded/embedded_functions.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdlib.h>

enum { SMALL_ARENA = 2048 };

static struct slice text_of(sqlite3_value *v)
{
    const unsigned char *text = sqlite3_value_text(v);

    return (struct slice){ (const char *)text, (size_t)sqlite3_value_bytes(v) };
}

static bool is_any_null(int n, sqlite3_value **values)
{
    for (int i = 0; i < n; i++)
        if (sqlite3_value_type(values[i]) == SQLITE_NULL)
            return true;
    return false;
}

static void return_value(sqlite3_context *c, const struct query_value *v)
{
    switch (v->kind) {
    case QUERY_VALUE_INT:
        sqlite3_result_int64(c, v->i);
        break;
    case QUERY_VALUE_REAL:
        sqlite3_result_double(c, v->d);
        break;
    case QUERY_VALUE_TEXT:
        sqlite3_result_text64(c, v->text.p, v->text.n, SQLITE_TRANSIENT, SQLITE_UTF8);
        break;
    default:
        sqlite3_result_null(c);
    }
}

static void return_truth(sqlite3_context *c, bool is_true, size_t steps)
{
    if (steps == 0)
        sqlite3_result_error(c, EMBEDDED_TOO_MUCH_WORK, -1);
    else
        sqlite3_result_int(c, is_true);
}

/* --- LIKE --- */

/* One unit of a pattern: %, _, or a byte (after a backslash: any byte as itself). */
struct unit {
    enum { UNIT_ANY, UNIT_ONE, UNIT_BYTE } kind;
    char byte;
    size_t n;
};

static struct unit unit_at(struct slice pattern, size_t at)
{
    char c = pattern.p[at];

    if (c == '%')
        return (struct unit){ UNIT_ANY, c, 1 };
    if (c == '_')
        return (struct unit){ UNIT_ONE, c, 1 };
    if (c == '\\' && at + 1 < pattern.n)
        return (struct unit){ UNIT_BYTE, pattern.p[at + 1], 2 };
    return (struct unit){ UNIT_BYTE, c, 1 };
}

static size_t char_bytes(struct slice text, size_t at)
{
    return MAX(utf8_char_bytes((struct slice){ text.p + at, text.n - at }), (size_t)1);
}

static bool is_same(char a, char b, bool is_folded)
{
    return a == b || (is_folded && tolower((unsigned char)a) == tolower((unsigned char)b));
}

/* Only the last % is tried again, at each later character: what an earlier one could take, the last one can too. */
bool embedded_like(struct slice text, struct slice pattern, bool is_folded, size_t *steps)
{
    size_t t = 0, p = 0, again_t = 0, again_p = 0;
    bool has_any = false;

    while (t < text.n || p < pattern.n) {
        struct unit u = p < pattern.n ? unit_at(pattern, p) : (struct unit){ .n = 0 };

        if (--*steps == 0)
            return false;
        if (u.n && u.kind == UNIT_ANY) {
            has_any = true;
            again_t = t;
            again_p = p += u.n;
        } else if (u.n && t < text.n && (u.kind == UNIT_ONE || is_same(u.byte, text.p[t], is_folded))) {
            t += u.kind == UNIT_ONE ? char_bytes(text, t) : 1;
            p += u.n;
        } else if (has_any && again_t < text.n) {
            again_t += char_bytes(text, again_t);
            t = again_t;
            p = again_p;
        } else {
            return false;
        }
    }
    return true;
}

static void run_like(sqlite3_context *c, int n, sqlite3_value **values)
{
    size_t steps = LIMIT_QUERY_STEPS;
    bool is_like;

    if (is_any_null(n, values))
        return;
    is_like = embedded_like(text_of(values[0]), text_of(values[1]), sqlite3_value_int(values[2]), &steps);
    return_truth(c, is_like, steps);
}

/* --- JSON --- */

static bool parse(struct arena *a, sqlite3_value *v, struct json_value *ret)
{
    return json_parse(a, text_of(v), ret, NULL) == 0;
}

/* An index counts from the end when it is negative. */
static struct json_value element(struct json_value array, const char *step)
{
    struct json_iter it = json_iter(array);
    struct json_value item = { 0 };
    char *end;
    long long at = strtoll(step, &end, 10);

    if (!*step || *end)
        return (struct json_value){ 0 };
    at += at < 0 ? (long long)json_length(array) : 0;
    for (; at >= 0 && json_next(&it, NULL, &item); at--)
        if (at == 0)
            return item;
    return (struct json_value){ 0 };
}

/* Absent where there is no such member, or the step is no text. */
static struct json_value step_into(struct json_value v, const char *step)
{
    const struct json_value absent = { 0 };

    if (!step)
        return absent;
    return json_type(v) == JSON_ARRAY ? element(v, step) : json_get(v, step);
}

static struct json_value follow(struct json_value v, struct json_value path)
{
    struct json_iter it = json_iter(path);
    struct json_value step;

    while (json_next(&it, NULL, &step))
        v = step_into(v, json_cstr(step));
    return v;
}

static void run_json(sqlite3_context *c, int n, sqlite3_value **values)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(SMALL_ARENA);
    bool is_text = sqlite3_value_int(values[2]);
    struct json_value v, path;
    struct slice text;

    if (is_any_null(n, values) || !parse(a, values[0], &v) || !parse(a, values[1], &path))
        return;
    v = follow(v, path);
    if (json_type(v) == JSON_ABSENT || (is_text && json_type(v) == JSON_NULL))
        return;
    text = is_text && json_type(v) == JSON_STRING ? json_string(v) : slice_of(json_to_str(a, v));
    sqlite3_result_text64(c, text.p ? text.p : "", text.n, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static int compare_members(const void *a, const void *b)
{
    struct slice x = json_name_of(*(const struct json_value *)a), y = json_name_of(*(const struct json_value *)b);
    int order = memcmp(x.p, y.p, MIN(x.n, y.n));

    return order ? order : (x.n > y.n) - (x.n < y.n);
}

/* Members in the order of their names. */
static void print_sorted(struct arena *a, struct buf *out, struct json_value v)
{
    struct json_iter it = json_iter(v);
    size_t n = json_length(v), i = 0;
    struct json_value *items;

    if (json_type(v) != JSON_OBJECT && json_type(v) != JSON_ARRAY) {
        json_print(out, v);
        return;
    }
    items = arena_array(a, MAX(n, (size_t)1), sizeof(*items));
    while (i < n && json_next(&it, NULL, &items[i]))
        i++;
    if (json_type(v) == JSON_OBJECT)
        qsort(items, n, sizeof(*items), compare_members);
    for (i = 0; i < n; i++) {
        buf_add_char(out, i ? ',' : '[');
        if (json_type(v) == JSON_OBJECT) {
            json_quote(out, json_name_of(items[i]));
            buf_add_char(out, ':');
        }
        print_sorted(a, out, items[i]);
    }
    buf_add_str(out, n ? "]" : "[]");
}

/* Numbers as numbers; other values as texts whose first letter is that of the type. */
void embedded_json_key(struct arena *a, struct json_value v, struct query_value *ret)
{
    static const char letters[] = { [JSON_ABSENT] = '0', [JSON_NULL] = '0',   [JSON_BOOL] = 't',  [JSON_INT] = '0',
                                    [JSON_DOUBLE] = '0', [JSON_STRING] = 's', [JSON_ARRAY] = 'x', [JSON_OBJECT] = 'y' };
    struct buf out;

    *ret = (struct query_value){ .kind = QUERY_VALUE_TEXT };
    if (json_type(v) == JSON_INT) {
        ret->kind = QUERY_VALUE_INT;
        ret->i = json_int(v);
    } else if (json_type(v) == JSON_DOUBLE) {
        ret->kind = QUERY_VALUE_REAL;
        ret->d = json_double(v);
    } else {
        buf_init(&out, LIMIT_REPLY);
        buf_add_char(&out, letters[json_type(v)]);
        if (json_type(v) == JSON_STRING)
            buf_add_slice(&out, json_string(v));
        else
            print_sorted(a, &out, v);
        ret->text.n = out.n;
        ret->text.p = buf_to_arena(&out, a);
    }
}

static void run_key(sqlite3_context *c, int n, sqlite3_value **values)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(SMALL_ARENA);
    struct query_value key;
    struct json_value v;

    if (is_any_null(n, values) || !parse(a, values[0], &v))
        return;
    embedded_json_key(a, v, &key);
    return_value(c, &key);
}

static bool is_number(struct json_value v)
{
    return json_type(v) == JSON_INT || json_type(v) == JSON_DOUBLE;
}

static bool is_equal_scalar(struct json_value a, struct json_value b)
{
    if (is_number(a) && is_number(b))
        return json_type(a) == JSON_INT && json_type(b) == JSON_INT ? json_int(a) == json_int(b)
                                                                    : json_double(a) == json_double(b);
    if (json_type(a) != json_type(b))
        return false;
    if (json_type(a) == JSON_STRING)
        return slice_eq(json_string(a), json_string(b));
    return json_type(a) == JSON_NULL || (json_type(a) == JSON_BOOL && json_bool(a) == json_bool(b));
}

static bool contains(struct json_value a, struct json_value b, size_t *steps);

static bool has_element(struct json_value array, struct json_value v, size_t *steps)
{
    struct json_iter it = json_iter(array);
    struct json_value item;

    while (*steps && json_next(&it, NULL, &item))
        if (contains(item, v, steps))
            return true;
    return false;
}

/* Lookups go through all members of an object. */
static bool contains_members(struct json_value a, struct json_value b, size_t *steps)
{
    struct json_iter it = json_iter(b), in_a;
    struct slice name, other;
    struct json_value v, found;
    bool is_found = true;

    while (is_found && json_next(&it, &name, &v)) {
        in_a = json_iter(a);
        is_found = false;
        while (!is_found && *steps && --*steps && json_next(&in_a, &other, &found))
            is_found = slice_eq(name, other);
        is_found = is_found && contains(found, v, steps);
    }
    return is_found;
}

/* PostgreSQL, "jsonb Containment and Existence", without its exception for a scalar at the top. */
static bool contains(struct json_value a, struct json_value b, size_t *steps)
{
    struct json_iter it = json_iter(b);
    struct json_value v;

    if (*steps == 0 || --*steps == 0)
        return false;
    if (json_type(a) == JSON_OBJECT && json_type(b) == JSON_OBJECT)
        return contains_members(a, b, steps);
    if (json_type(a) != JSON_ARRAY || json_type(b) != JSON_ARRAY)
        return is_equal_scalar(a, b);
    while (json_next(&it, NULL, &v))
        if (!has_element(a, v, steps))
            return false;
    return true;
}

static void run_contains(sqlite3_context *c, int n, sqlite3_value **values)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(SMALL_ARENA);
    size_t steps = LIMIT_QUERY_STEPS;
    struct json_value x, y;
    bool is_in;

    if (is_any_null(n, values) || !parse(a, values[0], &x) || !parse(a, values[1], &y))
        return;
    is_in = json_type(x) == JSON_ARRAY && json_type(y) != JSON_ARRAY && json_type(y) != JSON_OBJECT;
    is_in = is_in ? has_element(x, y, &steps) : contains(x, y, &steps);
    return_truth(c, is_in, steps);
}

static void run_overlaps(sqlite3_context *c, int n, sqlite3_value **values)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(SMALL_ARENA);
    size_t steps = LIMIT_QUERY_STEPS;
    struct json_value x, y, v;
    struct json_iter it;
    bool is_found = false;

    if (is_any_null(n, values) || !parse(a, values[0], &x) || !parse(a, values[1], &y))
        return;
    it = json_iter(y);
    while (!is_found && json_next(&it, NULL, &v))
        is_found = json_type(v) != JSON_NULL && has_element(x, v, &steps);
    return_truth(c, is_found, steps);
}

/* --- casts --- */

static void run_cast(sqlite3_context *c, int n, sqlite3_value **values)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(SMALL_ARENA);
    enum table_type from = (enum table_type)sqlite3_value_int(values[1]),
                    to = (enum table_type)sqlite3_value_int(values[2]);
    struct query_value v;
    struct slice text;
    struct err e = { 0 };

    if (is_any_null(n, values))
        return;
    text = from == TABLE_BOOL && to == TABLE_TEXT ? slice_of(sqlite3_value_int(values[0]) ? "true" : "false")
                                                  : text_of(values[0]);
    if (query_value_read(a, to, text, &v, &e) < 0)
        sqlite3_result_error(c, arena_printf(a, EMBEDDED_BAD_CAST "%s", e.text), -1);
    else
        return_value(c, &v);
}

int embedded_functions_add(struct sql_db *db, struct err *e)
{
    static const struct {
        const char *name;
        int n;
        void (*run)(sqlite3_context *c, int n, sqlite3_value **values);
    } functions[] = { { "query_like", 3, run_like },         { "query_json", 3, run_json },
                      { "query_key", 1, run_key },           { "query_contains", 2, run_contains },
                      { "query_overlaps", 2, run_overlaps }, { "query_cast", 3, run_cast } };
    int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY | SQLITE_DETERMINISTIC;

    for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
        if (sqlite3_create_function(sql_handle(db), functions[i].name, functions[i].n, flags, NULL, functions[i].run,
                                    NULL, NULL) != SQLITE_OK)
            return sql_fail(db, e, "cannot add a function");
    return 0;
}
