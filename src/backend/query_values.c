#include "backend/query_values.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/uuid.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { SHOWN_BYTES = 100, NUMERIC_DIGITS = 15, NUMBER_BYTES = 400 };

int query_value_refuse(enum table_type type, struct slice text, struct err *e)
{
    return err_set(e, -EINVAL, "BAD_VALUE", "invalid input syntax for type %s: \"%.*s\"",
                   type == TABLE_JSONB ? "json" : table_type_name(type), (int)MIN(text.n, (size_t)SHOWN_BYTES), text.p);
}

static int refuse_range(enum table_type type, struct slice text, struct err *e)
{
    err_add_extra(e, "sqlstate", "22003");
    return err_set(e, -EINVAL, "BAD_VALUE", "value \"%.*s\" is out of range for type %s",
                   (int)MIN(text.n, (size_t)SHOWN_BYTES), text.p, table_type_name(type));
}

static struct slice trim(struct slice s)
{
    while (s.n && isspace((unsigned char)s.p[0]))
        s = (struct slice){ s.p + 1, s.n - 1 };
    while (s.n && isspace((unsigned char)s.p[s.n - 1]))
        s.n--;
    return s;
}

/* --- numbers --- */

static int read_int(struct arena *a, enum table_type type, struct slice text, struct query_value *ret, struct err *e)
{
    int64_t max = type == TABLE_INT2 ? INT16_MAX : type == TABLE_INT4 ? INT32_MAX : INT64_MAX;
    struct slice s = trim(text);
    char *end, *copy = arena_slicedup(a, s);
    size_t at = s.n && (s.p[0] == '-' || s.p[0] == '+');

    if (at == s.n)
        return query_value_refuse(type, text, e);
    for (; at < s.n; at++)
        if (!isdigit((unsigned char)s.p[at]))
            return query_value_refuse(type, text, e);
    errno = 0;
    ret->i = strtoll(copy, &end, 10);
    if (errno || ret->i > max || ret->i < -max - 1)
        return refuse_range(type, text, e);
    ret->kind = QUERY_VALUE_INT;
    return 0;
}

static size_t skip_digits(struct slice s, size_t at)
{
    while (at < s.n && isdigit((unsigned char)s.p[at]))
        at++;
    return at;
}

/* digits[.digits][e[sign]digits], one digit at least before the exponent. */
static bool is_number(struct slice s)
{
    size_t at = s.n && (s.p[0] == '-' || s.p[0] == '+'), first = at, n_digits;

    at = skip_digits(s, at);
    n_digits = at - first;
    if (at < s.n && s.p[at] == '.') {
        first = ++at;
        at = skip_digits(s, at);
        n_digits += at - first;
    }
    if (n_digits == 0)
        return false;
    if (at < s.n && (s.p[at] == 'e' || s.p[at] == 'E')) {
        at++;
        at += at < s.n && (s.p[at] == '-' || s.p[at] == '+');
        first = at;
        at = skip_digits(s, at);
        if (at == first)
            return false;
    }
    return at == s.n;
}

/* Digits from the first to the last that is not 0. */
static size_t count_digits(struct slice s)
{
    size_t n = 0, n_last = 0;

    for (size_t i = 0; i < s.n && s.p[i] != 'e' && s.p[i] != 'E'; i++) {
        if (!isdigit((unsigned char)s.p[i]) || (n == 0 && s.p[i] == '0'))
            continue;
        n++;
        if (s.p[i] != '0')
            n_last = n;
    }
    return n_last;
}

static int read_real(struct arena *a, enum table_type type, struct slice text, struct query_value *ret, struct err *e)
{
    struct slice s = trim(text);

    if (s.n > NUMBER_BYTES || !is_number(s))
        return query_value_refuse(type, text, e);
    ret->d = strtod(arena_slicedup(a, s), NULL);
    if (type == TABLE_FLOAT4)
        ret->d = (float)ret->d;
    if (!isfinite(ret->d))
        return refuse_range(type, text, e);
    ret->kind = QUERY_VALUE_REAL;
    return 0;
}

static int read_numeric(struct arena *a, struct slice text, struct query_value *ret, struct err *e)
{
    int r;

    if (read_int(a, TABLE_INT8, text, ret, NULL) == 0)
        return 0;
    r = read_real(a, TABLE_NUMERIC, text, ret, e);
    return r == 0 && count_digits(trim(text)) > NUMERIC_DIGITS ? refuse_range(TABLE_NUMERIC, text, e) : r;
}

/* --- words --- */

