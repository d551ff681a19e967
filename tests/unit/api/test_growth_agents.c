/* The time to read what a model agent meets, pages and a model's own words, grows linearly with its length (growth.h).
 */
#include "growth.h"

#include "agents/loop_private.h"
#include "agents/page_text.h"
#include "llm/llm.h"

static void read_page(struct arena *a, struct slice text, const struct growing *g)
{
    struct page page = { 0 };
    struct err e = { 0 };

    (void)!page_text(a, text, "text/html; charset=utf-8", &page, &e);
}

static void pages_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "paragraphs", 4000, "", "<p>text %", "", "", read_page },
        { "elements within each other", 4000, "", "<div>", "", "", read_page },
        { "end tags of nothing", 4000, "<b><i><u><b><i><u><b><i><u>", "</em>", "", "", read_page },
        { "attributes of one element", 8000, "<p", " a%=b", "", ">", read_page },
        { "attributes of one element without a value", 8000, "<p x@y=\"", " a%", "", "\">", read_page },
        { "quotes in a tag", 8000, "<p", " a='\">", "", "'>", read_page },
        { "entities", 8000, "", "&amp;", "", "", read_page },
        { "entities that are none", 8000, "", "&a%;", "", "", read_page },
        { "comments", 8000, "", "<!-- % -->", "", "", read_page },
        { "a comment that does not end", 20000, "<!--", " -", "", "", read_page },
        { "a script that does not end", 20000, "<script>", "</", "", "", read_page },
        { "tags that do not end", 20000, "", "<", "", "", read_page },
        { "links", 4000, "", "<a href=/%>%</a>", "", "", read_page },
        { "lists within each other", 200, "", "<ul><li>%", "", "", read_page },
        { "blanks", 100000, "", " ", "", "", read_page },
        { "bytes that are no UTF-8", 20000, "", "\xff", "", "", read_page },
        { "titles", 4000, "", "<title>%", "", "", read_page },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

static void read_spoken(struct arena *a, struct slice text, const struct growing *g)
{
    const struct llm_block block = { .kind = LLM_BLOCK_TEXT, .text = arena_slicedup(a, text) };
    struct llm_message m = { .role = LLM_ASSISTANT, .blocks = &block, .n_blocks = 1 };

    (void)!loop_spoken_read(a, &m);
}

/* As a model without native tools is told of them. */
static void tell_conversation(struct arena *a, struct slice text, const struct growing *g)
{
    struct llm_request request = chat_of(a, text, g);

    loop_spoken_messages(a, &(struct turn){ 0 }, false, &request);
}

static void learn_from_refusal(struct arena *a, struct slice text, const struct growing *g)
{
    static const enum loop_tools_mode modes[] = { LOOP_TOOLS_NATIVE, LOOP_TOOLS_BY_SCHEMA };
    const struct llm_account acc = { .name = "a",
                                     .preset = llm_preset_find("generic-openai"),
                                     .base_url = "http://127.0.0.1:1/v1" };
    const struct models_call call = { 0 };
    struct err e = { 0 };

    (void)!llm_refusal(&acc, 400, text, &e);
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
        (void)loop_habits_learn(&call, NULL, NULL, &e, true, true, &(struct loop_habits){ .tools = modes[i] });
}

static void calls_and_refusals_of_models_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "calls written as text", 16, "{\"calls\":[", "{\"tool\":\"f%\",\"arguments\":{\"a\":%}}", NULL, "]}",
          read_spoken },
        { "calls beyond the limit", 4000, "{\"calls\":[", "{\"tool\":\"f\",\"arguments\":{}}", NULL, "]}",
          read_spoken },
        { "arguments of a call written as text", 4000, "{\"tool\":\"f\",\"arguments\":{", "\"a%\":1", NULL, "}}",
          read_spoken },
        { "braces around no call", 20000, "", "{ ", "", "}", read_spoken },
        { "words in braces before a call", 20000, "", "{word} ", "", "{\"tool\":\"f\",\"arguments\":{}}", read_spoken },
        { "a call that breaks off", 20000, "{\"calls\":[{\"tool\":\"", "x", "", "\"}", read_spoken },
        { "calls and results told as texts", 120, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},",
          "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"call_of_a_tool_%\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
          "{\"role\":\"tool\",\"tool_call_id\":\"call_of_a_tool_%\",\"content\":\"r\"}",
          NULL, "]}", tell_conversation },
        { "blocks of a result told as text", 120,
          "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
          "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":[",
          "{\"type\":\"text\",\"text\":\"%\"}", NULL, "]}]}", tell_conversation },
        { "a refusal of tools", 4000, "{\"error\":{\"message\":\"", "tools are not ", "", "\"}}", learn_from_refusal },
        { "reasons of a refusal of images", 4000, "{\"detail\":[", "{\"msg\":\"image % unsupported\"}", NULL, "]}",
          learn_from_refusal },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_grow_with_their_length),
        cmocka_unit_test(calls_and_refusals_of_models_grow_with_their_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
