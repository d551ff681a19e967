/* Filters in Chroma's syntax. Chroma compares integers only with integers, doubles only with doubles, strings only for
 * equality, and cannot test for a missing key. Conditions that Chroma cannot decide are left out; remote_nearest()
 * checks them. */
#include "vector/remote/chroma.h"
#include "vector/remote/remote.h"

enum { COPIED_CHARS = 1024 /* longer strings are in the JSON text only */ };

static bool is_key(struct slice key)
{
    return key.n > 0 && !memchr("#$", key.p[0], 2) &&
           (key.n < 7 || (memcmp(key.p, "chroma:", 7) != 0 && memcmp(key.p, CHROMA_OWN, 7) != 0));
}

bool chroma_holds(struct slice key, struct json_value value)
{
    switch (json_type(value)) {
    case JSON_BOOL:
    case JSON_INT:
    case JSON_DOUBLE:
        return is_key(key);
    case JSON_STRING:
        return is_key(key) && json_string(value).n <= COPIED_CHARS;
    default:
        return false;
    }
}

static bool can_express(const struct vector_condition *c)
{
    struct slice key = slice_of(c->key);
    struct json_value choice;

    if (c->op == VECTOR_NE || (c->op != VECTOR_EQ && c->op != VECTOR_IN && json_type(c->value) == JSON_STRING))
        return false;
    if (c->op != VECTOR_IN)
        return chroma_holds(key, c->value);
    for (struct json_iter it = json_iter(c->value); json_next(&it, NULL, &choice);)
        if (!chroma_holds(key, choice))
            return false;
    return json_length(c->value) > 0;
}

static bool is_number(struct json_value v)
{
    return json_type(v) == JSON_INT || json_type(v) == JSON_DOUBLE;
}

static void begin_test(struct json_writer *w, const char *key)
{
    json_begin_object(w);
    json_begin_object_as(w, key);
}

static void end_test(struct json_writer *w)
{
    json_end(w);
    json_end(w);
}

static void add_double(struct json_writer *w, const char *name, double d)
{
    char text[40];

    json_add_raw(w, name, remote_double_text(d, text));
}

/* The operator for integers. For a number that is not whole, its floor is compared: x > 2.5 is sent as x $gte 2, and
 * x < 2.5 as x $lte 2 (a superset of the matches). */
static const char *whole_op(enum vector_op op, bool is_whole)
{
    static const char *const strict[] = {
        [VECTOR_EQ] = "$eq", [VECTOR_GT] = "$gt", [VECTOR_GTE] = "$gte", [VECTOR_LT] = "$lt", [VECTOR_LTE] = "$lte"
    };
    static const char *const loose[] = {
        [VECTOR_EQ] = "$eq", [VECTOR_GT] = "$gte", [VECTOR_GTE] = "$gte", [VECTOR_LT] = "$lte", [VECTOR_LTE] = "$lte"
    };

    return is_whole ? strict[op] : loose[op];
}

static void add_number(struct json_writer *w, const struct vector_condition *c)
{
    struct remote_number n = remote_number(c->value);

    json_begin_object(w);
    json_begin_array_as(w, "$or");
    begin_test(w, c->key);
    json_add_int(w, whole_op(c->op, n.is_whole), n.i);
    end_test(w);
    begin_test(w, c->key);
    add_double(w, whole_op(c->op, remote_is_exact(c->value)), n.d);
    end_test(w);
    json_end(w);
    json_end(w);
}

enum kind { KIND_STRING, KIND_BOOL, KIND_WHOLE, KIND_DOUBLE, N_KINDS };

static bool is_of_kind(struct json_value v, enum kind kind)
{
    if (kind == KIND_WHOLE || kind == KIND_DOUBLE)
        return is_number(v);
    return json_type(v) == (kind == KIND_STRING ? JSON_STRING : JSON_BOOL);
}

static void add_choice(struct json_writer *w, struct json_value v, enum kind kind)
{
    if (kind == KIND_WHOLE)
        json_add_int(w, NULL, remote_number(v).i);
    else if (kind == KIND_DOUBLE)
        add_double(w, NULL, remote_number(v).d);
    else
        json_add_value(w, NULL, v);
}

static void add_choices(struct json_writer *w, const char *key, struct json_value choices, enum kind kind)
{
    struct json_value choice;

    begin_test(w, key);
    json_begin_array_as(w, "$in");
    for (struct json_iter it = json_iter(choices); json_next(&it, NULL, &choice);)
        if (is_of_kind(choice, kind))
            add_choice(w, choice, kind);
    json_end(w);
    end_test(w);
}

static bool has_kind(struct json_value choices, enum kind kind)
{
    struct json_value choice;

    for (struct json_iter it = json_iter(choices); json_next(&it, NULL, &choice);)
        if (is_of_kind(choice, kind))
            return true;
    return false;
}

/* Chroma requires lists of one kind: the choices are sent as one list for each kind. */
static void add_in(struct json_writer *w, const struct vector_condition *c)
{
    json_begin_object(w);
    json_begin_array_as(w, "$or");
    for (enum kind kind = 0; kind < N_KINDS; kind++)
        if (has_kind(c->value, kind))
            add_choices(w, c->key, c->value, kind);
    json_end(w);
    json_end(w);
}

static void add_condition(struct json_writer *w, const struct vector_condition *c)
{
    if (c->op == VECTOR_IN) {
        add_in(w, c);
    } else if (is_number(c->value)) {
        add_number(w, c);
    } else {
        begin_test(w, c->key);
        json_add_value(w, "$eq", c->value);
        end_test(w);
    }
}

const struct remote_dialect chroma_dialect = {
    .member = "where", .all = "$and", .can_express = can_express, .add = add_condition
};
