#include "api/compat/ollama_body.h"

#include "base/base64.h"
#include "base/limits.h"
#include "llm/request.h"
#include "llm/format.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = sizeof(((struct err_field *)0)->field), MOST_STOPS = 16 };

/* ---- the tables ---- */

struct call_function {
    const char *name;
    struct json_value arguments;
};
struct call_body {
    const char *id;
    struct call_function function;
};
struct message_body {
    const char *role, *content, *thinking, *tool_name, *tool_call_id;
    struct json_value images;
    struct field_list tool_calls;
};

static const char *const roles[] = { "system", "user", "assistant", "tool", NULL };

static const struct field call_function_fields[] = {
    FIELD_STRING(struct call_function, name, "name", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_ANY(struct call_function, arguments, "arguments", .help = "an object"),
    FIELD_END,
};

static const struct field call_fields[] = {
    FIELD_STRING(struct call_body, id, "id", .max = LIMIT_NAME_CHARS),
    FIELD_STRUCT(struct call_body, function, "function", call_function_fields, FIELD_REQUIRED),
    FIELD_END,
};

static const struct field message_fields[] = {
    FIELD_STRING(struct message_body, role, "role", FIELD_REQUIRED, .one_of = roles),
    FIELD_STRING(struct message_body, content, "content", .max = LIMIT_BODY_CHAT),
    FIELD_STRING(struct message_body, thinking, "thinking", .max = LIMIT_BODY_CHAT),
    FIELD_ARRAY(struct message_body, images, "images", .help = "images in base64: PNG, JPEG, WebP or GIF"),
    FIELD_LIST(struct message_body, tool_calls, "tool_calls", call_fields, struct call_body, .max = LIMIT_TOOL_CALLS),
    FIELD_STRING(struct message_body, tool_name, "tool_name", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct message_body, tool_call_id, "tool_call_id", .max = LIMIT_NAME_CHARS),
    FIELD_END,
};

static const struct field option_fields[] = {
    FIELD_DOUBLE(struct ollama_options, temperature, "temperature", .max = 2,
                 .present_offset = offsetof(struct ollama_options, has_temperature)),
    FIELD_DOUBLE(struct ollama_options, top_p, "top_p", .max = 1,
                 .present_offset = offsetof(struct ollama_options, has_top_p)),
    FIELD_INT(struct ollama_options, num_predict, "num_predict", .min = -2, .max = 1 << 24,
              .help = "tokens of the answer; below 1: as the model sets"),
    FIELD_ANY(struct ollama_options, stop, "stop", .help = "a text, or an array of texts, at which the answer ends"),
    FIELD_END,
};

#define COMMON_FIELDS                                                                                                  \
    FIELD_STRING(struct ollama_body, model, "model", FIELD_REQUIRED, .min = 1, .max = 256,                             \
                 .help = "see GET /api/tags; `default`: the default model"),                                           \
        FIELD_BOOL(struct ollama_body, is_streamed, "stream", .def = 1),                                               \
        FIELD_ANY(struct ollama_body, format, "format", .help = "json, or a JSON Schema"),                             \
        FIELD_ANY(struct ollama_body, think, "think", .help = "true, false, low, medium, high or max"),                \
        FIELD_ANY(struct ollama_body, keep_alive, "keep_alive",                                                        \
                  .help = "read and not used: providers keep their models as they are set"),                           \
        FIELD_STRUCT(struct ollama_body, options, "options", option_fields)

const struct field ollama_chat_fields[] = {
    COMMON_FIELDS,
    FIELD_LIST(struct ollama_body, messages, "messages", message_fields, struct message_body, .max = LIMIT_MESSAGES),
    FIELD_LIST(struct ollama_body, tools, "tools", llm_tool_fields, struct llm_tool_body, .max = LIMIT_TOOLS),
    FIELD_END,
};

const struct field ollama_generate_fields[] = {
    COMMON_FIELDS,
    FIELD_STRING(struct ollama_body, prompt, "prompt", .max = LIMIT_BODY_CHAT),
    FIELD_STRING(struct ollama_body, instructions, "system", .max = LIMIT_BODY_CHAT),
    FIELD_ARRAY(struct ollama_body, images, "images", .help = "images in base64: PNG, JPEG, WebP or GIF"),
    FIELD_STRING(struct ollama_body, suffix, "suffix", .max = LIMIT_BODY_CHAT,
                 .help = "refused: models are asked by chat"),
    FIELD_STRING(struct ollama_body, template, "template", .help = "refused: models are asked by chat"),
    FIELD_BOOL(struct ollama_body, is_raw, "raw", .help = "refused: models are asked by chat"),
    FIELD_ARRAY(struct ollama_body, context, "context", .help = "refused: a history is sent as messages of /api/chat"),
    FIELD_END,
};

/* ---- messages ---- */

/* A body while it is read: the calls of the last assistant message that had calls, and which of them have their result.
 */
struct draft {
    struct arena *a;
    struct err *e;
    const struct llm_tool_call *calls;
    size_t n_calls;
    bool is_answered[LIMIT_TOOL_CALLS];
};

static const char *image_type(const char *base64)
{
    static const struct {
        const char *begin, *type;
    } types[] = {
        { "iVBORw0KGgo", "image/png" },
        { "/9j/", "image/jpeg" },
        { "R0lGOD", "image/gif" },
        { "UklGR", "image/webp" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (strncmp(base64, types[i].begin, strlen(types[i].begin)) == 0)
            return types[i].type;
    return NULL;
}

/* Programs that took an image from a web page send a data URL. */
static int read_image(const struct draft *d, struct json_value value, const char *path, struct llm_block *ret)
{
    const char *text = json_cstr(value), *comma = text && strncmp(text, "data:", 5) == 0 ? strchr(text, ',') : NULL;
    const char *base64 = comma ? comma + 1 : text, *type = base64 ? image_type(base64) : NULL;

    if (!type || !base64_is_padded(base64))
        return err_add_field(d->e, path, "must be a PNG, JPEG, WebP or GIF image in base64 with its padding");
    *ret = (struct llm_block){ .kind = LLM_BLOCK_IMAGE_DATA, .media_type = type, .base64 = base64 };
    return 0;
}

/* The text, then the images. */
static int read_blocks(struct draft *d, const char *text, struct json_value images, const char *path,
                       struct llm_message *ret)
{
    size_t n_images = json_length(images), i = 0;
    struct llm_block *blocks;
    struct json_value image;
    char below[PATH_SIZE];
    int r = 0;

    if (n_images >= LIMIT_BLOCKS)
        return err_add_field(d->e, path, "must have at most %d images", LIMIT_BLOCKS - 1);
    blocks = arena_array(d->a, n_images + 1, sizeof(*blocks));
    ret->blocks = blocks;
    if ((text && *text) || n_images == 0)
        blocks[ret->n_blocks++] = (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = text ? text : "" };
    for (struct json_iter it = json_iter(images); r == 0 && json_next(&it, NULL, &image); i++) {
        snprintf(below, sizeof(below), "%s[%zu]", path, i);
        r = read_image(d, image, below, &blocks[ret->n_blocks++]);
    }
    return r;
}

static const char *arguments_text(struct arena *a, struct json_value arguments)
{
    const char *text = json_cstr(arguments);

    return json_is_absent(arguments) ? "{}" : text ? text : json_to_str(a, arguments);
}

static void read_calls(struct draft *d, const struct field_list *from, size_t at, struct llm_message *ret)
{
    struct llm_tool_call *calls = arena_array(d->a, from->n + 1, sizeof(*calls));
    const struct call_body *items = from->items;

    for (size_t i = 0; i < from->n; i++)
        calls[i] =
            (struct llm_tool_call){ .id = items[i].id && *items[i].id ? items[i].id
                                                                      : arena_printf(d->a, "call_%zu_%zu", at, i),
                                    .name = items[i].function.name,
                                    .arguments = arguments_text(d->a, items[i].function.arguments) };
    ret->tool_calls = calls;
    ret->n_tool_calls = from->n;
    if (from->n == 0)
        return;
    d->calls = calls;
    d->n_calls = from->n;
    memset(d->is_answered, 0, sizeof(d->is_answered));
}

/* The first call of that name without a result. tool_name NULL: the first call without a result, because senders
 * without names send results in the order of the calls. */
static const char *call_of(struct draft *d, const char *tool_name)
{
    size_t at = d->n_calls;

    for (size_t i = d->n_calls; i-- > 0;)
        if (!d->is_answered[i] && (!tool_name || strcmp(d->calls[i].name, tool_name) == 0))
            at = i;
    if (at == d->n_calls)
        return NULL;
    d->is_answered[at] = true;
    return d->calls[at].id;
}

static const char *result_id(struct draft *d, const struct message_body *from, size_t at)
{
    const char *id = from->tool_call_id && *from->tool_call_id ? from->tool_call_id : call_of(d, from->tool_name);

    if (!id)
        id = call_of(d, NULL);
    return id ? id
              : arena_printf(d->a, "call_%zu",
                             at); /* a result without a call: the provider decides whether to accept it */
}

static enum llm_role role_of(const char *name)
{
    static const enum llm_role by_place[] = { LLM_SYSTEM, LLM_USER, LLM_ASSISTANT, LLM_TOOL };

    for (size_t i = 0; i < ARRAY_SIZE(by_place); i++)
        if (strcmp(roles[i], name) == 0)
            return by_place[i];
    return LLM_USER;
}

static int read_message(struct draft *d, const struct message_body *from, size_t at, struct llm_message *ret)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "messages[%zu].images", at);
    *ret = (struct llm_message){ .role = role_of(from->role) };
    if (ret->role == LLM_ASSISTANT) {
        read_calls(d, &from->tool_calls, at, ret);
        ret->reasoning = from->thinking && *from->thinking ? from->thinking : NULL;
    }
    if (ret->role == LLM_TOOL)
        ret->tool_call_id = result_id(d, from, at);
    if ((ret->role == LLM_SYSTEM || ret->role == LLM_ASSISTANT) && json_length(from->images) > 0)
        return err_add_field(d->e, path, "must be absent in a message of the role %s", from->role);
    if (ret->n_tool_calls > 0 && !(from->content && *from->content))
        return 0;
    return read_blocks(d, from->content, from->images, path, ret);
}

static int read_messages(struct draft *d, const struct field_list *from, struct llm_request *ret)
{
    struct llm_message *messages = arena_array(d->a, from->n + 1, sizeof(*messages));
    int r = 0;

    for (size_t i = 0; i < from->n; i++) {
        int r_message = read_message(d, (const struct message_body *)from->items + i, i, &messages[i]);

        r = r_message < 0 ? r_message : r;
    }
    ret->messages = messages;
    ret->n_messages = from->n;
    return r;
}

static int read_prompt(struct draft *d, const struct ollama_body *body, struct llm_request *ret)
{
    struct llm_message *messages = arena_array(d->a, 2, sizeof(*messages));
    size_t n = 0;
    int r = 0;

    if (body->instructions && *body->instructions) {
        messages[n] = (struct llm_message){ .role = LLM_SYSTEM };
        r = read_blocks(d, body->instructions, (struct json_value){ 0 }, "system", &messages[n++]);
    }
    messages[n] = (struct llm_message){ .role = LLM_USER };
    if (r == 0)
        r = read_blocks(d, body->prompt, body->images, "images", &messages[n++]);
    ret->messages = messages;
    ret->n_messages = n;
    return r;
}

/* ---- the rest ---- */

/* Refuses what only a service that holds the model and its template can do. */
static int check_prompt(const struct ollama_body *body, struct err *e)
{
    static const char why[] = "must be absent: Hearth asks models by chat and does not have their templates";
    int r = 0;

    if (body->suffix && *body->suffix)
        r = err_add_field(e, "suffix", "%s", why);
    if (body->template && *body->template)
        r = err_add_field(e, "template", "%s", why);
    if (body->is_raw)
        r = err_add_field(e, "raw", "%s", why);
    if (json_length(body->context) > 0)
        r = err_add_field(e, "context", "must be absent: send the history as messages of /api/chat");
    return r;
}

static int read_format(struct json_value format, struct llm_request *ret, struct err *e)
{
    struct slice word = json_string(format);

    if (json_is_absent(format) || (json_type(format) == JSON_STRING && word.n == 0))
        return 0;
    if (slice_eq_str(word, "json")) {
        ret->format = LLM_FORMAT_JSON;
        return 0;
    }
    if (json_type(format) != JSON_OBJECT)
        return err_add_field(e, "format", "must be json or a JSON Schema object");
    ret->format = LLM_FORMAT_SCHEMA;
    ret->schema = format;
    ret->schema_name = "answer";
    ret->is_schema_strict = llm_format_is_strict(format);
    return 0;
}

/* `think: false` sets no effort, because most services refuse a value for it. Ollama itself gets the member as received
 * (llm_request.ollama). */
static int read_think(struct json_value think, struct llm_request *ret, struct err *e)
{
    static const struct {
        const char *word, *effort;
    } words[] = { { "low", "low" }, { "medium", "medium" }, { "high", "high" }, { "max", "high" } };

    if (json_is_absent(think))
        return 0;
    if (json_type(think) == JSON_BOOL) {
        ret->effort = json_bool(think) ? "medium" : NULL;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (slice_eq_str(json_string(think), words[i].word)) {
            ret->effort = words[i].effort;
            return 0;
        }
    return err_add_field(e, "think", "must be true, false, low, medium, high or max");
}

static int read_stop(struct arena *a, struct json_value stop, struct llm_request *ret, struct err *e)
{
    bool is_list = json_type(stop) == JSON_ARRAY;
    struct json_iter it = json_iter(stop);
    struct json_value item = stop;
    const char **items;

    if (json_is_absent(stop))
        return 0;
    if (is_list && json_length(stop) > MOST_STOPS)
        return err_add_field(e, "options.stop", "must have at most %d texts", MOST_STOPS);
    items = arena_array(a, MOST_STOPS, sizeof(*items));
    while (ret->stop.n < MOST_STOPS && (is_list ? json_next(&it, NULL, &item) : ret->stop.n == 0)) {
        const char *text = json_cstr(item);

        if (!text || strlen(text) > LIMIT_STOP_BYTES)
            return err_add_field(e, "options.stop", "must be a text or an array of texts of at most %d bytes",
                                 LIMIT_STOP_BYTES);
        items[ret->stop.n++] = text;
    }
    ret->stop.items = items;
    return 0;
}

static int worse(int r, int r_more)
{
    return r_more < 0 ? r_more : r;
}

bool ollama_is_empty(const struct ollama_body *body)
{
    return body->messages.n == 0 && !(body->prompt && *body->prompt) && json_length(body->images) == 0;
}

bool ollama_hides_thoughts(const struct ollama_body *body)
{
    return json_type(body->think) == JSON_BOOL && !json_bool(body->think);
}

int ollama_request(const struct ollama_body *body, struct json_value root, struct arena *a, struct llm_request *ret,
                   struct err *e)
{
    const struct ollama_options *options = &body->options;
    struct draft d = { .a = a, .e = e };
    struct llm_request request = {
        .model = body->model,
        .ollama = root,
        .temperature = options->has_temperature ? options->temperature : -1,
        .has_temperature = options->has_temperature,
        .top_p = options->top_p,
        .has_top_p = options->has_top_p,
        .max_tokens = MAX(options->num_predict, (int64_t)0),
    };
    int r = body->messages.n > 0 ? read_messages(&d, &body->messages, &request) : read_prompt(&d, body, &request);

    llm_request_tools(a, &body->tools, &request);
    r = worse(r, check_prompt(body, e));
    r = worse(r, read_format(body->format, &request, e));
    r = worse(r, read_think(body->think, &request, e));
    r = worse(r, read_stop(a, options->stop, &request, e));
    if (r == 0)
        *ret = request;
    return r;
}
