/* Anthropic messages (docs.anthropic.com/en/api/messages): system texts are a separate field, tool results are inside
 * user messages, and there is no response_format. */
#include "llm/protocols/anthropic_thinking.h"
#include "llm/protocols/wire.h"

#include "base/limits.h"
#include "llm/answer.h"

#include <string.h>
#include <strings.h>

/* ---- request ---- */

static void add_source(struct json_writer *w, const struct llm_block *block)
{
    json_begin_object_as(w, "source");
    if (block->kind == LLM_BLOCK_IMAGE_URL || block->kind == LLM_BLOCK_FILE_URL) {
        json_add_string(w, "type", "url");
        json_add_string(w, "url", block->url);
    } else {
        json_add_string(w, "type", "base64");
        json_add_string(w, "media_type", block->media_type);
        json_add_string(w, "data", block->base64);
    }
    json_end(w);
}

/* Is the text empty or only white space? The service refuses such texts. */
static bool is_blank(const struct llm_block *block)
{
    return block->kind == LLM_BLOCK_TEXT && block->text[strspn(block->text, " \t\r\n")] == '\0';
}

static bool has_content(const struct llm_message *m)
{
    for (size_t i = 0; i < m->n_blocks; i++)
        if (!is_blank(&m->blocks[i]))
            return true;
    return m->n_tool_calls > 0 || m->role == LLM_TOOL;
}

/* Documents must be PDF; text files were turned into text blocks before. */
static int check_blocks(const struct llm_request *request, struct err *e)
{
    for (size_t i = 0; i < request->n_messages; i++)
        for (size_t k = 0; k < request->messages[i].n_blocks; k++) {
            const struct llm_block *block = &request->messages[i].blocks[k];

            if (block->kind == LLM_BLOCK_FILE_DATA && strcmp(block->media_type, "application/pdf") != 0)
                return err_set(e, -EINVAL, "UNSUPPORTED_CONTENT",
                               "Anthropic reads PDF, text and images: `messages[%zu]` holds a file of the type %.80s.",
                               i, block->media_type);
        }
    return 0;
}

static void add_block(struct json_writer *w, const struct llm_block *block)
{
    bool is_file = block->kind == LLM_BLOCK_FILE_DATA || block->kind == LLM_BLOCK_FILE_URL;

    if (is_blank(block))
        return;
    json_begin_object(w);
    if (block->kind == LLM_BLOCK_TEXT) {
        json_add_string(w, "type", "text");
        json_add_string(w, "text", block->text);
    } else {
        json_add_string(w, "type", is_file ? "document" : "image");
        add_source(w, block);
        if (is_file && block->file_name)
            json_add_string(w, "title", block->file_name);
    }
    json_end(w);
}

static void add_tool_result(struct json_writer *w, const struct llm_account *acc, const struct llm_message *m,
                            struct arena *a)
{
    bool is_text = true;

    for (size_t i = 0; i < m->n_blocks; i++)
        is_text = is_text && m->blocks[i].kind == LLM_BLOCK_TEXT;
    json_begin_object(w);
    json_add_string(w, "type", "tool_result");
    json_add_string(w, "tool_use_id", wire_tool_id(a, acc, m->tool_call_id));
    if (is_text) {
        json_add_string(w, "content", wire_text(a, m));
    } else {
        json_begin_array_as(w, "content");
        for (size_t i = 0; i < m->n_blocks; i++)
            add_block(w, &m->blocks[i]);
        json_end(w);
    }
    if (m->is_error)
        json_add_bool(w, "is_error", true);
    json_end(w);
}

static void add_tool_use(struct json_writer *w, const struct llm_account *acc, const struct llm_tool_call *call,
                         struct arena *a)
{
    json_begin_object(w);
    json_add_string(w, "type", "tool_use");
    json_add_string(w, "id", wire_tool_id(a, acc, call->id));
    json_add_string(w, "name", call->name);
    llm_write_arguments(w, "input", slice_of(call->arguments), a);
    json_end(w);
}

