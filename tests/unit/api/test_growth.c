/* No reader walks over one foreign list for each element of another: every reader is fed N elements, then eight times
 * as many, and may take three times as long as linear growth would take. The measure is the processor time of this
 * thread; before a case fails, the minimum of several rounds is taken again and again, so that a busy machine does not
 * change the result. */
#include "growth.h"

#include "agents/agents.h"
#include "api/compat/ollama_body.h"
#include "api/form.h"
#include "api/routes.h"
#include "api/compat/v1_anthropic_body.h"
#include "api/compat/v1_responses_body.h"
#include "api/resources/vector_bulk.h"
#include "../apps/app_config.h"
#include "backend/filter.h"
#include "base/json_names.h"
#include "base/json_text.h"
#include "base/limits.h"
#include "embed/embed.h"
#include "http/http.h"
#include "llm/answer.h"
#include "llm/format.h"
#include "llm/llm.h"
#include "llm/local/probe.h"
#include "llm/protocols/stops.h"
#include "net/line_reader.h"
#include "net/sse_reader.h"
#include "settings/file.h"
#include "vector/vector_filter.h"

#include <string.h>

/* ---- the readers ---- */

static void read_json(struct arena *a, struct slice text, const struct growing *g)
{
    struct json_value v = { 0 };
    struct err e = { 0 };

    (void)!json_parse(a, text, &v, &e);
}

static void pass_json(struct arena *a, struct slice text, const struct growing *g)
{
    (void)json_text_compact(text, arena_alloc(a, text.n));
}

static void read_form(struct arena *a, struct slice text, const struct growing *g)
{
    struct form form;

    (void)!form_read("multipart/form-data; boundary=bbb", text, &form, NULL);
}

static void read_fields(struct arena *a, struct slice text, const struct growing *g)
{
    struct err e = { 0 };

    (void)!fields_read(g->fields, parse(a, text), arena_alloc(a, g->size), a, "", &e);
}

static void write_for_all(struct arena *a, const struct llm_request *request)
{
    static const char *const presets[] = { "openai", "anthropic", "ollama", "generic-openai" };

    for (size_t i = 0; i < ARRAY_SIZE(presets); i++) {
        const struct llm_account acc = { .name = "a",
                                         .preset = llm_preset_find(presets[i]),
                                         .base_url = "http://127.0.0.1:1/v1",
                                         .api_key = "k",
                                         .model = "m" };
        struct llm_request own;
        struct http_call_request http;
        struct err e = { 0 };
        bool must_check;

        own = llm_format_plan(&acc, request, a, &must_check);
        own.model = "m";
        (void)!acc.preset->protocol->request(&acc, &own, a, &http, &e);
    }
}

static void read_chat(struct arena *a, struct slice text, const struct growing *g)
{
    struct llm_request request = chat_of(a, text, g);

    (void)!llm_prompt_tokens(&request);
    write_for_all(a, &request);
}

static void read_responses(struct arena *a, struct slice text, const struct growing *g)
{
    struct v1_responses_body *body = ARENA_NEW(a, struct v1_responses_body);
    struct llm_request request = { 0 };
    struct err e = { 0 };
    int r = fields_read(v1_responses_fields, parse(a, text), body, a, "", &e);

    if (r == 0)
        r = v1_responses_request(body, &(struct v1_items){ 0 }, a, &request, &e);
    if (r < 0)
        fail_msg("%s: %s", g->name, e.text);
    write_for_all(a, &request);
}

static void read_messages(struct arena *a, struct slice text, const struct growing *g)
{
    struct v1_messages_body *body = ARENA_NEW(a, struct v1_messages_body);
    struct llm_request request = { 0 };
    struct err e = { 0 };
    int r = fields_read(v1_messages_fields, parse(a, text), body, a, "", &e);

    if (r == 0)
        r = v1_anthropic_request(body, a, &request, &e);
    if (r < 0)
        fail_msg("%s: %s", g->name, e.text);
    write_for_all(a, &request);
}

static void read_ollama(struct arena *a, struct slice text, const struct growing *g)
{
    struct ollama_body *body = ARENA_NEW(a, struct ollama_body);
    struct json_value root = parse(a, text);
    struct llm_request request = { 0 };
    struct err e = { 0 };
    int r = fields_read(ollama_chat_fields, root, body, a, "", &e);

    if (r == 0)
        r = ollama_request(body, root, a, &request, &e);
    if (r < 0)
        fail_msg("%s: %s", g->name, e.text);
    write_for_all(a, &request);
}

