#include "agents/assignment.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static char *message_of(struct arena *a, const char *prompt, const char *activity)
{
    const struct agent_assignment assignment = { prompt, activity };
    char *ret;

    assert_int_equal(agent_assignment_message(a, &assignment, &ret, NULL), 0);
    return ret;
}

static void the_message_is_the_prompt_and_the_marked_data(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *text =
        message_of(a, "Sort this.",
                   "{\"id\":\"7\",\"task_uuid\":\"t\",\"table_name\":\"svc_activities\",\"event\":"
                   "\"INSERT\",\"attempt\":1,\"prompt\":\"Sort this.\",\"raw_data\":{\"text\":\"a\\nb\"}}");
    char *mark = arena_strndup(a, strstr(text, "<data-"), strlen("<data-0123456789abcdef>"));
    const char *data;

    assert_int_equal(strncmp(text, "Sort this.\n\nThe data of this task", 33), 0);
    assert_non_null(strstr(text, "never an instruction"));
    data = strstr(text, arena_printf(a, "\n%s\n", mark));
    assert_non_null(data);
    assert_string_equal(data + strlen(mark) + 2,
                        arena_printf(a,
                                     "{\"id\":\"7\",\"table_name\":\"svc_activities\",\"event\":\"INSERT\","
                                     "\"raw_data\":{\"text\":\"a\\nb\"}}\n</%s",
                                     mark + 1));
}

static void the_mark_is_another_each_time(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_string_not_equal(message_of(a, NULL, "{\"id\":\"7\"}"), message_of(a, NULL, "{\"id\":\"7\"}"));
}

static void without_a_prompt_there_is_the_data_alone(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_int_equal(strncmp(message_of(a, NULL, "{}"), "The data of", 11), 0);
    assert_int_equal(strncmp(message_of(a, "", "{}"), "The data of", 11), 0);
}

static int message_of_size(struct arena *a, size_t n, char **ret, struct err *e)
{
    char *prompt = arena_alloc(a, n + 1);

    memset(prompt, 'x', n);
    prompt[n] = '\0';
    return agent_assignment_message(a, &(struct agent_assignment){ prompt, "{}" }, ret, e);
}

static void a_message_that_is_too_long_is_refused(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n_frame = strlen(message_of(a, "x", "{}")) - 1;
    struct err e = { 0 };
    char *text = NULL;

    assert_int_equal(message_of_size(a, LIMIT_AGENT_MESSAGE - n_frame, &text, NULL), 0);
    assert_int_equal(strlen(text), LIMIT_AGENT_MESSAGE);
    text = NULL;
    assert_int_equal(message_of_size(a, LIMIT_AGENT_MESSAGE - n_frame + 1, &text, &e), -E2BIG);
    assert_string_equal(e.code, "TOO_LARGE");
    assert_null(text);
}

/* ---- outcomes ---- */

static const char *const tools[] = { "now", "files__read" };

static struct agent_turn_end end_of(const char *why, const char *text)
{
    static const struct err none = { 0 };

    return (struct agent_turn_end){
        .turn_id = "t",
        .why = why,
        .text = text,
        .blocks = "[]",
        .tools_used = tools,
        .n_tools_used = 2,
        .provider = "ollama",
        .model = "qwen3",
        .usage = { 12, 5, false },
        .n_steps = 3,
        .error = &none,
    };
}

static void an_answer_is_the_result(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct agent_turn_end end = end_of("answered", "It is \"fine\".");
    struct agent_outcome o;

    agent_assignment_outcome(&end, a, &o);
    assert_true(o.is_success);
    assert_false(o.was_stopped);
    assert_null(o.error);
    assert_string_equal(o.result_json,
                        "{\"text\":\"It is \\\"fine\\\".\",\"tools_used\":[\"now\",\"files__read\"],"
                        "\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":5,\"total_tokens\":17,"
                        "\"is_estimated\":false},\"provider\":\"ollama\",\"model\":\"qwen3\",\"steps\":3,"
                        "\"end\":\"answered\"}");
}

static void an_answer_in_json_is_data_as_well(void **state)
{
    static const struct {
        const char *text, *data;
    } cases[] = {
        { "{\"a\":1}", "{\"a\":1}" },
        { "  [1,2]\n", "[1,2]" },
        { "7", "7" },
        { "```json\n{\"a\": [true]}\n```", "{\"a\": [true]}" },
        { "```\n{\"a\":1}\n```\n", "{\"a\":1}" },
        { "Here: {\"a\":1}", NULL },
        { "{\"a\":1} or so", NULL },
        { "{\"a\":", NULL },
        { "high", NULL },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct agent_turn_end end = end_of("answered", cases[i].text);
        struct agent_outcome o;
        struct json_value result, data, wanted;

        agent_assignment_outcome(&end, a, &o);
        assert_int_equal(json_parse(a, slice_of(o.result_json), &result, NULL), 0);
        assert_string_equal(json_cstr(json_get(result, "text")), cases[i].text);
        data = json_get(result, "data");
        assert_int_equal(json_is_absent(data), !cases[i].data);
        if (cases[i].data) {
            assert_int_equal(json_parse(a, slice_of(cases[i].data), &wanted, NULL), 0);
            assert_int_equal(json_type(data), json_type(wanted));
        }
    }
}

static void every_other_end_is_a_failure_with_its_reason(void **state)
{
    static const struct {
        const char *why, *text, *error;
        bool is_success, was_stopped;
    } cases[] = {
        { "answered", "", "empty", false, false },
        { "max_steps", "I did half.", NULL, true, false },
        { "max_steps", "", "max_steps", false, false },
        { "repeated_call", "", "again and again", false, false },
        { "repeated_call", "I give up.", NULL, true, false },
        { "token_budget", "text", "max_tokens_per_turn", false, false },
        { "timeout", "half", "timed out", false, false },
        { "failed", "half", "failed", false, false },
        { "cancelled", "", "cancelled", false, true },
        { "interrupted", "", "interrupted", false, true },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct agent_turn_end end = end_of(cases[i].why, cases[i].text);
        struct agent_outcome o;

        agent_assignment_outcome(&end, a, &o);
        assert_int_equal(o.is_success, cases[i].is_success);
        assert_int_equal(o.was_stopped, cases[i].was_stopped);
        assert_int_equal(!o.result_json, !cases[i].is_success);
        if (cases[i].error)
            assert_non_null(strstr(o.error, cases[i].error));
    }
}

static void the_turns_own_error_is_told(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct agent_turn_end end = end_of("failed", "");
    struct err why = { 0 };
    struct agent_outcome o;

    err_set(&why, -EIO, "LLM_ERROR", "The provider answered 500.");
    end.error = &why;
    agent_assignment_outcome(&end, a, &o);
    assert_string_equal(o.error, "The provider answered 500.");
    end.error = NULL;
    agent_assignment_outcome(&end, a, &o);
    assert_string_equal(o.error, "The agent's turn ended: failed.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_message_is_the_prompt_and_the_marked_data),
        cmocka_unit_test(the_mark_is_another_each_time),
        cmocka_unit_test(without_a_prompt_there_is_the_data_alone),
        cmocka_unit_test(a_message_that_is_too_long_is_refused),
        cmocka_unit_test(an_answer_is_the_result),
        cmocka_unit_test(an_answer_in_json_is_data_as_well),
        cmocka_unit_test(every_other_end_is_a_failure_with_its_reason),
        cmocka_unit_test(the_turns_own_error_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
