#include "base/fields.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

struct item {
    const char *label;
    int64_t weight;
};

struct inner {
    const char *command;
    struct field_strings args;
    int64_t retries, n_answers, n_tokens;
};

struct body {
    const char *name;
    const char *id;
    const char *action;
    int64_t limit;
    int64_t offset;
    double temperature;
    bool is_on;
    bool was_on_given;
    struct json_value object, array, any, env;
    struct field_strings tags;
    struct json_floats vector, packed;
    struct inner config;
    struct field_list items;
};

static const char *const actions[] = { "INSERT", "UPDATE", "DELETE", NULL };

static const struct field item_fields[] = { FIELD_STRING(struct item, label, "label", FIELD_REQUIRED),
                                            FIELD_INT(struct item, weight, "weight", .min = -10, .max = 10, .def = 3),
                                            FIELD_END };

static const struct field inner_fields[] = {
    FIELD_STRING(struct inner, command, "command", .flags = FIELD_REQUIRED, .min = 1, .max = 8),
    FIELD_STRINGS(struct inner, args, "args", .max = 3),
    FIELD_INT(struct inner, retries, "retries", .max = 9, .def = 2),
    FIELD_INT(struct inner, n_answers, "answers", .min = 1, .max = 1, .def = 1),
    FIELD_INT(struct inner, n_tokens, "tokens", .max = 1000000000000),
    FIELD_END
};

static const struct field body_fields[] = {
    FIELD_STRING(struct body, name, "name", .max = 4, .def_str = "none", .help = "What people call it"),
    FIELD_STRING(struct body, id, "id", .format = "uuid"),
    FIELD_STRING(struct body, action, "action", .one_of = actions),
    FIELD_INT(struct body, limit, "limit", .min = 1, .max = 500, .def = 50),
    FIELD_INT(struct body, offset, "offset"),
    FIELD_DOUBLE(struct body, temperature, "temperature", .min = -0.5, .max = 2, .def = 0.7),
    FIELD_BOOL(struct body, is_on, "isOn", .present_offset = offsetof(struct body, was_on_given), .def = true),
    FIELD_OBJECT(struct body, object, "object"),
    FIELD_ARRAY(struct body, array, "array", .min = 1, .max = 2),
    FIELD_ANY(struct body, any, "any"),
    FIELD_STRING_MAP(struct body, env, "env", .max = 2),
    FIELD_STRINGS(struct body, tags, "tags", .min = 1, .max = 3),
    FIELD_FLOATS(struct body, vector, "vector", .min = 1, .max = 4),
    FIELD_FLOATS_B64(struct body, packed, "packed", .min = 1, .max = 4),
    FIELD_STRUCT(struct body, config, "config", inner_fields),
    FIELD_LIST(struct body, items, "items", item_fields, struct item, .max = 3),
    FIELD_END
};

static int new_arena(void **state)
{
    *state = arena_new();
    return 0;
}

static int free_arena(void **state)
{
    *state = arena_free(*state);
    return 0;
}

static int read_text(struct arena *a, struct slice text, struct body *into, struct err *e)
{
    struct json_value v;
    int r = json_parse(a, text, &v, e);

    if (r < 0)
        fail_msg("%.*s: %s", (int)text.n, text.p, e->text);
    return fields_read(body_fields, v, into, a, "", e);
}

static void check_defaults(const struct body *body)
{
    assert_string_equal(body->name, "none");
    assert_null(body->id);
    assert_null(body->action);
    assert_int_equal(body->limit, 50);
    assert_int_equal(body->offset, 0);
    assert_true(body->temperature == 0.7);
    assert_true(body->is_on);
    assert_false(body->was_on_given);
    assert_int_equal(json_type(body->object), JSON_ABSENT);
    assert_int_equal(body->tags.n, 0);
    assert_int_equal(body->vector.n, 0);
    assert_null(body->config.command);
    assert_int_equal(body->config.retries, 2);
    assert_int_equal(body->items.n, 0);
}

static void what_is_missing_or_null_takes_its_default(void **state)
{
    static const char *const texts[] = {
        "{}",
        "null",
        "{\"unknown\":[1,2]}",
        "{\"name\":null,\"id\":null,\"action\":null,\"limit\":null,\"offset\":null,\"temperature\":null,\"isOn\":null,"
        "\"object\":null,\"array\":null,\"any\":null,\"env\":null,\"tags\":null,\"vector\":null,\"packed\":null,\"config\":null,\"items\":null}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct body body = { 0 };
        struct err e = { 0 };

        assert_int_equal(read_text(*state, slice_of(texts[i]), &body, &e), 0);
        check_defaults(&body);
    }
}

