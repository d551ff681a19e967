/* Anthropic's messages read into the neutral request, and refusals with the path of the mistake. */
#include "api/compat/v1_anthropic_body.h"
#include "base/limits.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int parse_request(struct arena *a, const char *text, struct llm_request *ret, struct err *e)
{
    struct v1_messages_body *body = ARENA_NEW(a, struct v1_messages_body);
    struct json_value root = { 0 };
    int r;

    assert_int_equal(json_parse(a, slice_of(text), &root, e), 0);
    r = fields_read(v1_messages_fields, root, body, a, "", e);
    return r < 0 ? r : v1_anthropic_request(body, a, ret, e);
}

/* "role[kind text|...](call)" for each message in sequence. */
static const char *shown(struct arena *a, const struct llm_request *request)
{
    static const char *const roles[] = { "system", "user", "assistant", "tool" }, *const kinds[] = { "text", "url",
                                                                                                     "image", "file",
                                                                                                     "address" };
    const char *all = "";

    for (size_t i = 0; i < request->n_messages; i++) {
        const struct llm_message *m = &request->messages[i];

        all = arena_printf(a, "%s%s", all, roles[m->role]);
        if (m->tool_call_id)
            all = arena_printf(a, "%s<%s>%s", all, m->tool_call_id, m->is_error ? "!" : "");
        for (size_t k = 0; k < m->n_blocks; k++) {
            const struct llm_block *b = &m->blocks[k];

            all = arena_printf(a, "%s[%s %s]", all, kinds[b->kind],
                               b->kind == LLM_BLOCK_TEXT ? b->text
                               : b->url                  ? b->url
                                                         : b->base64);
        }
        for (size_t k = 0; k < m->n_tool_calls; k++)
            all = arena_printf(a, "%s(%s %s %s)", all, m->tool_calls[k].id, m->tool_calls[k].name,
                               m->tool_calls[k].arguments);
        all = arena_printf(a, "%s ", all);
    }
    return all;
}

#define WITH(messages) "{\"max_tokens\":9,\"messages\":[" messages "]}"
#define USER(content) "{\"role\":\"user\",\"content\":" content "}"
#define HI USER("\"hi\"")

