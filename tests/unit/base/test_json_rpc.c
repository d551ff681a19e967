#include "base/json_rpc.h"

#include "base/limits.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { FRAME_BYTES = 4096 };

static int read_frame(struct arena *a, const char *text, struct json_rpc_frame *frame, struct err *e)
{
    return json_rpc_read(a, slice_of(text), FRAME_BYTES, frame, e);
}

static void frames_of_each_kind_are_told_apart(void **state)
{
    static const struct {
        const char *text;
        enum json_rpc_kind kind;
        enum json_rpc_id_kind id;
    } cases[] = {
        { "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"m\"}", JSON_RPC_REQUEST, JSON_RPC_ID_INT },
        { "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"m\"}", JSON_RPC_REQUEST, JSON_RPC_ID_STRING },
        { "{\"jsonrpc\":\"2.0\",\"id\":-7,\"method\":\"m\",\"params\":{}}", JSON_RPC_REQUEST, JSON_RPC_ID_INT },
        { "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":null}", JSON_RPC_NOTIFICATION, JSON_RPC_ID_ABSENT },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", JSON_RPC_RESULT, JSON_RPC_ID_INT },
        { "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-1,\"message\":\"no\"}}", JSON_RPC_ERROR,
          JSON_RPC_ID_STRING },
        { "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-1,\"message\":\"\"}}", JSON_RPC_ERROR,
          JSON_RPC_ID_ABSENT },
        { "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":\"x\"},\"more\":1}", JSON_RPC_ERROR,
          JSON_RPC_ID_ABSENT },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json_rpc_frame frame;

        assert_int_equal(read_frame(a, cases[i].text, &frame, NULL), 0);
        assert_int_equal(frame.kind, cases[i].kind);
        assert_int_equal(frame.id.kind, cases[i].id);
        assert_int_equal(frame.method != NULL, frame.kind <= JSON_RPC_NOTIFICATION);
    }
}