static void an_absent_object_is_read_like_an_empty_one(void **state)
{
    struct body body = { 0 };
    struct err e = { 0 };

    assert_int_equal(fields_read(body_fields, (struct json_value){ 0 }, &body, *state, "", &e), 0);
    check_defaults(&body);
}

static void every_kind_lands_in_its_member(void **state)
{
    struct body body = { 0 };
    struct err e = { 0 };
    const struct item *items;
    const char *text =
        "{\"name\":\"\xF0\x9F\x98\x80\xC3\xA9yz\",\"action\":\"UPDATE\",\"id\":\"0B5EC7E2-4f7c-4e0e-9a55-8f6f2d1a7c11\","
        "\"limit\":5e2,\"offset\":9007199254740992,\"temperature\":-0.5,\"isOn\":false,\"object\":{\"a\":1},"
        "\"array\":[1,\"x\"],\"any\":7,\"env\":{\"HOME\":\"/\"},\"tags\":[\"a\",\"\"],\"vector\":[1,-0.1,3.4028235e38,1e-60],"
        "\"packed\":\"AACAPwAAAIA=\",\"config\":{\"command\":\"ls\",\"args\":[\"-l\"],\"retries\":0},"
        "\"items\":[{\"label\":\"one\"},{\"label\":\"two\",\"weight\":-10}]}";

    assert_int_equal(read_text(*state, slice_of(text), &body, &e), 0);
    assert_string_equal(body.name, "\xF0\x9F\x98\x80\xC3\xA9yz");
    assert_string_equal(body.id, "0B5EC7E2-4f7c-4e0e-9a55-8f6f2d1a7c11");
    assert_string_equal(body.action, "UPDATE");
    assert_int_equal(body.limit, 500);
    assert_int_equal(body.offset, 9007199254740992);
    assert_true(body.temperature == -0.5);
    assert_false(body.is_on);
    assert_true(body.was_on_given);
    assert_int_equal(json_int(json_get(body.object, "a")), 1);
    assert_int_equal(json_length(body.array), 2);
    assert_int_equal(json_int(body.any), 7);
    assert_string_equal(json_cstr(json_get(body.env, "HOME")), "/");
    assert_int_equal(body.tags.n, 2);
    assert_string_equal(body.tags.items[0], "a");
    assert_int_equal(body.vector.n, 4);
    assert_true(body.vector.items[0] == 1 && body.vector.items[1] == -0.1f && body.vector.items[2] == FLT_MAX &&
                body.vector.items[3] == 0);
    assert_int_equal(body.packed.n, 2);
    assert_true(body.packed.items[0] == 1 && body.packed.items[1] == 0 && signbit(body.packed.items[1]));
    assert_string_equal(body.config.command, "ls");
    assert_string_equal(body.config.args.items[0], "-l");
    assert_int_equal(body.config.retries, 0);
    assert_int_equal(body.items.n, 2);
    items = body.items.items;
    assert_string_equal(items[0].label, "one");
    assert_int_equal(items[0].weight, 3);
    assert_int_equal(items[1].weight, -10);
}

struct refused_case {
    struct slice text;
    const char *field, *rule;
};