static int ignore_text(void *arg, struct slice text)
{
    return 0;
}

static int ignore_event(void *arg, const struct sse_event *ev)
{
    return 0;
}

/* In the pieces that libcurl passes on. */
static void feed(struct arena *a, struct slice text, const struct growing *g, bool has_stop)
{
    enum { PIECE = 16 << 10 };
    char *word = arena_alloc(a, LIMIT_STOP_BYTES + 1);
    const char *words[] = { word };
    const struct field_strings stops = { words, 1 };
    struct llm_answer answer;
    struct llm_sink sink, stopping;
    struct llm_reader *r;
    struct err e = { 0 };
    int result = 0;

    memset(word, 'a', LIMIT_STOP_BYTES - 1);
    word[LIMIT_STOP_BYTES - 1] = 'b';
    llm_answer_init(&answer);
    sink = llm_answer_sink(&answer);
    sink.on_text = ignore_text;
    stopping = llm_stops_sink(a, &stops, true, &sink);
    r = g->protocol->reader(a, has_stop ? &stopping : &sink);
    for (size_t at = 0; result == 0 && at < text.n; at += PIECE)
        result = g->protocol->on_bytes(r, (struct slice){ text.p + at, MIN(text.n - at, (size_t)PIECE) }, &e);
    (void)!g->protocol->on_close(r, &e);
    llm_answer_clear(&answer);
}

static void read_stream(struct arena *a, struct slice text, const struct growing *g)
{
    feed(a, text, g, false);
}

static void read_stopped_stream(struct arena *a, struct slice text, const struct growing *g)
{
    feed(a, text, g, true);
}

static void read_whole(struct arena *a, struct slice text, const struct growing *g)
{
    struct llm_answer answer;
    struct llm_sink sink;
    struct err e = { 0 };

    llm_answer_init(&answer);
    sink = llm_answer_sink(&answer);
    (void)!g->protocol->on_whole(g->protocol->reader(a, &sink), text, &e);
    llm_answer_clear(&answer);
}

static void read_models(struct arena *a, struct slice text, const struct growing *g)
{
    struct llm_models models;
    struct err e = { 0 };

    (void)!g->protocol->on_models(text, a, &models, &e);
}

static void read_refusal(struct arena *a, struct slice text, const struct growing *g)
{
    const struct llm_account acc = { .name = "a",
                                     .preset = llm_preset_find("generic-openai"),
                                     .base_url = "http://127.0.0.1:1/v1",
                                     .api_key = "secret-key" };
    struct err e = { 0 };

    (void)!llm_refusal(&acc, 400, text, &e);
}

static void read_probe(struct arena *a, struct slice text, const struct growing *g)
{
    const struct http_answer answer = { .status = 200, .body = text };

    for (size_t i = 0; i < LLM_N_PROBES; i++)
        (void)!llm_probe_knows(&llm_probes[i], &answer, a);
}

/* As many vectors as elements. */
static void read_vectors(struct arena *a, struct slice text, const struct growing *g)
{
    struct json_value root = parse(a, text);
    size_t n = MAX(json_length(json_get(root, "data")), json_length(json_get(root, "embeddings")));
    const struct embed_batch batch = { .texts = arena_array(a, n, sizeof(struct slice)), .n = n };
    struct embed_reply reply = { 0 };
    struct err e = { 0 };
    float first[4];

    for (const struct embed_service *s = embed_services; s->id; s++)
        if (s->protocol->read(root, &batch, a, &reply, &e) == 0)
            for (size_t i = 0; i < reply.n; i++)
                (void)!embed_vector_read(reply.vectors[i], first,
                                         MIN(embed_vector_length(reply.vectors[i]), ARRAY_SIZE(first)));
}

static void read_bulk(struct arena *a, struct slice text, const struct growing *g)
{
    struct vector_bulk bulk = { 0 };
    struct err e = { 0 };

    (void)!vector_bulk_read(a, text, &bulk, &e);
}

