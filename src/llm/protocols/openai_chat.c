/* OpenAI chat completions (platform.openai.com/docs/api-reference/chat), and the many services with this protocol. */
#include "llm/file.h"
#include "llm/protocols/wire.h"

#include "base/limits.h"
#include "base/uuid.h"

#include <string.h>

/* ---- request ---- */

static void add_block(struct json_writer *w, const struct llm_block *block, struct arena *a)
{
    bool is_file = block->kind == LLM_BLOCK_FILE_DATA;

    json_begin_object(w);
    if (block->kind == LLM_BLOCK_TEXT) {
        json_add_string(w, "type", "text");
        json_add_string(w, "text", block->text);
    } else {
        json_add_string(w, "type", is_file ? "file" : "image_url");
        json_begin_object_as(w, is_file ? "file" : "image_url");
        if (is_file)
            json_add_string(w, "filename", llm_file_name(a, block));
        json_add_string(w, is_file ? "file_data" : "url",
                        block->kind == LLM_BLOCK_IMAGE_URL ? block->url : wire_data_url(a, block));
        if (block->detail)
            json_add_string(w, "detail", block->detail);
        json_end(w);
    }
    json_end(w);
}

static void add_content(struct json_writer *w, const struct llm_message *m, struct arena *a)
{
    if (m->n_blocks == 0 && m->n_tool_calls > 0) {
        json_add_null(w, "content");
        return;
    }
    if (wire_is_plain(m) || m->role == LLM_TOOL || m->role == LLM_SYSTEM) {
        json_add_string(w, "content", wire_result_text(a, m));
        return;
    }
    json_begin_array_as(w, "content");
    for (size_t i = 0; i < m->n_blocks; i++)
        add_block(w, &m->blocks[i], a);
    json_end(w);
}

/* Gemini 3 refuses calls without the signature of the thought that led to them (ai.google.dev, "Thought signatures",
 * OpenAI compatibility: the signature is in extra_content.google.thought_signature of the first call). For a history
 * without signatures, "skip_thought_signature_validator" is the documented value. */
static void add_extra(struct json_writer *w, const struct llm_account *acc, const struct llm_tool_call *call)
{
    bool wants_signature = acc->preset->quirks & LLM_QUIRK_THOUGHT_SIGNATURES;

    if (call->extra && (wants_signature || acc->preset->quirks & LLM_QUIRK_EXTRAS))
        json_add_raw(w, "extra_content", call->extra);
    else if (wants_signature)
        json_add_raw(w, "extra_content", "{\"google\":{\"thought_signature\":\"skip_thought_signature_validator\"}}");
}

static void add_tool_calls(struct json_writer *w, const struct llm_account *acc, const struct llm_message *m,
                           struct arena *a)
{
    json_begin_array_as(w, "tool_calls");
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        json_begin_object(w);
        json_add_string(w, "id", wire_tool_id(a, acc, m->tool_calls[i].id));
        json_add_string(w, "type", "function");
        json_begin_object_as(w, "function");
        json_add_string(w, "name", m->tool_calls[i].name);
        json_add_string(w, "arguments", m->tool_calls[i].arguments);
        json_end(w);
        add_extra(w, acc, &m->tool_calls[i]);
        json_end(w);
    }
    json_end(w);
}

static void add_messages(struct json_writer *w, const struct llm_account *acc, const struct llm_request *request,
                         struct arena *a)
{
    json_begin_array_as(w, "messages");
    for (size_t i = 0; i < request->n_messages; i++) {
        const struct llm_message *m = &request->messages[i];

        json_begin_object(w);
        json_add_string(w, "role", wire_role(m->role));
        add_content(w, m, a);
        if (m->name && !(acc->preset->quirks & LLM_QUIRK_NO_NAMES))
            json_add_string(w, "name", m->name);
        if (m->tool_call_id)
            json_add_string(w, "tool_call_id", wire_tool_id(a, acc, m->tool_call_id));
        if (m->n_tool_calls > 0)
            add_tool_calls(w, acc, m, a);
        if (m->n_tool_calls > 0 &&
            acc->preset->quirks & LLM_QUIRK_THOUGHTS_BACK) /* DeepSeek and Kimi refuse calls without this member */
            json_add_string(w, "reasoning_content", m->reasoning ? m->reasoning : "");
        json_end(w);
    }
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
        json_begin_object_as(w, "function");
        json_add_string(w, "name", tool->name);
        if (tool->description)
            json_add_string(w, "description", tool->description);
        if (!json_is_absent(tool->parameters))
            json_add_value(w, "parameters", tool->parameters);
        if (tool->is_strict)
            json_add_bool(w, "strict", true);
        json_end(w);
        json_end(w);
    }
    json_end(w);
    if (!json_is_absent(request->tool_choice))
        json_add_value(w, "tool_choice", request->tool_choice);
}

