#include "api/resources/vector_bulk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>

static int read_text(struct arena *a, struct slice body, struct vector_bulk *ret, struct err *e)
{
    char *copy = malloc(body.n + 1); /* so that a sanitizer sees a read beyond the body */
    int r;

    memcpy(copy, body.p, body.n);
    copy = realloc(copy, MAX(body.n, (size_t)1));
    r = vector_bulk_read(a, (struct slice){ copy, body.n }, ret, e);
    free(copy);
    return r;
}

static void ids_and_rows_belong_together_in_their_order(void **state)
{
    static const struct slice bodies[] = {
        SLICE_LIT("{\"ids\":[\"a\",\"b\"],\"metadata\":[{\"n\":1},{}],\"workspaceId\":\"w\",\"embeddingModel\":\"m\"}\n"
                  "\0\0\200\77\0\0\0\300\0\0\0\0\0\0\200\77"),
        SLICE_LIT(
            " {\"ids\":[\"a\",\"b\"],\"metadata\":[{\"n\":1},{}],\"workspaceId\":\"w\",\"embeddingModel\":\"m\"}\r\n"
            "\0\0\200\77\0\0\0\300\0\0\0\0\0\0\200\77"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_bulk bulk = { 0 };
        struct err e = { 0 };

        assert_int_equal(read_text(a, bodies[i], &bulk, &e), 0);
        assert_string_equal(bulk.workspace, "w");
        assert_string_equal(bulk.model, "m");
        assert_int_equal(bulk.batch.n, 2);
        assert_int_equal(bulk.batch.n_dimensions, 2);
        assert_string_equal(bulk.batch.items[0].id, "a");
        assert_string_equal(bulk.batch.items[1].id, "b");
        assert_string_equal(bulk.batch.items[0].metadata, "{\"n\":1}");
        assert_string_equal(bulk.batch.items[1].metadata, "{}");
        assert_true(bulk.batch.items[0].vector[0] == 1 && bulk.batch.items[0].vector[1] == -2);
        assert_true(bulk.batch.items[1].vector[0] == 0 && bulk.batch.items[1].vector[1] == 1);
    }
}

static void what_the_line_leaves_out_has_its_default(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vector_bulk bulk = { 0 };
    struct err e = { 0 };

    assert_int_equal(read_text(a, SLICE_LIT("{\"ids\":[\"a\"],\"metadata\":null}\n\n\n\n\n"), &bulk, &e), 0);
    assert_string_equal(bulk.workspace, VECTOR_WORKSPACE_DEFAULT);
    assert_null(bulk.model);
    assert_string_equal(bulk.batch.items[0].metadata, "{}");
    assert_int_equal(bulk.batch.n_dimensions, 1);
}

static void a_body_that_breaks_a_rule_is_refused(void **state)
{
    static const struct {
        struct slice body;
        const char *code, *part;
    } cases[] = {
        { SLICE_LIT(""), "VALIDATION_ERROR", "one line of JSON, a line feed" },
        { SLICE_LIT("{\"ids\":[\"a\"]}"), "VALIDATION_ERROR", "one line of JSON, a line feed" },
        { SLICE_LIT("\nAAAA"), "INVALID_JSON", "" },
        { SLICE_LIT("{\"ids\":\n[\"a\"]}\nAAAA"), "INVALID_JSON", "" },
        { SLICE_LIT("[\"a\"]\nAAAA"), "VALIDATION_ERROR", "must be a JSON object" },
        { SLICE_LIT("{}\nAAAA"), "VALIDATION_ERROR", "`ids` is required" },
        { SLICE_LIT("{\"ids\":[]}\nAAAA"), "VALIDATION_ERROR", "`ids` must have at least 1 element" },
        { SLICE_LIT("{\"ids\":[1]}\nAAAA"), "VALIDATION_ERROR", "`ids[0]` must be a string" },
        { SLICE_LIT("{\"ids\":[\"a\"]}\n"), "VALIDATION_ERROR", "0 bytes follow the line feed: for 1 ids" },
        { SLICE_LIT("{\"ids\":[\"a\"]}\nAAA"), "VALIDATION_ERROR", "3 bytes follow" },
        { SLICE_LIT("{\"ids\":[\"a\"]}\nAAAAA"), "VALIDATION_ERROR", "5 bytes follow" },
        { SLICE_LIT("{\"ids\":[\"a\",\"b\"]}\nAAAA"), "VALIDATION_ERROR", "4 bytes follow the line feed: for 2 ids" },
        { SLICE_LIT("{\"ids\":[\"a\",\"b\"]}\nAAAABBBBCCCC"), "VALIDATION_ERROR", "12 bytes follow" },
        { SLICE_LIT("{\"ids\":[\"a\"],\"metadata\":{}}\nAAAA"), "VALIDATION_ERROR", "`metadata` must be an array" },
        { SLICE_LIT("{\"ids\":[\"a\"],\"metadata\":[]}\nAAAA"), "VALIDATION_ERROR",
          "as many objects as there are ids, 1" },
        { SLICE_LIT("{\"ids\":[\"a\"],\"metadata\":[{},{}]}\nAAAA"), "VALIDATION_ERROR", "as many objects as" },
        { SLICE_LIT("{\"ids\":[\"a\"],\"metadata\":[7]}\nAAAA"), "VALIDATION_ERROR",
          "`metadata[0]` must be an object" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_bulk bulk = { 0 };
        struct err e = { 0 };

        if (read_text(a, cases[i].body, &bulk, &e) != -EINVAL)
            fail_msg("taken: %s", cases[i].body.p);
        assert_string_equal(e.code, cases[i].code);
        if (!strstr(e.text, cases[i].part))
            fail_msg("%s lacks %s", e.text, cases[i].part);
    }
}

/* The line, then n_numbers numbers. */
static int read_sized(const char *line, size_t n_blanks, size_t n_numbers, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n_line = strlen(line), n = n_blanks + n_line + 1 + 4 * n_numbers;
    char *body = calloc(1, n);
    struct vector_bulk bulk = { 0 };
    int r;

    memset(body, ' ', n_blanks);
    memcpy(body + n_blanks, line, n_line);
    body[n_blanks + n_line] = '\n';
    r = vector_bulk_read(a, (struct slice){ body, n }, &bulk, e);
    free(body);
    return r;
}

static void limits_hold_at_their_edges(void **state)
{
    static const char line[] = "{\"ids\":[\"a\"]}";
    const size_t n_blanks = LIMIT_VECTOR_HEAD - (sizeof(line) - 1);
    struct err e = { 0 };

    assert_int_equal(read_sized(line, 0, LIMIT_DIMENSIONS, &e), 0);
    assert_int_equal(read_sized(line, 0, LIMIT_DIMENSIONS + 1, &e), -EINVAL);
    assert_int_equal(read_sized(line, n_blanks, 1, &e), 0);
    assert_int_equal(read_sized(line, n_blanks + 1, 1, &e), -E2BIG);
    assert_string_equal(e.code, "BODY_TOO_LARGE");
}

static void as_many_ids_are_taken_as_in_any_call(void **state)
{
    struct err e = { 0 };

    for (size_t n = LIMIT_VECTORS_PER_CALL; n <= LIMIT_VECTORS_PER_CALL + 1; n++) {
        struct buf line;

        buf_init(&line, MIB(1));
        buf_add_str(&line, "{\"ids\":[\"x\"");
        for (size_t i = 1; i < n; i++)
            buf_add_str(&line, ",\"x\"");
        buf_add_str(&line, "]}");
        assert_int_equal(read_sized(buf_str(&line), 0, n, &e), n > LIMIT_VECTORS_PER_CALL ? -EINVAL : 0);
        buf_clear(&line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_rows_belong_together_in_their_order),
        cmocka_unit_test(what_the_line_leaves_out_has_its_default),
        cmocka_unit_test(a_body_that_breaks_a_rule_is_refused),
        cmocka_unit_test(limits_hold_at_their_edges),
        cmocka_unit_test(as_many_ids_are_taken_as_in_any_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