static void read_events(struct arena *a, struct slice text, const struct growing *g)
{
    struct sse_reader r;

    sse_reader_init(&r, ignore_event, NULL);
    (void)!sse_reader_feed(&r, text, NULL);
    sse_reader_clear(&r);
}

static void read_lines(struct arena *a, struct slice text, const struct growing *g)
{
    struct line_reader r;

    line_reader_init(&r, ignore_text, NULL);
    (void)!line_reader_feed(&r, text, NULL);
    (void)!line_reader_end(&r);
    line_reader_clear(&r);
}

static void read_app(struct arena *a, struct slice text, const struct growing *g)
{
    struct app_config c;
    struct err e = { 0 };

    (void)!parse_app_config(a, text, &c, &e);
}

static void read_agent(struct arena *a, struct slice text, const struct growing *g)
{
    struct agent_definition d = { 0 };
    struct err e = { 0 };

    (void)!fields_read(agent_definition_fields, parse(a, text), &d, a, "", &e);
}

static void read_vector_filter(struct arena *a, struct slice text, const struct growing *g)
{
    struct vector_filter f = { 0 };
    struct json_value v = parse(a, text);
    struct err e = { 0 };

    if (vector_filter_parse(a, v, &f, &e) == 0)
        vector_filter_matches(&f, v);
}

static void read_row_filter(struct arena *a, struct slice text, const struct growing *g)
{
    struct filter *f;

    (void)!filter_parse(a, text.p, &f, NULL);
}

static int take_setting(void *arg, const char *key, const char *value, int line, struct err *e)
{
    return 0;
}

static void read_settings(struct arena *a, struct slice text, const struct growing *g)
{
    struct err e = { 0 };

    (void)!settings_file_parse(a, text, "file", take_setting, NULL, &e);
}

static void read_cookies(struct arena *a, struct slice text, const struct growing *g)
{
    struct http_header header = { "cookie", text.p };
    const struct http_request request = { .headers = &header, .n_headers = 1 };

    (void)!http_cookie(a, &request, "hearth_session");
}

/* ---- what grows ---- */

#define CHAT "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
#define OPENAI .protocol = &llm_openai_chat
#define RESPONSES .protocol = &llm_openai_responses
#define ANTHROPIC .protocol = &llm_anthropic_messages
#define OLLAMA .protocol = &llm_ollama