static void wrong_frames_are_refused_and_named(void **state)
{
    static const struct {
        const char *text, *rule;
    } cases[] = {
        { "[]", "it must be an object" },
        { "3", "it must be an object" },
        { "{\"id\":1,\"method\":\"m\"}", "`jsonrpc`" },
        { "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"m\"}", "`jsonrpc`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", "`id`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"m\"}", "`id`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"method\":\"m\"}", "`id`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"m\"}", "`id`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":true,\"result\":{}}", "`id`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":[],\"error\":{\"code\":1,\"message\":\"\"}}", "`id`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", "`method`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}", "`method`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}", "`method`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[1]}", "`params`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1}", "exactly one" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{\"code\":1,\"message\":\"\"}}", "exactly one" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"result\":1}", "exactly one" },
        { "{\"jsonrpc\":\"2.0\",\"result\":{}}", "a result needs an `id`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":\"1\",\"message\":\"\"}}", "`error`" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}", "`error`" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json_rpc_frame frame;
        struct err e = { 0 };

        assert_int_equal(read_frame(a, cases[i].text, &frame, &e), -EINVAL);
        assert_string_equal(e.code, "INVALID_REQUEST");
        assert_non_null(strstr(e.text, cases[i].rule));
        assert_int_equal(json_rpc_code(&e), JSON_RPC_INVALID_REQUEST);
    }
}

static void text_that_is_not_json_is_a_parse_error(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_rpc_frame frame;
    struct err e = { 0 };

    assert_int_equal(read_frame(a, "{\"jsonrpc\":", &frame, &e), -EINVAL);
    assert_int_equal(json_rpc_code(&e), JSON_RPC_PARSE_ERROR);
}

static void a_frame_has_a_maximum_of_bytes(void **state)
{
    static const char text[] = "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}";
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_rpc_frame frame;
    struct err e = { 0 };

    assert_int_equal(json_rpc_read(a, slice_of(text), sizeof(text) - 1, &frame, &e), 0);
    assert_int_equal(json_rpc_read(a, slice_of(text), sizeof(text) - 2, &frame, &e), -E2BIG);
    assert_int_equal(json_rpc_code(&e), JSON_RPC_PARSE_ERROR);
}

/* A request whose id (or method) has n bytes. */
static int read_sized(struct arena *a, size_t n_id, size_t n_method)
{
    const char *text =
        arena_printf(a, "{\"jsonrpc\":\"2.0\",\"id\":\"%0*d\",\"method\":\"%0*d\"}", (int)n_id, 1, (int)n_method, 1);
    struct json_rpc_frame frame;

    return read_frame(a, text, &frame, NULL);
}

static void ids_and_methods_have_a_maximum(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_int_equal(read_sized(a, LIMIT_RPC_ID_BYTES, LIMIT_RPC_METHOD_BYTES), 0);
    assert_int_equal(read_sized(a, LIMIT_RPC_ID_BYTES + 1, 1), -EINVAL);
    assert_int_equal(read_sized(a, 1, LIMIT_RPC_METHOD_BYTES + 1), -EINVAL);
}

static void the_id_of_a_wrong_frame_is_found_for_its_answer(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value v;

    assert_int_equal(json_parse(a, SLICE_LIT("{\"id\":9,\"method\":1}"), &v, NULL), 0);
    assert_int_equal(json_rpc_id_of(v).number, 9);
    assert_int_equal(json_parse(a, SLICE_LIT("{\"id\":{}}"), &v, NULL), 0);
    assert_int_equal(json_rpc_id_of(v).kind, JSON_RPC_ID_ABSENT);
}

static void ids_are_compared_by_type_and_value(void **state)
{
    const struct json_rpc_id one = { JSON_RPC_ID_INT, 1, { 0 } }, zero = { JSON_RPC_ID_INT, 0, { 0 } };
    const struct json_rpc_id text = { JSON_RPC_ID_STRING, 0, SLICE_LIT("1") }, none = { 0 };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_rpc_id copy = json_rpc_id_copy(a, &text);

    assert_true(json_rpc_id_eq(&one, &one));
    assert_false(json_rpc_id_eq(&one, &zero));
    assert_false(json_rpc_id_eq(&one, &text));
    assert_false(json_rpc_id_eq(&zero, &none));
    assert_true(json_rpc_id_eq(&copy, &text));
    assert_ptr_not_equal(copy.text.p, text.text.p);
}

static void written_frames_are_exact(void **state)
{
    const struct json_rpc_id id = { JSON_RPC_ID_INT, 0, { 0 } }, text = { JSON_RPC_ID_STRING, 0, SLICE_LIT("a\"b") };
    struct json_writer w;
    struct buf out;

    buf_init(&out, FRAME_BYTES);
    json_rpc_begin_request(&w, &out, &text, "ping");
    json_end(&w);
    assert_string_equal(buf_str(&out), "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"method\":\"ping\"}");
    buf_reset(&out);
    json_rpc_begin_notification(&w, &out, "notifications/initialized");
    json_end(&w);
    assert_string_equal(buf_str(&out), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    buf_reset(&out);
    json_rpc_begin(&w, &out, &id);
    json_begin_object_as(&w, "result");
    json_end(&w);
    json_end(&w);
    assert_string_equal(buf_str(&out), "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}");
    buf_reset(&out);
    json_rpc_write_error(&out, &(struct json_rpc_id){ 0 }, JSON_RPC_PARSE_ERROR, "no", (struct json_value){ 0 });
    assert_string_equal(buf_str(&out),
                        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}");
    buf_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_each_kind_are_told_apart),
        cmocka_unit_test(wrong_frames_are_refused_and_named),
        cmocka_unit_test(text_that_is_not_json_is_a_parse_error),
        cmocka_unit_test(a_frame_has_a_maximum_of_bytes),
        cmocka_unit_test(ids_and_methods_have_a_maximum),
        cmocka_unit_test(the_id_of_a_wrong_frame_is_found_for_its_answer),
        cmocka_unit_test(ids_are_compared_by_type_and_value),
        cmocka_unit_test(written_frames_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
