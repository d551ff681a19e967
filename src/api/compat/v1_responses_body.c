#include "api/compat/v1_responses_body.h"

#include "base/limits.h"
#include "llm/format.h"

#include <string.h>

enum {
    PATH_SIZE = sizeof(((struct err_field *)0)->field),
    MOST_METADATA = 16,
    METADATA_NAME_CHARS = 64,
    METADATA_CHARS = 512
};

/* ---- the table ---- */

struct tool_body {
    const char *type, *name, *description;
    struct json_value parameters;
    bool is_strict;
};

static const char *const formats[] = { "text", "json_object", "json_schema", NULL };

static const struct field tool_fields[] = {
    FIELD_STRING(struct tool_body, type, "type", FIELD_REQUIRED, .help = "function"),
    FIELD_STRING(struct tool_body, name, "name", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct tool_body, description, "description"),
    FIELD_OBJECT(struct tool_body, parameters, "parameters", .help = "a JSON Schema"),
    FIELD_BOOL(struct tool_body, is_strict, "strict"),
    FIELD_END,
};

static const struct field format_fields[] = {
    FIELD_STRING(struct v1_format_body, type, "type", .one_of = formats, .def_str = "text"),
    FIELD_STRING(struct v1_format_body, name, "name", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct v1_format_body, description, "description"),
    FIELD_OBJECT(struct v1_format_body, schema, "schema", .help = "a JSON Schema"),
    FIELD_BOOL(struct v1_format_body, is_strict, "strict",
               .present_offset = offsetof(struct v1_format_body, says_strict)),
    FIELD_END,
};

static const struct field text_fields[] = { FIELD_STRUCT(struct v1_text_body, format, "format", format_fields),
                                            FIELD_END };

static const struct field reasoning_fields[] = {
    FIELD_STRING(struct v1_reasoning_body, effort, "effort", .max = LIMIT_NAME_CHARS,
                 .help = "none, minimal, low, medium, high, ..."),
    FIELD_END,
};

const struct field v1_responses_fields[] = {
    FIELD_STRING(struct v1_responses_body, model, "model", .max = 256,
                 .help = "see GET /v1/models; absent or `default`: the default model"),
    FIELD_ANY(
        struct v1_responses_body, input, "input", FIELD_REQUIRED,
        .help =
            "a text, or an array of items: message, function_call, function_call_output, reasoning, item_reference"),
    FIELD_STRING(struct v1_responses_body, instructions, "instructions", .max = LIMIT_BODY_CHAT),
    FIELD_STRING(struct v1_responses_body, previous_response_id, "previous_response_id", .max = LIMIT_NAME_CHARS,
                 .help = "the answer that this one continues; kept as long as llm.responses_keep_s says"),
    FIELD_LIST(struct v1_responses_body, tools, "tools", tool_fields, struct tool_body, .max = LIMIT_TOOLS),
    FIELD_ANY(struct v1_responses_body, tool_choice, "tool_choice",
              .help = "auto, none, required, or {type: function, name}"),
    FIELD_INT(struct v1_responses_body, max_output_tokens, "max_output_tokens", .min = 1, .max = 1 << 24),
    FIELD_DOUBLE(struct v1_responses_body, temperature, "temperature", .max = 2,
                 .present_offset = offsetof(struct v1_responses_body, has_temperature)),
    FIELD_DOUBLE(struct v1_responses_body, top_p, "top_p", .max = 1,
                 .present_offset = offsetof(struct v1_responses_body, has_top_p)),
    FIELD_STRUCT(struct v1_responses_body, text, "text", text_fields),
    FIELD_STRUCT(struct v1_responses_body, reasoning, "reasoning", reasoning_fields),
    FIELD_STRING_MAP(struct v1_responses_body, metadata, "metadata", .help = "up to 16 texts, given back as they are"),
    FIELD_BOOL(struct v1_responses_body, store, "store", .def = 1, .help = "false: cannot be continued by its id"),
    FIELD_BOOL(struct v1_responses_body, is_streamed, "stream"),
    FIELD_BOOL(struct v1_responses_body, is_background, "background", .help = "only false"),
    FIELD_ANY(struct v1_responses_body, conversation, "conversation", .help = "not taken"),
    FIELD_ANY(struct v1_responses_body, prompt, "prompt", .help = "not taken"),
    FIELD_END,
};

/* ---- rules that a table cannot express ---- */

static int read_tools(const struct field_list *from, struct arena *a, struct llm_request *ret, struct err *e)
{
    struct llm_tool *tools = arena_array(a, from->n + 1, sizeof(*tools));
    const struct tool_body *items = from->items;
    char path[PATH_SIZE];
    int r = 0;

    for (size_t i = 0; i < from->n; i++) {
        bool is_function = strcmp(items[i].type, "function") == 0;

        snprintf(path, sizeof(path), "tools[%zu].%s", i, is_function ? "name" : "type");
        if (!is_function)
            r = err_add_field(e, path, "must be function: tools that a provider runs itself are not offered");
        else if (!items[i].name || !*items[i].name)
            r = err_add_field(e, path, "is required");
        tools[i] = (struct llm_tool){ items[i].name, items[i].description, items[i].parameters, items[i].is_strict };
    }
    ret->tools = tools;
    ret->n_tools = from->n;
    return r;
}

