#include "api/compat/v1_anthropic_body.h"

#include "api/compat/v1_draft.h"
#include "base/base64.h"
#include "base/limits.h"
#include "llm/file.h"
#include "llm/format.h"

#include <string.h>

enum { PATH_SIZE = sizeof(((struct err_field *)0)->field) };

/* ---- the tables ---- */

struct source_body {
    const char *type, *media_type, *data, *url;
};
struct block_body {
    const char *type, *text, *title, *id, *name, *tool_use_id, *thinking, *signature, *data;
    struct source_body source;
    struct json_value input, content;
    bool is_error;
};
struct message_body {
    const char *role;
    struct json_value content;
};
struct tool_body {
    const char *type, *name, *description;
    struct json_value input_schema;
};

static const char *const roles[] = { "user", "assistant", "system", NULL };
static const char *const choices[] = { "auto", "any", "tool", "none", NULL };

static const struct field source_fields[] = {
    FIELD_STRING(struct source_body, type, "type", FIELD_REQUIRED),
    FIELD_STRING(struct source_body, media_type, "media_type", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct source_body, data, "data", .max = LIMIT_BODY_CHAT),
    FIELD_STRING(struct source_body, url, "url"),
    FIELD_END,
};

static const struct field block_fields[] = {
    FIELD_STRING(struct block_body, type, "type", FIELD_REQUIRED),
    FIELD_STRING(struct block_body, text, "text", .max = LIMIT_BODY_CHAT),
    FIELD_STRING(struct block_body, title, "title", .max = LIMIT_NAME_CHARS * 4),
    FIELD_STRING(struct block_body, id, "id", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct block_body, name, "name", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct block_body, tool_use_id, "tool_use_id", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct block_body, thinking, "thinking", .max = LIMIT_BODY_CHAT),
    FIELD_STRING(struct block_body, signature, "signature", .max = LIMIT_BODY_CHAT),
    FIELD_STRING(struct block_body, data, "data", .max = LIMIT_BODY_CHAT),
    FIELD_STRUCT(struct block_body, source, "source", source_fields),
    FIELD_OBJECT(struct block_body, input, "input"),
    FIELD_ANY(struct block_body, content, "content"),
    FIELD_BOOL(struct block_body, is_error, "is_error"),
    FIELD_END,
};

static const struct field message_fields[] = {
    FIELD_STRING(struct message_body, role, "role", FIELD_REQUIRED, .one_of = roles),
    FIELD_ANY(
        struct message_body, content, "content", FIELD_REQUIRED,
        .help =
            "text, or an array of blocks: text, image, document, tool_use, tool_result, thinking, redacted_thinking"),
    FIELD_END,
};

static const struct field tool_fields[] = {
    FIELD_STRING(struct tool_body, type, "type", .help = "absent or custom"),
    FIELD_STRING(struct tool_body, name, "name", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct tool_body, description, "description"),
    FIELD_OBJECT(struct tool_body, input_schema, "input_schema", .help = "a JSON Schema"),
    FIELD_END,
};

static const struct field output_fields[] = {
    FIELD_STRING(struct v1_output_body, effort, "effort", .max = LIMIT_NAME_CHARS, .help = "passed on to Anthropic"),
    FIELD_OBJECT(struct v1_output_body, format, "format",
                 .help = "{type: json_schema, schema}, kept to by every provider"),
    FIELD_END,
};

static const struct field choice_fields[] = {
    FIELD_STRING(struct v1_choice_body, type, "type", FIELD_REQUIRED, .one_of = choices),
    FIELD_STRING(struct v1_choice_body, name, "name", .max = LIMIT_NAME_CHARS),
    FIELD_END,
};

#define PROMPT_FIELDS                                                                                                  \
    FIELD_STRING(struct v1_messages_body, model, "model", .max = 256,                                                  \
                 .help = "see GET /v1/models; absent or `default`: the default model"),                                \
        FIELD_LIST(struct v1_messages_body, messages, "messages", message_fields, struct message_body, FIELD_REQUIRED, \
                   .min = 1, .max = LIMIT_MESSAGES),                                                                   \
        FIELD_ANY(struct v1_messages_body, instructions, "system", .help = "text, or an array of text blocks"),        \
        FIELD_LIST(struct v1_messages_body, tools, "tools", tool_fields, struct tool_body, .max = LIMIT_TOOLS),        \
        FIELD_STRUCT(struct v1_messages_body, tool_choice, "tool_choice", choice_fields)

