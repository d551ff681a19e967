/* Turns of models without tools or images of their own: what is learnt from refusals, and what they are sent then. */
#include "loop_tools.h"

#include "store/tables/model_facts.h"

#define NO_TOOLS "{\"error\":{\"message\":\"registry.ollama.ai/library/gemma:2b does not support tools\"}}"
#define SPOKEN(text) SAY(text)

static const char *fact(struct loop_rig *x, const char *name)
{
    const char *value = NULL;
    struct err e = { 0 };

    must(store_model_facts_get(x->m.f.store, x->m.f.a, "one", "m", name, &value, &e), &e);
    return value;
}

static void tools_go_by_schema_where_they_are_refused(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };
    struct json_value format;

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    script_status(&x, 400, NO_TOOLS);
    script(
        &x,
        SPOKEN(
            "{\\\"calls\\\":[{\\\"tool\\\":\\\"echo\\\",\\\"arguments\\\":{\\\"text\\\":\\\"hi\\\"}}],\\\"answer\\\":\\\"\\\"}"));
    script(&x, SPOKEN("{\\\"calls\\\":[],\\\"answer\\\":\\\"It says hi.\\\"}"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_string_equal(x.end.text, "It says hi.");
    assert_true(json_is_absent(json_get(request_of(&x, 1), "tools")));
    format = json_get(request_of(&x, 1), "response_format");
    assert_string_equal(json_cstr(json_get(format, "type")), "json_schema");
    assert_non_null(strstr(content_of(&x, 1, 1), "## echo\nSays it again."));
    assert_non_null(strstr(content_of(&x, 2, 4), "# Result of echo\necho hi"));
    assert_string_equal(fact(&x, "tools"), "schema");
}

static void what_was_learnt_is_known_to_the_next_turn(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };
    struct err e = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    must(store_model_facts_set(x.m.f.store, "one", "m", "tools", "instruction", &e), &e);
    script(&x, SPOKEN("I look.\\n```json\\n{\\\"calls\\\":[{\\\"tool\\\":\\\"echo\\\",\\\"arguments\\\":{}}]}\\n```"));
    script(&x, SPOKEN("Seen."));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_string_equal(x.end.text, "Seen.");
    assert_true(json_is_absent(json_get(request_of(&x, 0), "tools")));
    assert_true(json_is_absent(json_get(request_of(&x, 0), "response_format")));
    assert_non_null(strstr(content_of(&x, 1, 4), "echo -"));
}

static void a_refused_schema_leaves_instructions(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    script_status(&x, 400, NO_TOOLS);
    script_status(&x, 400, "{\"error\":{\"message\":\"response_format json_schema is not supported\"}}");
    script(&x, SPOKEN("Plain."));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_string_equal(x.end.text, "Plain.");
    assert_string_equal(fact(&x, "tools"), "instruction");
}

static void a_refusal_of_one_schema_teaches_nothing(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    script_status(&x, 400,
                  "{\"error\":{\"message\":\"Invalid schema for function echo: anyOf is not supported in tools\"}}");
    run(&x);
    assert_string_equal(ended(&x), "LLM_ERROR");
    assert_null(fact(&x, "tools"));
}

static void an_unfinished_spoken_call_is_asked_for_again(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };
    struct err e = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &echo_tool);
    must(store_model_facts_set(x.m.f.store, "one", "m", "tools", "instruction", &e), &e);
    script(&x, SPOKEN("{\\\"calls\\\":[{\\\"tool\\\":\\\"echo\\\",\\\"arguments\\\":{\\\"text\\\":\\\"long"));
    script(&x, SPOKEN("Then without."));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_string_equal(x.end.text, "Then without.");
    assert_non_null(strstr(content_of(&x, 1, 4), "cannot be read"));
}

static void images_are_left_out_where_they_are_refused(void **state)
{
    AUTO(loop_rig_close) struct loop_rig x = { 0 };

    loop_rig_open(&x);
    add_tool(&x, &picture_tool);
    script(&x, CALLS(CALL("c1", "picture", "{}")));
    script_status(&x, 400, "{\"error\":{\"message\":\"This model does not support image input\"}}");
    script(&x, SAY("done"));
    run(&x);
    assert_string_equal(ended(&x), "answered");
    assert_int_equal(json_length(messages_of(&x, 2)), 4);
    assert_non_null(strstr(content_of(&x, 2, 3), "this model takes no images"));
    assert_string_equal(fact(&x, "images"), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tools_go_by_schema_where_they_are_refused),
        cmocka_unit_test(what_was_learnt_is_known_to_the_next_turn),
        cmocka_unit_test(a_refused_schema_leaves_instructions),
        cmocka_unit_test(a_refusal_of_one_schema_teaches_nothing),
        cmocka_unit_test(an_unfinished_spoken_call_is_asked_for_again),
        cmocka_unit_test(images_are_left_out_where_they_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