static void request_bodies_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "messages", 250, "{\"messages\":[", "{\"role\":\"user\",\"content\":\"hello %\"}", NULL, "]}", read_chat },
        { "system messages", 240, "{\"messages\":[",
          "{\"role\":\"system\",\"content\":\"rule % rule rule rule rule rule rule rule\"}", NULL,
          ",{\"role\":\"user\",\"content\":\"hi\"}]}", read_chat },
        { "blocks", 120, "{\"messages\":[{\"role\":\"user\",\"content\":[", "{\"type\":\"text\",\"text\":\"%\"}", NULL,
          "]}]}", read_chat },
        { "calls and their results", 120, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},",
          "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"call_of_a_tool_%\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
          "{\"role\":\"tool\",\"tool_call_id\":\"call_of_a_tool_%\",\"content\":\"r\"}",
          NULL, "]}", read_chat },
        { "thoughts", 100, "{\"messages\":[{\"role\":\"assistant\",\"content\":\"c\",\"thinking_blocks\":[",
          "{\"type\":\"thinking\",\"thinking\":\"t%\",\"signature\":\"s\"}", NULL, "]}]}", read_chat },
        { "tools", 60, CHAT "\"tools\":[", "{\"function\":{\"name\":\"f%\",\"parameters\":{\"type\":\"object\"}}}",
          NULL, "]}", read_chat },
        { "parameters of a tool", 2000, CHAT "\"tools\":[{\"function\":{\"name\":\"f\",\"parameters\":{",
          "\"p%\":{\"type\":\"string\"}", NULL, "}}}]}", read_chat },
        { "halves of characters", 4000, "{\"messages\":[{\"role\":\"user\",\"content\":\"", "\\ud83d", "", "\"}]}",
          read_chat },
        { "integers beyond 64 bits", 4000, CHAT "\"x\":[", "99999999999999999999", NULL, "]}", read_chat },
        { "members that are not known", 4000, CHAT, "\"x%\":1", NULL, "}", read_chat },
        { "one member many times", 4000, CHAT, "\"messages\":1", NULL, "}", read_chat },
        { "items of a response", 100, "{\"input\":[",
          "{\"type\":\"reasoning\",\"summary\":[{\"text\":\"t\"}]},{\"type\":\"function_call\",\"call_id\":\"%\",\"name\":\"f\"}",
          NULL, ",{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":\"r\"}]}", read_responses },
        { "blocks in Anthropic's form", 100, "{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":[",
          "{\"type\":\"text\",\"text\":\"%\"}", NULL, "]}]}", read_messages },
        { "messages in Anthropic's form", 120, "{\"max_tokens\":1,\"messages\":[",
          "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"toolu_%\","
          "\"name\":\"f\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_%\",\"content\":\"r\"}]}",
          NULL, "]}", read_messages },
        { "system blocks in Anthropic's form", 100,
          "{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"system\":[",
          "{\"type\":\"text\",\"text\":\"%\"}", NULL, "]}", read_messages },
        { "messages in Ollama's form", 80, "{\"model\":\"m\",\"messages\":[",
          "{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f%\",\"arguments\":{}}},"
          "{\"function\":{\"name\":\"g\",\"arguments\":{}}}]},{\"role\":\"tool\",\"tool_name\":\"g\",\"content\":\"r\"},{\"role\":\"tool\",\"content\":\"r\"}",
          NULL, "]}", read_ollama },
        { "images in Ollama's form", 120, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"images\":[",
          "\"iVBORw0KGgo=\"", NULL, "]}]}", read_ollama },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

static void answers_of_providers_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "chat deltas", 1000, "", "data: {\"choices\":[{\"delta\":{\"content\":\"x %\"}}]}\n\n", "",
          "data: [DONE]\n\n", read_stream, OPENAI },
        { "pieces of a tool's arguments", 1000, "",
          "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"x\"}}]}}]}\n\n",
          "", "data: [DONE]\n\n", read_stream, OPENAI },
        { "tool calls", 2000, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[",
          "{\"index\":%,\"id\":\"c%\",\"function\":{\"name\":\"f\"}}", NULL, "]}}]}\n\n", read_stream, OPENAI },
        { "text that nearly is the stop", 1000, "",
          "data: {\"choices\":[{\"delta\":{\"content\":\"aaaaaaaaaaaa\"}}]}\n\n", "", "data: [DONE]\n\n",
          read_stopped_stream, OPENAI },
        { "one delta that nearly is the stop", 20000, "data: {\"choices\":[{\"delta\":{\"content\":\"", "aaaaaaaa", "",
          "\"}}]}\n\n", read_stopped_stream, OPENAI },
        { "parts of a whole chat", 2000, "{\"choices\":[{\"message\":{\"content\":[",
          "{\"type\":\"text\",\"text\":\"%\"}", NULL, "]}}]}", read_whole, OPENAI },
        { "tool calls of a whole chat", 2000, "{\"choices\":[{\"message\":{\"tool_calls\":[",
          "{\"id\":\"c%\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}", NULL, "]}}]}", read_whole, OPENAI },
        { "choices", 4000, "{\"choices\":[", "{\"message\":{\"content\":\"x\"}}", NULL, "]}", read_whole, OPENAI },
        { "events of Responses", 1000, "", "data: {\"type\":\"response.output_text.delta\",\"delta\":\"%\"}\n\n", "",
          "", read_stream, RESPONSES },
        { "items of Responses", 1000, "",
          "data: {\"type\":\"response.output_item.added\",\"output_index\":%,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\"}}\n\n",
          "", "", read_stream, RESPONSES },
        { "output of Responses", 2000, "{\"output\":[", "{\"type\":\"message\",\"content\":[{\"text\":\"%\"}]}", NULL,
          "]}", read_whole, RESPONSES },
        { "deltas of Anthropic", 1000, "",
          "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%\"}}\n\n",
          "", "", read_stream, ANTHROPIC },
        { "thoughts and signatures of Anthropic", 500, "",
          "data: {\"type\":\"content_block_start\",\"index\":%,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"s\"}}\n\n",
          "", "", read_stream, ANTHROPIC },
        { "content of Anthropic", 400, "{\"content\":[", "{\"type\":\"text\",\"text\":\"%\"}", NULL, "]}", read_whole,
          ANTHROPIC },
        { "lines of Ollama", 1000, "", "{\"message\":{\"content\":\"%\"}}\n", "", "", read_stream, OLLAMA },
        { "calls of Ollama", 2000, "{\"message\":{\"tool_calls\":[",
          "{\"function\":{\"name\":\"f%\",\"arguments\":{}}}", NULL, "]},\"done\":true}\n", read_stream, OLLAMA },
        { "members that are not known", 4000, "data: {\"choices\":[{\"delta\":{", "\"x%\":1", NULL, "}}]}\n\n",
          read_stream, OPENAI },
        { "a refusal in a refusal", 3, "{\"error\":{\"message\":", "{\"error\":", "", "1", read_refusal },
        { "many reasons of a refusal", 4000, "{\"detail\":[", "{\"msg\":\"%\"}", NULL, "]}", read_refusal },
        { "a refusal that repeats the key", 4000, "{\"error\":{\"message\":\"", "secret-key ", "", "\"}}",
          read_refusal },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

static void lists_and_vectors_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "models", 1000, "{\"data\":[", "{\"id\":\"model-%\"}", NULL, "]}", read_models, OPENAI },
        { "models of Responses", 1000, "{\"data\":[", "{\"id\":\"model-%\"}", NULL, "]}", read_models, RESPONSES },
        { "models of Anthropic", 1000, "{\"data\":[", "{\"id\":\"model-%\",\"display_name\":\"Model %\"}", NULL, "]}",
          read_models, ANTHROPIC },
        { "models of Ollama", 1000, "{\"models\":[", "{\"name\":\"model:%\"}", NULL, "]}", read_models, OLLAMA },
        { "models without a name", 20000, "{\"data\":[", "{\"id\":\"\"}", NULL, "]}", read_models, OPENAI },
        { "what a server of this machine lists", 4000, "{\"data\":[", "{\"id\":\"m%\",\"state\":\"s\",\"type\":\"t\"}",
          NULL, "],\"backends\":[],\"loaded_models\":[]}", read_probe },
        { "vectors", 2000, "{\"data\":[", "{\"index\":%,\"embedding\":[0.5,0.25]}", NULL, "]}", read_vectors },
        { "vectors of Ollama", 2000, "{\"embeddings\":[", "[0.5,0.%]", NULL, "]}", read_vectors },
        { "vectors in one place", 2000, "{\"data\":[", "{\"index\":0,\"embedding\":[0.5]}", NULL, "]}", read_vectors },
        { "dimensions", 4000, "{\"embeddings\":[[", "0.%", NULL, "]]}", read_vectors },
        { "ids of a bulk upsert", 1200, "{\"ids\":[", "\"%\"", NULL, "]}\n", read_bulk },
        { "metadata of a bulk upsert", 1200, "{\"ids\":[\"a\"],\"metadata\":[", "{\"n\":%}", NULL, "]}\nAAAA",
          read_bulk },
        { "numbers of a bulk upsert", 1000, "{\"ids\":[\"a\"]}\n", "AAAA", "", "", read_bulk },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

