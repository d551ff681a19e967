/* OpenAI Responses (platform.openai.com/docs/api-reference/responses). The provider stores nothing: store is false. */
#include "llm/file.h"
#include "llm/protocols/wire.h"

#include "base/limits.h"

#include <string.h>

enum { LEAST_MAX_OUTPUT_TOKENS = 16 }; /* the service refuses a lower limit */

/* ---- request ---- */

static void add_block(struct json_writer *w, const struct llm_message *m, const struct llm_block *block,
                      struct arena *a)
{
    json_begin_object(w);
    switch (block->kind) {
    case LLM_BLOCK_TEXT:
        json_add_string(w, "type", m->role == LLM_ASSISTANT ? "output_text" : "input_text");
        json_add_string(w, "text", block->text);
        break;
    case LLM_BLOCK_IMAGE_URL:
    case LLM_BLOCK_IMAGE_DATA:
        json_add_string(w, "type", "input_image");
        json_add_string(w, "image_url", block->kind == LLM_BLOCK_IMAGE_URL ? block->url : wire_data_url(a, block));
        if (block->detail)
            json_add_string(w, "detail", block->detail);
        break;
    case LLM_BLOCK_FILE_DATA:
        json_add_string(w, "type", "input_file");
        json_add_string(w, "filename", llm_file_name(a, block));
        json_add_string(w, "file_data", wire_data_url(a, block));
        break;
    case LLM_BLOCK_FILE_URL:
        json_add_string(w, "type", "input_file");
        json_add_string(w, "file_url", block->url);
        break;
    }
    json_end(w);
}

/* A result with images or files is a list of parts, like a message. */
static void add_output(struct json_writer *w, const struct llm_message *m, struct arena *a)
{
    bool is_text = true;

    for (size_t i = 0; i < m->n_blocks; i++)
        is_text = is_text && m->blocks[i].kind == LLM_BLOCK_TEXT;
    if (is_text) {
        json_add_string(w, "output", wire_result_text(a, m));
        return;
    }
    json_begin_array_as(w, "output");
    if (m->is_error)
        add_block(w, m, &(struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = "Error:" }, a);
    for (size_t i = 0; i < m->n_blocks; i++)
        add_block(w, m, &m->blocks[i], a);
    json_end(w);
}

static void add_tool_call(struct json_writer *w, const struct llm_tool_call *call)
{
    json_begin_object(w);
    json_add_string(w, "type", "function_call");
    json_add_string(w, "call_id", call->id);
    json_add_string(w, "name", call->name);
    json_add_string(w, "arguments", call->arguments);
    json_end(w);
}

static void add_result(struct json_writer *w, const struct llm_message *m, struct arena *a)
{
    json_begin_object(w);
    json_add_string(w, "type", "function_call_output");
    json_add_string(w, "call_id", m->tool_call_id);
    add_output(w, m, a);
    json_end(w);
}

static void begin_message(struct json_writer *w, const struct llm_message *m)
{
    json_begin_object(w);
    json_add_string(w, "role", wire_role(m->role));
    json_begin_array_as(w, "content");
}

/* Reasoning items are sent back before the items that they led to ("Keeping reasoning items in context"), encrypted, as
 * the provider stores nothing. */
static void add_thought(struct json_writer *w, const struct llm_thought *thought, struct arena *a)
{
    struct json_value item = { 0 };

    if (thought->text || !wire_is_responses_signature(thought->signature))
        return;
    if (json_parse(a, slice_of(thought->signature + strlen(WIRE_RESPONSES_SIGNATURE)), &item, NULL) == 0 &&
        json_type(item) == JSON_OBJECT)
        json_add_value(w, NULL, item);
}

/* Clients that collect a stream send "" where there was no text. Such a text must not separate a thought from the item
 * that the thought led to. */
static bool is_nothing(const struct llm_message *m, const struct llm_block *block)
{
    return m->role == LLM_ASSISTANT && block->kind == LLM_BLOCK_TEXT && !*block->text;
}