static const struct refused_case refused[] = {
    { SLICE_LIT("{\"name\":1}"), "name", "must be a string" },
    { SLICE_LIT("{\"name\":\"abcde\"}"), "name", "must be at most 4 characters" },
    { SLICE_LIT("{\"name\":\"a\\u0000\"}"), "name", "must not contain a NUL character" },
    { SLICE_LIT("{\"id\":\"0b5ec7e2\"}"), "id", "must be a UUID" },
    { SLICE_LIT("{\"action\":\"insert\"}"), "action", "must be one of INSERT, UPDATE, DELETE" },
    { SLICE_LIT("{\"action\":false}"), "action", "must be one of INSERT, UPDATE, DELETE" },
    { SLICE_LIT("{\"limit\":0}"), "limit", "must be an integer from 1 to 500" },
    { SLICE_LIT("{\"limit\":501}"), "limit", "must be an integer from 1 to 500" },
    { SLICE_LIT("{\"limit\":5.5}"), "limit", "must be an integer from 1 to 500" },
    { SLICE_LIT("{\"limit\":\"5\"}"), "limit", "must be an integer from 1 to 500" },
    { SLICE_LIT("{\"limit\":true}"), "limit", "must be an integer from 1 to 500" },
    { SLICE_LIT("{\"offset\":-1}"), "offset", "must be an integer of at least 0" },
    { SLICE_LIT("{\"offset\":9007199254740994}"), "offset", "must be an integer of at least 0" },
    { SLICE_LIT("{\"offset\":1e300}"), "offset", "must be an integer of at least 0" },
    { SLICE_LIT("{\"offset\":18446744073709551615}"), "offset", "must be an integer of at least 0" },
    { SLICE_LIT("{\"temperature\":2.0001}"), "temperature", "must be a number from -0.5 to 2" },
    { SLICE_LIT("{\"config\":{\"command\":\"ls\",\"answers\":2}}"), "config.answers", "must be 1" },
    { SLICE_LIT("{\"config\":{\"command\":\"ls\",\"tokens\":-1}}"), "config.tokens",
      "must be an integer from 0 to 1000000000000" },
    { SLICE_LIT("{\"temperature\":[]}"), "temperature", "must be a number from -0.5 to 2" },
    { SLICE_LIT("{\"isOn\":1}"), "isOn", "must be true or false" },
    { SLICE_LIT("{\"isOn\":\"true\"}"), "isOn", "must be true or false" },
    { SLICE_LIT("{\"object\":[]}"), "object", "must be an object" },
    { SLICE_LIT("{\"array\":{}}"), "array", "must be an array" },
    { SLICE_LIT("{\"array\":[]}"), "array", "must have at least 1 element" },
    { SLICE_LIT("{\"array\":[1,2,3]}"), "array", "must have at most 2 elements" },
    { SLICE_LIT("{\"env\":[]}"), "env", "must be an object of strings" },
    { SLICE_LIT("{\"env\":{\"A\":1}}"), "env.A", "must be a string" },
    { SLICE_LIT("{\"env\":{\"A\":null}}"), "env.A", "must be a string" },
    { SLICE_LIT("{\"env\":{\"A\":\"\\u0000\"}}"), "env.A", "must not contain a NUL character" },
    { SLICE_LIT("{\"env\":{\"A\\u0000\":\"\"}}"), "env", "must not have a name with a NUL character" },
    { SLICE_LIT("{\"env\":{\"A\":\"\",\"B\":\"\",\"C\":\"\"}}"), "env", "must have at most 2 members" },
    { SLICE_LIT("{\"tags\":\"a\"}"), "tags", "must be an array of strings" },
    { SLICE_LIT("{\"tags\":[]}"), "tags", "must have at least 1 element" },
    { SLICE_LIT("{\"tags\":[\"a\",null]}"), "tags[1]", "must be a string" },
    { SLICE_LIT("{\"vector\":0.5}"), "vector", "must be an array of numbers" },
    { SLICE_LIT("{\"vector\":{}}"), "vector", "must be an array of numbers" },
    { SLICE_LIT("{\"vector\":[]}"), "vector", "must have at least 1 element" },
    { SLICE_LIT("{\"vector\":[1,2,3,4,5]}"), "vector", "must have at most 4 elements" },
    { SLICE_LIT("{\"vector\":[1,null]}"), "vector[1]", "must be a number that fits 32 bits of floating point" },
    { SLICE_LIT("{\"vector\":[1,2,\"3\"]}"), "vector[2]", "must be a number that fits 32 bits of floating point" },
    { SLICE_LIT("{\"vector\":[-3.5e38]}"), "vector[0]", "must be a number that fits 32 bits of floating point" },
    { SLICE_LIT("{\"vector\":[[1]]}"), "vector[0]", "must be a number that fits 32 bits of floating point" },
    { SLICE_LIT("{\"config\":7}"), "config", "must be an object" },
    { SLICE_LIT("{\"config\":{}}"), "config.command", "is required" },
    { SLICE_LIT("{\"config\":{\"command\":null}}"), "config.command", "is required" },
    { SLICE_LIT("{\"config\":{\"command\":\"\"}}"), "config.command", "must not be empty" },
    { SLICE_LIT("{\"config\":{\"command\":\"ls\",\"args\":[\"\",\"\",5]}}"), "config.args[2]", "must be a string" },
    { SLICE_LIT("{\"items\":{}}"), "items", "must be an array of objects" },
    { SLICE_LIT("{\"items\":[null]}"), "items[0]", "must be an object" },
    { SLICE_LIT("{\"items\":[{\"label\":\"\"},{}]}"), "items[1].label", "is required" },
    { SLICE_LIT("{\"items\":[{\"label\":\"\",\"weight\":-11}]}"), "items[0].weight",
      "must be an integer from -10 to 10" },
    { SLICE_LIT("{\"items\":[{},{},{},{}]}"), "items", "must have at most 3 elements" },
};

