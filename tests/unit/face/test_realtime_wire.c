/* The messages of the realtime protocol: objects, arrays, binary broadcasts (base/realtime_wire.h). */
#include "base/limits.h"
#include "base/realtime_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct arena *arena;

static int read(bool is_v2, bool is_binary, struct slice bytes, struct rt_message *ret)
{
    struct err e = { 0 };
    int r = rt_wire_read(arena, is_v2, is_binary, bytes, ret, &e);

    assert_true(r == 0 || strcmp(e.code, "VALIDATION_ERROR") == 0);
    return r;
}

static void an_object_and_an_array_say_the_same(void **state)
{
    struct rt_message m[2];

    assert_int_equal(read(false, false,
                          SLICE_LIT("{\"topic\":\"realtime:a\",\"event\":\"phx_join\",\"payload\":{\"x\":1},"
                                    "\"ref\":\"2\",\"join_ref\":1}"),
                          &m[0]),
                     0);
    assert_int_equal(read(true, false, SLICE_LIT("[\"1\",\"2\",\"realtime:a\",\"phx_join\",{\"x\":1}]"), &m[1]), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(slice_eq_str(m[i].join_ref, "1"));
        assert_true(slice_eq_str(m[i].ref, "2"));
        assert_true(slice_eq_str(m[i].topic, "realtime:a"));
        assert_true(slice_eq_str(m[i].event, "phx_join"));
        assert_int_equal(json_int(json_get(m[i].payload, "x")), 1);
        assert_false(m[i].is_broadcast);
    }
}

static void what_has_another_form_is_refused(void **state)
{
    static const struct {
        bool is_v2;
        const char *text;
    } cases[] = {
        { false, "" },
        { false, "[]" },
        { false, "{}" },
        { false, "{\"topic\":1,\"event\":\"e\"}" },
        { false, "{\"topic\":\"t\",\"event\":\"e\",\"ref\":{}}" },
        { false, "[\"1\",\"2\",\"t\",\"e\",{}]" },
        { true, "{\"topic\":\"t\",\"event\":\"e\"}" },
        { true, "[\"1\",\"2\",\"t\",\"e\"]" },
        { true, "[\"1\",\"2\",\"t\",\"e\",{},1]" },
        { true, "[\"1\",[],\"t\",\"e\",{}]" },
        { true, "[null,null,null,\"e\",{}]" },
        { true, "[null,null,\"t\",7,{}]" },
        { true, "[null,null,\"t\",\"e\",{}" },
    };
    struct rt_message m;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(read(cases[i].is_v2, false, slice_of(cases[i].text), &m), -EINVAL);
}

static void names_have_255_bytes(void **state)
{
    char name[LIMIT_TOPIC_BYTES + 2] = { 0 };
    struct rt_message m;

    memset(name, 'n', LIMIT_TOPIC_BYTES + 1);
    for (size_t n = LIMIT_TOPIC_BYTES; n <= LIMIT_TOPIC_BYTES + 1; n++) {
        int wanted = n > LIMIT_TOPIC_BYTES ? -EINVAL : 0;
        const char *const texts[] = { arena_printf(arena, "[null,null,\"%.*s\",\"e\",{}]", (int)n, name),
                                      arena_printf(arena, "[null,null,\"t\",\"%.*s\",{}]", (int)n, name),
                                      arena_printf(arena, "[null,\"%.*s\",\"t\",\"e\",{}]", (int)n, name),
                                      arena_printf(arena, "[\"%.*s\",null,\"t\",\"e\",{}]", (int)n, name) };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
            assert_int_equal(read(true, false, slice_of(texts[i]), &m), wanted);
    }
}

/* As the official client sent it (facts, A4): 03 01 01 18 .. 00 01. */
static const char push[] = "\x03\x01\x01\x0a\x05\x00\x01"
                           "12realtime:ashout{\"a\":1}";

