/* Items of OpenAI's Responses read into the neutral request, and answers written as its typed events; a client that
 * sends the events back sends the same content. */
#include "api/compat/v1_response.h"
#include "api/compat/v1_responses_body.h"
#include "api/compat/v1_responses_form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

/* ---- bodies ---- */

static struct v1_responses_body *read_body(struct arena *a, const char *text, struct err *e)
{
    struct v1_responses_body *body = ARENA_NEW(a, struct v1_responses_body);
    struct json_value root = { 0 };

    assert_int_equal(json_parse(a, slice_of(text), &root, e), 0);
    if (fields_read(v1_responses_fields, root, body, a, "", e) < 0)
        fail_msg("%s", e->text);
    return body;
}

/* "role[text](id name arguments){thought signature}" for each message in sequence. */
static const char *shown(struct arena *a, const struct llm_request *request)
{
    static const char *const roles[] = { "system", "user", "assistant", "tool" }, *const kinds[] = { "", "url ",
                                                                                                     "image ",
                                                                                                     "file " };
    const char *all = "";

    for (size_t i = 0; i < request->n_messages; i++) {
        const struct llm_message *m = &request->messages[i];

        all = arena_printf(a, "%s%s", all, roles[m->role]);
        if (m->tool_call_id)
            all = arena_printf(a, "%s<%s>", all, m->tool_call_id);
        for (size_t k = 0; k < m->n_thoughts; k++)
            all = arena_printf(a, "%s{%s %s}", all, m->thoughts[k].text ? m->thoughts[k].text : "-",
                               m->thoughts[k].signature);
        for (size_t k = 0; k < m->n_blocks; k++)
            all = arena_printf(a, "%s[%s%s]", all, kinds[m->blocks[k].kind],
                               m->blocks[k].text  ? m->blocks[k].text
                               : m->blocks[k].url ? m->blocks[k].url
                                                  : m->blocks[k].base64);
        for (size_t k = 0; k < m->n_tool_calls; k++)
            all = arena_printf(a, "%s(%s %s %s%s)", all, m->tool_calls[k].id, m->tool_calls[k].name,
                               m->tool_calls[k].arguments, m->tool_calls[k].extra ? m->tool_calls[k].extra : "");
        if (m->reasoning)
            all = arena_printf(a, "%s~%s", all, m->reasoning);
        all = arena_printf(a, "%s ", all);
    }
    return all;
}

#define IN(items) "{\"input\":[" items "]}"
#define SAYS(role, content) "{\"role\":\"" role "\",\"content\":" content "}"
#define CALL(id) "{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"f\",\"arguments\":\"{}\"}"
#define RESULT(id, output) "{\"type\":\"function_call_output\",\"call_id\":\"" id "\",\"output\":" output "}"
#define THOUGHT(text, signature)                                                                                       \
    "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"" text                 \
    "\"}],\"encrypted_content\":\"" signature "\"}"
#define PIXEL "\"image_url\":\"data:image/png;base64,QUJD\""

static void items_become_messages(void **state)
{
    static const struct {
        const char *body, *wanted;
    } cases[] = {
        { "{\"input\":\"hi\"}", "user[hi] " },
        { "{\"input\":\"hi\",\"instructions\":\"Be brief.\"}", "system[Be brief.] user[hi] " },
        { IN(SAYS("developer", "\"a\"") "," SAYS(
              "user", "[{\"type\":\"input_text\",\"text\":\"b\"},{\"type\":\"input_image\"," PIXEL "}]")),
          "system[a] user[b][image QUJD] " },
        { IN(SAYS("user", "\"a\"") "," SAYS("assistant", "[{\"type\":\"output_text\",\"text\":\"b\"},{\"type\":\"refusal\",\"refusal\":\"c\"}]") "," CALL(
              "1") "," CALL("2") "," RESULT("1", "\"r\"") "," RESULT("2", "\"s\"")),
          "user[a] assistant[b][c](1 f {})(2 f {}) tool<1>[r] tool<2>[s] " },
        { IN(CALL("1") "," CALL(
              "2") "," RESULT("1", "[{\"type\":\"input_text\",\"text\":\"t\"},{\"type\":\"input_image\"," PIXEL
                                   "}]") "," RESULT("2", "\"s\"")),
          "assistant(1 f {})(2 f {}) tool<1>[t] tool<2>[s] user[image QUJD] " },
        { IN(THOUGHT("hm", "hearth.signed.s1") "," THOUGHT("", "hearth.hidden.h1") "," CALL("1")),
          "assistant{hm s1}{- h1}(1 f {})~hm " },
        { IN(THOUGHT("hm", "gAAAA") "," THOUGHT("so", "hearth.signed.") "," SAYS("assistant", "\"x\"")),
          "assistant[x]~hm\n\nso " },
        { IN("{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"extra_content\":{\"google\":{}}}"),
          "assistant(1 f {}{\"google\":{}}) " },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_request request = { 0 };
        struct err e = { 0 };

        if (v1_responses_request(read_body(a, cases[i].body, &e), &(struct v1_items){ 0 }, a, &request, &e) < 0)
            fail_msg("%zu: %s", i, e.text);
        assert_string_equal(shown(a, &request), cases[i].wanted);
    }
}

