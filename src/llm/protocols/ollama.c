/* Ollama's own protocol (github.com/ollama/ollama, docs/api.md): one JSON value per line. */
#include "llm/protocols/wire.h"

#include "base/limits.h"
#include "base/uuid.h"
#include "llm/answer.h"
#include "net/line_reader.h"

#include <stdlib.h>
#include <string.h>

/* ---- request ---- */

/* Ollama accepts images only as data, and no files. */
static int check_blocks(const struct llm_request *request, struct err *e)
{
    for (size_t i = 0; i < request->n_messages; i++)
        for (size_t k = 0; k < request->messages[i].n_blocks; k++) {
            enum llm_block_kind kind = request->messages[i].blocks[k].kind;

            if (kind == LLM_BLOCK_IMAGE_URL)
                return err_set(e, -EINVAL, "UNSUPPORTED_CONTENT",
                               "Ollama fetches no images: send `messages[%zu]`'s image as a data URL.", i);
            if (kind == LLM_BLOCK_FILE_DATA || kind == LLM_BLOCK_FILE_URL)
                return err_set(e, -EINVAL, "UNSUPPORTED_CONTENT",
                               "Ollama reads text and images only: `messages[%zu]` holds another file.", i);
        }
    return 0;
}

static void add_images(struct json_writer *w, const struct llm_message *m)
{
    bool has_begun = false;

    for (size_t i = 0; i < m->n_blocks; i++) {
        if (m->blocks[i].kind != LLM_BLOCK_IMAGE_DATA)
            continue;
        if (!has_begun)
            json_begin_array_as(w, "images");
        has_begun = true;
        json_add_string(w, NULL, m->blocks[i].base64);
    }
    if (has_begun)
        json_end(w);
}

static void add_tool_calls(struct json_writer *w, const struct llm_message *m, struct arena *a)
{
    if (m->n_tool_calls == 0)
        return;
    json_begin_array_as(w, "tool_calls");
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        json_begin_object(w);
        json_begin_object_as(w, "function");
        json_add_string(w, "name", m->tool_calls[i].name);
        llm_write_arguments(w, "arguments", slice_of(m->tool_calls[i].arguments), a);
        json_end(w);
        json_end(w);
    }
    json_end(w);
}

/* Ollama has no tool_choice. For tool_choice "none" no tools are sent, so the model calls none. */
static bool wants_no_tool(const struct llm_request *request)
{
    return slice_eq_str(json_string(request->tool_choice), "none");
}

/* The calls of all messages by their ids, sorted. */
struct known_calls {
    const struct llm_tool_call **items;
    size_t n;
};

static int by_id(const void *one, const void *other)
{
    const struct llm_tool_call *a = *(const struct llm_tool_call *const *)one,
                               *b = *(const struct llm_tool_call *const *)other;

    return strcmp(a->id, b->id);
}

static struct known_calls sort_calls(const struct llm_request *request, struct arena *a)
{
    struct known_calls calls = { NULL, 0 };

    for (size_t i = 0; i < request->n_messages; i++)
        calls.n += request->messages[i].n_tool_calls;
    calls.items = arena_array(a, calls.n + 1, sizeof(struct llm_tool_call *));
    calls.n = 0;
    for (size_t i = 0; i < request->n_messages; i++)
        for (size_t k = 0; k < request->messages[i].n_tool_calls; k++)
            calls.items[calls.n++] = &request->messages[i].tool_calls[k];
    qsort(calls.items, calls.n, sizeof(struct llm_tool_call *), by_id);
    return calls;
}

/* Results are matched by the tool's name, not by an id. */
static const char *tool_name_of(const struct known_calls *calls, const char *id)
{
    const struct llm_tool_call wanted = { .id = id }, *key = &wanted;
    const struct llm_tool_call *const *found = id ? bsearch(&key, calls->items, calls->n, sizeof(key), by_id) : NULL;

    return found ? (*found)->name : NULL;
}

