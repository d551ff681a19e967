/* Anthropic's messages read into the neutral ask, and what is refused by its path. */
#include "api/v1_anthropic_body.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int read_ask(struct arena *a, const char *text, struct llm_ask *ret, struct err *e)
{
    struct v1_messages_body *body = ARENA_NEW(a, struct v1_messages_body);
    struct json_value root = { 0 };
    int r;

    assert_int_equal(json_parse(a, slice_of(text), &root, e), 0);
    r = fields_read(v1_messages_fields, root, body, a, "", e);
    return r < 0 ? r : v1_anthropic_ask(body, a, ret, e);
}

/* "role[kind text|...](call)", one behind the other. */
static const char *shown(struct arena *a, const struct llm_ask *ask)
{
    static const char *const roles[] = { "system", "user", "assistant", "tool" }, *const kinds[] = { "text", "url", "image", "file" };
    const char *all = "";

    for (size_t i = 0; i < ask->n_messages; i++) {
        const struct llm_message *m = &ask->messages[i];

        all = arena_printf(a, "%s%s", all, roles[m->role]);
        if (m->tool_call_id)
            all = arena_printf(a, "%s<%s>", all, m->tool_call_id);
        for (size_t k = 0; k < m->n_blocks; k++) {
            const struct llm_block *b = &m->blocks[k];

            all = arena_printf(a, "%s[%s %s]", all, kinds[b->kind], b->kind == LLM_BLOCK_TEXT ? b->text : b->kind == LLM_BLOCK_IMAGE_URL ? b->url : b->base64);
        }
        for (size_t k = 0; k < m->n_tool_calls; k++)
            all = arena_printf(a, "%s(%s %s %s)", all, m->tool_calls[k].id, m->tool_calls[k].name, m->tool_calls[k].arguments);
        all = arena_printf(a, "%s ", all);
    }
    return all;
}

#define WITH(messages) "{\"max_tokens\":9,\"messages\":[" messages "]}"
#define USER(content) "{\"role\":\"user\",\"content\":" content "}"
#define HI USER("\"hi\"")