static void a_violation_names_its_path_and_its_rule(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct body body = { 0 };
        struct err e = { 0 };
        char text[300];

        if (read_text(*state, refused[i].text, &body, &e) != -EINVAL)
            fail_msg("taken: %s", refused[i].text.p);
        assert_int_equal(e.n_fields, 1);
        assert_string_equal(e.code, "VALIDATION_ERROR");
        assert_string_equal(e.fields[0].field, refused[i].field);
        assert_string_equal(e.fields[0].rule, refused[i].rule);
        snprintf(text, sizeof text, "`%s` %s", refused[i].field, refused[i].rule);
        assert_string_equal(e.text, text);
    }
}

static void a_rule_writes_its_limits_plainly(void **state)
{
    struct wide {
        int64_t n;
    } wide;
    static const struct field fields[] = { FIELD_INT(struct wide, n, "n", .min = -9007199254740992.0, .max = 1e12),
                                           FIELD_END };
    struct err e = { 0 };

    assert_int_equal(fields_read_query(fields, "n=1000000000001", &wide, *state, &e), -EINVAL);
    assert_string_equal(e.fields[0].rule, "must be an integer from -9007199254740992 to 1000000000000");
}

static void every_violation_is_reported_at_once(void **state)
{
    struct body body = { 0 };
    struct err e = { 0 };
    const char *text = "{\"limit\":0,\"name\":7,\"config\":{\"args\":[1,\"ok\",2]},\"items\":[{}]}";

    assert_int_equal(read_text(*state, slice_of(text), &body, &e), -EINVAL);
    assert_int_equal(e.n_fields, 6);
    assert_string_equal(e.text, "`name` must be a string");
    assert_string_equal(e.fields[1].field, "limit");
    assert_string_equal(e.fields[2].field, "config.command");
    assert_string_equal(e.fields[3].field, "config.args[0]");
    assert_string_equal(e.fields[4].field, "config.args[2]");
    assert_string_equal(e.fields[5].field, "items[0].label");
}

static void a_body_that_is_no_object_is_refused(void **state)
{
    struct body body = { 0 };
    struct err e = { 0 };

    assert_int_equal(read_text(*state, SLICE_LIT("[]"), &body, &e), -EINVAL);
    assert_string_equal(e.code, "VALIDATION_ERROR");
    assert_string_equal(e.text, "The JSON must be an object");
}

static void reading_works_without_an_err(void **state)
{
    struct body body = { 0 };
    struct json_value v;

    assert_int_equal(json_parse(*state, SLICE_LIT("{\"limit\":0,\"tags\":[1,2]}"), &v, NULL), 0);
    assert_int_equal(fields_read(body_fields, v, &body, *state, "", NULL), -EINVAL);
}

static void a_prefix_stands_before_every_path(void **state)
{
    struct body body = { 0 };
    struct err e = { 0 };
    struct json_value v;

    assert_int_equal(json_parse(*state, SLICE_LIT("{\"limit\":0}"), &v, NULL), 0);
    assert_int_equal(fields_read(body_fields, v, &body, *state, "rows[3]", &e), -EINVAL);
    assert_string_equal(e.fields[0].field, "rows[3].limit");
}

struct text_holder {
    const char *text;
    struct field_strings list;
};

/* {"text":"ééé...","list":["","",...]} with these numbers of characters and elements */
static struct slice sized_json(struct arena *a, size_t n_characters, size_t n_elements)
{
    struct buf text;
    struct slice out;