const struct field v1_count_fields[] = { PROMPT_FIELDS, FIELD_END };

const struct field v1_messages_fields[] = {
    PROMPT_FIELDS,
    FIELD_INT(struct v1_messages_body, max_tokens, "max_tokens", FIELD_REQUIRED, .min = 1, .max = 1 << 24),
    FIELD_STRINGS(struct v1_messages_body, stop_sequences, "stop_sequences", .max = 16),
    FIELD_DOUBLE(struct v1_messages_body, temperature, "temperature", .max = 1,
                 .present_offset = offsetof(struct v1_messages_body, has_temperature)),
    FIELD_DOUBLE(struct v1_messages_body, top_p, "top_p", .max = 1,
                 .present_offset = offsetof(struct v1_messages_body, has_top_p)),
    FIELD_OBJECT(struct v1_messages_body, thinking, "thinking",
                 .help = "passed on to Anthropic; others think as they do by themselves"),
    FIELD_STRUCT(struct v1_messages_body, output, "output_config", output_fields),
    FIELD_OBJECT(struct v1_messages_body, output_format, "output_format",
                 .help = "the name that output_config.format had before"),
    FIELD_BOOL(struct v1_messages_body, is_streamed, "stream"),
    FIELD_END,
};

/* ---- blocks ---- */

enum { IN_SYSTEM = 1, IN_RESULT = 2, IN_MESSAGE = 4 };

struct reading {
    struct arena *a;
    struct err *e;
    struct v1_draft draft;
    struct v1_draft_turn turn; /* the current message */
    unsigned where;            /* IN_: the place that is read */
};

static int need(const struct reading *d, const char *value, const char *path, const char *name)
{
    char below[PATH_SIZE];

    if (value)
        return 0;
    snprintf(below, sizeof(below), "%s.%s", path, name);
    return err_add_field(d->e, below, "is required in a block of this type");
}

static int add_text(struct reading *d, const struct block_body *b, const char *path)
{
    int r = need(d, b->text, path, "text");

    if (r == 0)
        v1_draft_add_block(&d->turn, (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = b->text });
    return r;
}

/* {type: base64, media_type, data} */
static int add_data(struct reading *d, const struct block_body *b, enum llm_block_kind kind, const char *path)
{
    int r = need(d, b->source.media_type, path, "source.media_type");

    if (r == 0)
        r = need(d, b->source.data, path, "source.data");
    if (r == 0 && !base64_is_padded(b->source.data))
        r = err_add_field(d->e, path, "must hold base64 with its padding in source.data");
    if (r == 0)
        v1_draft_add_block(&d->turn, (struct llm_block){ .kind = kind,
                                                         .media_type = b->source.media_type,
                                                         .base64 = b->source.data,
                                                         .file_name = b->title });
    return r;
}

static int add_image(struct reading *d, const struct block_body *b, const char *path)
{
    const char *type = b->source.type ? b->source.type : "", *url = b->source.url ? b->source.url : "";

    if (strcmp(type, "base64") == 0)
        return add_data(d, b, LLM_BLOCK_IMAGE_DATA, path);
    if (strcmp(type, "url") != 0 || (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0))
        return err_add_field(d->e, path, "must have a source of type base64, or of type url with an http address");
    v1_draft_add_block(&d->turn, (struct llm_block){ .kind = LLM_BLOCK_IMAGE_URL, .url = url });
    return 0;
}

static int add_document(struct reading *d, const struct block_body *b, const char *path)
{
    const char *type = b->source.type ? b->source.type : "", *title = b->title ? b->title : "document";
    struct llm_block named = { .file_name = b->title };
    int r;

    if (strcmp(type, "base64") == 0)
        return add_data(d, b, LLM_BLOCK_FILE_DATA, path);
    if (strcmp(type, "url") == 0 && b->source.url && llm_is_web_address(b->source.url)) {
        r = llm_file_of_address(b->source.url, path, &named, d->e);
        if (r == 0)
            v1_draft_add_block(&d->turn, named);
        return r;
    }
    if (strcmp(type, "text") != 0 || !b->source.data)
        return err_add_field(
            d->e, path,
            "must have a source of type base64 or text with its data, or of type url with an http address; ids of documents are not taken");
    v1_draft_add_block(&d->turn, (struct llm_block){ .kind = LLM_BLOCK_TEXT,
                                                     .text = arena_printf(d->a, "[%s]\n%s", title, b->source.data) });
    return 0;
}