static bool begins_word(struct slice s, const char *word, size_t min)
{
    return s.n >= min && s.n <= strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

static int read_bool(struct slice text, struct query_value *ret, struct err *e)
{
    struct slice s = trim(text);
    bool is_true =
        begins_word(s, "true", 1) || begins_word(s, "yes", 1) || begins_word(s, "on", 2) || slice_eq_str(s, "1");

    if (!is_true && !begins_word(s, "false", 1) && !begins_word(s, "no", 1) && !begins_word(s, "off", 2) &&
        !slice_eq_str(s, "0"))
        return query_value_refuse(TABLE_BOOL, text, e);
    ret->kind = QUERY_VALUE_INT;
    ret->i = is_true;
    return 0;
}

/* In braces or not; a hyphen may stand after each group of four digits (PostgreSQL, UUID type). */
static int read_uuid(struct arena *a, struct slice text, struct query_value *ret, struct err *e)
{
    struct slice s = text;
    char *out = arena_alloc(a, UUID_SIZE);
    size_t n = 0, n_digits = 0;

    if (s.n > 1 && s.p[0] == '{' && s.p[s.n - 1] == '}')
        s = (struct slice){ s.p + 1, s.n - 2 };
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '-' && n_digits && n_digits % 4 == 0 && s.p[i - 1] != '-' && i + 1 < s.n)
            continue;
        if (!isxdigit((unsigned char)s.p[i]) || n_digits == 32)
            return query_value_refuse(TABLE_UUID, text, e);
        if (n_digits == 8 || n_digits == 12 || n_digits == 16 || n_digits == 20)
            out[n++] = '-';
        out[n++] = (char)tolower((unsigned char)s.p[i]);
        n_digits++;
    }
    if (n_digits != 32)
        return query_value_refuse(TABLE_UUID, text, e);
    ret->kind = QUERY_VALUE_TEXT;
    ret->text = (struct slice){ out, n };
    return 0;
}

/* --- JSON and arrays --- */

static int read_json(struct arena *a, enum table_type type, struct slice text, struct query_value *ret, struct err *e)
{
    struct json_value v;

    if (json_parse(a, text, &v, NULL) < 0)
        return query_value_refuse(type, text, e);
    ret->kind = QUERY_VALUE_TEXT;
    ret->text = slice_of(json_to_str(a, v));
    return 0;
}

struct array_reader {
    struct slice text;      /* as PostgreSQL writes arrays, or ... */
    struct json_value json; /* ... a JSON array */
    size_t at;
    struct arena *arena;
    enum table_type type;
    struct json_writer out;
};

static bool reads(struct array_reader *r, char c)
{
    while (r->at < r->text.n && isspace((unsigned char)r->text.p[r->at]))
        r->at++;
    if (r->at == r->text.n || r->text.p[r->at] != c)
        return false;
    r->at++;
    return true;
}

/* The text of one element; false: none. */
static bool read_element(struct array_reader *r, struct buf *out, bool *ret_is_quoted)
{
    static const char ends[] = ",{}\"";

    *ret_is_quoted = reads(r, '"');
    for (; r->at < r->text.n; r->at++) {
        char c = r->text.p[r->at];

        if (*ret_is_quoted ? c == '"' : strchr(ends, c) != NULL)
            break;
        if (c == '\\' && ++r->at == r->text.n)
            return false;
        buf_add_char(out, r->text.p[r->at]);
    }
    if (*ret_is_quoted)
        return reads(r, '"');
    while (out->n && isspace((unsigned char)out->p[out->n - 1]))
        out->p[--out->n] = '\0';
    return out->n > 0;
}

static int add_element(struct array_reader *r, struct slice text, bool is_quoted, struct err *e)
{
    struct query_value v = { 0 };
    int failed = 0;

    if (!is_quoted && text.n == 4 && strncasecmp(text.p, "NULL", 4) == 0)
        json_add_null(&r->out, NULL);
    else if (r->type == TABLE_TEXT_ARRAY)
        json_add_slice(&r->out, NULL, text);
    else if ((failed = read_int(r->arena, TABLE_INT4, text, &v, e)) == 0)
        json_add_int(&r->out, NULL, v.i);
    return failed;
}

