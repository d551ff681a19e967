/* Filters in Qdrant's syntax. Qdrant compares numbers as doubles, strings for equality only, and looks into arrays.
 * Conditions that Qdrant cannot decide are left out; remote_nearest() checks these and those that Qdrant decides by
 * other rules. */
#include "vector/remote/qdrant.h"

static bool is_number(struct json_value v)
{
    return json_type(v) == JSON_INT || json_type(v) == JSON_DOUBLE;
}

/* A quoted part of a path may contain neither quotes nor backslashes. */
static bool can_express(const struct vector_condition *c)
{
    if (c->op == VECTOR_NE || strpbrk(c->key, "\"\\"))
        return false;
    if (c->op == VECTOR_EQ || c->op == VECTOR_IN)
        return true;
    return is_number(c->value);
}

/* Writes quotes only where they are needed: servers before 1.9 do not support quotes. */
static void add_path(struct json_writer *w, const char *key)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    bool is_plain =
        *key && key[strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';

    json_add_string(w, "key", arena_printf(a, is_plain ? QDRANT_METADATA ".%s" : QDRANT_METADATA ".\"%s\"", key));
}

static void begin_test(struct json_writer *w, const char *key)
{
    json_begin_object(w);
    add_path(w, key);
}

static void add_range(struct json_writer *w, const char *key, const char *from, const char *to, double d)
{
    begin_test(w, key);
    json_begin_object_as(w, "range");
    if (from)
        json_add_double(w, from, d);
    if (to)
        json_add_double(w, to, d);
    json_end(w);
    json_end(w);
}

/* Matches a member that is missing, null, or an empty array. */
static void add_empty(struct json_writer *w, const char *key)
{
    json_begin_object(w);
    json_begin_object_as(w, "is_empty");
    add_path(w, key);
    json_end(w);
    json_end(w);
}

static void add_equal(struct json_writer *w, const char *key, struct json_value value)
{
    if (json_is_absent(value)) {
        add_empty(w, key);
    } else if (is_number(value)) {
        add_range(w, key, "gte", "lte", json_double(value));
    } else {
        begin_test(w, key);
        json_begin_object_as(w, "match");
        json_add_value(w, "value", value);
        json_end(w);
        json_end(w);
    }
}

static void add_strings(struct json_writer *w, const char *key, struct json_value choices)
{
    struct json_value choice;

    begin_test(w, key);
    json_begin_object_as(w, "match");
    json_begin_array_as(w, "any");
    for (struct json_iter it = json_iter(choices); json_next(&it, NULL, &choice);)
        if (json_type(choice) == JSON_STRING)
            json_add_value(w, NULL, choice);
    json_end(w);
    json_end(w);
    json_end(w);
}

/* All strings become one condition; every other choice becomes a condition of its own. */
static void add_in(struct json_writer *w, const struct vector_condition *c)
{
    struct json_value choice;
    bool has_strings = false;

    json_begin_object(w);
    json_begin_array_as(w, "should");
    for (struct json_iter it = json_iter(c->value); json_next(&it, NULL, &choice);) {
        if (json_type(choice) == JSON_STRING)
            has_strings = true;
        else
            add_equal(w, c->key, choice);
    }
    if (has_strings)
        add_strings(w, c->key, c->value);
    json_end(w);
    json_end(w);
}

static void add_condition(struct json_writer *w, const struct vector_condition *c)
{
    bool is_exact = remote_is_exact(c->value);

    switch (c->op) {
    case VECTOR_IN:
        add_in(w, c);
        break;
    case VECTOR_GT:
        add_range(w, c->key, is_exact ? "gt" : "gte", NULL, json_double(c->value));
        break;
    case VECTOR_GTE:
        add_range(w, c->key, "gte", NULL, json_double(c->value));
        break;
    case VECTOR_LT:
        add_range(w, c->key, NULL, is_exact ? "lt" : "lte", json_double(c->value));
        break;
    case VECTOR_LTE:
        add_range(w, c->key, NULL, "lte", json_double(c->value));
        break;
    default:
        add_equal(w, c->key, c->value);
    }
}

const struct remote_dialect qdrant_dialect = {
    .member = "filter", .all = "must", .can_express = can_express, .add = add_condition
};
