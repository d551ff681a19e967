/* Definitions of servers at the edges of their limits. */
#include "mcp/server.h"

#include "base/limits.h"
#include "mcp/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char *repeated(struct arena *a, char c, size_t n)
{
    char *text = arena_alloc(a, n + 1);

    memset(text, c, n);
    text[n] = '\0';
    return text;
}

static int read_definition(struct arena *a, const char *json, struct mcp_server *ret, struct err *e)
{
    struct json_value v = { 0 };
    int r = json_parse(a, slice_of(json), &v, e);

    *ret = (struct mcp_server){ .name = NULL };
    if (r == 0)
        r = fields_read(mcp_server_fields, v, ret, a, "", e);
    if (r < 0)
        return r;
    mcp_server_complete(ret);
    return mcp_server_check(ret, "/nowhere", e);
}

/* Up to the limit a definition is taken; one more is refused by this rule of this field. */
static void expect_edge(struct arena *a, const char *at_edge, const char *beyond, const char *field)
{
    struct mcp_server s;
    struct err e = { 0 };

    if (read_definition(a, at_edge, &s, &e) < 0)
        fail_msg("%s: %s %s", field, e.fields[0].field, e.fields[0].rule);
    assert_int_equal(read_definition(a, beyond, &s, &e), -EINVAL);
    assert_string_equal(e.code, "VALIDATION_ERROR");
    assert_string_equal(e.fields[0].field, field);
}

static const char *list_of(struct arena *a, size_t n)
{
    const char *list = "\"0\"";

    for (size_t i = 1; i < n; i++)
        list = arena_printf(a, "%s,\"%zu\"", list, i);
    return list;
}

static const char *map_of(struct arena *a, size_t n)
{
    const char *map = "\"A0\":\"v\"";

    for (size_t i = 1; i < n; i++)
        map = arena_printf(a, "%s,\"A%zu\":\"v\"", map, i);
    return map;
}

static void each_limit_of_a_definition_is_the_most(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    expect_edge(a, arena_printf(a, "{\"name\":\"%s\",\"command\":\"c\"}", repeated(a, 'n', LIMIT_MCP_SERVER_NAME)),
                arena_printf(a, "{\"name\":\"%s\",\"command\":\"c\"}", repeated(a, 'n', LIMIT_MCP_SERVER_NAME + 1)),
                "name");
    expect_edge(a, arena_printf(a, "{\"name\":\"n\",\"command\":\"c\",\"tags\":[%s]}", list_of(a, LIMIT_MCP_TAGS)),
                arena_printf(a, "{\"name\":\"n\",\"command\":\"c\",\"tags\":[%s]}", list_of(a, LIMIT_MCP_TAGS + 1)),
                "tags");
    expect_edge(
        a, arena_printf(a, "{\"name\":\"n\",\"url\":\"http://x\",\"headers\":{%s}}", map_of(a, LIMIT_MCP_HEADERS)),
        arena_printf(a, "{\"name\":\"n\",\"url\":\"http://x\",\"headers\":{%s}}", map_of(a, LIMIT_MCP_HEADERS + 1)),
        "headers");
    expect_edge(a,
                arena_printf(a, "{\"name\":\"n\",\"url\":\"http://x\",\"client_id\":\"%s\"}",
                             repeated(a, 'c', LIMIT_MCP_CLIENT_BYTES)),
                arena_printf(a, "{\"name\":\"n\",\"url\":\"http://x\",\"client_id\":\"%s\"}",
                             repeated(a, 'c', LIMIT_MCP_CLIENT_BYTES + 1)),
                "client_id");
}

/* Arguments of n bytes in all, in as few as there can be. */
static const char *definition_with(struct arena *a, size_t n, char c, const char *last)
{
    struct buf out;

    buf_init(&out, 4 * LIMIT_MCP_DEFINITION);
    buf_add_str(&out, "{\"name\":\"n\",\"command\":\"c\",\"args\":[");
    for (size_t part; n > 0; n -= part) {
        part = MIN(n, (size_t)LIMIT_ARG_BYTES / 2);
        buf_printf(&out, "\"%s\",", repeated(a, c, part));
    }
    buf_printf(&out, "\"%s\"]}", last);
    return buf_to_arena(&out, a);
}