static void bytes_and_definitions_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "events", 4000, "", "data: %\n\n", "", "", read_events },
        { "lines of one event", 4000, "", "data: %\n", "", "\n", read_events },
        { "lines that end in CR alone", 40000, "", "data: x\r", "", "", read_events },
        { "empty lines that are CR alone", 100000, "", "\r", "", "", read_events },
        { "comments", 20000, "", ":\n", "", "", read_events },
        { "lines", 20000, "", "line %\n", "", "", read_lines },
        { "empty lines", 100000, "", "\n", "", "", read_lines },
        { "numbers", 20000, "[", "%", NULL, "]", read_json },
        { "brackets that are not closed", 4000, "", "[", "", "", read_json },
        { "brackets that are not closed, as text", 40000, "", "[", "", "", pass_json },
        { "a text that breaks off, as text", 40000, "[\"", "x", "", "", pass_json },
        { "a text that breaks off", 20000, "[\"", "x", "", "", read_json },
        { "an element that is wrong behind many", 20000, "[", "%", NULL, ",tru]", read_json },
        { "tables of an app", 4000, "{\"name\":\"a\",\"config\":{\"backend\":{\"tables\":[", "\"t%\"", NULL, "]}}}",
          read_app },
        { "actions of tables", 4000,
          "{\"name\":\"a\",\"config\":{\"backend\":{\"tables\":[\"t1\",\"t2\",\"t3\"],\"tableActions\":{", "\"t%\":[]",
          NULL, "}}}}", read_app },
        { "events of one table", 4000,
          "{\"name\":\"a\",\"config\":{\"backend\":{\"tables\":[\"t1\"],\"tableActions\":{\"t1\":[", "\"INSERT\"", NULL,
          "]}}}}", read_app },
        { "handlers of an app", 500, "{\"name\":\"a\",\"config\":{\"agentHandlers\":[",
          "{\"tableName\":\"t%\",\"agentId\":\"a\",\"eventTypes\":[\"INSERT\"]}", NULL, "]}}", read_app },
        { "environment of an app", 2000, "{\"name\":\"a\",\"config\":{\"env\":{", "\"N%\":\"v\"", NULL, "}}}",
          read_app },
        { "permissions of an app", 2000, "{\"name\":\"a\",\"permissions\":[", "\"llm.chat\"", NULL, "]}", read_app },
        { "members of an app that are not known", 4000, "{\"name\":\"a\",", "\"x%\":1", NULL, "}", read_app },
        { "an agent's members", 4000, "{\"name\":\"a\",\"args\":[", "\"a%\"", NULL, "]}", read_agent },
        { "conditions of a filter", 2000, "{", "\"k%\":{\"$eq\":1}", NULL, "}", read_vector_filter },
        { "choices of a filter", 120, "{\"k\":{\"$in\":[", "%", NULL, "]}}", read_vector_filter },
        { "a filter in a filter", 7, "", "{\"$and\":[", "", "{\"a\":1}]}]}]}]}]}]}]}", read_row_filter },
        { "conditions of a row filter", 2000, "a=eq.1", "&b%=eq.1", "", "", read_row_filter },
        { "a form that is nearly boundaries", 20000, "--bbb\r\ncontent-disposition: form-data; name=a\r\n\r\n",
          "\r\n--bb", "", "\r\n--bbb--", read_form },
        { "a part of one long header", 20000, "--bbb\r\ncontent-disposition: form-data", "; n=%", "", "\r\n\r\n",
          read_form },
        { "settings", 2000, "", "a.b%=1\n", "", "", read_settings },
        { "cookies", 4000, "", "n%=v; ", "", "", read_cookies },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