static int add_tool_use(struct reading *d, const struct block_body *b, const char *path)
{
    int r = need(d, b->id, path, "id");

    if (r == 0)
        r = need(d, b->name, path, "name");
    if (r < 0)
        return r;
    v1_draft_add_call(&d->turn, (struct llm_tool_call){
                                    b->id, b->name, json_is_absent(b->input) ? "{}" : json_to_str(d->a, b->input) });
    return 0;
}

static int add_tool_result(struct reading *d, const struct block_body *b, const char *path);

/* Only the provider that made a thought reads it again, and only with its signature. */
static int add_thought(struct reading *d, const struct block_body *b, const char *path)
{
    bool is_hidden = strcmp(b->type, "redacted_thinking") == 0;
    const char *signature = is_hidden ? b->data : b->signature;

    if (!signature || !*signature)
        return 0;
    v1_draft_add_thought(&d->turn, (struct llm_thought){ is_hidden     ? NULL
                                                         : b->thinking ? b->thinking
                                                                       : "",
                                                         signature });
    return 0;
}

static const struct {
    const char *type;
    int (*add)(struct reading *d, const struct block_body *b, const char *path);
    unsigned where;
} kinds[] = {
    { "text", add_text, IN_SYSTEM | IN_RESULT | IN_MESSAGE }, { "image", add_image, IN_RESULT | IN_MESSAGE },
    { "document", add_document, IN_RESULT | IN_MESSAGE },     { "tool_use", add_tool_use, IN_MESSAGE },
    { "tool_result", add_tool_result, IN_MESSAGE },           { "thinking", add_thought, IN_MESSAGE },
    { "redacted_thinking", add_thought, IN_MESSAGE },
};

static const char *kinds_in(unsigned where)
{
    return where == IN_SYSTEM   ? "text"
           : where == IN_RESULT ? "text, image or document"
                                : "text, image, document, tool_use, tool_result or thinking";
}

static int read_block(struct reading *d, struct json_value value, const char *path)
{
    struct block_body b = { 0 };
    int r = fields_read(block_fields, value, &b, d->a, path, d->e);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i].type, b.type) == 0 && kinds[i].where & d->where)
            return kinds[i].add(d, &b, path);
    return r < 0 ? r : err_add_field(d->e, path, "must be a block of type %s", kinds_in(d->where));
}

/* The most blocks that a content can become; the blocks of a tool's result stand one level deeper. Counting stops soon
 * after the limit. */
static size_t most_blocks(struct json_value content)
{
    struct json_value block;
    size_t n = 1;

    for (struct json_iter it = json_iter(content);
         json_type(content) == JSON_ARRAY && n <= LIMIT_BLOCKS + 1 && json_next(&it, NULL, &block);)
        n += 1 + json_length(json_get(block, "content"));
    return n;
}

static int read_content(struct reading *d, struct json_value content, const char *path)
{
    struct json_value block;
    char below[PATH_SIZE];
    size_t i = 0;
    int r = 0, r_block;

    if (json_type(content) == JSON_STRING && json_cstr(content)) {
        v1_draft_add_block(&d->turn, (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = json_cstr(content) });
        return 0;
    }
    if (json_type(content) != JSON_ARRAY)
        return err_add_field(d->e, path, "must be a text without NUL characters or an array of blocks");
    for (struct json_iter it = json_iter(content); json_next(&it, NULL, &block); i++) {
        snprintf(below, sizeof(below), "%s[%zu]", path, i);
        r_block = read_block(d, block, below);
        r = r_block < 0 ? r_block : r;
    }
    return r;
}