/* Each call and each thought is an item of its own; adjacent blocks form one message. */
static void add_message(struct json_writer *w, const struct llm_message *m, struct arena *a)
{
    struct wire_pieces pieces = { .m = m };
    bool is_open = false;

    while (wire_next_piece(&pieces)) {
        if (pieces.kind == LLM_PIECE_BLOCK && is_nothing(m, &m->blocks[pieces.index]))
            continue;
        if (is_open != (pieces.kind == LLM_PIECE_BLOCK)) {
            if (is_open) {
                json_end(w);
                json_end(w);
            } else {
                begin_message(w, m);
            }
            is_open = !is_open;
        }
        if (pieces.kind == LLM_PIECE_BLOCK)
            add_block(w, m, &m->blocks[pieces.index], a);
        else if (pieces.kind == LLM_PIECE_CALL)
            add_tool_call(w, &m->tool_calls[pieces.index]);
        else
            add_thought(w, &m->thoughts[pieces.index], a);
    }
    if (is_open) {
        json_end(w);
        json_end(w);
    }
}

static void add_input(struct json_writer *w, const struct llm_request *request, struct arena *a)
{
    json_begin_array_as(w, "input");
    for (size_t i = 0; i < request->n_messages; i++) {
        const struct llm_message *m = &request->messages[i];

        if (m->role == LLM_TOOL)
            add_result(w, m, a);
        else
            add_message(w, m, a);
    }
    json_end(w);
}

/* In chat completions the function's name is one level deeper. */
static void add_tool_choice(struct json_writer *w, struct json_value choice)
{
    const char *name = json_cstr(json_get(json_get(choice, "function"), "name"));

    if (json_is_absent(choice))
        return;
    if (!name) {
        json_add_value(w, "tool_choice", choice);
        return;
    }
    json_begin_object_as(w, "tool_choice");
    json_add_string(w, "type", "function");
    json_add_string(w, "name", name);
    json_end(w);
}

static void add_tools(struct json_writer *w, const struct llm_request *request)
{
    if (request->n_tools == 0)
        return;
    json_begin_array_as(w, "tools");
    for (size_t i = 0; i < request->n_tools; i++) {
        const struct llm_tool *tool = &request->tools[i];

        json_begin_object(w);
        json_add_string(w, "type", "function");
        json_add_string(w, "name", tool->name);
        if (tool->description)
            json_add_string(w, "description", tool->description);
        if (json_is_absent(tool->parameters)) /* required here, unlike in chat completions */
            json_add_raw(w, "parameters", "{\"type\":\"object\",\"properties\":{}}");
        else
            json_add_value(w, "parameters", tool->parameters);
        json_add_bool(w, "strict", tool->is_strict);
        json_end(w);
    }
    json_end(w);
    add_tool_choice(w, request->tool_choice);
}

static void add_format(struct json_writer *w, const struct llm_request *request)
{
    if (request->format == LLM_FORMAT_TEXT)
        return;
    json_begin_object_as(w, "text");
    json_begin_object_as(w, "format");
    json_add_string(w, "type", request->format == LLM_FORMAT_JSON ? "json_object" : "json_schema");
    if (request->format == LLM_FORMAT_SCHEMA) {
        json_add_string(w, "name", request->schema_name);
        json_add_value(w, "schema", request->schema);
        json_add_bool(w, "strict", request->is_schema_strict);
    }
    json_end(w);
    json_end(w);
}

/* Reasoning models require their thoughts together with a tool's result. As the provider stores nothing, the request
 * asks for encrypted thoughts. Other models refuse such a request. */
static void add_reasoning(struct json_writer *w, const struct llm_request *request)
{
    static const char *const included[] = { "reasoning.encrypted_content" };

    if (request->n_tools > 0 && llm_model_is_reasoning(request->model))
        json_add_strings(w, "include", included, 1);
    if (!request->effort)
        return;
    json_begin_object_as(w, "reasoning");
    json_add_string(w, "effort", request->effort);
    json_end(w);
}