static void add_format(struct json_writer *w, const struct llm_request *request)
{
    if (request->format == LLM_FORMAT_TEXT)
        return;
    json_begin_object_as(w, "response_format");
    json_add_string(w, "type", request->format == LLM_FORMAT_JSON ? "json_object" : "json_schema");
    if (request->format == LLM_FORMAT_SCHEMA) {
        json_begin_object_as(w, "json_schema");
        json_add_string(w, "name", request->schema_name);
        json_add_value(w, "schema", request->schema);
        json_add_bool(w, "strict", request->is_schema_strict);
        json_end(w);
    }
    json_end(w);
}

static void add_settings(struct json_writer *w, const struct llm_account *acc, const struct llm_request *request)
{
    unsigned quirks = acc->preset->quirks;
    bool is_reasoning = llm_model_is_reasoning(request->model);
    bool has_new_name = quirks & LLM_QUIRK_MAX_COMPLETION_TOKENS || is_reasoning;

    if (!(quirks & LLM_QUIRK_NO_TEMPERATURE) && !is_reasoning && request->temperature >= 0 &&
        (request->has_temperature || !(quirks & LLM_QUIRK_OWN_TEMPERATURE)))
        json_add_double(w, "temperature", request->temperature);
    wire_add_sampling(w, request, has_new_name ? "max_completion_tokens" : "max_tokens");
    if (request->stop.n > 0)
        json_add_strings(w, "stop", request->stop.items, request->stop.n);
    if (request->effort)
        json_add_string(w, "reasoning_effort", request->effort);
    json_add_bool(w, "stream", request->is_streamed);
    if (request->is_streamed && !(quirks & LLM_QUIRK_NO_STREAM_USAGE)) {
        json_begin_object_as(w, "stream_options");
        json_add_bool(w, "include_usage", true);
        json_end(w);
    }
}

static int request(const struct llm_account *acc, const struct llm_request *request, struct arena *a,
                   struct http_call_request *ret, struct err *e)
{
    struct wire_body body;
    int r = wire_check_addresses(acc, request, e);

    if (r == 0)
        r = wire_check_tool_results(request, e);
    if (r < 0)
        return r;
    wire_body_begin(&body);
    json_add_string(&body.json, "model", request->model);
    add_messages(&body.json, acc, request, body.scratch);
    add_settings(&body.json, acc, request);
    add_tools(&body.json, request);
    add_format(&body.json, request);
    return wire_request(acc, "chat/completions", &body, a, ret, e);
}

/* ---- answer ---- */

/* A tool call that has begun. A further part belongs to the call by index or by id; a part without both belongs to the
 * last call. */
struct chat_call {
    int64_t index;
    const char *id;
    bool has_name;
};

struct llm_reader {
    struct wire_reader base;
    struct arena *arena, *scratch; /* borrowed: the reader's arena and the present chunk's arena */
    struct llm_usage usage;
    struct chat_call *calls;
    size_t n_calls; /* calls is in the arena; NULL before the first call */
    enum llm_finish why;
    bool has_usage, has_finished;
    const char *model;
};

static int end_answer(struct llm_reader *r)
{
    if (r->base.has_ended)
        return 0;
    r->base.has_ended = true;
    if (r->why == LLM_FINISH_STOP && r->n_calls > 0) /* Gemini and others report "stop" for tool calls */
        r->why = LLM_FINISH_TOOLS;
    return r->base.sink.on_end(r->base.sink.arg, r->why, r->has_usage ? &r->usage : NULL, r->model);
}

enum { FINISH_ERROR = -1 };

static int finish_of(const char *reason)
{
    static const struct {
        const char *reason;
        int why;
    } reasons[] = {
        { "length", LLM_FINISH_LENGTH },
        { "max_tokens", LLM_FINISH_LENGTH },
        { "model_length", LLM_FINISH_LENGTH },
        { "tool_calls", LLM_FINISH_TOOLS },
        { "function_call", LLM_FINISH_TOOLS },
        { "content_filter", LLM_FINISH_FILTER },
        { "safety", LLM_FINISH_FILTER },
        { "sensitive", LLM_FINISH_FILTER },
        { "error", FINISH_ERROR },
        { "network_error", FINISH_ERROR },
        { "insufficient_system_resource", FINISH_ERROR },
    };

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (strcasecmp(reason, reasons[i].reason) == 0)
            return reasons[i].why;
    return LLM_FINISH_STOP;
}