/* Thoughts are sent back unmodified and in their place; otherwise the service refuses a call's result (docs.claude.com,
 * extended thinking, "Preserving thinking blocks"). Thoughts of other models are left out: they have no signature, so
 * the service would refuse them. */
static void add_thought(struct json_writer *w, const struct llm_thought *thought)
{
    if (!*thought->signature || wire_is_responses_signature(thought->signature))
        return;
    json_begin_object(w);
    json_add_string(w, "type", thought->text ? "thinking" : "redacted_thinking");
    if (thought->text)
        json_add_string(w, "thinking", thought->text);
    json_add_string(w, thought->text ? "signature" : "data", thought->signature);
    json_end(w);
}

static void add_content(struct json_writer *w, const struct llm_account *acc, const struct llm_message *m,
                        struct arena *a)
{
    struct wire_pieces pieces = { .m = m };

    if (m->role == LLM_TOOL) {
        add_tool_result(w, acc, m, a);
        return;
    }
    while (wire_next_piece(&pieces)) {
        if (pieces.kind == LLM_PIECE_THOUGHT)
            add_thought(w, &m->thoughts[pieces.index]);
        else if (pieces.kind == LLM_PIECE_BLOCK)
            add_block(w, &m->blocks[pieces.index]);
        else
            add_tool_use(w, acc, &m->tool_calls[pieces.index], a);
    }
}

static bool is_of_dialogue(const struct llm_message *m, bool has_dialogue)
{
    return (m->role != LLM_SYSTEM || !has_dialogue) && has_content(m);
}

/* The service requires a dialogue: system texts alone are sent as a user message. */
static bool has_dialogue(const struct llm_request *request)
{
    for (size_t i = 0; i < request->n_messages; i++)
        if (is_of_dialogue(&request->messages[i], true))
            return true;
    return false;
}

/* Adjacent messages of one side become one message, as the results of several tools must be in one message. */
static void add_messages(struct json_writer *w, const struct llm_account *acc, const struct llm_request *request,
                         struct arena *a)
{
    bool is_dialogue = has_dialogue(request);
    const char *side = NULL;

    json_begin_array_as(w, "messages");
    for (size_t i = 0; i < request->n_messages; i++) {
        const struct llm_message *m = &request->messages[i];
        const char *own = m->role == LLM_ASSISTANT ? "assistant" : "user";

        if (!is_of_dialogue(m, is_dialogue))
            continue;
        if (!side || strcmp(side, own) != 0) {
            if (side) {
                json_end(w);
                json_end(w);
            }
            json_begin_object(w);
            json_add_string(w, "role", own);
            json_begin_array_as(w, "content");
            side = own;
        }
        add_content(w, acc, m, a);
    }
    if (side) {
        json_end(w);
        json_end(w);
    }
    json_end(w);
}

static void add_system(struct json_writer *w, const struct llm_request *request, struct arena *a)
{
    struct buf all;

    if (!has_dialogue(request))
        return;
    buf_init(&all, 2 * (size_t)LIMIT_BODY_CHAT);
    for (size_t i = 0; i < request->n_messages; i++) {
        const char *text = request->messages[i].role == LLM_SYSTEM ? wire_text(a, &request->messages[i]) : "";

        if (*text && all.n > 0)
            buf_add_str(&all, "\n\n");
        buf_add_str(&all, text);
    }
    if (all.n > 0)
        json_add_slice(w, "system", buf_slice(&all));
    buf_clear(&all);
}