static int request(const struct llm_account *acc, const struct llm_request *request, struct arena *a,
                   struct http_call_request *ret, struct err *e)
{
    struct wire_body body;
    struct json_writer *w = &body.json;

    wire_body_begin(&body);
    json_add_string(w, "model", request->model);
    add_input(w, request, body.scratch);
    if (!llm_model_is_reasoning(request->model)) {
        if (request->temperature >= 0)
            json_add_double(w, "temperature", request->temperature);
        if (request->has_top_p)
            json_add_double(w, "top_p", request->top_p);
    }
    if (request->max_tokens > 0)
        json_add_int(w, "max_output_tokens", MAX(request->max_tokens, (int64_t)LEAST_MAX_OUTPUT_TOKENS));
    json_add_bool(w, "stream", request->is_streamed);
    json_add_bool(w, "store", false);
    add_reasoning(w, request);
    add_tools(w, request);
    add_format(w, request);
    return wire_request(acc, "responses", &body, a, ret, e);
}

/* ---- answer ---- */

struct responses_call {
    int64_t output_index;
    bool has_arguments;
};

struct llm_reader {
    struct wire_reader base;
    struct responses_call *tools;
    size_t n_tools; /* tools is in the arena; NULL before the first call */
};

static int add_tool(struct llm_reader *r, int64_t output_index, struct json_value item)
{
    struct slice arguments = json_string(json_get(item, "arguments"));

    if (r->n_tools == LIMIT_TOOL_CALLS)
        return wire_no_answer(r->base.e);
    if (!r->tools)
        r->tools = arena_array(r->base.arena, LIMIT_TOOL_CALLS, sizeof(*r->tools));
    r->tools[r->n_tools] = (struct responses_call){ output_index, arguments.n > 0 };
    return r->base.sink.on_tool(r->base.sink.arg, r->n_tools++, json_cstr(json_get(item, "call_id")),
                                json_cstr(json_get(item, "name")), arguments);
}

/* The call's index; n_tools: there is no such call. */
static size_t place_of_tool(const struct llm_reader *r, struct json_value root)
{
    int64_t output_index = json_int(json_get(root, "output_index"));
    size_t i = 0;

    while (i < r->n_tools && r->tools[i].output_index != output_index)
        i++;
    return i;
}

static int add_arguments(struct llm_reader *r, size_t place, struct slice arguments)
{
    if (place == r->n_tools || arguments.n == 0)
        return 0;
    r->tools[place].has_arguments = true;
    return r->base.sink.on_tool(r->base.sink.arg, place, NULL, NULL, arguments);
}

static bool is_type(struct json_value v, const char *type)
{
    return slice_eq_str(json_string(json_get(v, "type")), type);
}

static int on_item_added(struct llm_reader *r, struct json_value root)
{
    struct json_value item = json_get(root, "item");

    return is_type(item, "function_call") ? add_tool(r, json_int(json_get(root, "output_index")), item) : 0;
}

static int on_arguments(struct llm_reader *r, struct json_value root)
{
    return add_arguments(r, place_of_tool(r, root), json_string(json_get(root, "delta")));
}

/* Services that do not stream the arguments in parts send all of them here, or with the finished item. */
static int on_all_arguments(struct llm_reader *r, struct json_value root)
{
    size_t place = place_of_tool(r, root);

    return place < r->n_tools && r->tools[place].has_arguments
               ? 0
               : add_arguments(r, place, json_string(json_get(root, "arguments")));
}