/* ---- every table of fields ---- */

/* Each list of a table: as objects that lack every member, as texts, as members. */
static void assert_row_is_linear(const struct route *route, const struct field *f)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    static const struct {
        const char *open, *element, *close;
    } kinds[] = { { "[", "{}", "]" }, { "[", "\"x%\"", "]" }, { "[", "0.%", "]" }, { "{", "\"x%\":\"y\"", "}" } };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        assert_linear(
            &(struct growing){ arena_printf(a, "%s %s: %s", http_method_name(route->method), route->path, f->name), 500,
                               arena_printf(a, "{\"%s\":%s", f->name, kinds[i].open), kinds[i].element, NULL,
                               arena_printf(a, "%s}", kinds[i].close), read_fields, route->body, route->body_size });
}

static void bodies_of_every_route_grow_with_their_length(void **state)
{
    for (const struct route *const *table = api_route_tables; *table; table++)
        for (const struct route *route = *table; route->path; route++) {
            if (!route->body)
                continue;
            assert_linear(&(struct growing){ route->path, 2000, "{", "\"x%\":1", NULL, "}", read_fields, route->body,
                                             route->body_size });
            for (const struct field *f = route->body; f->kind != FIELD_KIND_END; f++)
                if (f->kind >= FIELD_KIND_OBJECT || f->kind == FIELD_KIND_STRING)
                    assert_row_is_linear(route, f);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_bodies_grow_with_their_length),
        cmocka_unit_test(answers_of_providers_grow_with_their_length),
        cmocka_unit_test(lists_and_vectors_grow_with_their_length),
        cmocka_unit_test(bytes_and_definitions_grow_with_their_length),
        cmocka_unit_test(bodies_of_every_route_grow_with_their_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