/* Some services send the content as a list of parts, which may be thoughts. */
static int put_parts(struct llm_reader *r, struct json_value parts, bool is_thought)
{
    struct json_value part;
    int result = 0;

    for (struct json_iter it = json_iter(parts); result == 0 && json_next(&it, NULL, &part);) {
        struct json_value thinking = json_get(part, "thinking");

        if (json_type(thinking) == JSON_ARRAY)
            result = put_parts(r, thinking, true);
        else
            result = wire_put(is_thought ? r->base.sink.on_reasoning : r->base.sink.on_text, r->base.sink.arg,
                              json_get(part, "text"));
    }
    return result;
}

static struct chat_call *find_call(struct llm_reader *r, struct json_value index, const char *id)
{
    bool has_index = json_type(index) == JSON_INT;

    for (size_t i = r->n_calls; i-- > 0;) {
        struct chat_call *call = &r->calls[i];

        if (has_index ? call->index == json_int(index) : !*id || strcmp(call->id, id) == 0)
            return call;
    }
    return NULL;
}

static struct chat_call *begin_call(struct llm_reader *r, struct json_value index, const char *id)
{
    char own[UUID_SIZE];
    struct chat_call *call;

    if (!r->calls)
        r->calls = arena_array(r->base.arena, LIMIT_TOOL_CALLS + 1, sizeof(*r->calls));
    if (r->n_calls > LIMIT_TOOL_CALLS)
        return &r->calls[LIMIT_TOOL_CALLS]; /* the sink refuses this call */
    call = &r->calls[r->n_calls++];
    uuid_v4(own);
    *call =
        (struct chat_call){ .index = json_type(index) == JSON_INT ? json_int(index) : -1,
                            .id = *id ? arena_strdup(r->base.arena, id) : arena_printf(r->base.arena, "call_%s", own) };
    return call;
}

/* Does this part begin another call? A name with another id does. Gemini sends no index, or index 0 for each of several
 * calls; other services send no id. */
static bool is_other_call(const struct chat_call *known, struct json_value index, const char *id, const char *name)
{
    if (!known)
        return true;
    return *name && (*id ? strcmp(known->id, id) != 0 : json_type(index) != JSON_INT);
}

static int put_tool(struct llm_reader *r, struct json_value call)
{
    struct json_value function = json_get(call, "function"), index = json_get(call, "index"),
                      arguments = json_get(function, "arguments");
    struct json_value extra = json_get(call, "extra_content");
    const char *id_received = json_cstr(json_get(call, "id")), *name_received = json_cstr(json_get(function, "name"));
    const char *id = id_received ? id_received : "", *name = name_received ? name_received : "";
    struct slice text =
        json_type(arguments) == JSON_OBJECT ? slice_of(json_to_str(r->scratch, arguments)) : json_string(arguments);
    struct chat_call *known = find_call(r, index, id);
    bool is_new = is_other_call(known, index, id, name);
    int result;

    if (is_new && !*name && !*id && text.n == 0) /* a thought's signature alone */
        return 0;
    if (strlen(id) > LIMIT_TOOL_ID_BYTES)
        return wire_no_answer(r->base.e);
    if (is_new)
        known = begin_call(r, index, id);
    name = *name && !known->has_name ? name : NULL;
    known->has_name = known->has_name || name;
    result = r->base.sink.on_tool(r->base.sink.arg, (size_t)(known - r->calls), is_new ? known->id : NULL, name, text);
    if (result == 0 && json_type(extra) == JSON_OBJECT)
        result = r->base.sink.on_extra(r->base.sink.arg, (size_t)(known - r->calls),
                                       slice_of(json_to_str(r->scratch, extra)));
    return result;
}

/* Takes the delta of a stream or the message of a whole answer: both have the same members. */
static int put_message(struct llm_reader *r, struct json_value message)
{
    struct json_value content = json_get(message, "content"), reasoning = json_get(message, "reasoning_content"), call;
    struct json_iter calls = json_iter(json_get(message, "tool_calls"));
    int result;

    if (json_is_absent(reasoning))
        reasoning = json_get(message, "reasoning");
    result = wire_put(r->base.sink.on_reasoning, r->base.sink.arg, reasoning);
    if (result == 0)
        result = json_type(content) == JSON_ARRAY ? put_parts(r, content, false)
                                                  : wire_put(r->base.sink.on_text, r->base.sink.arg, content);
    if (result == 0)
        result = wire_put(r->base.sink.on_text, r->base.sink.arg, json_get(message, "refusal"));
    while (result == 0 && json_next(&calls, NULL, &call))
        result = put_tool(r, call);
    return result;
}