    buf_init(&text, MIB(1));
    buf_add_str(&text, "{\"text\":\"");
    for (size_t i = 0; i < n_characters; i++)
        buf_add_str(&text, "\xC3\xA9");
    buf_add_str(&text, "\",\"list\":[");
    for (size_t i = 0; i < n_elements; i++)
        buf_add_str(&text, i == 0 ? "\"\"" : ",\"\"");
    buf_add_str(&text, "]}");
    out = (struct slice){ arena_slicedup(a, buf_slice(&text)), text.n };
    buf_clear(&text);
    return out;
}

static int read_sized(struct arena *a, size_t n_characters, size_t n_elements, struct err *e)
{
    static const struct field fields[] = { FIELD_STRING(struct text_holder, text, "text"),
                                           FIELD_STRINGS(struct text_holder, list, "list"), FIELD_END };
    struct text_holder holder = { 0 };
    struct json_value v;

    assert_int_equal(json_parse(a, sized_json(a, n_characters, n_elements), &v, NULL), 0);
    return fields_read(fields, v, &holder, a, "", e);
}

static void the_default_limits_hold_at_their_edge(void **state)
{
    struct err e = { 0 };

    assert_int_equal(read_sized(*state, LIMIT_STRING_DEFAULT, LIMIT_ITEMS_DEFAULT, &e), 0);
    assert_int_equal(read_sized(*state, LIMIT_STRING_DEFAULT + 1, LIMIT_ITEMS_DEFAULT + 1, &e), -EINVAL);
    assert_int_equal(e.n_fields, 2);
    assert_string_equal(e.fields[0].rule, "must be at most 65536 characters");
    assert_string_equal(e.fields[1].rule, "must have at most 10000 elements");
}

static void more_violations_than_are_kept_do_no_harm(void **state)
{
    static const struct field fields[] = { FIELD_STRINGS(struct text_holder, list, "list"), FIELD_END };
    struct text_holder holder = { 0 };
    struct err e = { 0 };
    struct json_value v;
    char text[2 * 5000 + 16] = "{\"list\":[1";

    for (int i = 0; i < 4999; i++)
        strncat(text, ",1", 3);
    strncat(text, "]}", 3);
    assert_int_equal(json_parse(*state, slice_of(text), &v, NULL), 0);
    assert_int_equal(fields_read(fields, v, &holder, *state, "", &e), -EINVAL);
    assert_true(e.n_fields >= ERR_MAX_FIELDS);
    assert_string_equal(e.fields[ERR_MAX_FIELDS - 1].field, "list[31]");
    assert_null(holder.list.items);
}

struct query {
    const char *status, *since;
    int64_t limit;
    double score;
    bool is_all, was_all_given;
};

static const char *const statuses[] = { "pending", "failed & gone", NULL };

static const struct field query_fields[] = { FIELD_STRING(struct query, status, "status", .one_of = statuses),
                                             FIELD_STRING(struct query, since, "since", .max = 3, .def_str = "ago"),
                                             FIELD_INT(struct query, limit, "limit", .min = 1, .max = 500, .def = 50),
                                             FIELD_DOUBLE(struct query, score, "min score", .max = 1),
                                             FIELD_BOOL(struct query, is_all, "all",
                                                        .present_offset = offsetof(struct query, was_all_given)),
                                             FIELD_END };

static void a_query_is_read_by_the_same_table(void **state)
{
    struct query q = { 0 };
    struct err e = { 0 };

    const char *query = "status=failed+%26%20gone&limit=7&limit=8&x&=&&m%69n+score=0.25&all=true&since=";

    assert_int_equal(fields_read_query(query_fields, query, &q, *state, &e), 0);
    assert_string_equal(q.status, "failed & gone");
    assert_string_equal(q.since, "");
    assert_int_equal(q.limit, 7);
    assert_true(q.score == 0.25);
    assert_true(q.is_all);
    assert_true(q.was_all_given);
}

static void an_empty_query_gives_the_defaults(void **state)
{
    static const char *const queries[] = { NULL, "", "&&", "limit=&all=", "other=%zz&%zz=1" };

    for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
        struct query q = { 0 };
        struct err e = { 0 };

        assert_int_equal(fields_read_query(query_fields, queries[i], &q, *state, &e), 0);
        assert_null(q.status);
        assert_string_equal(q.since, "ago");
        assert_int_equal(q.limit, 50);
        assert_false(q.is_all);
        assert_false(q.was_all_given);
    }
}

struct query_case {
    const char *query, *text;
};