static void order_within_a_turn_is_kept(void **state)
{
    static const unsigned char wanted[] = { LLM_PIECE_THOUGHT, LLM_PIECE_CALL, LLM_PIECE_THOUGHT, LLM_PIECE_BLOCK,
                                            LLM_PIECE_CALL };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { 0 };
    struct err e = { 0 };

    assert_int_equal(
        v1_responses_request(read_body(a,
                                       IN(THOUGHT("a", "hearth.signed.1") "," CALL("1") "," THOUGHT(
                                           "b", "hearth.signed.2") "," SAYS("assistant", "\"x\"") "," CALL("2")),
                                       &e),
                             &(struct v1_items){ 0 }, a, &request, &e),
        0);
    assert_int_equal(request.n_messages, 1);
    assert_int_equal(request.messages[0].n_order, sizeof(wanted));
    assert_memory_equal(request.messages[0].order, wanted, sizeof(wanted));
}

static int find_itself(void *arg, const char *id, const char *path, struct json_value *ret, struct err *e)
{
    *ret = *(struct json_value *)arg;
    return 0;
}

static void a_reference_to_a_reference_is_refused(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request request = { 0 };
    struct json_value item = { 0 };
    struct err e = { 0 };
    const struct v1_items before = { .find = find_itself, .arg = &item };

    assert_int_equal(json_parse(a, SLICE_LIT("{\"type\":\"item_reference\",\"id\":\"x\"}"), &item, &e), 0);
    assert_int_equal(v1_responses_request(read_body(a, IN("{\"type\":\"item_reference\",\"id\":\"x\"}"), &e), &before,
                                          a, &request, &e),
                     -EINVAL);
    assert_string_equal(e.fields[0].field, "input[0]");
}

static void the_input_is_kept_as_items(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value item = { 0 };
    const struct v1_items before = { .find = find_itself, .arg = &item };
    struct err e = { 0 };
    struct buf out;

    buf_init(&out, 1 << 16);
    v1_items_print(read_body(a, "{\"input\":\"hi\"}", &e)->input, &before, &out);
    assert_string_equal(
        buf_str(&out),
        "[{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"}]}]");
    buf_reset(&out);
    assert_int_equal(json_parse(a, SLICE_LIT(CALL("1")), &item, &e), 0);
    v1_items_print(read_body(a, IN("{\"id\":\"fc_1\"}," SAYS("user", "\"x\"")), &e)->input, &before, &out);
    assert_string_equal(buf_str(&out), "[" CALL("1") "," SAYS("user", "\"x\"") "]");
    buf_clear(&out);
}

/* ---- ids ---- */

#define DIGITS "12345678000040008000000000000000"

static void addresses_are_looked_for_in_as_many_items_as_the_limit_says(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value input = { 0 };
    struct buf text;

    buf_init(&text, MIB(1));
    buf_add_str(&text,
                "[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_url\":\"https://h/x.png\"}]}");
    for (int i = 1; i < LIMIT_MESSAGES; i++)
        buf_add_str(&text, ",0");
    buf_add_str(&text, "]");
    assert_int_equal(json_parse(a, buf_slice(&text), &input, NULL), 0);
    assert_true(v1_items_name_address(input));
    text.n--;
    buf_add_str(&text, ",0]");
    assert_int_equal(json_parse(a, buf_slice(&text), &input, NULL), 0);
    assert_false(v1_items_name_address(input));
    buf_clear(&text);
}