static void a_binary_push_is_read(void **state)
{
    struct rt_message m;

    assert_int_equal(read(true, true, (struct slice){ push, sizeof(push) - 1 }, &m), 0);
    assert_true(m.is_broadcast && m.is_json);
    assert_true(slice_eq_str(m.join_ref, "1"));
    assert_true(slice_eq_str(m.ref, "2"));
    assert_true(slice_eq_str(m.topic, "realtime:a"));
    assert_true(slice_eq_str(m.user_event, "shout"));
    assert_true(slice_eq_str(m.body, "{\"a\":1}"));
    assert_int_equal(m.meta.n, 0);
    assert_int_equal(read(false, true, (struct slice){ push, sizeof(push) - 1 }, &m), -EINVAL);
}

static void a_binary_push_is_as_long_as_its_header_says(void **state)
{
    enum { HEAD = 7, NAMES = 17 };
    char changed[sizeof(push)];
    struct rt_message m;

    for (size_t n = 0; n < HEAD + NAMES; n++)
        assert_int_equal(read(true, true, (struct slice){ push, n }, &m), -EINVAL);
    for (size_t i = 0; i < HEAD; i++) {
        memcpy(changed, push, sizeof(push));
        changed[i] = '\xff';
        assert_int_equal(read(true, true, (struct slice){ changed, sizeof(push) - 1 }, &m), -EINVAL);
    }
    memcpy(changed, push, sizeof(push));
    changed[HEAD - 1] = 0; /* bytes: any payload will do, also none */
    assert_int_equal(read(true, true, (struct slice){ changed, HEAD + NAMES }, &m), 0);
    assert_false(m.is_json);
    changed[HEAD + 2] = '\xff'; /* the topic is no UTF-8 */
    assert_int_equal(read(true, true, (struct slice){ changed, sizeof(push) - 1 }, &m), -EINVAL);
}

static void what_is_written_is_read_by_the_other_end(void **state)
{
    const struct rt_message m = { .join_ref = SLICE_LIT("1"),
                                  .topic = SLICE_LIT("realtime:\"a\""),
                                  .event = SLICE_LIT("system"),
                                  .text = SLICE_LIT("{\"n\":[1]}") };
    struct rt_message read;

    for (int is_v2 = 0; is_v2 < 2; is_v2++) {
        struct buf out;

        buf_init(&out, KIB(1));
        rt_wire_write(&out, is_v2, &m);
        assert_int_equal(rt_wire_read_of_server(arena, is_v2, false, buf_slice(&out), &read, NULL), 0);
        assert_true(slice_eq_str(read.join_ref, "1"));
        assert_null(read.ref.p);
        assert_true(slice_eq_str(read.topic, "realtime:\"a\""));
        assert_int_equal(json_length(json_get(read.payload, "n")), 1);
        buf_clear(&out);
    }
}

static void a_broadcast_is_binary_unless_a_name_is_too_long(void **state)
{
    char name[257] = { 0 };
    struct rt_message m = { .topic = SLICE_LIT("realtime:a"),
                            .user_event = SLICE_LIT("shout"),
                            .body = SLICE_LIT("{}"),
                            .meta = SLICE_LIT("{\"id\":1}"),
                            .is_json = true };
    struct rt_message read;
    struct buf out;

    buf_init(&out, KIB(1));
    assert_true(rt_wire_write_broadcast(&out, &m));
    assert_memory_equal(out.p, "\x04\x0a\x05\x08\x01", 5);
    assert_int_equal(rt_wire_read_of_server(arena, true, true, buf_slice(&out), &read, NULL), 0);
    assert_true(slice_eq_str(read.meta, "{\"id\":1}"));
    memset(name, 'n', 256);
    buf_reset(&out);
    m.user_event = (struct slice){ name, 255 };
    assert_true(rt_wire_write_broadcast(&out, &m));
    buf_reset(&out);
    m.user_event.n = 256;
    assert_false(rt_wire_write_broadcast(&out, &m));
    buf_clear(&out);
}

static int set_up(void **state)
{
    arena = arena_new();
    return 0;
}

static int tear_down(void **state)
{
    arena_free(arena);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(an_object_and_an_array_say_the_same),
        TEST(what_has_another_form_is_refused),
        TEST(names_have_255_bytes),
        TEST(a_binary_push_is_read),
        TEST(a_binary_push_is_as_long_as_its_header_says),
        TEST(what_is_written_is_read_by_the_other_end),
        TEST(a_broadcast_is_binary_unless_a_name_is_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