static const struct query_case refused_queries[] = {
    { "limit=0", "`limit` must be an integer from 1 to 500" },
    { "limit=abc", "`limit` must be an integer from 1 to 500" },
    { "limit=5x", "`limit` must be an integer from 1 to 500" },
    { "limit=0x10", "`limit` must be an integer from 1 to 500" },
    { "limit=[5]", "`limit` must be an integer from 1 to 500" },
    { "limit=null", "`limit` must be an integer from 1 to 500" },
    { "limit=99999999999999999999", "`limit` must be an integer from 1 to 500" },
    { "min+score=1.1", "`min score` must be a number from 0 to 1" },
    { "all=yes", "`all` must be true or false" },
    { "status=done", "`status` must be one of pending, failed & gone" },
    { "since=abcd", "`since` must be at most 3 characters" },
    { "since=%f0%9f", "`since` must be percent-encoded UTF-8 without a NUL character" },
    { "since=%00", "`since` must be percent-encoded UTF-8 without a NUL character" },
    { "since=%4", "`since` must be percent-encoded UTF-8 without a NUL character" },
};

static void a_query_that_breaks_a_rule_is_refused(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(refused_queries); i++) {
        struct query q = { 0 };
        struct err e = { 0 };

        if (fields_read_query(query_fields, refused_queries[i].query, &q, *state, &e) != -EINVAL)
            fail_msg("taken: %s", refused_queries[i].query);
        assert_string_equal(e.text, refused_queries[i].text);
    }
}

static void a_required_query_value_must_be_given(void **state)
{
    static const struct field fields[] = { FIELD_INT(struct query, limit, "limit", .flags = FIELD_REQUIRED),
                                           FIELD_STRING(struct query, since, "since", FIELD_REQUIRED), FIELD_END };
    struct query q = { 0 };
    struct err e = { 0 };

    assert_int_equal(fields_read_query(fields, "limit=", &q, *state, &e), -EINVAL);
    assert_int_equal(e.n_fields, 2);
    assert_string_equal(e.text, "`limit` is required");
}

static struct json_value schema_of(struct arena *a, const struct field *table, bool is_answer)
{
    struct json_writer w;
    struct json_value v;
    struct buf text;

    buf_init(&text, 8192);
    json_write_init(&w, &text);
    fields_write_schema(table, is_answer, &w, NULL);
    assert_int_equal(json_parse(a, buf_slice(&text), &v, NULL), 0);
    buf_clear(&text);
    return v;
}

static void check_row(struct arena *a, struct json_value schema, const char *name, const char *row)
{
    assert_string_equal(json_to_str(a, json_get(json_get(schema, "properties"), name)), row);
}

static void a_request_table_prints_itself_as_schema(void **state)
{
    struct json_value s = schema_of(*state, body_fields, false);

    assert_string_equal(json_cstr(json_get(s, "type")), "object");
    assert_int_equal(json_type(json_get(s, "required")), JSON_ABSENT);
    assert_int_equal(json_length(json_get(s, "properties")), ARRAY_SIZE(body_fields) - 1);
    check_row(*state, s, "name",
              "{\"type\":\"string\",\"description\":\"What people call it\",\"maxLength\":4,\"default\":\"none\"}");
    check_row(*state, s, "id", "{\"type\":\"string\",\"format\":\"uuid\",\"maxLength\":65536}");
    check_row(*state, s, "action", "{\"type\":\"string\",\"enum\":[\"INSERT\",\"UPDATE\",\"DELETE\"]}");
    check_row(*state, s, "limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":500,\"default\":50}");
    check_row(*state, s, "offset", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":9007199254740992}");
    check_row(*state, s, "temperature", "{\"type\":\"number\",\"minimum\":-0.5,\"maximum\":2,\"default\":0.7}");
    check_row(*state, s, "isOn", "{\"type\":\"boolean\",\"default\":true}");
    check_row(*state, s, "object", "{\"type\":\"object\"}");
    check_row(*state, s, "array", "{\"type\":\"array\",\"minItems\":1,\"maxItems\":2}");
    check_row(*state, s, "any", "{}");
    check_row(*state, s, "env",
              "{\"type\":\"object\",\"maxProperties\":2,\"additionalProperties\":{\"type\":\"string\"}}");
    check_row(*state, s, "tags", "{\"type\":\"array\",\"minItems\":1,\"maxItems\":3,\"items\":{\"type\":\"string\"}}");
    check_row(*state, s, "vector",
              "{\"type\":\"array\",\"minItems\":1,\"maxItems\":4,\"items\":{\"type\":\"number\"}}");
    check_row(*state, s, "packed", "{\"type\":\"string\",\"contentEncoding\":\"base64\"}");
    check_row(*state, s, "items",
              "{\"type\":\"array\",\"maxItems\":3,\"items\":{\"type\":\"object\",\"properties\":{"
              "\"label\":{\"type\":\"string\",\"maxLength\":65536},"
              "\"weight\":{\"type\":\"integer\",\"minimum\":-10,\"maximum\":10,\"default\":3}},"
              "\"required\":[\"label\"]}}");
    assert_string_equal(json_to_str(*state, json_get(json_get(json_get(s, "properties"), "config"), "required")),
                        "[\"command\"]");
}