static void messages_and_blocks_become_the_neutral_ones(void **state)
{
    static const struct {
        const char *body, *wanted;
    } cases[] = {
        { WITH(HI), "user[text hi] " },
        { "{\"max_tokens\":9,\"system\":\"Be brief.\",\"messages\":[" HI "]}",
          "system[text Be brief.] user[text hi] " },
        { "{\"max_tokens\":9,\"system\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}],\"messages\":[" HI
          "]}",
          "system[text a][text b] user[text hi] " },
        { WITH(USER(
              "[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"QUJD\"}}]")),
          "user[image QUJD] " },
        { WITH(USER("[{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://x/y.png\"}}]")),
          "user[url https://x/y.png] " },
        { WITH(USER(
              "[{\"type\":\"document\",\"title\":\"t\",\"source\":{\"type\":\"base64\",\"media_type\":\"application/pdf\",\"data\":\"QUJD\"}}]")),
          "user[file QUJD] " },
        { WITH(USER(
              "[{\"type\":\"document\",\"title\":\"t\",\"source\":{\"type\":\"text\",\"media_type\":\"text/plain\",\"data\":\"x\"}}]")),
          "user[text [t]\nx] " },
        { WITH(
              HI
              ",{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"a\"},"
              "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{\"x\":1}},{\"type\":\"tool_use\",\"id\":\"d\",\"name\":\"g\",\"input\":{}}]}"),
          "user[text hi] assistant[text a](c f {\"x\":1})(d g {}) " },
        { WITH(USER(
              "[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":\"21\"},{\"type\":\"tool_result\",\"tool_use_id\":\"d\"},{\"type\":\"text\",\"text\":\"go on\"}]")),
          "tool<c>[text 21] tool<d> user[text go on] " },
        { WITH(USER(
              "[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":[{\"type\":\"text\",\"text\":\"seen\"},"
              "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"QUJD\"}}]}]")),
          "tool<c>[text seen] user[image QUJD] " },
        { WITH(USER("[{\"type\":\"document\",\"source\":{\"type\":\"url\",\"url\":\"https://x/y.pdf\"}}]")),
          "user[address https://x/y.pdf] " },
        { WITH(USER(
              "[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"is_error\":true,\"content\":\"no\"},{\"type\":\"tool_result\",\"tool_use_id\":\"d\",\"is_error\":false}]")),
          "tool<c>![text no] tool<d> " },
        { WITH(HI ",{\"role\":\"assistant\",\"content\":[{\"type\":\"redacted_thinking\",\"data\":\"x\"}]}"),
          "user[text hi] " },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_request request = { 0 };
        struct err e = { 0 };

        if (parse_request(a, cases[i].body, &request, &e) < 0)
            fail_msg("%s: %s", cases[i].body, e.text);
        assert_string_equal(shown(a, &request), cases[i].wanted);
    }
}

/* Content from a client goes to Anthropic unchanged, whatever it contains. */
static void thoughts_are_kept_for_their_maker(void **state)
{
    static const char content[] =
        "[{\"type\":\"thinking\",\"thinking\":\"h\\u00fcm \\ud83d\\ude00 \\\"\\n\",\"signature\":\"Ab+/9==\"},{\"type\":\"redacted_thinking\",\"data\":\"x/y=\"},"
        "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"thinking\",\"thinking\":\"no signature\"},{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{\"x\":1}},"
        "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s2\"},{\"type\":\"text\",\"text\":\"b\"}]";
    const struct llm_preset *preset = llm_preset_find("anthropic");
    const struct llm_account acc = {
        .name = "anthropic", .preset = preset, .base_url = preset->base_url, .api_key = "k"
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { 0 };
    struct http_call_request http = { 0 };
    struct err e = { 0 };

    assert_int_equal(
        parse_request(
            a,
            arena_printf(
                a,
                "{\"max_tokens\":9,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2048},\"output_config\":{\"effort\":\"max\"},"
                "\"messages\":[" HI ",{\"role\":\"assistant\",\"content\":%s}]}",
                content),
            &request, &e),
        0);
    request.model = "m";
    assert_int_equal(preset->protocol->request(&acc, &request, a, &http, &e), 0);
    assert_non_null(strstr(
        http.body.p,
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"h\xc3\xbcm \xf0\x9f\x98\x80 \\\"\\n\",\"signature\":\"Ab+/9==\"},"
        "{\"type\":\"redacted_thinking\",\"data\":\"x/y=\"},{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{\"x\":1}},"
        "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s2\"},{\"type\":\"text\",\"text\":\"b\"}]}"));
    assert_non_null(
        strstr(http.body.p,
               "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2048},\"output_config\":{\"effort\":\"max\"}"));
}

static void a_schema_for_the_answer_is_read_by_either_name(void **state)
{
    static const struct {
        const char *members;
        bool is_strict;
    } cases[] = {
        { "\"output_config\":{\"effort\":\"low\",\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\"}}}",
          false },
        { "\"output_format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\",\"additionalProperties\":false}}",
          true },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_request request = { 0 };
        struct err e = { 0 };

        assert_int_equal(parse_request(a,
                                       arena_printf(a, "{\"max_tokens\":9,\"messages\":[" HI "],%s}", cases[i].members),
                                       &request, &e),
                         0);
        assert_int_equal(request.format, LLM_FORMAT_SCHEMA);
        assert_string_equal(json_cstr(json_get(request.schema, "type")), "object");
        assert_int_equal(request.is_schema_strict, cases[i].is_strict);
    }
}

static void documents_by_address_are_known_before(void **state)
{
    static const struct {
        const char *content;
        bool names;
    } cases[] = {
        { "[{\"type\":\"document\",\"source\":{\"type\":\"url\",\"url\":\"https://x/y.pdf\"}}]", true },
        { "[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":[{\"type\":\"document\",\"source\":{\"type\":\"url\",\"url\":\"http://x/y\"}}]}]",
          true },
        { "[{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://x/y.png\"}}]", true },
        { "\"https://x/y.pdf\"", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct v1_messages_body body = { .model = NULL };
        struct json_value root = { 0 };

        assert_int_equal(json_parse(a, slice_of(arena_printf(a, WITH(USER("%s")), cases[i].content)), &root, NULL), 0);
        assert_int_equal(fields_read(v1_messages_fields, root, &body, a, "", NULL), 0);
        assert_int_equal(v1_anthropic_names_addresses(&body), cases[i].names);
    }
}

static bool names_address_beside(struct arena *a, int n)
{
    struct v1_messages_body body = { .model = NULL };
    struct json_value root = { 0 };
    struct buf text;

    buf_init(&text, MIB(1));
    buf_add_str(&text, "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":["
                       "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://x/y.png\"}}");
    for (int i = 0; i < n; i++)
        buf_add_str(&text, ",0");
    buf_add_str(&text, "]}]}");
    assert_int_equal(json_parse(a, buf_slice(&text), &root, NULL), 0);
    assert_int_equal(fields_read(v1_messages_fields, root, &body, a, "", NULL), 0);
    buf_clear(&text);
    return v1_anthropic_names_addresses(&body);
}

static void documents_are_looked_for_in_as_many_blocks_as_the_limit_says(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_true(names_address_beside(a, LIMIT_BLOCKS - 1));
    assert_false(names_address_beside(a, LIMIT_BLOCKS));
}

static void tools_and_what_to_do_with_them(void **state)
{
    static const struct {
        const char *choice, *wanted;
    } cases[] = {
        { "{\"type\":\"auto\"}", "\"auto\"" },
        { "{\"type\":\"any\"}", "\"required\"" },
        { "{\"type\":\"none\"}", "\"none\"" },
        { "{\"type\":\"tool\",\"name\":\"f\"}", "{\"type\":\"function\",\"function\":{\"name\":\"f\"}}" },
        { "null", "\"auto\"" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_request request = { 0 };
        struct err e = { 0 };

        assert_int_equal(
            parse_request(a,
                          arena_printf(a,
                                       "{\"max_tokens\":9,\"messages\":[" HI
                                       "],\"tools\":[{\"name\":\"f\",\"input_schema\":{\"type\":\"object\"}}],"
                                       "\"tool_choice\":%s}",
                                       cases[i].choice),
                          &request, &e),
            0);
        assert_string_equal(json_to_str(a, request.tool_choice), cases[i].wanted);
        assert_int_equal(request.n_tools, 1);
        assert_string_equal(json_to_str(a, request.tools[0].parameters), "{\"type\":\"object\"}");
    }
}

static void what_is_not_said_is_left_to_the_model(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { 0 };
    struct err e = { 0 };

    assert_int_equal(parse_request(a, WITH(HI), &request, &e), 0);
    assert_true(request.temperature < 0 && !request.has_temperature && !request.has_top_p && request.stop.n == 0 &&
                request.max_tokens == 9);
    assert_int_equal(
        parse_request(
            a,
            "{\"max_tokens\":9,\"temperature\":0,\"top_p\":0.5,\"stop_sequences\":[\"a\",\"b\"],\"messages\":[" HI "]}",
            &request, &e),
        0);
    assert_true(request.temperature == 0 && request.has_temperature && request.top_p == 0.5 && request.stop.n == 2);
}

static void violations_are_reported_by_their_paths(void **state)
{
    static const struct {
        const char *body, *field;
    } cases[] = {
        { "{\"messages\":[" HI "]}", "max_tokens" },
        { "{\"max_tokens\":9,\"messages\":[]}", "messages" },
        { WITH(HI "," USER("7")), "messages[1].content" },
        { WITH(USER("[{\"type\":\"sound\"}]")), "messages[0].content[0]" },
        { WITH(USER("[{\"type\":\"text\"}]")), "messages[0].content[0].text" },
        { WITH(USER("[\"x\"]")), "messages[0].content[0]" },
        { WITH(USER("[{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"file:///x\"}}]")),
          "messages[0].content[0]" },
        { WITH(USER(
              "[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"Q\"}}]")),
          "messages[0].content[0]" },
        { WITH(USER("[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":\"QUJD\"}}]")),
          "messages[0].content[0].source.media_type" },
        { WITH(USER("[{\"type\":\"document\",\"source\":{\"type\":\"url\",\"url\":\"file:///x\"}}]")),
          "messages[0].content[0]" },
        { "{\"max_tokens\":9,\"output_config\":{\"format\":{\"type\":\"regex\"}},\"messages\":[" HI "]}",
          "output_config.format.type" },
        { "{\"max_tokens\":9,\"output_config\":{\"format\":{\"type\":\"json_schema\"}},\"messages\":[" HI "]}",
          "output_config.format.schema" },
        { "{\"max_tokens\":9,\"output_format\":{\"type\":\"json_schema\",\"schema\":[]},\"messages\":[" HI "]}",
          "output_format.schema" },
        { WITH(USER("[{\"type\":\"tool_result\"}]")), "messages[0].content[0].tool_use_id" },
        { WITH(USER(
              "[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\"}]}]")),
          "messages[0].content[0].content[0]" },
        { WITH(USER("[{\"type\":\"tool_use\",\"name\":\"f\"}]")), "messages[0].content[0].id" },
        { "{\"max_tokens\":9,\"system\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\"},{\"type\":\"tool_result\",\"tool_use_id\":\"d\"}],\"messages\":[" HI
          "]}",
          "system[0]" },
        { WITH("{\"role\":\"system\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\"}]}"),
          "messages[0].content[0]" },
        { "{\"max_tokens\":9,\"messages\":[" HI "],\"tool_choice\":{\"type\":\"tool\"}}", "tool_choice.name" },
        { "{\"max_tokens\":9,\"messages\":[" HI "],\"tools\":[{\"type\":\"bash_20250124\",\"name\":\"bash\"}]}",
          "tools[0].type" },
        { "{\"max_tokens\":9,\"messages\":[" HI "],\"temperature\":1.5}", "temperature" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_request request = { 0 };
        struct err e = { 0 };

        assert_int_equal(parse_request(a, cases[i].body, &request, &e), -EINVAL);
        assert_string_equal(e.code, "VALIDATION_ERROR");
        assert_string_equal(e.fields[0].field, cases[i].field);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_and_blocks_become_the_neutral_ones),
        cmocka_unit_test(thoughts_are_kept_for_their_maker),
        cmocka_unit_test(a_schema_for_the_answer_is_read_by_either_name),
        cmocka_unit_test(documents_by_address_are_known_before),
        cmocka_unit_test(documents_are_looked_for_in_as_many_blocks_as_the_limit_says),
        cmocka_unit_test(tools_and_what_to_do_with_them),
        cmocka_unit_test(what_is_not_said_is_left_to_the_model),
        cmocka_unit_test(violations_are_reported_by_their_paths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
