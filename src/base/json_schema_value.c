#include "base/json_schema_private.h"

#include "base/hash.h"
#include "base/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

/* Beyond this, a double is compared by its sign and size only: no integer of a document reaches it. */
#define WHOLE_MAX 0x1p100

struct number {
    bool is_whole;
    __int128 whole;
    double real;
};

bool schema_is_number(struct json_value v)
{
    return json_type(v) == JSON_INT || json_type(v) == JSON_DOUBLE;
}

static struct number number_of(struct json_value v)
{
    double d = json_double(v);
    uint64_t u;

    if (json_type(v) == JSON_INT)
        return (struct number){ .is_whole = true, .whole = json_int(v) };
    if (json_read_uint(v, &u))
        return (struct number){ .is_whole = true, .whole = u };
    if (d == floor(d) && fabs(d) < WHOLE_MAX)
        return (struct number){ .is_whole = true, .whole = (__int128)d };
    return (struct number){ .real = d };
}

bool schema_is_integer(struct json_value v)
{
    return json_type(v) == JSON_INT || (json_type(v) == JSON_DOUBLE && json_double(v) == floor(json_double(v)));
}

/* real is no whole number, or beyond every whole one. */
static int compare_whole(__int128 whole, double real)
{
    if (fabs(real) >= WHOLE_MAX)
        return real > 0 ? -1 : 1;
    return whole <= (__int128)floor(real) ? -1 : 1;
}

int schema_compare_numbers(struct json_value one, struct json_value other)
{
    struct number a = number_of(one), b = number_of(other);

    if (a.is_whole && b.is_whole)
        return a.whole < b.whole ? -1 : a.whole > b.whole;
    if (a.is_whole)
        return compare_whole(a.whole, b.real);
    if (b.is_whole)
        return -compare_whole(b.whole, a.real);
    return a.real < b.real ? -1 : a.real > b.real;
}

/* digits * 10^exponent, without the sign; digits have no zero at their end. */
struct decimal {
    uint64_t digits;
    long exponent;
};

static struct decimal decimal_of_text(const char *text)
{
    struct decimal d = { 0 };
    bool is_fraction = false;

    for (; *text && *text != 'e'; text++) {
        is_fraction = is_fraction || *text == '.';
        if (*text < '0' || *text > '9')
            continue;
        d.digits = 10 * d.digits + (uint64_t)(*text - '0');
        d.exponent -= is_fraction;
    }
    if (*text == 'e')
        d.exponent += strtol(text + 1, NULL, 10);
    while (d.digits > 0 && d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    return d;
}

/* A double has at most 17 digits, an integer is below 2^64. */
static struct decimal decimal_of(struct json_value v)
{
    char text[40];
    uint64_t u;

