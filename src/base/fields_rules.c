#include "base/fields_rules.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include <assert.h>
#include <math.h>

/* The largest integer up to which a double is exact; clients are mostly JavaScript. */
#define INT_MAX_EXACT 9007199254740992.0

enum { RULE_SIZE = 200 };

double field_max(const struct field *f)
{
    if (f->max != 0)
        return f->max;
    switch (f->kind) {
    case FIELD_KIND_STRING:
        return LIMIT_STRING_DEFAULT;
    case FIELD_KIND_INT:
        return INT_MAX_EXACT;
    case FIELD_KIND_DOUBLE:
        return HUGE_VAL;
    default:
        return LIMIT_ITEMS_DEFAULT;
    }
}

static int refuse_number(const struct field *f, const char *path, struct err *e)
{
    const char *what = f->kind == FIELD_KIND_INT ? "an integer" : "a number";
    char min[NUMBER_TEXT_SIZE], max[NUMBER_TEXT_SIZE];

    number_text(min, f->min);
    if (f->max == 0)
        return err_add_field(e, path, "must be %s of at least %s", what, min);
    if (f->min == f->max)
        return err_add_field(e, path, "must be %s", min);
    return err_add_field(e, path, "must be %s from %s to %s", what, min, number_text(max, f->max));
}

static int refuse_choice(const struct field *f, const char *path, struct err *e)
{
    char rule[RULE_SIZE];
    struct buf choices;
    int r;

    buf_init(&choices, sizeof rule);
    for (const char *const *choice = f->one_of; *choice; choice++)
        buf_printf(&choices, "%s%s", choice == f->one_of ? "" : ", ", *choice);
    r = err_add_field(e, path, "must be one of %s", buf_str(&choices));
    buf_clear(&choices);
    return r;
}

int field_refuse(const struct field *f, const char *path, struct err *e)
{
    switch (f->kind) {
    case FIELD_KIND_STRING:
        return f->one_of ? refuse_choice(f, path, e) : err_add_field(e, path, "must be a string");
    case FIELD_KIND_INT:
    case FIELD_KIND_DOUBLE:
        return refuse_number(f, path, e);
    case FIELD_KIND_BOOL:
        return err_add_field(e, path, "must be true or false");
    case FIELD_KIND_ARRAY:
        return err_add_field(e, path, "must be an array");
    case FIELD_KIND_STRINGS:
        return err_add_field(e, path, "must be an array of strings");
    case FIELD_KIND_FLOATS:
        return err_add_field(e, path, "must be an array of numbers");
    case FIELD_KIND_FLOATS_B64:
        return err_add_field(e, path, "must be a string");
    case FIELD_KIND_LIST:
        return err_add_field(e, path, "must be an array of objects");
    case FIELD_KIND_STRING_MAP:
        return err_add_field(e, path, "must be an object of strings");
    default:
        return err_add_field(e, path, "must be an object");
    }
}

static bool is_one_of(const char *const *choices, struct slice text)
{
    for (; *choices; choices++)
        if (slice_eq_str(text, *choices))
            return true;
    return false;
}

static int check_length(const struct field *f, struct slice text, const char *path, struct err *e)
{
    size_t n_characters = utf8_length(text);

    if ((double)n_characters > field_max(f))
        return err_add_field(e, path, "must be at most %.0f characters", field_max(f));
    if ((double)n_characters >= f->min)
        return 0;
    if (f->min == 1)
        return err_add_field(e, path, "must not be empty");
    return err_add_field(e, path, "must be at least %.0f characters", f->min);
}

int field_check_text(const struct field *f, struct slice text, const char *path, struct err *e)
{
    if (text.n > 0 && memchr(text.p, 0, text.n))
        return err_add_field(e, path, "must not contain a NUL character");
    if (f->one_of && !is_one_of(f->one_of, text))
        return refuse_choice(f, path, e);
    if (f->format && strcmp(f->format, "uuid") == 0 && !uuid_is_valid(text))
        return err_add_field(e, path, "must be a UUID");
    return check_length(f, text, path, e);
}

static void *member_of(void *into, size_t offset)
{
    return (char *)into + offset;
}

static int store_number(const struct field *f, struct json_value v, void *into, const char *path, struct err *e)
{
    enum json_type type = json_type(v);
    double number = json_double(v);
    bool is_wrong = type != JSON_INT && type != JSON_DOUBLE;

    if (f->kind == FIELD_KIND_INT)
        is_wrong = is_wrong || number != floor(number) || fabs(number) > INT_MAX_EXACT;
    if (is_wrong || number < f->min || number > field_max(f))
        return field_refuse(f, path, e);
    if (f->kind == FIELD_KIND_INT)
        *(int64_t *)member_of(into, f->offset) = (int64_t)number;
    else
        *(double *)member_of(into, f->offset) = number;
    return 0;
}

int field_store_scalar(const struct field *f, struct json_value v, void *into, const char *path, struct err *e)
{
    switch (f->kind) {
    case FIELD_KIND_INT:
    case FIELD_KIND_DOUBLE:
        return store_number(f, v, into, path, e);
    default:
        assert(f->kind == FIELD_KIND_BOOL);
        if (json_type(v) != JSON_BOOL)
            return field_refuse(f, path, e);
        *(bool *)member_of(into, f->offset) = json_bool(v);
        return 0;
    }
}

void field_store_default(const struct field *f, void *into)
{
    switch (f->kind) {
    case FIELD_KIND_STRING:
        *(const char **)member_of(into, f->offset) = f->def_str;
        break;
    case FIELD_KIND_INT:
        *(int64_t *)member_of(into, f->offset) = (int64_t)f->def;
        break;
    case FIELD_KIND_DOUBLE:
        *(double *)member_of(into, f->offset) = f->def;
        break;
    case FIELD_KIND_BOOL:
        *(bool *)member_of(into, f->offset) = f->def != 0;
        break;
    default:
        break; /* the caller zeroed the struct, which means absent or empty */
    }
}

void field_mark_present(const struct field *f, void *into)
{
    if (f->present_offset)
        *(bool *)member_of(into, f->present_offset) = true;
}