/* Some services accept only text as a tool's result: its images follow in the user's message. */
static int add_tool_result(struct reading *d, const struct block_body *b, const char *path)
{
    struct reading inner = { .a = d->a, .e = d->e, .where = IN_RESULT };
    struct llm_message result = { .role = LLM_TOOL, .tool_call_id = b->tool_use_id, .is_error = b->is_error };
    char below[PATH_SIZE + 8];
    int r = need(d, b->tool_use_id, path, "tool_use_id");

    v1_draft_begin(&inner.turn, d->a, most_blocks(b->content));
    snprintf(below, sizeof(below), "%s.content", path);
    if (r == 0 && !json_is_absent(b->content))
        r = read_content(&inner, b->content, below);
    result.blocks = inner.turn.blocks;
    for (size_t i = 0; i < inner.turn.n_blocks; i++) {
        if (inner.turn.blocks[i].kind == LLM_BLOCK_TEXT)
            inner.turn.blocks[result.n_blocks++] = inner.turn.blocks[i];
        else
            v1_draft_add_block(&d->turn, inner.turn.blocks[i]);
    }
    v1_draft_add_message(&d->draft, result);
    return r;
}

/* ---- messages ---- */

static enum llm_role role_of(const char *name)
{
    return strcmp(name, "assistant") == 0 ? LLM_ASSISTANT : strcmp(name, "system") == 0 ? LLM_SYSTEM : LLM_USER;
}

static int read_message(struct reading *d, enum llm_role role, struct json_value content, const char *path)
{
    int r;

    v1_draft_begin(&d->turn, d->a, most_blocks(content));
    d->where = role == LLM_SYSTEM ? IN_SYSTEM : IN_MESSAGE;
    r = read_content(d, content, path);
    if (d->turn.n_blocks > 0 || d->turn.n_calls > 0)
        v1_draft_add_message(&d->draft, v1_draft_message(&d->turn, role));
    return r;
}

static size_t most_messages(const struct v1_messages_body *body)
{
    const struct message_body *items = body->messages.items;
    size_t n = 1;

    for (size_t i = 0; i < body->messages.n; i++)
        n += most_blocks(items[i].content);
    return n;
}

/* Counts the blocks before memory is allocated for them. */
static int check_blocks(const struct v1_messages_body *body, struct err *e)
{
    const struct message_body *items = body->messages.items;
    char path[PATH_SIZE];

    if (most_blocks(body->instructions) > LIMIT_BLOCKS + 1)
        return err_add_field(e, "system", "must have at most %d blocks", LIMIT_BLOCKS);
    for (size_t i = 0; i < body->messages.n; i++) {
        snprintf(path, sizeof(path), "messages[%zu].content", i);
        if (most_blocks(items[i].content) > LIMIT_BLOCKS + 1)
            return err_add_field(e, path, "must have at most %d blocks, those of tools' results among them",
                                 LIMIT_BLOCKS);
    }
    return 0;
}

static int read_messages(const struct v1_messages_body *body, struct arena *a, struct llm_request *ret, struct err *e)
{
    struct reading d = { .a = a, .e = e, .draft = { .a = a, .n_expected = most_messages(body) } };
    const struct message_body *items = body->messages.items;
    char path[PATH_SIZE];
    int r = check_blocks(body, e), r_message;

    if (r < 0)
        return r;
    if (!json_is_absent(body->instructions))
        r = read_message(&d, LLM_SYSTEM, body->instructions, "system");
    for (size_t i = 0; i < body->messages.n; i++) {
        snprintf(path, sizeof(path), "messages[%zu].content", i);
        r_message = read_message(&d, role_of(items[i].role), items[i].content, path);
        r = r_message < 0 ? r_message : r;
    }
    ret->messages = d.draft.messages;
    ret->n_messages = d.draft.n;
    return r;
}

/* ---- tools ---- */

static int read_tools(const struct v1_messages_body *body, struct arena *a, struct llm_request *ret, struct err *e)
{
    struct llm_tool *tools = arena_array(a, body->tools.n + 1, sizeof(*tools));
    const struct tool_body *items = body->tools.items;
    char path[PATH_SIZE];
    int r = 0;

    for (size_t i = 0; i < body->tools.n; i++) {
        snprintf(path, sizeof(path), "tools[%zu].type", i);
        if (items[i].type && strcmp(items[i].type, "custom") != 0)
            r = err_add_field(e, path, "must be custom or absent: tools that a provider runs itself are not passed on");
        tools[i] = (struct llm_tool){ .name = items[i].name,
                                      .description = items[i].description,
                                      .parameters = items[i].input_schema };
    }
    ret->tools = tools;
    ret->n_tools = body->tools.n;
    return r;
}

/* Writes the choice in OpenAI's form, which the neutral request uses. */
static int read_tool_choice(const struct v1_choice_body *choice, struct arena *a, struct llm_request *ret,
                            struct err *e)
{
    const char *type = choice->type ? choice->type : "auto";
    struct json_writer w;
    struct buf text;
    int r;