static void messages_and_blocks_become_the_neutral_ones(void **state)
{
    static const struct { const char *body, *wanted; } cases[] = {
        { WITH(HI), "user[text hi] " },
        { "{\"max_tokens\":9,\"system\":\"Be brief.\",\"messages\":[" HI "]}", "system[text Be brief.] user[text hi] " },
        { "{\"max_tokens\":9,\"system\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}],\"messages\":[" HI "]}", "system[text a][text b] user[text hi] " },
        { WITH(USER("[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"QUJD\"}}]")), "user[image QUJD] " },
        { WITH(USER("[{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://x/y.png\"}}]")), "user[url https://x/y.png] " },
        { WITH(USER("[{\"type\":\"document\",\"title\":\"t\",\"source\":{\"type\":\"base64\",\"media_type\":\"application/pdf\",\"data\":\"QUJD\"}}]")), "user[file QUJD] " },
        { WITH(USER("[{\"type\":\"document\",\"title\":\"t\",\"source\":{\"type\":\"text\",\"media_type\":\"text/plain\",\"data\":\"x\"}}]")), "user[text [t]\nx] " },
        { WITH(HI ",{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"a\"},"
               "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{\"x\":1}},{\"type\":\"tool_use\",\"id\":\"d\",\"name\":\"g\",\"input\":{}}]}"),
          "user[text hi] assistant[text a](c f {\"x\":1})(d g {}) " },
        { WITH(USER("[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":\"21\"},{\"type\":\"tool_result\",\"tool_use_id\":\"d\"},{\"type\":\"text\",\"text\":\"go on\"}]")),
          "tool<c>[text 21] tool<d> user[text go on] " },
        { WITH(USER("[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":[{\"type\":\"text\",\"text\":\"seen\"},"
                    "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"QUJD\"}}]}]")),
          "tool<c>[text seen] user[image QUJD] " },
        { WITH(HI ",{\"role\":\"assistant\",\"content\":[{\"type\":\"redacted_thinking\",\"data\":\"x\"}]}"), "user[text hi] " },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_ask ask = { 0 };
        struct err e = { 0 };

        if (read_ask(a, cases[i].body, &ask, &e) < 0)
            fail_msg("%s: %s", cases[i].body, e.text);
        assert_string_equal(shown(a, &ask), cases[i].wanted);
    }
}

/* What came from a client goes to Anthropic as it was, whatever stands in it. */
static void thoughts_are_kept_for_their_maker(void **state)
{
    static const char content[] = "[{\"type\":\"thinking\",\"thinking\":\"h\\u00fcm \\ud83d\\ude00 \\\"\\n\",\"signature\":\"Ab+/9==\"},{\"type\":\"redacted_thinking\",\"data\":\"x/y=\"},"
        "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"thinking\",\"thinking\":\"no signature\"},{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{\"x\":1}},"
        "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s2\"},{\"type\":\"text\",\"text\":\"b\"}]";
    const struct llm_preset *preset = llm_preset_find("anthropic");
    const struct llm_account acc = { .name = "anthropic", .preset = preset, .base_url = preset->base_url, .api_key = "k" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_ask ask = { 0 };
    struct http_ask http = { 0 };
    struct err e = { 0 };

    assert_int_equal(read_ask(a, arena_printf(a, "{\"max_tokens\":9,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2048},\"output_config\":{\"effort\":\"max\"},"
                                                 "\"messages\":[" HI ",{\"role\":\"assistant\",\"content\":%s}]}", content), &ask, &e), 0);
    ask.model = "m";
    assert_int_equal(preset->protocol->request(&acc, &ask, a, &http, &e), 0);
    assert_non_null(strstr(http.body.p, "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"h\xc3\xbcm \xf0\x9f\x98\x80 \\\"\\n\",\"signature\":\"Ab+/9==\"},"
        "{\"type\":\"redacted_thinking\",\"data\":\"x/y=\"},{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{\"x\":1}},"
        "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s2\"},{\"type\":\"text\",\"text\":\"b\"}]}"));
    assert_non_null(strstr(http.body.p, "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2048},\"output_config\":{\"effort\":\"max\"}"));
}

static void tools_and_what_to_do_with_them(void **state)
{
    static const struct { const char *choice, *wanted; } cases[] = {
        { "{\"type\":\"auto\"}", "\"auto\"" }, { "{\"type\":\"any\"}", "\"required\"" }, { "{\"type\":\"none\"}", "\"none\"" },
        { "{\"type\":\"tool\",\"name\":\"f\"}", "{\"type\":\"function\",\"function\":{\"name\":\"f\"}}" }, { "null", "\"auto\"" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_ask ask = { 0 };
        struct err e = { 0 };

        assert_int_equal(read_ask(a, arena_printf(a, "{\"max_tokens\":9,\"messages\":[" HI "],\"tools\":[{\"name\":\"f\",\"input_schema\":{\"type\":\"object\"}}],"
                                                     "\"tool_choice\":%s}", cases[i].choice), &ask, &e), 0);
        assert_string_equal(json_to_str(a, ask.tool_choice), cases[i].wanted);
        assert_int_equal(ask.n_tools, 1);
        assert_string_equal(json_to_str(a, ask.tools[0].parameters), "{\"type\":\"object\"}");
    }
}

static void what_is_not_said_is_left_to_the_model(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_ask ask = { 0 };
    struct err e = { 0 };

    assert_int_equal(read_ask(a, WITH(HI), &ask, &e), 0);
    assert_true(ask.temperature < 0 && !ask.has_temperature && !ask.has_top_p && ask.stop.n == 0 && ask.max_tokens == 9);
    assert_int_equal(read_ask(a, "{\"max_tokens\":9,\"temperature\":0,\"top_p\":0.5,\"stop_sequences\":[\"a\",\"b\"],\"messages\":[" HI "]}", &ask, &e), 0);
    assert_true(ask.temperature == 0 && ask.has_temperature && ask.top_p == 0.5 && ask.stop.n == 2);
}

static void violations_are_told_by_their_paths(void **state)
{
    static const struct { const char *body, *field; } cases[] = {
        { "{\"messages\":[" HI "]}", "max_tokens" },
        { "{\"max_tokens\":9,\"messages\":[]}", "messages" },
        { WITH(HI "," USER("7")), "messages[1].content" },
        { WITH(USER("[{\"type\":\"sound\"}]")), "messages[0].content[0]" },
        { WITH(USER("[{\"type\":\"text\"}]")), "messages[0].content[0].text" },
        { WITH(USER("[\"x\"]")), "messages[0].content[0]" },
        { WITH(USER("[{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"file:///x\"}}]")), "messages[0].content[0]" },
        { WITH(USER("[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"Q\"}}]")), "messages[0].content[0]" },
        { WITH(USER("[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":\"QUJD\"}}]")), "messages[0].content[0].source.media_type" },
        { WITH(USER("[{\"type\":\"document\",\"source\":{\"type\":\"url\",\"url\":\"https://x\"}}]")), "messages[0].content[0]" },
        { WITH(USER("[{\"type\":\"tool_result\"}]")), "messages[0].content[0].tool_use_id" },
        { WITH(USER("[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\"}]}]")), "messages[0].content[0].content[0]" },
        { WITH(USER("[{\"type\":\"tool_use\",\"name\":\"f\"}]")), "messages[0].content[0].id" },
        { "{\"max_tokens\":9,\"system\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\"},{\"type\":\"tool_result\",\"tool_use_id\":\"d\"}],\"messages\":[" HI "]}", "system[0]" },
        { WITH("{\"role\":\"system\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\"}]}"), "messages[0].content[0]" },
        { "{\"max_tokens\":9,\"messages\":[" HI "],\"tool_choice\":{\"type\":\"tool\"}}", "tool_choice.name" },
        { "{\"max_tokens\":9,\"messages\":[" HI "],\"tools\":[{\"type\":\"bash_20250124\",\"name\":\"bash\"}]}", "tools[0].type" },
        { "{\"max_tokens\":9,\"messages\":[" HI "],\"temperature\":1.5}", "temperature" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_ask ask = { 0 };
        struct err e = { 0 };

        assert_int_equal(read_ask(a, cases[i].body, &ask, &e), -EINVAL);
        assert_string_equal(e.code, "VALIDATION_ERROR");
        assert_string_equal(e.fields[0].field, cases[i].field);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_and_blocks_become_the_neutral_ones),
        cmocka_unit_test(thoughts_are_kept_for_their_maker),
        cmocka_unit_test(tools_and_what_to_do_with_them),
        cmocka_unit_test(what_is_not_said_is_left_to_the_model),
        cmocka_unit_test(violations_are_told_by_their_paths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