static void add_tool_choice(struct json_writer *w, struct json_value choice)
{
    const char *name = json_cstr(json_get(json_get(choice, "function"), "name")), *word = json_cstr(choice);

    if (!name && !word)
        return;
    json_begin_object_as(w, "tool_choice");
    json_add_string(w, "type",
                    name                            ? "tool"
                    : strcmp(word, "required") == 0 ? "any"
                    : strcmp(word, "none") == 0     ? "none"
                                                    : "auto");
    if (name)
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
        json_add_string(w, "name", tool->name);
        if (tool->description)
            json_add_string(w, "description", tool->description);
        if (json_is_absent(tool->parameters))
            json_add_raw(w, "input_schema", "{\"type\":\"object\"}");
        else
            json_add_value(w, "input_schema", tool->parameters);
        json_end(w);
    }
    json_end(w);
    add_tool_choice(w, request->tool_choice);
}

/* The temperature is at most 1; newer models take either temperature or top_p, the newest take neither. */
static void add_sampling(struct json_writer *w, const struct llm_request *request)
{
    bool takes = llm_model_takes_sampling(request->model) && anthropic_thinking(request) == LLM_THINKS_NOT;
    bool has_temperature = takes && request->temperature >= 0 && (request->has_temperature || !request->has_top_p);

    json_add_int(w, "max_tokens", anthropic_max_tokens(request));
    if (has_temperature)
        json_add_double(w, "temperature", MIN(request->temperature, 1.0));
    else if (takes && request->has_top_p)
        json_add_double(w, "top_p", request->top_p);
}

static int request(const struct llm_account *acc, const struct llm_request *request, struct arena *a,
                   struct http_call_request *ret, struct err *e)
{
    struct wire_body body;
    struct json_writer *w = &body.json;
    int r = wire_check_addresses(acc, request, e);

    if (r == 0)
        r = check_blocks(request, e);
    if (r < 0)
        return r;
    wire_body_begin(&body);
    json_add_string(w, "model", request->model);
    add_system(w, request, body.scratch);
    add_messages(w, acc, request, body.scratch);
    add_sampling(w, request);
    anthropic_add_thinking(w, request);
    if (request->stop.n > 0)
        json_add_strings(w, "stop_sequences", request->stop.items, request->stop.n);
    json_add_bool(w, "stream", request->is_streamed);
    add_tools(w, request);
    return wire_request(acc, "v1/messages", &body, a, ret, e);
}

/* ---- answer ---- */

struct llm_reader {
    struct wire_reader base;
    const char *model;
    struct llm_usage usage;
    enum llm_finish why;
    size_t n_tools;
    int64_t tool_block; /* index of the content block that is a tool call; -1: none is open */
    bool has_usage, has_arguments;
};

static enum llm_finish finish_of(const char *reason)
{
    static const struct {
        const char *reason;
        enum llm_finish why;
    } reasons[] = {
        { "max_tokens", LLM_FINISH_LENGTH },
        { "model_context_window_exceeded", LLM_FINISH_LENGTH },
        { "tool_use", LLM_FINISH_TOOLS },
        { "refusal", LLM_FINISH_FILTER },
    };

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (strcmp(reasons[i].reason, reason) == 0)
            return reasons[i].why;
    return LLM_FINISH_STOP;
}

static void note_usage(struct llm_reader *r, struct json_value usage)
{
    struct json_value input = json_get(usage, "input_tokens"), output = json_get(usage, "output_tokens");

    if (json_type(usage) != JSON_OBJECT)
        return;
    r->has_usage = true;
    if (!json_is_absent(input))
        r->usage.prompt_tokens = wire_tokens(input, 0) +
                                 wire_tokens(json_get(usage, "cache_creation_input_tokens"), 0) +
                                 wire_tokens(json_get(usage, "cache_read_input_tokens"), 0);
    if (!json_is_absent(output))
        r->usage.completion_tokens = wire_tokens(output, 0);
}

static void note_message(struct llm_reader *r, struct json_value message)
{
    const char *model = json_cstr(json_get(message, "model")), *reason = json_cstr(json_get(message, "stop_reason"));

    if (model && *model && !r->model && strlen(model) <= LIMIT_MODEL_BYTES)
        r->model = arena_strdup(r->base.arena, model);
    if (reason)
        r->why = finish_of(reason);
    note_usage(r, json_get(message, "usage"));
}

