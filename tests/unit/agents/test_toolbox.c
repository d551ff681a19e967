/* Names of tools as models see them, and results of tools at their limits. */
#include "agents/loop_private.h"
#include "agents/toolbox_private.h"
#include "base/limits.h"
#include "store/tables/approval_rules.h"

#include "../identity/fixture.h"

#include <string.h>

struct box {
    struct arena *a;
    struct agent_toolbox tools;
    struct toolbox_filling filling;
};

static void open_box(struct box *x)
{
    x->a = arena_new();
    x->tools.items = arena_array(x->a, LIMIT_AGENT_TOOLS, sizeof(*x->tools.items));
    x->filling = (struct toolbox_filling){ .arena = x->a, .box = &x->tools };
}

static void close_box(struct box *x)
{
    arena_free(x->a);
}

static int add(struct box *x, const char *name, struct err *e)
{
    return toolbox_add(&x->filling, &(struct agent_tool){ .tool = name }, name, e);
}

static void names_are_mended_and_unique(void **state)
{
    AUTO(close_box) struct box x = { 0 };
    struct err e = { 0 };
    char name[101];

    open_box(&x);
    memset(name, 'n', 100);
    name[100] = '\0';
    must(add(&x, "files__read.file/x", &e), &e);
    must(add(&x, "files__read file x", &e), &e);
    must(add(&x, name, &e), &e);
    must(add(&x, name, &e), &e);
    assert_string_equal(x.tools.items[0].name, "files__read_file_x");
    assert_string_equal(x.tools.items[1].name, "files__read_file_x_2");
    assert_int_equal(strlen(x.tools.items[2].name), AGENT_TOOL_NAME_MAX);
    assert_int_equal(strlen(x.tools.items[3].name), AGENT_TOOL_NAME_MAX);
    assert_string_equal(x.tools.items[3].name + AGENT_TOOL_NAME_MAX - 2, "_2");
    assert_ptr_equal(agent_toolbox_find(&x.tools, "files__read_file_x_2"), &x.tools.items[1]);
    assert_null(agent_toolbox_find(&x.tools, "files"));
    assert_string_equal(agent_toolbox_suggest(&x.tools, "files__raed_file_x", x.a), "files__read_file_x");
}

static void a_box_is_full_at_its_limit(void **state)
{
    AUTO(close_box) struct box x = { 0 };
    struct err e = { 0 };

    open_box(&x);
    for (size_t i = 0; i < LIMIT_AGENT_TOOLS; i++)
        must(add(&x, "same", &e), &e);
    assert_string_equal(x.tools.items[LIMIT_AGENT_TOOLS - 1].name, "same_256");
    assert_int_equal(add(&x, "more", &e), -E2BIG);
    assert_string_equal(e.code, "TOO_MANY_TOOLS");
}

/* ---- images of results ---- */

static struct loop_result result_of(struct arena *a, const char *content)
{
    struct mcp_result from = { .is_error = false };
    struct loop_result result = { 0 };
    struct err e = { 0 };

    must(json_parse(a, slice_of(content), &from.content, &e), &e);
    loop_result_of(a, &from, &result);
    return result;
}

static const char *images(struct arena *a, size_t n, size_t n_bytes)
{
    struct buf out;

    buf_init(&out, MIB(32));
    for (size_t i = 0; i < n; i++) {
        buf_printf(&out, "%s{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"", i ? "," : "[");
        for (size_t k = 0; k < n_bytes; k++)
            buf_add_char(&out, 'A');
        buf_add_str(&out, "\"}");
    }
    buf_add_char(&out, ']');
    return buf_to_arena(&out, a);
}

static void images_are_kept_up_to_their_limits(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_int_equal(result_of(a, images(a, LIMIT_TOOL_RESULT_IMAGES, 4)).n_blocks, 1 + LIMIT_TOOL_RESULT_IMAGES);
    assert_int_equal(result_of(a, images(a, LIMIT_TOOL_RESULT_IMAGES + 1, 4)).n_blocks, 1 + LIMIT_TOOL_RESULT_IMAGES);
    assert_int_equal(result_of(a, images(a, 1, LIMIT_TOOL_IMAGE_BYTES)).n_blocks, 2);
    assert_int_equal(result_of(a, images(a, 1, LIMIT_TOOL_IMAGE_BYTES + 4)).n_blocks, 1);
}

static void a_text_is_cut_at_a_whole_character(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n = LIMIT_TOOL_RESULT_BYTES - 1;
    char *text = arena_alloc(a, n + 3);
    struct loop_result result;

    memset(text, 'x', n);
    memcpy(text + n, "\xc3\xa9", 3); /* its second byte is beyond the limit */
    result = result_of(a, arena_printf(a, "[{\"type\":\"text\",\"text\":\"%s\"}]", text));
    assert_true(result.is_cut);
    assert_int_equal(strspn(result.blocks[0].text, "x"), n);
    assert_int_equal(result.blocks[0].text[n], '\n');
}

static void a_result_without_text_says_so(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_string_equal(result_of(a, "[]").blocks[0].text, "(no output)");
    assert_string_equal(result_of(a, "[{\"type\":\"text\",\"text\":\"a\\u0000b\"}]").blocks[0].text, "a b");
    assert_string_equal(
        result_of(a, "[{\"type\":\"resource\",\"resource\":{\"uri\":\"x:y\",\"text\":\"in\"}}]").blocks[0].text, "in");
}

/* ---- kept decisions ---- */

static void decisions_are_kept_up_to_their_limit(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct approval_rule_row row = { .agent = "a", .server = "", .is_allowed = true };
    struct err e = { 0 };

    must(store_exec(f.store, &e, NULL,
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
                    "INSERT INTO approval_rules SELECT 'a', '', 't' || i, 1, '2026-01-01T00:00:00Z' FROM n",
                    "i", (int64_t)LIMIT_APPROVAL_RULES - 1),
         &e);
    row.tool = "last";
    must(store_approval_rules_set(f.store, &row, &e), &e);
    row.tool = "more";
    assert_int_equal(store_approval_rules_set(f.store, &row, &e), -E2BIG);
    assert_string_equal(e.code, "TOO_MANY_RULES");
    row.tool = "last"; /* changing one is no further one */
    row.is_allowed = false;
    must(store_approval_rules_set(f.store, &row, &e), &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_mended_and_unique),        cmocka_unit_test(a_box_is_full_at_its_limit),
        cmocka_unit_test(images_are_kept_up_to_their_limits), cmocka_unit_test(a_text_is_cut_at_a_whole_character),
        cmocka_unit_test(a_result_without_text_says_so),      cmocka_unit_test(decisions_are_kept_up_to_their_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