static void add_messages(struct json_writer *w, const struct llm_request *request, struct arena *a)
{
    const struct known_calls calls = sort_calls(request, a);

    json_begin_array_as(w, "messages");
    for (size_t i = 0; i < request->n_messages; i++) {
        const struct llm_message *m = &request->messages[i];
        const char *tool = m->role == LLM_TOOL ? tool_name_of(&calls, m->tool_call_id) : NULL;

        json_begin_object(w);
        json_add_string(w, "role", wire_role(m->role));
        json_add_string(w, "content", wire_result_text(a, m));
        if (m->reasoning)
            json_add_string(w, "thinking", m->reasoning);
        if (tool)
            json_add_string(w, "tool_name", tool);
        add_images(w, m);
        add_tool_calls(w, m, a);
        json_end(w);
    }
    json_end(w);
}

static void add_tools(struct json_writer *w, const struct llm_request *request)
{
    if (request->n_tools == 0 || wants_no_tool(request))
        return;
    json_begin_array_as(w, "tools");
    for (size_t i = 0; i < request->n_tools; i++) {
        json_begin_object(w);
        json_add_string(w, "type", "function");
        json_begin_object_as(w, "function");
        json_add_string(w, "name", request->tools[i].name);
        json_add_string(w, "description", request->tools[i].description ? request->tools[i].description : "");
        if (json_is_absent(request->tools[i].parameters))
            json_add_raw(w, "parameters", "{\"type\":\"object\",\"properties\":{}}");
        else
            json_add_value(w, "parameters", request->tools[i].parameters);
        json_end(w);
        json_end(w);
    }
    json_end(w);
}

/* Only gpt-oss supports degrees of thinking (github.com/ollama/ollama, issues 11752, 12561). */
static void add_think(struct json_writer *w, const struct llm_request *request)
{
    static const struct {
        const char *effort, *think;
    } degrees[] = {
        { "minimal", "low" }, { "low", "low" },    { "medium", "medium" },
        { "high", "high" },   { "xhigh", "high" }, { "max", "high" },
    };

    if (!json_is_absent(json_get(request->ollama, "think"))) {
        json_add_value(w, "think", json_get(request->ollama, "think"));
        return;
    }
    if (!request->effort)
        return;
    for (size_t i = 0; strncmp(request->model, "gpt-oss", 7) == 0 && i < ARRAY_SIZE(degrees); i++)
        if (strcmp(degrees[i].effort, request->effort) == 0) {
            json_add_string(w, "think", degrees[i].think);
            return;
        }
    json_add_bool(w, "think", strcmp(request->effort, "none") != 0);
}

/* Adds further options for sampling and context, from callers that use Ollama's protocol. Options for loading a model
 * are left out: they are the decision of Ollama's owner. */
static void add_own_options(struct json_writer *w, const struct llm_request *request)
{
    static const char *const names[] = { "seed",
                                         "top_k",
                                         "min_p",
                                         "typical_p",
                                         "tfs_z",
                                         "repeat_last_n",
                                         "repeat_penalty",
                                         "presence_penalty",
                                         "frequency_penalty",
                                         "mirostat",
                                         "mirostat_tau",
                                         "mirostat_eta",
                                         "num_ctx",
                                         "num_keep" };
    struct json_value options = json_get(request->ollama, "options");

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct json_value value = json_get(options, names[i]);

        if (json_type(value) == JSON_INT || json_type(value) == JSON_DOUBLE)
            json_add_value(w, names[i], value);
    }
}

static int request(const struct llm_account *acc, const struct llm_request *request, struct arena *a,
                   struct http_call_request *ret, struct err *e)
{
    struct wire_body body;
    struct json_writer *w = &body.json;
    int r = check_blocks(request, e);

    if (r < 0)
        return r;
    wire_body_begin(&body);
    json_add_string(w, "model", request->model);
    add_messages(w, request, body.scratch);
    json_add_bool(w, "stream", request->is_streamed);
    json_begin_object_as(w, "options");
    if (request->temperature >= 0)
        json_add_double(w, "temperature", request->temperature);
    wire_add_sampling(w, request, "num_predict");
    if (request->stop.n > 0)
        json_add_strings(w, "stop", request->stop.items, request->stop.n);
    add_own_options(w, request);
    json_end(w);
    add_tools(w, request);
    add_think(w, request);
    if (request->format == LLM_FORMAT_JSON)
        json_add_string(w, "format", "json");
    if (request->format == LLM_FORMAT_SCHEMA)
        json_add_value(w, "format", request->schema);
    return wire_request(acc, "api/chat", &body, a, ret, e);
}

/* ---- answer ---- */

struct llm_reader {
    struct wire_reader base;
    size_t n_tools;
};