static size_t written_bytes(const struct mcp_server *s)
{
    struct json_writer w;
    struct buf out;
    size_t n;

    buf_init(&out, 4 * LIMIT_MCP_DEFINITION);
    json_write_init(&w, &out);
    mcp_server_write(s, &w);
    n = out.n;
    buf_clear(&out);
    return n;
}

static void a_definition_has_at_most_the_limit_as_json(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_server s;
    struct err e = { 0 };
    size_t n = LIMIT_MCP_DEFINITION / 2;

    assert_int_equal(read_definition(a, definition_with(a, n, 'x', ""), &s, &e), 0);
    n += LIMIT_MCP_DEFINITION - written_bytes(&s);
    while (read_definition(a, definition_with(a, n, 'x', ""), &s, &e) == 0 && written_bytes(&s) < LIMIT_MCP_DEFINITION)
        n++; /* more arguments have more marks between them */
    while (written_bytes(&s) > LIMIT_MCP_DEFINITION)
        (void)!read_definition(a, definition_with(a, --n, 'x', ""), &s, NULL);
    assert_int_equal(written_bytes(&s), LIMIT_MCP_DEFINITION);
    e = (struct err){ 0 };
    assert_int_equal(read_definition(a, definition_with(a, n, 'x', ""), &s, &e), 0);
    assert_int_equal(read_definition(a, definition_with(a, n + 1, 'x', ""), &s, &e), -EINVAL);
    assert_string_equal(e.code, "VALIDATION_ERROR");
    assert_non_null(strstr(e.fields[0].rule, "at most LIMIT_MCP_DEFINITION (1048576) bytes"));
}

/* What a person accepts is shown whole, however long it becomes by quotes, and its hash knows its last byte. */
static void a_long_definition_is_shown_and_hashed_to_its_end(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_server one, other;
    const char *shown;
    struct err e = { 0 };

    assert_int_equal(read_definition(a, definition_with(a, 1000000, '\'', "--last=1"), &one, &e), 0);
    assert_int_equal(read_definition(a, definition_with(a, 1000000, '\'', "--last=2"), &other, &e), 0);
    assert_string_not_equal(mcp_server_hash(a, &one), mcp_server_hash(a, &other));
    shown = mcp_server_shown(a, NULL, &one);
    assert_true(strlen(shown) > 4000000);
    assert_non_null(strstr(shown, " --last=1\n"));
}

static void values_that_make_a_definition_too_large_are_refused(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value root = { 0 }, answers = { 0 };
    struct mcp_config config;
    struct mcp_server s = { .name = NULL };
    struct err e = { 0 };
    const char *text = "{\"mcpServers\":{\"n\":{\"command\":\"c\",\"env\":{\"A\":\"${input:x}\"}}}}";

    assert_int_equal(json_parse(a, slice_of(text), &root, &e), 0);
    assert_int_equal(mcp_config_read(a, root, &config, &e), 0);
    for (size_t n = LIMIT_MCP_DEFINITION; n <= LIMIT_MCP_DEFINITION + 1; n++) {
        e = (struct err){ 0 };
        text = arena_printf(a, "{\"input:x\":\"%s\"}", repeated(a, 'v', n));
        assert_int_equal(json_parse(a, slice_of(text), &answers, &e), 0);
        assert_int_equal(mcp_config_server(&config, 0, answers, a, &s, &e), -EINVAL); /* one value has its own limit */
        if (n > LIMIT_MCP_DEFINITION)
            assert_string_equal(e.fields[0].field, "inputs");
        assert_null(s.name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_limit_of_a_definition_is_the_most),
        cmocka_unit_test(a_definition_has_at_most_the_limit_as_json),
        cmocka_unit_test(a_long_definition_is_shown_and_hashed_to_its_end),
        cmocka_unit_test(values_that_make_a_definition_too_large_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
