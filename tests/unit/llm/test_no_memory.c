#include "llm/format.h"
#include "llm/protocols/wire.h"
#include "vector/vector_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What readers say when JSON cannot have its memory: never that the text is wrong. The program is linked with
 * --wrap=json_parse. */

int __wrap_json_parse(struct arena *a, struct slice text, struct json_value *ret, struct err *e);

int __wrap_json_parse(struct arena *a, struct slice text, struct json_value *ret, struct err *e)
{
    return err_set(e, -ENOMEM, "OUT_OF_MEMORY", "no memory");
}

static void assert_is_want(int r, const struct err *e)
{
    assert_int_equal(r, -ENOMEM);
    assert_string_equal(e->code, "OUT_OF_MEMORY");
}

static void a_provider_s_answer(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value root = { 0 };
    struct err e = { 0 };

    assert_is_want(wire_parse(a, SLICE_LIT("{}"), &root, &e), &e);
    assert_is_want(wire_parse(a, SLICE_LIT("<html>"), &root, &e), &e);
}

static void a_model_s_answer_that_must_be_json(void **state)
{
    const struct llm_format_rule rule = { .format = LLM_FORMAT_JSON };
    struct slice text = SLICE_LIT("{}");
    struct err e = { 0 };

    assert_is_want(llm_format_check(&rule, &text, &e), &e);
}

static void metadata_of_a_vector(void **state)
{
    const float vector[] = { 1, 0 };
    const struct vector_record record = { .id = "a", .vector = vector, .metadata = "{}" };
    const struct vector_batch batch = { .items = &record, .n = 1, .n_dimensions = ARRAY_SIZE(vector) };
    struct err e = { 0 };

    assert_is_want(vector_check_batch(&batch, &e), &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_provider_s_answer),
        cmocka_unit_test(a_model_s_answer_that_must_be_json),
        cmocka_unit_test(metadata_of_a_vector),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