static void ids_say_which_answer_and_item(void **state)
{
    static const char *const bad[] = { "",
                                       "_",
                                       "msg_",
                                       "msg_" DIGITS,
                                       "msg_" DIGITS "_",
                                       "msg_" DIGITS "_x",
                                       "msg_" DIGITS "_-1",
                                       "msg_" DIGITS "_1234567890",
                                       "msg_" DIGITS "0_1" };
    struct slice id = { 0 };
    size_t n = 0;

    assert_true(slice_eq_str(v1_response_id("resp_" DIGITS), DIGITS));
    assert_int_equal(v1_response_id("resp_" DIGITS "0").n + v1_response_id("resp_123").n + v1_response_id(DIGITS).n +
                         v1_response_id("").n,
                     0);
    assert_true(v1_response_item_place("fc_" DIGITS "_17", &id, &n));
    assert_true(slice_eq_str(id, DIGITS));
    assert_int_equal(n, 17);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(v1_response_item_place(bad[i], &id, &n));
}

/* ---- events ---- */

struct recorder {
    struct llm_answer answer;
    struct llm_progress reported;
    struct v1_response *response;
    struct buf out;
};

static void recorder_open(struct recorder *t)
{
    llm_answer_init(&t->answer);
    buf_init(&t->out, 1 << 20);
    t->response = v1_response_new(&(struct v1_response_start){ 0 });
    t->reported = (struct llm_progress){ .uuid = "12345678-0000-4000-8000-000000000000",
                                         .provider = "p",
                                         .model = "m",
                                         .answer = &t->answer,
                                         .began_wall_ms = 5999,
                                         .state = &t->response };
    v1_responses_form.begin(&t->out, &t->reported);
    buf_reset(&t->out);
}

static void recorder_close(struct recorder *t)
{
    llm_answer_clear(&t->answer);
    buf_clear(&t->out);
    v1_responses_end_state(&t->response);
    assert_null(t->response);
}

static void check(struct recorder *t, const char *wanted)
{
    assert_string_equal(buf_str(&t->out), wanted);
    buf_reset(&t->out);
}

static void end(struct recorder *t, enum llm_finish why)
{
    llm_answer_end(&t->answer, why, &(struct llm_usage){ .prompt_tokens = 3, .completion_tokens = 5 }, NULL);
    v1_responses_form.end(&t->out, &t->reported);
}

#define EVENT(type, n, members)                                                                                        \
    "event: " type "\ndata: {\"type\":\"" type "\",\"sequence_number\":" n "," members "}\n\n"
#define OF(head, n) "\"item_id\":\"" head "_" DIGITS "_" n "\",\"output_index\":" n
#define MESSAGE(n, status, content)                                                                                    \
    "{\"id\":\"msg_" DIGITS "_" n "\",\"type\":\"message\",\"status\":\"" status                                       \
    "\",\"role\":\"assistant\",\"content\":[" content "]}"
#define PART(text) "{\"type\":\"output_text\",\"text\":\"" text "\",\"annotations\":[],\"logprobs\":[]}"
#define FC(n, status, arguments)                                                                                       \
    "{\"id\":\"fc_" DIGITS "_" n "\",\"type\":\"function_call\",\"status\":\"" status                                  \
    "\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"" arguments "\"}"
#define SUMMARY(text) "{\"type\":\"summary_text\",\"text\":\"" text "\"}"

