/* Pinned definitions of tools in the store: what one server may fill, and what is left when the server goes. */
#include "../store/fixture.h"

#include "base/limits.h"
#include "mcp/pins.h"

#include <string.h>

static void add_server(struct fixture *at)
{
    struct fixture x = *at;

    MUST(store_mcp_servers_put(
        x.store, &(struct mcp_server_row){ .name = "files", .sealed = SLICE_LIT("x"), .is_enabled = true }, &x.e));
}

static struct mcp_tool *tools_of(struct arena *a, size_t from, size_t n, const char *description)
{
    struct mcp_tool *tools = arena_array(a, n, sizeof(*tools));

    for (size_t i = 0; i < n; i++) {
        tools[i] = (struct mcp_tool){ .name = arena_printf(a, "tool-%zu", from + i), .description = description };
        assert_int_equal(json_parse(a, slice_of("{\"type\":\"object\"}"), &tools[i].input_schema, NULL), 0);
    }
    return tools;
}

/* How many of them may be used. */
static size_t check(struct fixture *at, const struct mcp_tool *tools, size_t n)
{
    struct fixture x = *at;
    const char **why_not = arena_array(x.a, n, sizeof(*why_not));
    size_t n_usable = 0;

    MUST(mcp_pins_check(x.store, "files", false, tools, n, x.a, why_not, &x.e));
    for (size_t i = 0; i < n; i++)
        n_usable += !why_not[i];
    return n_usable;
}

static size_t count_pins(struct fixture *at)
{
    struct fixture x = *at;
    struct mcp_pin_row *rows = NULL;
    size_t n = 0;

    MUST(store_mcp_pins_list(x.store, x.a, "files", &rows, &n, &x.e));
    return n;
}

static void a_server_that_invents_new_tools_is_kept_to_a_number(void **state)
{
    enum { N = LIMIT_MCP_PINS / 2 };
    struct fixture x = fixture_open();

    (void)state;
    add_server(&x);
    assert_int_equal(check(&x, tools_of(x.a, 0, N, "d"), N), N);
    assert_int_equal(check(&x, tools_of(x.a, N, N, "d"), N), N);
    assert_int_equal(check(&x, tools_of(x.a, 2 * N, 10, "d"), 10), 0);
    assert_int_equal(count_pins(&x), LIMIT_MCP_PINS);
    assert_int_equal(check(&x, tools_of(x.a, 0, N, "d"), N), N); /* those that are known go on */
    assert_int_equal(check(&x, tools_of(x.a, 0, 1, "another"), 1), 0);
    assert_int_equal(check(&x, tools_of(x.a, 0, 1, "d"), 1), 1);
    fixture_close(&x);
}

static void large_definitions_fill_the_bytes_of_their_server_only(void **state)
{
    enum { N = 80, BYTES = LIMIT_MCP_TOOL_BYTES - 1024 };
    struct fixture x = fixture_open();
    char *text = arena_alloc(x.a, BYTES + 1);
    size_t n_usable;

    (void)state;
    add_server(&x);
    memset(text, 'x', BYTES);
    text[BYTES] = '\0';
    n_usable = check(&x, tools_of(x.a, 0, N, text), N);
    assert_true(n_usable >= LIMIT_MCP_PIN_BYTES / LIMIT_MCP_TOOL_BYTES && n_usable < N);
    assert_int_equal(count_pins(&x), n_usable);
    assert_int_equal(check(&x, tools_of(x.a, 0, n_usable, text), n_usable), n_usable);
    text[0] = 'y'; /* all are changed: off, and no second copy of each is kept */
    assert_int_equal(check(&x, tools_of(x.a, 0, n_usable, text), n_usable), 0);
    text[0] = 'x';
    assert_int_equal(check(&x, tools_of(x.a, 0, n_usable, text), n_usable), n_usable);
    fixture_close(&x);
}

static void a_server_that_was_removed_meanwhile_is_not_found(void **state)
{
    struct fixture x = fixture_open();
    const char *why_not[1];

    (void)state;
    MUST_FAIL(mcp_pins_check(x.store, "files", false, tools_of(x.a, 0, 1, "d"), 1, x.a, why_not, &x.e), -ENOENT,
              "SERVER_NOT_FOUND");
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_invents_new_tools_is_kept_to_a_number),
        cmocka_unit_test(large_definitions_fill_the_bytes_of_their_server_only),
        cmocka_unit_test(a_server_that_was_removed_meanwhile_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