    if (strcmp(type, "tool") == 0 && !choice->name)
        return err_add_field(e, "tool_choice.name", "is required with the type tool");
    if (strcmp(type, "tool") != 0)
        return json_parse(a,
                          strcmp(type, "any") == 0    ? SLICE_LIT("\"required\"")
                          : strcmp(type, "none") == 0 ? SLICE_LIT("\"none\"")
                                                      : SLICE_LIT("\"auto\""),
                          &ret->tool_choice, e);
    buf_init(&text, LIMIT_STRING_DEFAULT);
    json_write_init(&w, &text);
    json_begin_object(&w);
    json_add_string(&w, "type", "function");
    json_begin_object_as(&w, "function");
    json_add_string(&w, "name", choice->name);
    json_end(&w);
    json_end(&w);
    r = json_parse(a, buf_slice(&text), &ret->tool_choice, e);
    buf_clear(&text);
    return r;
}

static int check_stops(const struct field_strings *stops, struct err *e)
{
    for (size_t i = 0; i < stops->n; i++)
        if (strlen(stops->items[i]) > LIMIT_STOP_BYTES)
            return err_add_field(e, "stop_sequences", "must be texts of at most %d bytes", LIMIT_STOP_BYTES);
    return 0;
}

/* The schema of the answer, in the form of OpenAI's response_format. */
static int read_format(const struct v1_messages_body *body, struct llm_request *ret, struct err *e)
{
    bool is_new = !json_is_absent(body->output.format);
    struct json_value format = is_new ? body->output.format : body->output_format, schema = json_get(format, "schema");
    const char *name = is_new ? "output_config.format" : "output_format";
    char path[PATH_SIZE];

    if (json_is_absent(format))
        return 0;
    snprintf(path, sizeof(path), "%s.type", name);
    if (!slice_eq_str(json_string(json_get(format, "type")), "json_schema"))
        return err_add_field(e, path, "must be json_schema");
    snprintf(path, sizeof(path), "%s.schema", name);
    if (json_type(schema) != JSON_OBJECT)
        return err_add_field(e, path, "must be a JSON Schema object");
    ret->format = LLM_FORMAT_SCHEMA;
    ret->schema_name = "answer";
    ret->schema = schema;
    ret->is_schema_strict = llm_format_is_strict(schema);
    return 0;
}

static bool names_address(struct json_value block)
{
    const char *url = json_cstr(json_get(json_get(block, "source"), "url"));

    return url && llm_is_web_address(url);
}

static bool content_names_address(struct json_value content)
{
    struct json_value block, inner;

    if (json_type(content) != JSON_ARRAY || most_blocks(content) > LIMIT_BLOCKS + 1) /* check_blocks() refuses it */
        return false;
    for (struct json_iter it = json_iter(content); json_next(&it, NULL, &block);) {
        if (names_address(block))
            return true;
        for (struct json_iter within = json_iter(json_get(block, "content")); json_next(&within, NULL, &inner);)
            if (names_address(inner))
                return true;
    }
    return false;
}

bool v1_anthropic_names_addresses(const struct v1_messages_body *body)
{
    const struct message_body *items = body->messages.items;

    for (size_t i = 0; i < body->messages.n; i++)
        if (content_names_address(items[i].content))
            return true;
    return false;
}

int v1_anthropic_request(const struct v1_messages_body *body, struct arena *a, struct llm_request *ret, struct err *e)
{
    struct llm_request request = {
        .model = body->model,
        .max_tokens = body->max_tokens,
        .temperature = body->has_temperature ? body->temperature : -1,
        .has_temperature = body->has_temperature,
        .top_p = body->top_p,
        .has_top_p = body->has_top_p,
        .stop = body->stop_sequences,
        .thinking = body->thinking,
        .output_effort = body->output.effort,
    };
    int r_stops = check_stops(&body->stop_sequences, e), r_format = read_format(body, &request, e);
    int r = read_messages(body, a, &request, e), r_tools = read_tools(body, a, &request, e),
        r_choice = read_tool_choice(&body->tool_choice, a, &request, e);

    if (r < 0 || r_tools < 0 || r_choice < 0 || r_stops < 0 || r_format < 0)
        return -EINVAL;
    *ret = request;
    return 0;
}