    if (json_type(v) == JSON_INT)
        int_text(text, json_int(v));
    else if (json_read_uint(v, &u))
        snprintf(text, sizeof(text), "%" PRIu64, u);
    else
        json_format_double(text, json_double(v));
    return decimal_of_text(text);
}

bool schema_is_multiple(struct json_value v, struct json_value divisor)
{
    struct decimal a = decimal_of(v), b = decimal_of(divisor);
    unsigned __int128 rest, power = 10;

    if (a.digits == 0 || b.digits == 0)
        return a.digits == 0;
    if (a.exponent < b.exponent) /* a.digits is no multiple of 10 */
        return false;
    rest = a.digits % b.digits;
    for (unsigned long n = (unsigned long)(a.exponent - b.exponent); n > 0; n /= 2) {
        power %= b.digits;
        if (n % 2)
            rest = rest * power % b.digits;
        power *= power;
    }
    return rest == 0;
}

/* ---- hashes ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t hash_number(struct json_value v)
{
    struct number number = number_of(v);

    return number.is_whole ? hash_fast((struct slice){ (const char *)&number.whole, sizeof(number.whole) })
                           : hash_fast((struct slice){ (const char *)&number.real, sizeof(number.real) });
}

static uint64_t hash_value(const struct schema_walk *w, struct json_value v);

/* The order of members does not count, that of elements does. */
static uint64_t hash_container(const struct schema_walk *w, struct json_value v)
{
    bool is_array = json_type(v) == JSON_ARRAY;
    uint64_t hash = is_array ? 1 : 2;
    struct json_value item;
    struct slice name;

    for (struct json_iter it = json_iter(v); schema_take(w->budget, 1) && json_next(&it, &name, &item);) {
        if (!is_array && !schema_take_bytes(w->budget, name.n))
            break;
        if (is_array)
            hash = mix(hash ^ hash_value(w, item));
        else
            hash += mix(hash_fast(name) ^ mix(hash_value(w, item)));
    }
    return hash;
}

static uint64_t hash_value(const struct schema_walk *w, struct json_value v)
{
    switch (json_type(v)) {
    case JSON_INT:
    case JSON_DOUBLE:
        return hash_number(v);
    case JSON_STRING:
        return schema_take_bytes(w->budget, json_string(v).n) ? mix(hash_fast(json_string(v))) : 0;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return hash_container(w, v);
    default:
        return mix((uint64_t)json_type(v) * 2 + json_bool(v));
    }
}

/* ---- equality ---- */

static bool are_same_arrays(const struct schema_walk *w, struct json_value one, struct json_value other)
{
    struct json_iter it = json_iter(one), other_it = json_iter(other);
    struct json_value a, b;

    while (json_next(&it, NULL, &a))
        if (!json_next(&other_it, NULL, &b) || !schema_is_same(w, a, b))
            return false;
    return !json_next(&other_it, NULL, &b);
}

static bool are_same_objects(const struct schema_walk *w, struct json_value one, struct json_value other)
{
    struct json_iter it = json_iter(one);
    struct json_value item, twin;
    struct slice name;

    if (json_length(one) != json_length(other))
        return false;
    while (json_next(&it, &name, &item)) {
        if (!schema_take_bytes(w->budget, name.n))
            return false;
        twin = json_index_get(w->index, other, name);
        if (!twin.doc || !schema_is_same(w, item, twin))
            return false;
    }
    return true;
}

static bool are_same_texts(const struct schema_walk *w, struct slice one, struct slice other)
{
    return one.n == other.n && schema_take_bytes(w->budget, one.n) && slice_eq(one, other);
}

bool schema_is_same(const struct schema_walk *w, struct json_value one, struct json_value other)
{
    if (!schema_take(w->budget, 1))
        return false;
    if (schema_is_number(one) && schema_is_number(other))
        return schema_compare_numbers(one, other) == 0;
    if (json_type(one) != json_type(other))
        return false;
    switch (json_type(one)) {
    case JSON_BOOL:
        return json_bool(one) == json_bool(other);
    case JSON_STRING:
        return are_same_texts(w, json_string(one), json_string(other));
    case JSON_ARRAY:
        return are_same_arrays(w, one, other);
    case JSON_OBJECT:
        return are_same_objects(w, one, other);
    default:
        return true;
    }
}

/* ---- sets ---- */

static int by_hash(const void *one, const void *other)
{
    const struct schema_hashed *a = one, *b = other;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

struct schema_set schema_set_of(const struct schema_walk *w, struct arena *a, struct json_value list)
{
    struct schema_set set = { .doc = list.doc };
    struct json_value item;

    if (!schema_take(w->budget, json_length(list)))
        return set;
    set.items = arena_array(a, json_length(list) + 1, sizeof(*set.items));
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        set.items[set.n++] = (struct schema_hashed){ hash_value(w, item), item.at };
    qsort(set.items, set.n, sizeof(*set.items), by_hash);
    return set;
}

static struct json_value value_at(const struct schema_set *set, size_t i)
{
    return (struct json_value){ set->doc, set->items[i].at };
}

bool schema_set_has(const struct schema_walk *w, const struct schema_set *set, struct json_value v)
{
    uint64_t hash = hash_value(w, v);
    size_t low = 0, high = set->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (set->items[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < set->n && set->items[low].hash == hash && schema_take(w->budget, 1); low++)
        if (schema_is_same(w, value_at(set, low), v))
            return true;
    return false;
}

bool schema_set_find_equal(const struct schema_walk *w, const struct schema_set *set, struct json_value *ret_one,
                           struct json_value *ret_other)
{
    for (size_t i = 0; i < set->n; i++)
        for (size_t k = i + 1; k < set->n && set->items[k].hash == set->items[i].hash; k++) {
            if (!schema_take(w->budget, 1))
                return false;
            if (!schema_is_same(w, value_at(set, i), value_at(set, k)))
                continue;
            *ret_one = value_at(set, i);
            *ret_other = value_at(set, k);
            return true;
        }
    return false;
}