/* Keeps the item for sending it back, without its status, which a request may not contain. */
static int put_encrypted(struct llm_reader *r, struct json_value item)
{
    struct slice encrypted = json_string(json_get(item, "encrypted_content"));
    struct json_value id = json_get(item, "id"), summary = json_get(item, "summary");
    struct json_writer w;
    struct buf signature;
    int result;

    if (encrypted.n == 0)
        return 0;
    buf_init(&signature, LIMIT_LLM_ANSWER);
    buf_add_str(&signature, WIRE_RESPONSES_SIGNATURE);
    json_write_init(&w, &signature);
    json_begin_object(&w);
    json_add_string(&w, "type", "reasoning");
    if (json_type(id) == JSON_STRING)
        json_add_value(&w, "id", id);
    if (json_type(summary) == JSON_ARRAY)
        json_add_value(&w, "summary", summary);
    else
        json_add_raw(&w, "summary", "[]");
    json_add_slice(&w, "encrypted_content", encrypted);
    json_end(&w);
    result = buf_check(&signature, r->base.e);
    if (result == 0)
        result = r->base.sink.on_signature(r->base.sink.arg, true, buf_slice(&signature));
    buf_clear(&signature);
    return result;
}

static int on_item_done(struct llm_reader *r, struct json_value root)
{
    struct json_value item = json_get(root, "item");
    size_t place = place_of_tool(r, root);

    if (is_type(item, "reasoning"))
        return put_encrypted(r, item);
    if (!is_type(item, "function_call"))
        return 0;
    if (place == r->n_tools)
        return add_tool(r, json_int(json_get(root, "output_index")), item);
    return r->tools[place].has_arguments ? 0 : add_arguments(r, place, json_string(json_get(item, "arguments")));
}

static int on_text(struct llm_reader *r, struct json_value root)
{
    return wire_put(r->base.sink.on_text, r->base.sink.arg, json_get(root, "delta"));
}

static int on_reasoning(struct llm_reader *r, struct json_value root)
{
    return wire_put(r->base.sink.on_reasoning, r->base.sink.arg, json_get(root, "delta"));
}

/* The summaries of several thoughts become paragraphs. */
static int on_next_summary(struct llm_reader *r, struct json_value root)
{
    return json_int(json_get(root, "summary_index")) > 0
               ? r->base.sink.on_reasoning(r->base.sink.arg, SLICE_LIT("\n\n"))
               : 0;
}

static enum llm_finish finish_of(struct llm_reader *r, struct json_value response)
{
    struct slice reason = json_string(json_get(json_get(response, "incomplete_details"), "reason"));

    if (slice_eq_str(reason, "content_filter"))
        return LLM_FINISH_FILTER;
    if (reason.n > 0 || slice_eq_str(json_string(json_get(response, "status")), "incomplete"))
        return LLM_FINISH_LENGTH;
    return r->n_tools > 0 ? LLM_FINISH_TOOLS : LLM_FINISH_STOP;
}

static int end_answer(struct llm_reader *r, struct json_value response)
{
    struct json_value counted = json_get(response, "usage");
    const struct llm_usage usage = { .prompt_tokens = wire_tokens(json_get(counted, "input_tokens"), 0),
                                     .completion_tokens = wire_tokens(json_get(counted, "output_tokens"), 0) };

    r->base.has_ended = true;
    return r->base.sink.on_end(r->base.sink.arg, finish_of(r, response),
                               json_type(counted) == JSON_OBJECT ? &usage : NULL,
                               json_cstr(json_get(response, "model")));
}

static int on_completed(struct llm_reader *r, struct json_value root)
{
    return end_answer(r, json_get(root, "response"));
}

static int on_failed(struct llm_reader *r, struct json_value root)
{
    return wire_reported_error(json_get(json_get(root, "response"), "error"), r->base.e);
}

static int on_error(struct llm_reader *r, struct json_value root)
{
    struct json_value error = json_get(root, "error");

    return wire_reported_error(json_is_absent(error) ? root : error, r->base.e);
}