static int put_tool(struct llm_reader *r, struct json_value call, struct arena *scratch)
{
    struct json_value function = json_get(call, "function"), arguments = json_get(function, "arguments");
    const char *id = json_cstr(json_get(call, "id"));
    struct slice text =
        json_type(arguments) == JSON_STRING ? json_string(arguments) : slice_of(json_to_str(scratch, arguments));
    char own[UUID_SIZE];

    if (r->n_tools == LIMIT_TOOL_CALLS)
        return wire_no_answer(r->base.e);
    uuid_v4(own);
    if (json_is_absent(arguments))
        text = SLICE_LIT("{}");
    return r->base.sink.on_tool(r->base.sink.arg, r->n_tools++, id && *id ? id : arena_printf(scratch, "call_%s", own),
                                json_cstr(json_get(function, "name")), text);
}

static int put_message(struct llm_reader *r, struct json_value message, struct arena *scratch)
{
    struct json_iter calls = json_iter(json_get(message, "tool_calls"));
    struct json_value call;
    int result = wire_put(r->base.sink.on_reasoning, r->base.sink.arg, json_get(message, "thinking"));

    if (result == 0)
        result = wire_put(r->base.sink.on_text, r->base.sink.arg, json_get(message, "content"));
    while (result == 0 && json_next(&calls, NULL, &call))
        result = put_tool(r, call, scratch);
    return result;
}

static int end_answer(struct llm_reader *r, struct json_value root)
{
    struct json_value prompt = json_get(root, "prompt_eval_count"), completion = json_get(root, "eval_count");
    /* Ollama does not count a prompt that was in its cache: the prompt's count is then missing */
    const struct llm_usage usage = { .prompt_tokens = wire_tokens(prompt, -1),
                                     .completion_tokens = wire_tokens(completion, -1) };
    bool is_cut = slice_eq_str(json_string(json_get(root, "done_reason")), "length");
    bool has_usage = !json_is_absent(prompt) || !json_is_absent(completion);

    r->base.has_ended = true;
    return r->base.sink.on_end(r->base.sink.arg,
                               is_cut           ? LLM_FINISH_LENGTH
                               : r->n_tools > 0 ? LLM_FINISH_TOOLS
                                                : LLM_FINISH_STOP,
                               has_usage ? &usage : NULL, json_cstr(json_get(root, "model")));
}

static int take(struct llm_reader *r, struct slice text, bool is_whole)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value root = { 0 };
    int result = wire_parse(scratch, text, &root, r->base.e);

    if (result < 0)
        return result;
    if (!json_is_absent(json_get(root, "error")))
        return wire_reported_error(json_get(root, "error"), r->base.e);
    if (is_whole && json_type(json_get(root, "message")) != JSON_OBJECT)
        return wire_no_answer(r->base.e);
    result = put_message(r, json_get(root, "message"), scratch);
    if (result == 0 && (is_whole || json_bool(json_get(root, "done"))))
        result = end_answer(r, root);
    return result;
}

static int on_data(struct llm_reader *r, struct slice line)
{
    return take(r, line, false);
}

static int on_whole(struct llm_reader *r, struct slice body, struct err *e)
{
    r->base.e = e;
    return take(r, body, true);
}

static const struct wire_reading reading = {
    .size = sizeof(struct llm_reader),
    .is_lines = true,
    .on_data = on_data,
    .on_whole = on_whole,
};

static struct llm_reader *make_reader(struct arena *a, const struct llm_sink *sink)
{
    return wire_reader_new(&reading, a, sink);
}

static int models(const struct llm_account *acc, struct arena *a, struct http_call_request *ret, struct err *e)
{
    return wire_request(acc, "api/tags", NULL, a, ret, e);
}

static int on_models(struct slice body, struct arena *a, struct llm_models *ret, struct err *e)
{
    return wire_models(body, &(struct wire_list){ "models", "name", "name", "modified_at" }, a, ret, e);
}

const struct llm_protocol llm_ollama = {
    .name = "ollama",
    .has_json_object = true,
    .has_json_schema = true,
    .default_port = 11434,
    .request = request,
    .reader = make_reader,
    .on_bytes = wire_on_bytes,
    .on_whole = on_whole,
    .on_close = wire_on_close,
    .models = models,
    .on_models = on_models,
};