/* {a,"b c",NULL}: one dimension. */
static int read_elements(struct array_reader *r, struct err *e)
{
    bool is_quoted, is_last = false;
    struct buf element;
    int failed = 0;

    if (!reads(r, '{'))
        return query_value_refuse(r->type, r->text, e);
    is_last = reads(r, '}');
    buf_init(&element, MAX(r->text.n, (size_t)1));
    while (!is_last && failed == 0) {
        buf_reset(&element);
        failed = read_element(r, &element, &is_quoted) ? 0 : query_value_refuse(r->type, r->text, e);
        if (failed == 0)
            failed = add_element(r, buf_slice(&element), is_quoted, e);
        if (failed == 0 && !reads(r, ',')) {
            is_last = reads(r, '}');
            failed = is_last ? 0 : query_value_refuse(r->type, r->text, e);
        }
    }
    buf_clear(&element);
    reads(r, '\0'); /* passes blanks */
    return failed == 0 && r->at < r->text.n ? query_value_refuse(r->type, r->text, e) : failed;
}

typedef int elements_fn(struct array_reader *r, struct err *e);

/* The value of an array is a JSON array of what `read` finds. */
static int write_array(struct array_reader *reader, elements_fn *read, struct query_value *ret, struct err *e)
{
    struct buf out;
    int r;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&reader->out, &out);
    json_begin_array(&reader->out);
    r = read(reader, e);
    if (r == 0) {
        json_end(&reader->out);
        r = buf_check(&out, e);
    }
    ret->kind = QUERY_VALUE_TEXT;
    ret->text = slice_of(buf_to_arena(&out, reader->arena));
    return r;
}

static int read_array(struct arena *a, enum table_type type, struct slice text, struct query_value *ret, struct err *e)
{
    struct array_reader reader = { .text = text, .arena = a, .type = type };

    return write_array(&reader, read_elements, ret, e);
}

/* --- entry --- */

static int read_text(struct slice text, struct query_value *ret)
{
    ret->kind = QUERY_VALUE_TEXT;
    ret->text = text.p ? text : SLICE_LIT("");
    return 0;
}

int query_value_read(struct arena *a, enum table_type type, struct slice text, struct query_value *ret, struct err *e)
{
    *ret = (struct query_value){ .kind = QUERY_VALUE_TEXT };
    switch (type) {
    case TABLE_UUID:
        return read_uuid(a, text, ret, e);
    case TABLE_INT2:
    case TABLE_INT4:
    case TABLE_INT8:
        return read_int(a, type, text, ret, e);
    case TABLE_FLOAT4:
    case TABLE_FLOAT8:
        return read_real(a, type, text, ret, e);
    case TABLE_NUMERIC:
        return read_numeric(a, text, ret, e);
    case TABLE_BOOL:
        return read_bool(text, ret, e);
    case TABLE_TIMESTAMP:
    case TABLE_TIMESTAMPTZ:
    case TABLE_DATE:
    case TABLE_TIME:
        return query_time_read(a, type, text, &ret->text, e);
    case TABLE_JSON:
    case TABLE_JSONB:
        return read_json(a, type, text, ret, e);
    case TABLE_TEXT_ARRAY:
    case TABLE_INT4_ARRAY:
        return read_array(a, type, text, ret, e);
    default:
        return read_text(text, ret);
    }
}

/* A JSON array as an array of PostgreSQL's: each element is read as one of an array literal would be. */
static int read_json_elements(struct array_reader *r, struct err *e)
{
    struct json_iter it = json_iter(r->json);
    struct json_value item;
    int failed = 0;

    while (failed == 0 && json_next(&it, NULL, &item)) {
        if (json_type(item) == JSON_NULL)
            json_add_null(&r->out, NULL);
        else if (json_type(item) == JSON_STRING)
            failed = add_element(r, json_string(item), true, e);
        else
            failed = add_element(r, slice_of(json_to_str(r->arena, item)), true, e);
    }
    return failed;
}

static int read_json_array(struct arena *a, enum table_type type, struct json_value v, struct query_value *ret,
                           struct err *e)
{
    struct array_reader reader = { .json = v, .arena = a, .type = type };

    return write_array(&reader, read_json_elements, ret, e);
}

int query_value_of_json(struct arena *a, enum table_type type, struct json_value v, struct query_value *ret,
                        struct err *e)
{
    *ret = (struct query_value){ .kind = QUERY_VALUE_NULL };
    if (json_is_absent(v))
        return 0;
    if (table_type_is_json(type)) {
        ret->kind = QUERY_VALUE_TEXT;
        ret->text = slice_of(json_to_str(a, v));
        return 0;
    }
    if (table_type_is_array(type) && json_type(v) == JSON_ARRAY)
        return read_json_array(a, type, v, ret, e);
    if (json_type(v) == JSON_STRING)
        return query_value_read(a, type, json_string(v), ret, e);
    return query_value_read(a, type, slice_of(json_to_str(a, v)), ret, e);
}
