/* Answers of a provider, and requests to a provider, at the edge of each limit. */
#include "llm/answer.h"
#include "llm/request.h"
#include "llm/file.h"
#include "llm/protocols/wire.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stddef.h>
#include <string.h>

static char *letters(struct arena *a, size_t n)
{
    char *text = arena_alloc(a, n + 1);

    memset(text, 'x', n);
    return text;
}

static size_t n_models_with(struct arena *a, size_t n_name)
{
    struct llm_models models = { 0 };
    struct err e = { 0 };

    assert_int_equal(wire_models(slice_of(arena_printf(a, "{\"data\":[{\"id\":\"%s\"},{\"id\":\"m\",\"name\":\"%s\"}]}",
                                                       letters(a, n_name), letters(a, n_name))),
                                 &(struct wire_list){ "data", "id", "name", "created" }, a, &models, &e),
                     0);
    assert_string_equal(models.items[models.n - 1].name, n_name <= LIMIT_MODEL_BYTES ? letters(a, n_name) : "m");
    return models.n;
}

static void a_models_name_has_as_many_bytes_as_the_limit_says(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_int_equal(n_models_with(a, LIMIT_MODEL_BYTES), 2);
    assert_int_equal(n_models_with(a, LIMIT_MODEL_BYTES + 1), 1);
}

static int add_call(struct arena *a, size_t n_id, size_t n_name)
{
    struct llm_answer answer;
    int r;

    llm_answer_init(&answer);
    r = llm_answer_add_tool(&answer, 0, letters(a, n_id), letters(a, n_name), SLICE_LIT("{}"));
    llm_answer_clear(&answer);
    return r;
}

static void ids_and_names_of_calls_have_as_many_bytes_as_the_limit_says(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_int_equal(add_call(a, LIMIT_TOOL_ID_BYTES, LIMIT_TOOL_ID_BYTES), 0);
    assert_int_equal(add_call(a, LIMIT_TOOL_ID_BYTES + 1, 1), -EMSGSIZE);
    assert_int_equal(add_call(a, 1, LIMIT_TOOL_ID_BYTES + 1), -EMSGSIZE);
}

static void the_arguments_of_all_calls_together_have_as_many_bytes_as_the_limit_says(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct slice half = { letters(a, LIMIT_LLM_ANSWER / 2), LIMIT_LLM_ANSWER / 2 };
    struct llm_answer answer;

    llm_answer_init(&answer);
    assert_int_equal(llm_answer_add_tool(&answer, 0, "a", "f", half), 0);
    assert_int_equal(llm_answer_add_tool(&answer, 1, "b", "f", half), 0);
    assert_int_equal(llm_answer_add_tool(&answer, 2, "c", "f", SLICE_LIT("x")), -EMSGSIZE);
    llm_answer_clear(&answer);
}

static void counts_of_tokens_stay_between_their_limits(void **state)
{
    static const struct {
        const char *progress;
        int64_t otherwise, wanted;
    } cases[] = {
        { "7", 0, 7 },
        { "7.9", 0, 7 },
        { "-1", 0, 0 },
        { "-5", -1, -1 },
        { "null", -1, -1 },
        { "\"7\"", -1, -1 },
        { "1073741824", 0, LIMIT_TOKENS },
        { "1073741825", 0, LIMIT_TOKENS },
        { "9223372036854775807", 0, LIMIT_TOKENS },
        { "18446744073709551615", 0, LIMIT_TOKENS },
        { "-1e308", 0, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct json_value progress = { 0 };

        assert_int_equal(json_parse(a, slice_of(cases[i].progress), &progress, NULL), 0);
        assert_int_equal(wire_tokens(progress, cases[i].otherwise), cases[i].wanted);
    }
    assert_int_equal(wire_tokens((struct json_value){ 0 }, -1), -1);
}

static int read_stop(struct arena *a, size_t n)
{
    struct llm_request_body *body = ARENA_NEW(a, struct llm_request_body);
    struct json_value json = { 0 };
    struct llm_request request = { 0 };
    struct err e = { 0 };

    assert_int_equal(json_parse(a,
                                slice_of(arena_printf(
                                    a, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stop\":[\"a\",\"%s\"]}",
                                    letters(a, n))),
                                &json, NULL),
                     0);
    assert_int_equal(fields_read(llm_request_fields, json, body, a, "", &e), 0);
    return llm_request_of(body, a, &request, &e);
}

static void a_stop_has_as_many_bytes_as_the_limit_says(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_int_equal(read_stop(a, LIMIT_STOP_BYTES), 0);
    assert_int_equal(read_stop(a, LIMIT_STOP_BYTES + 1), -EINVAL);
}

static void a_status_that_http_does_not_know_is_refused_without_harm(void **state)
{
    static const int statuses[] = { -1, 0, 99, 600, 999, 1000, 2000, 2147483647 };
    const struct llm_account acc = { .name = "a",
                                     .preset = llm_preset_find("openai"),
                                     .base_url = "http://127.0.0.1:1/v1" };

    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        struct err e = { 0 };

        assert_true(llm_refusal(&acc, statuses[i], SLICE_LIT("{}"), &e) < 0);
        assert_string_equal(e.code, "LLM_ERROR");
    }
}

static void a_files_address_has_as_many_bytes_as_the_limit_says(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_block block = { .kind = LLM_BLOCK_TEXT };
    size_t n = LIMIT_FILE_ADDRESS_BYTES - strlen("https://h/");

    assert_int_equal(llm_file_of_address(arena_printf(a, "https://h/%s", letters(a, n)), "x", &block, NULL), 0);
    assert_int_equal(block.kind, LLM_BLOCK_FILE_URL);
    assert_int_equal(llm_file_of_address(arena_printf(a, "https://h/%s", letters(a, n + 1)), "x", &block, NULL),
                     -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_models_name_has_as_many_bytes_as_the_limit_says),
        cmocka_unit_test(ids_and_names_of_calls_have_as_many_bytes_as_the_limit_says),
        cmocka_unit_test(the_arguments_of_all_calls_together_have_as_many_bytes_as_the_limit_says),
        cmocka_unit_test(counts_of_tokens_stay_between_their_limits),
        cmocka_unit_test(a_stop_has_as_many_bytes_as_the_limit_says),
        cmocka_unit_test(a_files_address_has_as_many_bytes_as_the_limit_says),
        cmocka_unit_test(a_status_that_http_does_not_know_is_refused_without_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