static void texts_and_calls_are_items(void **state)
{
    const struct llm_form *form = &v1_responses_form;
    AUTO(recorder_close) struct recorder t;

    recorder_open(&t);
    form->text(&t.out, &t.reported, SLICE_LIT("a\n"));
    check(&t, EVENT("response.output_item.added", "2", "\"output_index\":0,\"item\":" MESSAGE("0", "in_progress", ""))
                  EVENT("response.content_part.added", "3", OF("msg", "0") ",\"content_index\":0,\"part\":" PART(""))
                      EVENT("response.output_text.delta", "4",
                            OF("msg", "0") ",\"content_index\":0,\"delta\":\"a\\n\",\"logprobs\":[]"));
    form->text(&t.out, &t.reported, SLICE_LIT("b"));
    check(&t, EVENT("response.output_text.delta", "5",
                    OF("msg", "0") ",\"content_index\":0,\"delta\":\"b\",\"logprobs\":[]"));
    form->tool(&t.out, &t.reported, 0, "c1", "f", SLICE_LIT(""));
    check(&t,
          EVENT("response.output_text.done", "6",
                OF("msg", "0") ",\"content_index\":0,\"text\":\"a\\nb\",\"logprobs\":[]")
              EVENT("response.content_part.done", "7", OF("msg", "0") ",\"content_index\":0,\"part\":" PART("a\\nb"))
                  EVENT("response.output_item.done", "8",
                        "\"output_index\":0,\"item\":" MESSAGE("0", "completed", PART("a\\nb")))
                      EVENT("response.output_item.added", "9",
                            "\"output_index\":1,\"item\":" FC("1", "in_progress", "")));
    form->tool(&t.out, &t.reported, 0, NULL, NULL, SLICE_LIT("{}"));
    check(&t, EVENT("response.function_call_arguments.delta", "10", OF("fc", "1") ",\"delta\":\"{}\""));
    end(&t, LLM_FINISH_TOOLS);
    assert_non_null(strstr(
        buf_str(&t.out),
        EVENT("response.function_call_arguments.done", "11", OF("fc", "1") ",\"name\":\"f\",\"arguments\":\"{}\"") EVENT(
            "response.output_item.done", "12",
            "\"output_index\":1,\"item\":" FC(
                "1", "completed",
                "{}")) "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":13,\"response\":{\"id\":\"resp_" DIGITS
                       "\""));
    assert_non_null(strstr(buf_str(&t.out),
                           "\"output\":[" MESSAGE("0", "completed", PART("a\\nb")) "," FC("1", "completed", "{}") "]"));
}

static void calls_side_by_side_keep_their_items(void **state)
{
    const struct llm_form *form = &v1_responses_form;
    AUTO(recorder_close) struct recorder t;

    recorder_open(&t);
    form->tool(&t.out, &t.reported, 0, "a", "f", SLICE_LIT("1"));
    form->tool(&t.out, &t.reported, 1, "b", "g", SLICE_LIT("2"));
    buf_reset(&t.out);
    form->tool(&t.out, &t.reported, 0, NULL, NULL, SLICE_LIT("3"));
    check(&t, EVENT("response.function_call_arguments.delta", "6", OF("fc", "0") ",\"delta\":\"3\""));
    end(&t, LLM_FINISH_TOOLS);
    assert_non_null(strstr(buf_str(&t.out), "\"arguments\":\"13\""));
}

static void an_answer_that_was_cut_is_incomplete(void **state)
{
    AUTO(recorder_close) struct recorder t;

    recorder_open(&t);
    v1_responses_form.text(&t.out, &t.reported, SLICE_LIT("a"));
    end(&t, LLM_FINISH_LENGTH);
    assert_non_null(strstr(buf_str(&t.out), "\"output_index\":0,\"item\":" MESSAGE("0", "incomplete", PART("a"))));
    assert_non_null(strstr(buf_str(&t.out), "event: response.incomplete\n"));
    assert_non_null(strstr(buf_str(&t.out), "\"incomplete_details\":{\"reason\":\"max_output_tokens\"}"));
}

static void a_failure_is_reported_as_an_error_and_as_the_end(void **state)
{
    AUTO(recorder_close) struct recorder t;
    struct err e = { 0 };

    recorder_open(&t);
    err_set(&e, -EIO, "LLM_ERROR", "It broke.");
    v1_responses_form.error(&t.out, &t.reported, &e);
    assert_non_null(strstr(buf_str(&t.out),
                           EVENT("error", "2", "\"code\":\"server_error\",\"message\":\"It broke.\",\"param\":null")));
    assert_non_null(strstr(
        buf_str(&t.out),
        "\"status\":\"failed\",\"background\":false,\"error\":{\"code\":\"server_error\",\"message\":\"It broke.\"}"));
}