static bool is_type(struct json_value v, const char *type)
{
    return slice_eq_str(json_string(json_get(v, "type")), type);
}

static int begin_tool(struct llm_reader *r, struct json_value block, struct slice arguments)
{
    if (r->n_tools == LIMIT_TOOL_CALLS)
        return wire_no_answer(r->base.e);
    return r->base.sink.on_tool(r->base.sink.arg, r->n_tools++, json_cstr(json_get(block, "id")),
                                json_cstr(json_get(block, "name")), arguments);
}

/* The signature of a thought, from its block or a delta. */
static int put_signature(struct llm_reader *r, bool is_hidden, struct json_value signature)
{
    struct slice bytes = json_string(signature);

    return bytes.n > 0 ? r->base.sink.on_signature(r->base.sink.arg, is_hidden, bytes) : 0;
}

static int put_thought(struct llm_reader *r, struct json_value block)
{
    int result = wire_put(r->base.sink.on_reasoning, r->base.sink.arg, json_get(block, "thinking"));

    return result < 0 ? result : put_signature(r, false, json_get(block, "signature"));
}

static int on_message_start(struct llm_reader *r, struct json_value root)
{
    note_message(r, json_get(root, "message"));
    return 0;
}

static int on_block_start(struct llm_reader *r, struct json_value root)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value block = json_get(root, "content_block"), input = json_get(block, "input");
    struct slice arguments = { 0 };

    if (is_type(block, "text"))
        return wire_put(r->base.sink.on_text, r->base.sink.arg, json_get(block, "text"));
    if (is_type(block, "thinking"))
        return put_thought(r, block);
    if (is_type(block, "redacted_thinking")) /* a hidden thought has no deltas */
        return put_signature(r, true, json_get(block, "data"));
    if (!is_type(block, "tool_use"))
        return 0;
    if (json_type(input) == JSON_OBJECT &&
        json_length(input) > 0) /* some services send the arguments here instead of streaming them */
        arguments = slice_of(json_to_str(scratch, input));
    r->tool_block = json_int(json_get(root, "index"));
    r->has_arguments = arguments.n > 0;
    return begin_tool(r, block, arguments);
}

static int on_block_delta(struct llm_reader *r, struct json_value root)
{
    struct json_value delta = json_get(root, "delta");
    struct slice arguments = json_string(json_get(delta, "partial_json"));

    if (is_type(delta, "text_delta"))
        return wire_put(r->base.sink.on_text, r->base.sink.arg, json_get(delta, "text"));
    if (is_type(delta, "thinking_delta"))
        return wire_put(r->base.sink.on_reasoning, r->base.sink.arg, json_get(delta, "thinking"));
    if (is_type(delta, "signature_delta")) /* sent once, just before the block's end (messages-streaming) */
        return put_signature(r, false, json_get(delta, "signature"));
    if (!is_type(delta, "input_json_delta") || arguments.n == 0 || r->tool_block < 0 ||
        r->tool_block != json_int(json_get(root, "index")))
        return 0;
    r->has_arguments = true;
    return r->base.sink.on_tool(r->base.sink.arg, r->n_tools - 1, NULL, NULL, arguments);
}

/* The arguments of a tool without arguments are not streamed: they become {}. */
static int on_block_stop(struct llm_reader *r, struct json_value root)
{
    bool is_bare = r->tool_block == json_int(json_get(root, "index")) && !r->has_arguments;

    if (r->tool_block < 0 || !is_bare)
        return 0;
    r->tool_block = -1;
    return r->base.sink.on_tool(r->base.sink.arg, r->n_tools - 1, NULL, NULL, SLICE_LIT("{}"));
}

static int on_message_delta(struct llm_reader *r, struct json_value root)
{
    note_message(r, json_get(root, "delta"));
    note_usage(r, json_get(root, "usage"));
    return 0;
}

