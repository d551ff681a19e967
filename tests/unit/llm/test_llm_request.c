#include "protocol.h"

#include "llm/request.h"
#include "llm/format.h"

static int parse_request(struct arena *a, const char *text, struct llm_request *ret, struct err *e)
{
    struct llm_request_body *body = ARENA_NEW(a, struct llm_request_body);
    int r = fields_read(llm_request_fields, json_of(a, text), body, a, "", e);

    return r < 0 ? r : llm_request_of(body, a, ret, e);
}

static void only_messages_are_required_and_the_rest_has_defaults(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { 0 };

    assert_int_equal(parse_request(a, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}", &request, NULL), 0);
    assert_int_equal(request.n_messages, 1);
    assert_int_equal(request.messages[0].role, LLM_USER);
    assert_string_equal(request.messages[0].blocks[0].text, "hi");
    assert_true(request.temperature == 0.7 && !request.has_temperature && !request.has_top_p);
    assert_int_equal(request.max_tokens, 1000);
    assert_null(request.model);
    assert_int_equal(request.format, LLM_FORMAT_TEXT);
}

static void everything_a_caller_may_say_is_read(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { 0 };

    assert_int_equal(
        parse_request(
            a,
            "{\"model\":\"m\",\"temperature\":0,\"top_p\":0.5,\"max_tokens\":7,\"max_completion_tokens\":9,\"stop\":[\"a\",\"b\"],"
            "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{},\"strict\":true}}],\"tool_choice\":\"none\","
            "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\",\"schema\":{\"type\":\"object\"}}},"
            "\"messages\":[{\"role\":\"developer\",\"content\":\"rules\"},"
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
            "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"r\"}]}",
            &request, NULL),
        0);
    assert_true(request.temperature == 0 && request.has_temperature && request.has_top_p && request.top_p == 0.5);
    assert_int_equal(request.max_tokens, 9);
    assert_int_equal(request.stop.n, 2);
    assert_string_equal(request.stop.items[1], "b");
    assert_true(request.n_tools == 1 && request.tools[0].is_strict);
    assert_int_equal(request.format, LLM_FORMAT_SCHEMA);
    assert_string_equal(request.schema_name, "n");
    assert_int_equal(request.messages[0].role, LLM_SYSTEM);
    assert_string_equal(request.messages[1].tool_calls[0].name, "f");
    assert_string_equal(request.messages[2].tool_call_id, "c");
}

#define USER(blocks) "{\"messages\":[{\"role\":\"user\",\"content\":[" blocks "]}]}"

static void blocks_of_every_kind_are_read(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { 0 };
    const struct llm_block *blocks;

    assert_int_equal(
        parse_request(
            a,
            USER(
                "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://h/x.png\"}},"
                "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,QUJD\"},"
                "{\"type\":\"input_file\",\"filename\":\"a.pdf\",\"file_data\":\"data:application/pdf;base64,QUI=\"},"
                "{\"type\":\"file\",\"file\":{\"filename\":\"a.txt\",\"file_data\":\"data:text/plain;base64,aGVsbG8=\"}}"),
            &request, NULL),
        0);
    blocks = request.messages[0].blocks;
    assert_int_equal(request.messages[0].n_blocks, 5);
    assert_string_equal(blocks[0].text, "a");
    assert_true(blocks[1].kind == LLM_BLOCK_IMAGE_URL && strcmp(blocks[1].url, "https://h/x.png") == 0);
    assert_true(blocks[2].kind == LLM_BLOCK_IMAGE_DATA && strcmp(blocks[2].media_type, "image/png") == 0 &&
                strcmp(blocks[2].base64, "QUJD") == 0);
    assert_true(blocks[3].kind == LLM_BLOCK_FILE_DATA && strcmp(blocks[3].file_name, "a.pdf") == 0);
    assert_true(blocks[4].kind == LLM_BLOCK_TEXT && strcmp(blocks[4].text, "[a.txt]\nhello") == 0);
}

/* A published app sends every scanned document like this: the data URL in file_url, and no name. */
static void files_are_read_wherever_clients_put_them(void **state)
{
    static const struct {
        const char *block;
        enum llm_block_kind kind;
        const char *type, *value;
    } cases[] = {
        { "{\"type\":\"input_file\",\"file_url\":\"data:application/pdf;base64,JVBERi0x\"}", LLM_BLOCK_FILE_DATA,
          "application/pdf", "JVBERi0x" },
        { "{\"type\":\"input_file\",\"filename\":\"\",\"file_data\":null,\"file_url\":\"data:application/pdf;base64,JVBERi0x\"}",
          LLM_BLOCK_FILE_DATA, "application/pdf", "JVBERi0x" },
        { "{\"type\":\"input_file\",\"file_url\":\"data:;base64,JVBERi0x\"}", LLM_BLOCK_FILE_DATA, "application/pdf",
          "JVBERi0x" },
        { "{\"type\":\"input_file\",\"file_url\":\"data:application/octet-stream;base64,iVBORw0KGgo=\"}",
          LLM_BLOCK_IMAGE_DATA, "image/png", "iVBORw0KGgo=" },
        { "{\"type\":\"input_file\",\"filename\":\"a.CSV\",\"file_url\":\"data:application/octet-stream;base64,QSxC\"}",
          LLM_BLOCK_TEXT, NULL, "[a.CSV]\nA,B" },
        { "{\"type\":\"input_file\",\"filename\":\"a.docx\",\"file_url\":\"data:application/octet-stream;base64,UEsDBAAA\"}",
          LLM_BLOCK_FILE_DATA, "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "UEsDBAAA" },
        { "{\"type\":\"input_file\",\"file_url\":\"https://h/a.pdf\"}", LLM_BLOCK_FILE_URL, NULL, "https://h/a.pdf" },
        { "{\"type\":\"file\",\"file\":{\"filename\":\"a.pdf\",\"file_data\":\"HTTPS://h/a\"}}", LLM_BLOCK_FILE_URL,
          NULL, "HTTPS://h/a" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct llm_request request = { 0 };
        struct err e = { 0 };
        const struct llm_block *block;

        if (parse_request(a, arena_printf(a, USER("%s"), cases[i].block), &request, &e) < 0)
            fail_msg("%s: %s", cases[i].block, e.text);
        block = &request.messages[0].blocks[0];
        assert_int_equal(block->kind, cases[i].kind);
        if (cases[i].type)
            assert_string_equal(block->media_type, cases[i].type);
        assert_string_equal(block->kind == LLM_BLOCK_TEXT       ? block->text
                            : block->kind == LLM_BLOCK_FILE_URL ? block->url
                                                                : block->base64,
                            cases[i].value);
    }
}

static void who_names_addresses_is_known_before(void **state)
{
    static const struct {
        const char *block;
        bool names;
    } cases[] = {
        { "{\"type\":\"input_file\",\"file_url\":\"https://h/a.pdf\"}", true },
        { "{\"type\":\"file\",\"file\":{\"file_data\":\"http://h/a.pdf\"}}", true },
        { "{\"type\":\"input_file\",\"file_url\":\"data:application/pdf;base64,JVBERi0x\"}", false },
        { "{\"type\":\"input_image\",\"image_url\":\"https://h/x.png\"}", true },
        { "{\"type\":\"image_url\",\"image_url\":{\"url\":\"HTTP://h/x.png\"}}", true },
        { "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,QUJD\"}}", false },
        { "{\"type\":\"text\",\"text\":\"https://h/x.png\"}", false },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct llm_request_body body = { .model = NULL };

        assert_int_equal(fields_read(llm_request_fields, json_of(a, arena_printf(a, USER("%s"), cases[i].block)), &body,
                                     a, "", NULL),
                         0);
        assert_int_equal(llm_messages_name_addresses(&body.messages), cases[i].names);
    }
}

static void addresses_are_looked_for_in_as_many_blocks_as_the_limit_says(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct buf text;

    buf_init(&text, MIB(1));
    buf_add_str(&text, "[{\"type\":\"input_image\",\"image_url\":\"https://h/x.png\"}");
    for (int i = 1; i < LIMIT_BLOCKS; i++)
        buf_add_str(&text, ",0");
    buf_add_str(&text, "]");
    assert_true(llm_content_names_address(json_of(a, buf_str(&text))));
    text.n--;
    buf_add_str(&text, ",0]");
    assert_false(llm_content_names_address(json_of(a, buf_str(&text))));
    buf_clear(&text);
}

static void details_of_images_and_failures_of_tools_are_read(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { 0 };

    assert_int_equal(
        parse_request(
            a,
            "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://h/x.png\",\"detail\":\"high\"}},"
            "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,QUJD\",\"detail\":\"low\"},"
            "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,QUJD\",\"detail\":null}]},"
            "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"is_error\":true,\"content\":\"no network\"},"
            "{\"role\":\"tool\",\"tool_call_id\":\"d\",\"content\":\"21\"}]}",
            &request, NULL),
        0);
    assert_string_equal(request.messages[0].blocks[0].detail, "high");
    assert_string_equal(request.messages[0].blocks[1].detail, "low");
    assert_null(request.messages[0].blocks[2].detail);
    assert_true(request.messages[1].is_error && !request.messages[2].is_error);
}

static void what_is_not_as_it_must_be_is_reported_with_its_place(void **state)
{
    static const struct {
        const char *text, *field;
    } cases[] = {
        { "{}", "messages" },
        { "{\"messages\":[]}", "messages" },
        { "{\"messages\":[{\"role\":\"user\"}]}", "messages[0].content" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":3}]}", "messages[0].content" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"a\\u0000b\"}]}", "messages[0].content" },
        { "{\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]}", "messages[0].tool_call_id" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"temperature\":2.1}", "temperature" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":0}", "max_tokens" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stop\":3}", "stop" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tool_choice\":\"x\"}", "tool_choice" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tools\":[{\"type\":\"function\"}]}",
          "tools[0].function" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"response_format\":{\"type\":\"xml\"}}",
          "response_format.type" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"response_format\":{\"type\":\"json_schema\"}}",
          "response_format.json_schema.schema" },
        { "{\"messages\":[{\"role\":\"system\",\"content\":[{\"type\":\"image_url\",\"image_url\":\"https://h/x\"}]}]}",
          "messages[0].content" },
        { "{\"messages\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"image_url\",\"image_url\":\"https://h/x\"}]}]}",
          "messages[0].content" },
        { USER("{\"type\":\"text\"}"), "messages[0].content[0]" },
        { USER("{\"type\":\"audio\"}"), "messages[0].content[0]" },
        { USER("{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\",\"image_url\":\"file:///etc/passwd\"}"),
          "messages[0].content[1]" },
        { USER("{\"type\":\"image_url\",\"image_url\":\"data:image/png,QUJD\"}"), "messages[0].content[0]" },
        { USER("{\"type\":\"image_url\",\"image_url\":\"data:image/png;base64,QUJ\"}"), "messages[0].content[0]" },
        { USER("{\"type\":\"image_url\",\"image_url\":\"data:image/png;base64,QU JD\"}"), "messages[0].content[0]" },
        { USER("{\"type\":\"input_file\",\"file_id\":\"x\"}"), "messages[0].content[0]" },
        { USER("{\"type\":\"input_file\",\"file_url\":\"file:///etc/passwd\"}"), "messages[0].content[0]" },
        { USER("{\"type\":\"input_file\",\"file_url\":\"http://user:secret@h/a.pdf\"}"), "messages[0].content[0]" },
        { USER("{\"type\":\"input_file\",\"file_url\":3}"), "messages[0].content[0]" },
        { USER("{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://h/x.png\",\"detail\":3}}"),
          "messages[0].content[0]" },
        { USER("{\"type\":\"input_file\",\"file_data\":\"data:text/plain;base64,gICA\"}"), "messages[0].content[0]" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct llm_request request = { 0 };
        struct err e = { 0 };

        assert_int_equal(parse_request(a, cases[i].text, &request, &e), -EINVAL);
        assert_string_equal(e.code, "VALIDATION_ERROR");
        assert_string_equal(e.fields[0].field, cases[i].field);
    }
}

static void the_assistants_thoughts_are_read_by_either_name(void **state)
{
    static const char *const names[] = { "reasoning", "reasoning_content" };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct llm_request request = { 0 };

        assert_int_equal(
            parse_request(
                a,
                arena_printf(
                    a,
                    "{\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"%s\":\"hm\"},{\"role\":\"user\",\"content\":\"x\","
                    "\"%s\":\"hm\"}]}",
                    names[i], names[i]),
                &request, NULL),
            0);
        assert_string_equal(request.messages[0].reasoning, "hm");
        assert_null(request.messages[1].reasoning);
    }
}

static void as_many_messages_as_the_limit_says(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct buf text;
    struct llm_request request = { 0 };
    struct err e = { 0 };

    buf_init(&text, MIB(1));
    buf_add_str(&text, "{\"messages\":[");
    for (int i = 0; i < LIMIT_MESSAGES; i++)
        buf_printf(&text, "%s{\"role\":\"user\",\"content\":\"x\"}", i ? "," : "");
    buf_add_str(&text, "]}");
    assert_int_equal(parse_request(a, buf_str(&text), &request, &e), 0);
    text.n -= 2;
    buf_add_str(&text, ",{\"role\":\"user\",\"content\":\"x\"}]}");
    assert_int_equal(parse_request(a, buf_str(&text), &request, &e), -EINVAL);
    buf_clear(&text);
}

static void as_many_blocks_as_the_limit_says(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct buf text;
    struct llm_request request = { 0 };
    struct err e = { 0 };

    buf_init(&text, MIB(1));
    buf_add_str(&text, "{\"messages\":[{\"role\":\"user\",\"content\":[\"x\"");
    for (int i = 1; i < LIMIT_BLOCKS; i++)
        buf_add_str(&text, ",\"x\"");
    buf_add_str(&text, "]}]}");
    assert_int_equal(parse_request(a, buf_str(&text), &request, &e), 0);
    assert_int_equal(request.messages[0].n_blocks, LIMIT_BLOCKS);
    text.n -= 4;
    buf_add_str(&text, ",\"x\"]}]}");
    assert_int_equal(parse_request(a, buf_str(&text), &request, &e), -EINVAL);
    assert_string_equal(e.fields[0].field, "messages[0].content");
    buf_clear(&text);
}

static void json_is_asked_for_by_instruction_where_the_protocol_has_no_word_for_it(void **state)
{
    static const struct {
        const char *preset;
        enum llm_format requested, sent;
        bool must_check, is_reported;
    } cases[] = {
        { "openai", LLM_FORMAT_SCHEMA, LLM_FORMAT_SCHEMA, false, false },
        { "ollama", LLM_FORMAT_SCHEMA, LLM_FORMAT_SCHEMA, false, false },
        { "anthropic", LLM_FORMAT_SCHEMA, LLM_FORMAT_TEXT, true, true },
        { "anthropic", LLM_FORMAT_JSON, LLM_FORMAT_TEXT, true, true },
        { "anthropic", LLM_FORMAT_TEXT, LLM_FORMAT_TEXT, false, false },
        { "deepseek", LLM_FORMAT_SCHEMA, LLM_FORMAT_JSON, true, true },
        { "deepseek", LLM_FORMAT_JSON, LLM_FORMAT_JSON, false, true },
        { "minimax", LLM_FORMAT_SCHEMA, LLM_FORMAT_TEXT, true, true },
        { "openai", LLM_FORMAT_JSON, LLM_FORMAT_JSON, false, true },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = full_request(a);

    request.schema = json_of(a, "{\"type\":\"object\",\"required\":[\"n\"]}");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct llm_account acc = { .preset = llm_preset_find(cases[i].preset) };
        struct llm_request plan;
        bool must_check;

        request.format = cases[i].requested;
        plan = llm_format_plan(&acc, &request, a, &must_check);
        assert_int_equal(plan.format, cases[i].sent);
        assert_int_equal(must_check, cases[i].must_check);
        assert_int_equal(plan.n_messages, request.n_messages + cases[i].is_reported);
        if (must_check && cases[i].requested == LLM_FORMAT_SCHEMA)
            assert_has(plan.messages[0].blocks[0].text, "{\"type\":\"object\",\"required\":[\"n\"]}");
    }
}

/* OpenAI refuses json_object when no message mentions JSON. */
static void who_speaks_of_json_needs_no_further_word_of_it(void **state)
{
    static const struct llm_block blocks[] = { { LLM_BLOCK_IMAGE_URL, .url = "https://h/x.png" },
                                               { LLM_BLOCK_TEXT, .text = "As Json, please" } };
    static const struct llm_message message = { .role = LLM_USER, .blocks = blocks, .n_blocks = 2 };
    const struct llm_request request = { .messages = &message, .n_messages = 1, .format = LLM_FORMAT_JSON };
    const struct llm_account acc = { .preset = llm_preset_find("openai") };
    AUTO(arena_freep) struct arena *a = arena_new();
    bool must_check;

    assert_int_equal(llm_format_plan(&acc, &request, a, &must_check).n_messages, 1);
    assert_false(must_check);
}

/* A schema that is enforced must be closed; an open one would be refused
 * (platform.openai.com/docs/guides/structured-outputs). */
static void a_schema_is_enforced_when_it_can_be_or_when_the_caller_says_so(void **state)
{
    static const struct {
        const char *schema, *strict;
        bool is_strict;
    } cases[] = {
        { "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"],\"additionalProperties\":false}",
          "null", true },
        { "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"],\"additionalProperties\":false}",
          "false", false },
        { "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}", "null", false },
        { "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}", "true", true },
        { "{\"type\":\"object\",\"properties\":{\"n\":{}},\"additionalProperties\":false}", "null", false },
        { "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{}}}},\"required\":[\"n\"],"
          "\"additionalProperties\":false}",
          "null", false },
        { "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}", "null", true },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_request request = { 0 };
        struct err e = { 0 };

        assert_int_equal(
            parse_request(
                a,
                arena_printf(
                    a,
                    "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"response_format\":{\"type\":\"json_schema\","
                    "\"json_schema\":{\"schema\":%s,\"strict\":%s}}}",
                    cases[i].schema, cases[i].strict),
                &request, &e),
            0);
        assert_int_equal(request.is_schema_strict, cases[i].is_strict);
    }
}

static void an_answer_by_instruction_is_checked(void **state)
{
    static const struct {
        enum llm_format format;
        const char *text, *wanted;
    } cases[] = {
        { LLM_FORMAT_JSON, "{\"n\":1}", "{\"n\":1}" },   { LLM_FORMAT_JSON, " ```json\n{\"n\":1}\n``` ", "{\"n\":1}" },
        { LLM_FORMAT_JSON, "```\n{}\n```", "{}" },       { LLM_FORMAT_JSON, "[1]", NULL },
        { LLM_FORMAT_JSON, "Here it is: {}", NULL },     { LLM_FORMAT_JSON, "", NULL },
        { LLM_FORMAT_SCHEMA, "{\"n\":1}", "{\"n\":1}" }, { LLM_FORMAT_SCHEMA, "{}", NULL },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct llm_request request = { .format = LLM_FORMAT_SCHEMA,
                                         .schema = json_of(a, "{\"type\":\"object\",\"required\":[\"n\"]}") };
    struct llm_format_rule rule = { 0 };

    assert_int_equal(llm_format_rule_copy(a, &request, &rule, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct slice text = slice_of(cases[i].text);
        struct err e = { 0 };
        int r;

        rule.format = cases[i].format;
        r = llm_format_check(&rule, &text, &e);
        assert_int_equal(r, cases[i].wanted ? 0 : -EIO);
        if (cases[i].wanted)
            assert_true(slice_eq_str(text, cases[i].wanted));
        else
            assert_string_equal(e.code, "LLM_ERROR");
    }
}

static void a_schema_that_cannot_be_used_is_refused_before_the_request_is_sent(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct llm_request request = { .format = LLM_FORMAT_SCHEMA,
                                         .schema = json_of(
                                             a, "{\"properties\":{\"n\":{\"$ref\":\"https://example.org/n.json\"}}}") };
    struct llm_format_rule rule = { 0 };
    struct err e = { 0 };

    assert_int_equal(llm_format_rule_copy(a, &request, &rule, &e), -EINVAL);
    assert_string_equal(e.code, "VALIDATION_ERROR");
    assert_string_equal(e.fields[0].field, "schema.properties.n.$ref");
    assert_non_null(strstr(e.text, "https://example.org/n.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schema_that_cannot_be_used_is_refused_before_the_request_is_sent),
        cmocka_unit_test(only_messages_are_required_and_the_rest_has_defaults),
        cmocka_unit_test(everything_a_caller_may_say_is_read),
        cmocka_unit_test(blocks_of_every_kind_are_read),
        cmocka_unit_test(files_are_read_wherever_clients_put_them),
        cmocka_unit_test(who_names_addresses_is_known_before),
        cmocka_unit_test(addresses_are_looked_for_in_as_many_blocks_as_the_limit_says),
        cmocka_unit_test(details_of_images_and_failures_of_tools_are_read),
        cmocka_unit_test(what_is_not_as_it_must_be_is_reported_with_its_place),
        cmocka_unit_test(the_assistants_thoughts_are_read_by_either_name),
        cmocka_unit_test(as_many_messages_as_the_limit_says),
        cmocka_unit_test(as_many_blocks_as_the_limit_says),
        cmocka_unit_test(json_is_asked_for_by_instruction_where_the_protocol_has_no_word_for_it),
        cmocka_unit_test(who_speaks_of_json_needs_no_further_word_of_it),
        cmocka_unit_test(a_schema_is_enforced_when_it_can_be_or_when_the_caller_says_so),
        cmocka_unit_test(an_answer_by_instruction_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