/* The content of the events, read again as input, is the same thoughts and calls. */
static void seals_come_back_as_they_were(void **state)
{
    const struct llm_form *form = &v1_responses_form;
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(recorder_close) struct recorder t;
    struct json_value root = { 0 };
    struct llm_request request = { 0 };
    struct err e = { 0 };
    const char *at;

    recorder_open(&t);
    form->reasoning(&t.out, &t.reported, SLICE_LIT("hm"));
    form->signature(&t.out, &t.reported, false, SLICE_LIT("s1"));
    form->signature(&t.out, &t.reported, true, SLICE_LIT("h1"));
    form->reasoning(&t.out, &t.reported, SLICE_LIT("so"));
    form->signature(&t.out, &t.reported, true, SLICE_LIT("h2"));  /* of the thought before this event */
    form->signature(&t.out, &t.reported, false, SLICE_LIT("s2")); /* of a thought whose text is withheld */
    form->tool(&t.out, &t.reported, 0, "c1", "f", SLICE_LIT("{}"));
    form->extra(&t.out, &t.reported, 0, SLICE_LIT("{\"google\":{\"thought_signature\":\"g\"}}"));
    end(&t, LLM_FINISH_TOOLS);
    assert_int_equal(t.response->n_items, 5);
    at = strstr(strstr(buf_str(&t.out), "event: response.completed"), "data: ") + strlen("data: ");
    assert_int_equal(json_parse(a, (struct slice){ at, (size_t)(strchr(at, '\n') - at) }, &root, &e), 0);
    root = json_get(json_get(root, "response"), "output");
    assert_int_equal(v1_responses_request(read_body(a, "{\"input\":\"x\"}", &e),
                                          &(struct v1_items){ .lists = &root, .n_lists = 1 }, a, &request, &e),
                     0);
    assert_string_equal(
        shown(a, &request),
        "assistant{hm s1}{- h1}{- h2}{ s2}(c1 f {}{\"google\":{\"thought_signature\":\"g\"}})~hm\n\nso user[x] ");
}

static void the_whole_answer_is_the_same_object(void **state)
{
    AUTO(recorder_close) struct recorder t;
    struct json_writer w;
    struct llm_sink sink;

    recorder_open(&t);
    sink = llm_answer_sink(&t.answer);
    assert_int_equal(sink.on_reasoning(sink.arg, SLICE_LIT("hm")), 0);
    assert_int_equal(sink.on_text(sink.arg, SLICE_LIT("a")), 0);
    llm_answer_end(&t.answer, LLM_FINISH_STOP, &(struct llm_usage){ .prompt_tokens = 3, .completion_tokens = 5 }, NULL);
    json_write_init(&w, &t.out);
    json_begin_object(&w);
    v1_responses_form.whole(&w, &t.reported);
    json_end(&w);
    assert_non_null(strstr(
        buf_str(&t.out),
        "\"status\":\"completed\",\"background\":false,\"error\":null,\"incomplete_details\":null,\"model\":\"m\",\"output\":[{\"id\":\"rs_"));
    assert_non_null(strstr(buf_str(&t.out), "\"summary\":[" SUMMARY("hm") "]}"));
    assert_non_null(
        strstr(buf_str(&t.out),
               "\"usage\":{\"input_tokens\":3,\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":5,"
               "\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":8}}"));
}

/* A member is repeated up to its limit; beyond the limit it is left out. */
static void long_members_are_not_repeated(void **state)
{
    for (size_t more = 0; more < 2; more++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct json_value body = { 0 };
        struct v1_response *r;
        struct buf text;

        buf_init(&text, LIMIT_BODY_CHAT);
        buf_add_str(&text, "{\"instructions\":\"");
        for (size_t i = 0; i < LIMIT_RESPONSE_REPEATS - 2 + more; i++)
            buf_add_char(&text, 'x');
        buf_add_str(&text, "\"}");
        assert_int_equal(json_parse(a, buf_slice(&text), &body, NULL), 0);
        r = v1_response_new(&(struct v1_response_start){ .body = body });
        assert_int_equal(strcmp(r->repeats[0], "null") == 0, more);
        v1_response_free(r);
        buf_clear(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_become_messages),
        cmocka_unit_test(order_within_a_turn_is_kept),
        cmocka_unit_test(a_reference_to_a_reference_is_refused),
        cmocka_unit_test(the_input_is_kept_as_items),
        cmocka_unit_test(addresses_are_looked_for_in_as_many_items_as_the_limit_says),
        cmocka_unit_test(ids_say_which_answer_and_item),
        cmocka_unit_test(texts_and_calls_are_items),
        cmocka_unit_test(calls_side_by_side_keep_their_items),
        cmocka_unit_test(an_answer_that_was_cut_is_incomplete),
        cmocka_unit_test(a_failure_is_reported_as_an_error_and_as_the_end),
        cmocka_unit_test(seals_come_back_as_they_were),
        cmocka_unit_test(the_whole_answer_is_the_same_object),
        cmocka_unit_test(long_members_are_not_repeated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