static int end_answer(struct llm_reader *r)
{
    r->base.has_ended = true;
    return r->base.sink.on_end(r->base.sink.arg, r->why, r->has_usage ? &r->usage : NULL, r->model);
}

static int on_message_stop(struct llm_reader *r, struct json_value root)
{
    return end_answer(r);
}

static int on_error(struct llm_reader *r, struct json_value root)
{
    return wire_reported_error(json_get(root, "error"), r->base.e);
}

static const struct {
    const char *type;
    int (*take)(struct llm_reader *r, struct json_value root);
} events[] = {
    { "content_block_delta", on_block_delta },
    { "content_block_start", on_block_start },
    { "content_block_stop", on_block_stop },
    { "message_start", on_message_start },
    { "message_delta", on_message_delta },
    { "message_stop", on_message_stop },
    { "error", on_error },
};

static int on_data(struct llm_reader *r, struct slice data)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value root = { 0 };
    int result;

    result = wire_parse(scratch, data, &root, r->base.e);
    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(events); i++)
        if (is_type(root, events[i].type))
            return events[i].take(r, root);
    return result;
}

static int put_block(struct llm_reader *r, struct json_value block, struct arena *scratch)
{
    if (is_type(block, "text"))
        return wire_put(r->base.sink.on_text, r->base.sink.arg, json_get(block, "text"));
    if (is_type(block, "thinking"))
        return put_thought(r, block);
    if (is_type(block, "redacted_thinking"))
        return put_signature(r, true, json_get(block, "data"));
    if (!is_type(block, "tool_use"))
        return 0;
    return begin_tool(r, block, slice_of(json_to_str(scratch, json_get(block, "input"))));
}

static int on_whole(struct llm_reader *r, struct slice body, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value root = { 0 }, block;
    int result = wire_parse(scratch, body, &root, e);

    if (result < 0)
        return result;
    r->base.e = e;
    if (!json_is_absent(json_get(root, "error")))
        return wire_reported_error(json_get(root, "error"), e);
    if (json_type(json_get(root, "content")) != JSON_ARRAY)
        return wire_no_answer(e);
    note_message(r, root);
    for (struct json_iter it = json_iter(json_get(root, "content")); result == 0 && json_next(&it, NULL, &block);)
        result = put_block(r, block, scratch);
    return result < 0 ? result : end_answer(r);
}

static bool ends_in_pdf(struct slice text)
{
    return text.n > 4 && strncasecmp(text.p + text.n - 4, ".pdf", 4) == 0;
}

/* The service fetches only PDF files ("PDF support", URL-based documents). Files at other addresses are fetched here,
 * to find their type. */
static bool takes_address(const struct llm_block *block)
{
    return ends_in_pdf((struct slice){ block->url, strcspn(block->url, "?#") }) ||
           (block->file_name && ends_in_pdf(slice_of(block->file_name)));
}

static const struct wire_reading reading = {
    .size = sizeof(struct llm_reader),
    .on_data = on_data,
    .on_whole = on_whole,
};

static struct llm_reader *make_reader(struct arena *a, const struct llm_sink *sink)
{
    struct llm_reader *r = wire_reader_new(&reading, a, sink);

    r->tool_block = -1;
    return r;
}

static int models(const struct llm_account *acc, struct arena *a, struct http_call_request *ret, struct err *e)
{
    return wire_request(acc, "v1/models?limit=1000", NULL, a, ret, e);
}

static int on_models(struct slice body, struct arena *a, struct llm_models *ret, struct err *e)
{
    return wire_models(body, &(struct wire_list){ "data", "id", "display_name", "created_at" }, a, ret, e);
}

const struct llm_protocol llm_anthropic_messages = {
    .name = "anthropic-messages",
    .takes_address = takes_address,
    .header = { "anthropic-version", "2023-06-01" },
    .request = request,
    .reader = make_reader,
    .on_bytes = wire_on_bytes,
    .on_whole = on_whole,
    .on_close = wire_on_close,
    .models = models,
    .on_models = on_models,
};