static const struct {
    const char *type;
    int (*take)(struct llm_reader *r, struct json_value root);
} events[] = {
    { "response.output_text.delta", on_text },
    { "response.refusal.delta", on_text },
    { "response.reasoning_summary_text.delta", on_reasoning },
    { "response.reasoning_text.delta", on_reasoning },
    { "response.reasoning_summary_part.added", on_next_summary },
    { "response.output_item.added", on_item_added },
    { "response.function_call_arguments.delta", on_arguments },
    { "response.function_call_arguments.done", on_all_arguments },
    { "response.output_item.done", on_item_done },
    { "response.completed", on_completed },
    { "response.incomplete", on_completed },
    { "response.failed", on_failed },
    { "error", on_error },
};

static int on_data(struct llm_reader *r, struct slice data)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value root = { 0 };
    int result;

    if (slice_eq_str(data, "[DONE]"))
        return 0;
    result = wire_parse(scratch, data, &root, r->base.e);
    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(events); i++)
        if (is_type(root, events[i].type))
            return events[i].take(r, root);
    return result;
}

/* ---- the whole answer ---- */

/* Passes on the text of each {text} or {refusal} in a list of parts. */
static int put_parts(struct json_value parts, const char *between, int (*on)(void *arg, struct slice text), void *arg)
{
    struct json_value part;
    size_t n = 0;
    int result = 0;

    for (struct json_iter it = json_iter(parts); result == 0 && json_next(&it, NULL, &part); n++) {
        if (n > 0 && *between)
            result = on(arg, slice_of(between));
        if (result == 0)
            result = wire_put(on, arg, json_get(part, "text"));
        if (result == 0)
            result = wire_put(on, arg, json_get(part, "refusal"));
    }
    return result;
}

static int put_item(struct llm_reader *r, struct json_value item)
{
    int result;

    if (is_type(item, "message"))
        return put_parts(json_get(item, "content"), "", r->base.sink.on_text, r->base.sink.arg);
    if (is_type(item, "function_call"))
        return add_tool(r, (int64_t)r->n_tools, item);
    if (!is_type(item, "reasoning"))
        return 0;
    result = put_parts(json_get(item, "summary"), "\n\n", r->base.sink.on_reasoning, r->base.sink.arg);
    if (result == 0)
        result = put_parts(json_get(item, "content"), "", r->base.sink.on_reasoning, r->base.sink.arg);
    return result == 0 ? put_encrypted(r, item) : result;
}

static int on_whole(struct llm_reader *r, struct slice body, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value root = { 0 }, output, item;
    int result = wire_parse(scratch, body, &root, e);

    if (result < 0)
        return result;
    r->base.e = e;
    output = json_get(root, "output");
    if (!json_is_absent(json_get(root, "error")))
        return wire_reported_error(json_get(root, "error"), e);
    if (json_type(output) != JSON_ARRAY)
        return wire_no_answer(e);
    for (struct json_iter it = json_iter(output); result == 0 && json_next(&it, NULL, &item);)
        result = put_item(r, item);
    return result < 0 ? result : end_answer(r, root);
}

/* The service fetches files of every type itself. */
static bool takes_address(const struct llm_block *block)
{
    return true;
}

static const struct wire_reading reading = {
    .size = sizeof(struct llm_reader),
    .on_data = on_data,
    .on_whole = on_whole,
};

static struct llm_reader *make_reader(struct arena *a, const struct llm_sink *sink)
{
    return wire_reader_new(&reading, a, sink);
}

static int models(const struct llm_account *acc, struct arena *a, struct http_call_request *ret, struct err *e)
{
    return wire_request(acc, "models", NULL, a, ret, e);
}

static int on_models(struct slice body, struct arena *a, struct llm_models *ret, struct err *e)
{
    return wire_models(body, &(struct wire_list){ "data", "id", "name", "created" }, a, ret, e);
}

const struct llm_protocol llm_openai_responses = {
    .name = "openai-responses",
    .has_json_object = true,
    .has_json_schema = true,
    .takes_address = takes_address,
    .stops = LLM_STOPS_NONE,
    .request = request,
    .reader = make_reader,
    .on_bytes = wire_on_bytes,
    .on_whole = on_whole,
    .on_close = wire_on_close,
    .models = models,
    .on_models = on_models,
};