/* The neutral request uses the form of chat completions: one level deeper. */
static int read_chosen(const char *name, struct arena *a, struct llm_request *ret, struct err *e)
{
    struct json_writer w;
    struct buf text;
    int r;

    buf_init(&text, LIMIT_STRING_DEFAULT * 8);
    json_write_init(&w, &text);
    json_begin_object(&w);
    json_add_string(&w, "type", "function");
    json_begin_object_as(&w, "function");
    json_add_string(&w, "name", name);
    json_end(&w);
    json_end(&w);
    r = json_parse(a, buf_slice(&text), &ret->tool_choice, e);
    buf_clear(&text);
    return r;
}

static int read_tool_choice(struct json_value choice, struct arena *a, struct llm_request *ret, struct err *e)
{
    static const char *const words[] = { "auto", "none", "required" };
    const char *word = json_cstr(choice), *name = json_cstr(json_get(choice, "name"));

    if (json_is_absent(choice))
        return 0;
    if (slice_eq_str(json_string(json_get(choice, "type")), "function") && name && *name &&
        strlen(name) <= LIMIT_TOOL_ID_BYTES)
        return read_chosen(name, a, ret, e);
    ret->tool_choice = choice;
    for (size_t i = 0; word && i < ARRAY_SIZE(words); i++)
        if (strcmp(words[i], word) == 0)
            return 0;
    return err_add_field(e, "tool_choice", "must be auto, none, required, or an object of type function with a name");
}

static int read_format(const struct v1_format_body *format, struct llm_request *ret, struct err *e)
{
    if (!format->type || strcmp(format->type, "text") == 0)
        return 0;
    ret->format = strcmp(format->type, "json_object") == 0 ? LLM_FORMAT_JSON : LLM_FORMAT_SCHEMA;
    if (ret->format == LLM_FORMAT_JSON)
        return 0;
    ret->schema = format->schema;
    ret->schema_name = format->name && *format->name ? format->name : "answer";
    ret->is_schema_strict = format->says_strict ? format->is_strict : llm_format_is_strict(format->schema);
    return json_type(format->schema) == JSON_OBJECT
               ? 0
               : err_add_field(e, "text.format.schema", "must be a JSON Schema object");
}

static int check_metadata(struct json_value metadata, struct err *e)
{
    struct json_value value;
    struct slice name;

    if (json_length(metadata) > MOST_METADATA)
        return err_add_field(e, "metadata", "must have at most %d members", MOST_METADATA);
    for (struct json_iter it = json_iter(metadata);
         json_type(metadata) == JSON_OBJECT && json_next(&it, &name, &value);)
        if (name.n > METADATA_NAME_CHARS || json_string(value).n > METADATA_CHARS)
            return err_add_field(e, "metadata", "must have names of at most %d bytes and texts of at most %d",
                                 METADATA_NAME_CHARS, METADATA_CHARS);
    return 0;
}

/* Unsupported functions are refused, so that no client believes they were performed. */
static int check_refused(const struct v1_responses_body *body, struct err *e)
{
    int r = 0;

    if (body->is_background)
        r = err_add_field(e, "background", "must be false: answers are not made in the background");
    if (!json_is_absent(body->conversation))
        r = err_add_field(e, "conversation", "is not taken: continue with previous_response_id");
    if (!json_is_absent(body->prompt))
        r = err_add_field(e, "prompt", "is not taken: there are no stored prompts; use instructions and input");
    return r;
}

static int worse(int r, int r_more)
{
    return r_more < 0 && (r == 0 || r_more != -EINVAL) ? r_more : r;
}

int v1_responses_request(const struct v1_responses_body *body, const struct v1_items *before, struct arena *a,
                         struct llm_request *ret, struct err *e)
{
    struct llm_request request = {
        .model = body->model && *body->model ? body->model : NULL,
        .max_tokens = body->max_output_tokens,
        .temperature = body->has_temperature ? body->temperature : -1,
        .has_temperature = body->has_temperature,
        .top_p = body->top_p,
        .has_top_p = body->has_top_p,
        .effort = body->reasoning.effort && *body->reasoning.effort ? body->reasoning.effort : NULL,
    };
    int r = v1_items_read(body->input, body->instructions, before, a, &request, e);

    r = worse(r, read_tools(&body->tools, a, &request, e));
    r = worse(r, read_tool_choice(body->tool_choice, a, &request, e));
    r = worse(r, read_format(&body->text.format, &request, e));
    r = worse(r, check_metadata(body->metadata, e));
    r = worse(r, check_refused(body, e));
    if (r == 0)
        *ret = request;
    return r;
}