static void note_usage(struct llm_reader *r, struct json_value root)
{
    struct json_value usage = json_get(root, "usage");

    if (json_type(usage) != JSON_OBJECT)
        usage = json_get(json_get(root, "x_groq"), "usage");
    if (json_type(usage) != JSON_OBJECT)
        return;
    r->usage = (struct llm_usage){ .prompt_tokens = wire_tokens(json_get(usage, "prompt_tokens"), 0),
                                   .completion_tokens = wire_tokens(json_get(usage, "completion_tokens"), 0) };
    r->has_usage = true;
}

/* An error is sent instead of the answer, in the choice (by OpenRouter), or only as the finish reason. */
static int check_error(struct llm_reader *r, struct json_value root, struct json_value choice)
{
    struct json_value error = json_get(root, "error"), inner = json_get(choice, "error");
    const char *reason = json_cstr(json_get(choice, "finish_reason"));

    if (slice_eq_str(json_string(json_get(root, "object")), "error"))
        error = root;
    if (json_is_absent(error))
        error = inner;
    if (json_is_absent(error) && !(reason && finish_of(reason) == FINISH_ERROR))
        return 0;
    return wire_reported_error(error, r->base.e);
}

static void note_rest(struct llm_reader *r, struct json_value root, struct json_value choice)
{
    const char *reason = json_cstr(json_get(choice, "finish_reason")), *model = json_cstr(json_get(root, "model"));

    note_usage(r, root);
    if (reason && *reason) {
        r->why = (enum llm_finish)finish_of(reason);
        r->has_finished = true;
    }
    if (model && *model && !r->model && strlen(model) <= LIMIT_MODEL_BYTES)
        r->model = arena_strdup(r->base.arena, model);
}

static struct json_value first_of(struct json_value list)
{
    struct json_iter it = json_iter(list);
    struct json_value item = { 0 };

    return json_type(list) == JSON_ARRAY && json_next(&it, NULL, &item) ? item : (struct json_value){ 0 };
}

static int take_chunk(struct llm_reader *r, struct slice text)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value root = { 0 }, choice;
    int result = wire_parse(scratch, text, &root, r->base.e);

    if (result < 0)
        return result;
    choice = first_of(json_get(root, "choices"));
    result = check_error(r, root, choice);
    if (result < 0)
        return result;
    note_rest(r, root, choice);
    r->scratch = scratch;
    return put_message(r, json_get(choice, "delta"));
}

static int on_data(struct llm_reader *r, struct slice data)
{
    return slice_eq_str(data, "[DONE]") ? end_answer(r) : take_chunk(r, data);
}

static int on_whole(struct llm_reader *r, struct slice body, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value root = { 0 }, choice;
    int result = wire_parse(scratch, body, &root, e);

    if (result < 0)
        return result;
    r->base.e = e;
    choice = first_of(json_get(root, "choices"));
    result = check_error(r, root, choice);
    if (result < 0)
        return result;
    if (json_type(json_get(choice, "message")) != JSON_OBJECT)
        return wire_no_answer(e);
    note_rest(r, root, choice);
    r->scratch = scratch;
    result = put_message(r, json_get(choice, "message"));
    return result < 0 ? result : end_answer(r);
}

/* Some services never send [DONE]: the answer is complete if it had a finish reason. */
static int on_last(struct llm_reader *r)
{
    return r->has_finished ? end_answer(r) : wire_too_early(r->base.e);
}

static const struct wire_reading reading = {
    .size = sizeof(struct llm_reader),
    .on_data = on_data,
    .on_whole = on_whole,
    .on_last = on_last,
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

const struct llm_protocol llm_openai_chat = {
    .name = "openai-chat",
    .has_json_object = true,
    .has_json_schema = true,
    .stops = LLM_STOPS_NOT_REASONING,
    .version_path = "/v1",
    .request = request,
    .reader = make_reader,
    .on_bytes = wire_on_bytes,
    .on_whole = on_whole,
    .on_close = wire_on_close,
    .models = models,
    .on_models = on_models,
};