static void an_answer_table_prints_itself_as_schema(void **state)
{
    static const struct field rows[] = { SHAPE_DOUBLE("score"), FIELD_END };
    static const struct field answer[] = { SHAPE_BOOL("success"),
                                           SHAPE_INT("count"),
                                           SHAPE_STRING("error", FIELD_NULLABLE),
                                           SHAPE_STRING("kind", .flags = FIELD_NULLABLE | FIELD_OPTIONAL,
                                                        .one_of = actions),
                                           SHAPE_TIME("createdAt"),
                                           SHAPE_ANY("result", FIELD_OPTIONAL),
                                           SHAPE_STRINGS("tags"),
                                           SHAPE_OBJECT("meta", NULL),
                                           SHAPE_OBJECT("best", rows),
                                           SHAPE_LIST("rows", rows),
                                           SHAPE_LIST("more", rows, FIELD_OPTIONAL),
                                           SHAPE_TIME("seenAt", FIELD_OPTIONAL),
                                           FIELD_END };
    struct json_value s = schema_of(*state, answer, true);

    assert_string_equal(json_to_str(*state, json_get(s, "required")),
                        "[\"success\",\"count\",\"error\",\"createdAt\",\"tags\",\"meta\",\"best\",\"rows\"]");
    check_row(*state, s, "count", "{\"type\":\"integer\"}");
    check_row(*state, s, "error", "{\"type\":[\"string\",\"null\"]}");
    check_row(*state, s, "kind", "{\"type\":[\"string\",\"null\"],\"enum\":[\"INSERT\",\"UPDATE\",\"DELETE\",null]}");
    check_row(*state, s, "createdAt", "{\"type\":\"string\",\"format\":\"date-time\"}");
    check_row(*state, s, "result", "{}");
    check_row(*state, s, "tags", "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}");
    check_row(*state, s, "meta", "{\"type\":\"object\"}");
    check_row(*state, s, "best",
              "{\"type\":\"object\",\"properties\":{\"score\":{\"type\":\"number\"}},\"required\":[\"score\"]}");
    check_row(*state, s, "rows",
              "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"score\":"
              "{\"type\":\"number\"}},\"required\":[\"score\"]}}");
}

#define ARENA_TEST(fn) cmocka_unit_test_setup_teardown(fn, new_arena, free_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(what_is_missing_or_null_takes_its_default),
        ARENA_TEST(an_absent_object_is_read_like_an_empty_one),
        ARENA_TEST(every_kind_lands_in_its_member),
        ARENA_TEST(a_violation_names_its_path_and_its_rule),
        ARENA_TEST(a_rule_writes_its_limits_plainly),
        ARENA_TEST(every_violation_is_reported_at_once),
        ARENA_TEST(a_body_that_is_no_object_is_refused),
        ARENA_TEST(reading_works_without_an_err),
        ARENA_TEST(a_prefix_stands_before_every_path),
        ARENA_TEST(the_default_limits_hold_at_their_edge),
        ARENA_TEST(more_violations_than_are_kept_do_no_harm),
        ARENA_TEST(a_query_is_read_by_the_same_table),
        ARENA_TEST(an_empty_query_gives_the_defaults),
        ARENA_TEST(a_query_that_breaks_a_rule_is_refused),
        ARENA_TEST(a_required_query_value_must_be_given),
        ARENA_TEST(a_request_table_prints_itself_as_schema),
        ARENA_TEST(an_answer_table_prints_itself_as_schema),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
