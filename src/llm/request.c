#include "llm/request.h"

#include "base/limits.h"
#include "llm/file.h"
#include "llm/format.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = sizeof(((struct err_field *)0)->field), MOST_STOPS = 16 };

/* ---- the tables ---- */

struct function_body {
    const char *name, *arguments;
};
struct call_body {
    const char *id;
    struct function_body function;
    struct json_value extra;
};
struct thought_body {
    const char *type, *thinking, *signature, *data;
};

static const char *const roles[] = { "system", "user", "assistant", "tool", "developer", NULL };

static const struct field function_fields[] = {
    FIELD_STRING(struct function_body, name, "name", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct function_body, arguments, "arguments", .max = LIMIT_BODY_CHAT, .def_str = "{}",
                 .help = "JSON text"),
    FIELD_END,
};

static const struct field call_fields[] = {
    FIELD_STRING(struct call_body, id, "id", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_STRUCT(struct call_body, function, "function", function_fields, FIELD_REQUIRED),
    FIELD_OBJECT(struct call_body, extra, "extra_content", .help = "as an answer told it"),
    FIELD_END,
};

static const struct field thought_fields[] = {
    FIELD_STRING(struct thought_body, type, "type", FIELD_REQUIRED),
    FIELD_STRING(struct thought_body, thinking, "thinking", .max = LIMIT_BODY_CHAT),
    FIELD_STRING(struct thought_body, signature, "signature", .max = LIMIT_BODY_CHAT),
    FIELD_STRING(struct thought_body, data, "data", .max = LIMIT_BODY_CHAT),
    FIELD_END,
};

const struct field llm_message_fields[] = {
    FIELD_STRING(struct llm_message_body, role, "role", FIELD_REQUIRED, .one_of = roles),
    FIELD_ANY(struct llm_message_body, content, "content",
              .help = "text, or an array of blocks: text, image_url, input_file"),
    FIELD_STRING(struct llm_message_body, name, "name", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct llm_message_body, tool_call_id, "tool_call_id", .max = LIMIT_NAME_CHARS),
    FIELD_BOOL(struct llm_message_body, is_error, "is_error", .help = "of a message of the role tool: the tool failed"),
    FIELD_STRING(struct llm_message_body, reasoning, "reasoning", .max = LIMIT_BODY_CHAT,
                 .help = "the assistant's thoughts, as an answer told them"),
    FIELD_STRING(struct llm_message_body, reasoning_content, "reasoning_content", .max = LIMIT_BODY_CHAT,
                 .help = "another name of reasoning"),
    FIELD_LIST(struct llm_message_body, tool_calls, "tool_calls", call_fields, struct call_body,
               .max = LIMIT_TOOL_CALLS),
    FIELD_LIST(struct llm_message_body, thinking_blocks, "thinking_blocks", thought_fields, struct thought_body,
               .max = LIMIT_BLOCKS, .help = "as an answer told them"),
    FIELD_END,
};

static const struct field tool_function_fields[] = {
    FIELD_STRING(struct llm_tool_function_body, name, "name", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct llm_tool_function_body, description, "description"),
    FIELD_OBJECT(struct llm_tool_function_body, parameters, "parameters", .help = "a JSON Schema"),
    FIELD_BOOL(struct llm_tool_function_body, is_strict, "strict"),
    FIELD_END,
};

const struct field llm_tool_fields[] = {
    FIELD_STRUCT(struct llm_tool_body, function, "function", tool_function_fields, FIELD_REQUIRED),
    FIELD_END,
};

const struct field llm_request_fields[] = {
    FIELD_LIST(struct llm_request_body, messages, "messages", llm_message_fields, struct llm_message_body,
               FIELD_REQUIRED, .min = 1, .max = LIMIT_MESSAGES),
    FIELD_STRING(struct llm_request_body, provider, "provider", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct llm_request_body, model, "model", .max = 256),
    FIELD_DOUBLE(struct llm_request_body, temperature, "temperature", .max = 2, .def = 0.7,
                 .present_offset = offsetof(struct llm_request_body, has_temperature)),
    FIELD_INT(struct llm_request_body, max_tokens, "max_tokens", .min = 1, .max = 1 << 24, .def = 1000),
    FIELD_INT(struct llm_request_body, max_completion_tokens, "max_completion_tokens", .min = 1, .max = 1 << 24,
              .present_offset = offsetof(struct llm_request_body, has_max_completion_tokens),
              .help = "another name of max_tokens"),
    FIELD_DOUBLE(struct llm_request_body, top_p, "top_p", .max = 1,
                 .present_offset = offsetof(struct llm_request_body, has_top_p)),
    FIELD_ANY(struct llm_request_body, stop, "stop", .help = "a text, or an array of texts, at which the answer ends"),
    FIELD_LIST(struct llm_request_body, tools, "tools", llm_tool_fields, struct llm_tool_body, .max = LIMIT_TOOLS),
    FIELD_ANY(struct llm_request_body, tool_choice, "tool_choice",
              .help = "auto, none, required, or {type, function: {name}}"),
    FIELD_OBJECT(struct llm_request_body, response_format, "response_format",
                 .help = "{type: text | json_object | json_schema, json_schema: {name, schema}}"),
    FIELD_END,
};

/* ---- blocks ---- */

static const char *text_or_null(struct json_value v)
{
    const char *text = json_cstr(v);

    return text && *text ? text : NULL;
}

static struct json_value image_source(struct json_value block)
{
    struct json_value image = json_get(block, "image_url");

    return json_type(image) == JSON_OBJECT ? json_get(image, "url") : image;
}

/* {type: image_url, image_url: {url, detail}} or {type: input_image, image_url, detail}. */
static int read_image(struct arena *a, struct json_value block, const char *path, struct llm_block *ret, struct err *e)
{
    struct json_value image = json_get(block, "image_url"),
                      detail = json_get(json_type(image) == JSON_OBJECT ? image : block, "detail");
    const char *url = json_cstr(image_source(block));

    *ret = (struct llm_block){ .kind = LLM_BLOCK_IMAGE_URL, .url = url, .detail = text_or_null(detail) };
    if (!json_is_absent(detail) && (json_type(detail) != JSON_STRING || json_string(detail).n > LIMIT_NAME_CHARS))
        return err_add_field(e, path, "must have a detail like low, high or auto");
    if (url && llm_is_web_address(url))
        return 0;
    if (!url || strncmp(url, "data:image/", 11) != 0)
        return err_add_field(e, path, "must be an image's http address or data URL");
    ret->kind = LLM_BLOCK_IMAGE_DATA;
    ret->url = NULL;
    return llm_split_data_url(a, url, path, ret, e);
}

/* {type: file, file: {...}} or {type: input_file, ...}: the members are the same. Both file_data and file_url take a
 * data URL or an address. */
static int read_file(struct arena *a, struct json_value file, const char *path, struct llm_block *ret, struct err *e)
{
    const char *data = text_or_null(json_get(file, "file_data")),
               *source = data ? data : text_or_null(json_get(file, "file_url"));

    *ret = (struct llm_block){ .kind = LLM_BLOCK_FILE_DATA, .file_name = text_or_null(json_get(file, "filename")) };
    if (source && strncmp(source, "data:", 5) == 0)
        return llm_file_of_data_url(a, source, path, ret, e);
    if (source && llm_is_web_address(source))
        return llm_file_of_address(source, path, ret, e);
    return err_add_field(e, path,
                         "must have file_data or file_url, a data URL or an http address; ids of files are not taken");
}

static int read_text(struct json_value text, const char *path, struct llm_block *ret, struct err *e)
{
    *ret = (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = json_cstr(text) };
    return ret->text ? 0 : err_add_field(e, path, "must be a text without NUL characters");
}

static int read_block(struct arena *a, struct json_value block, const char *path, struct llm_block *ret, struct err *e)
{
    struct slice type = json_string(json_get(block, "type"));

    if (json_type(block) == JSON_STRING)
        return read_text(block, path, ret, e);
    if (slice_eq_str(type, "text") || slice_eq_str(type, "input_text") || slice_eq_str(type, "output_text"))
        return read_text(json_get(block, "text"), path, ret, e);
    if (slice_eq_str(type, "refusal"))
        return read_text(json_get(block, "refusal"), path, ret, e);
    if (slice_eq_str(type, "image_url") || slice_eq_str(type, "input_image"))
        return read_image(a, block, path, ret, e);
    if (slice_eq_str(type, "input_file"))
        return read_file(a, block, path, ret, e);
    if (slice_eq_str(type, "file"))
        return read_file(a, json_get(block, "file"), path, ret, e);
    return err_add_field(e, path, "must be a block of type text, image_url or input_file");
}

/* ---- messages ---- */

static bool is_address(struct json_value value)
{
    const char *text = json_cstr(value);

    return text && llm_is_web_address(text);
}

static bool names_address(struct json_value block)
{
    struct json_value file = json_get(block, "file"), of = json_type(file) == JSON_OBJECT ? file : block;

    return is_address(json_get(of, "file_data")) || is_address(json_get(of, "file_url")) ||
           is_address(image_source(block));
}

bool llm_content_names_address(struct json_value content)
{
    struct json_value block;

    if (json_length(content) > LIMIT_BLOCKS) /* llm_request_blocks() refuses it */
        return false;
    for (struct json_iter it = json_iter(content); json_type(content) == JSON_ARRAY && json_next(&it, NULL, &block);)
        if (names_address(block))
            return true;
    return false;
}

bool llm_messages_name_addresses(const struct field_list *messages)
{
    const struct llm_message_body *items = messages->items;

    for (size_t i = 0; i < messages->n; i++)
        if (llm_content_names_address(items[i].content))
            return true;
    return false;
}

int llm_request_blocks(struct arena *a, struct json_value content, const char *path, struct llm_message *ret,
                       struct err *e)
{
    size_t n = json_type(content) == JSON_ARRAY ? json_length(content) : 1;
    struct llm_block *blocks;
    struct json_value block;
    char below[PATH_SIZE];
    int r = 0, r_block;

    if (n > LIMIT_BLOCKS)
        return err_add_field(e, path, "must have at most %d blocks", LIMIT_BLOCKS);
    blocks = arena_array(a, n, sizeof(*blocks));
    ret->blocks = blocks;
    if (json_type(content) != JSON_ARRAY) {
        ret->n_blocks = 1;
        return json_type(content) == JSON_STRING ? read_text(content, path, blocks, e)
                                                 : err_add_field(e, path, "must be a text or an array of blocks");
    }
    for (struct json_iter it = json_iter(content); json_next(&it, NULL, &block); ret->n_blocks++) {
        snprintf(below, sizeof(below), "%s[%zu]", path, ret->n_blocks);
        r_block = read_block(a, block, below, &blocks[ret->n_blocks], e);
        r = r_block < 0 ? r_block : r;
    }
    return r;
}

static enum llm_role role_of(const char *name)
{
    static const enum llm_role by_place[] = { LLM_SYSTEM, LLM_USER, LLM_ASSISTANT, LLM_TOOL, LLM_SYSTEM };

    for (size_t i = 0; i < ARRAY_SIZE(by_place); i++)
        if (strcmp(roles[i], name) == 0)
            return by_place[i];
    return LLM_USER;
}

static void read_calls(struct arena *a, const struct field_list *from, struct llm_message *ret)
{
    struct llm_tool_call *calls = arena_array(a, from->n + 1, sizeof(*calls));
    const struct call_body *items = from->items;

    for (size_t i = 0; i < from->n; i++)
        calls[i] = (struct llm_tool_call){ items[i].id, items[i].function.name, items[i].function.arguments,
                                           json_is_absent(items[i].extra) ? NULL : json_to_str(a, items[i].extra) };
    ret->tool_calls = calls;
    ret->n_tool_calls = from->n;
}

/* A thought without a signature is left out: no provider takes it back. */
static void read_thoughts(struct arena *a, const struct field_list *from, struct llm_message *ret)
{
    struct llm_thought *thoughts = arena_array(a, from->n + 1, sizeof(*thoughts));
    const struct thought_body *items = from->items;

    for (size_t i = 0; i < from->n; i++) {
        bool is_hidden = strcmp(items[i].type, "redacted_thinking") == 0;
        const char *signature = is_hidden ? items[i].data : items[i].signature;

        if (signature && *signature)
            thoughts[ret->n_thoughts++] = (struct llm_thought){ is_hidden           ? NULL
                                                                : items[i].thinking ? items[i].thinking
                                                                                    : "",
                                                                signature };
    }
    ret->thoughts = thoughts;
}

static bool is_text_only(const struct llm_message *m)
{
    for (size_t i = 0; i < m->n_blocks; i++)
        if (m->blocks[i].kind != LLM_BLOCK_TEXT)
            return false;
    return true;
}

static int read_message(struct arena *a, const struct llm_message_body *from, size_t i, struct llm_message *ret,
                        struct err *e)
{
    char path[PATH_SIZE];
    int r = 0;

    snprintf(path, sizeof(path), "messages[%zu].content", i);
    *ret = (struct llm_message){
        .role = role_of(from->role), .name = from->name, .tool_call_id = from->tool_call_id, .is_error = from->is_error
    };
    if (ret->role == LLM_ASSISTANT) {
        read_calls(a, &from->tool_calls, ret);
        read_thoughts(a, &from->thinking_blocks, ret);
        ret->reasoning = from->reasoning ? from->reasoning : from->reasoning_content;
    }
    if (!json_is_absent(from->content))
        r = llm_request_blocks(a, from->content, path, ret, e);
    else if (ret->n_tool_calls == 0)
        r = err_add_field(e, path, "is required");
    if (r == 0 && (ret->role == LLM_SYSTEM || ret->role == LLM_ASSISTANT) && !is_text_only(ret))
        r = err_add_field(e, path, "must be text in a message of the role %s", from->role);
    if (ret->role == LLM_TOOL && !ret->tool_call_id) {
        snprintf(path, sizeof(path), "messages[%zu].tool_call_id", i);
        r = err_add_field(e, path, "is required in a message of the role tool");
    }
    return r;
}

static int read_messages(struct arena *a, const struct field_list *from, struct llm_request *ret, struct err *e)
{
    struct llm_message *messages = arena_array(a, from->n, sizeof(*messages));
    int r = 0, r_message;

    for (size_t i = 0; i < from->n; i++) {
        r_message = read_message(a, (const struct llm_message_body *)from->items + i, i, &messages[i], e);
        r = r_message < 0 ? r_message : r;
    }
    ret->messages = messages;
    ret->n_messages = from->n;
    return r;
}

/* ---- the rest ---- */

void llm_request_tools(struct arena *a, const struct field_list *from, struct llm_request *ret)
{
    struct llm_tool *tools = arena_array(a, from->n + 1, sizeof(*tools));
    const struct llm_tool_body *items = from->items;

    for (size_t i = 0; i < from->n; i++)
        tools[i] = (struct llm_tool){ items[i].function.name, items[i].function.description,
                                      items[i].function.parameters, items[i].function.is_strict };
    ret->tools = tools;
    ret->n_tools = from->n;
}

static int read_tool_choice(struct json_value choice, struct llm_request *ret, struct err *e)
{
    static const char *const words[] = { "auto", "none", "required" };
    const char *word = json_cstr(choice);

    ret->tool_choice = choice;
    if (json_is_absent(choice) || json_cstr(json_get(json_get(choice, "function"), "name")))
        return 0;
    for (size_t i = 0; word && i < ARRAY_SIZE(words); i++)
        if (strcmp(words[i], word) == 0)
            return 0;
    return err_add_field(e, "tool_choice", "must be auto, none, required, or an object with function.name");
}

static int read_stop(struct arena *a, struct json_value stop, struct llm_request *ret, struct err *e)
{
    size_t n = json_type(stop) == JSON_ARRAY ? json_length(stop) : 1;
    const char **items;
    struct json_iter it = json_iter(stop);
    struct json_value item = stop;

    if (json_is_absent(stop))
        return 0;
    if (n > MOST_STOPS)
        return err_add_field(e, "stop", "must have at most %d texts", MOST_STOPS);
    items = arena_array(a, n + 1, sizeof(*items));
    for (size_t i = 0; i < n; i++) {
        if (json_type(stop) == JSON_ARRAY && !json_next(&it, NULL, &item))
            break;
        items[i] = json_cstr(item);
        if (!items[i] || strlen(items[i]) > LIMIT_STOP_BYTES)
            return err_add_field(e, "stop", "must be a text or an array of texts of at most %d bytes",
                                 LIMIT_STOP_BYTES);
    }
    ret->stop = (struct field_strings){ items, n };
    return 0;
}

static int read_schema(struct json_value format, struct llm_request *ret, struct err *e)
{
    struct json_value inner = json_get(format, "json_schema"), strict = json_get(inner, "strict");
    const char *name = json_cstr(json_get(inner, "name"));

    ret->format = LLM_FORMAT_SCHEMA;
    ret->schema = json_get(inner, "schema");
    ret->schema_name = name && *name ? name : "answer";
    ret->is_schema_strict = json_is_absent(strict) ? llm_format_is_strict(ret->schema) : json_bool(strict);
    if (json_type(ret->schema) != JSON_OBJECT)
        return err_add_field(e, "response_format.json_schema.schema", "must be a JSON Schema object");
    return 0;
}

static int read_format(struct json_value format, struct llm_request *ret, struct err *e)
{
    struct slice type = json_string(json_get(format, "type"));

    if (json_is_absent(format) || slice_eq_str(type, "text"))
        return 0;
    if (slice_eq_str(type, "json_schema"))
        return read_schema(format, ret, e);
    if (!slice_eq_str(type, "json_object"))
        return err_add_field(e, "response_format.type", "must be one of text, json_object, json_schema");
    ret->format = LLM_FORMAT_JSON;
    return 0;
}

static int worse(int r, int r_more)
{
    return r_more < 0 ? r_more : r;
}

int llm_request_of(const struct llm_request_body *body, struct arena *a, struct llm_request *ret, struct err *e)
{
    struct llm_request request = {
        .model = body->model && *body->model ? body->model : NULL,
        .temperature = body->temperature,
        .has_temperature = body->has_temperature,
        .max_tokens = body->has_max_completion_tokens ? body->max_completion_tokens : body->max_tokens,
        .top_p = body->top_p,
        .has_top_p = body->has_top_p,
        .effort = body->effort && *body->effort ? body->effort : NULL,
    };
    int r = read_messages(a, &body->messages, &request, e);

    llm_request_tools(a, &body->tools, &request);
    r = worse(r, read_tool_choice(body->tool_choice, &request, e));
    r = worse(r, read_stop(a, body->stop, &request, e));
    r = worse(r, read_format(body->response_format, &request, e));
    if (r == 0)
        *ret = request;
    return r;
}
