#include "api/v1_anthropic_body.h"

#include "base/base64.h"
#include "base/limits.h"

#include <assert.h>
#include <string.h>

enum { PATH_SIZE = sizeof(((struct err_field *)0)->field) };

/* ---- the tables ---- */

struct source_body { const char *type, *media_type, *data, *url; };
struct block_body {
    const char *type, *text, *title, *id, *name, *tool_use_id, *thinking, *signature, *data;
    struct source_body source;
    struct json_value input, content;
};
struct message_body { const char *role; struct json_value content; };
struct tool_body { const char *type, *name, *description; struct json_value input_schema; };

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
    FIELD_END,
};

static const struct field message_fields[] = {
    FIELD_STRING(struct message_body, role, "role", FIELD_REQUIRED, .one_of = roles),
    FIELD_ANY(struct message_body, content, "content", FIELD_REQUIRED,
              .help = "text, or an array of blocks: text, image, document, tool_use, tool_result, thinking, redacted_thinking"),
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
    FIELD_STRING(struct v1_output_body, effort, "effort", .max = LIMIT_NAME_CHARS, .help = "passed on to Anthropic"), FIELD_END,
};

static const struct field choice_fields[] = {
    FIELD_STRING(struct v1_choice_body, type, "type", FIELD_REQUIRED, .one_of = choices),
    FIELD_STRING(struct v1_choice_body, name, "name", .max = LIMIT_NAME_CHARS),
    FIELD_END,
};

#define PROMPT_FIELDS                                                                                                                            \
    FIELD_STRING(struct v1_messages_body, model, "model", .max = 256, .help = "see GET /v1/models; absent or `default`: the default model"),     \
    FIELD_LIST(struct v1_messages_body, messages, "messages", message_fields, struct message_body, FIELD_REQUIRED, .min = 1,                     \
               .max = LIMIT_MESSAGES),                                                                                                           \
    FIELD_ANY(struct v1_messages_body, instructions, "system", .help = "text, or an array of text blocks"),                                            \
    FIELD_LIST(struct v1_messages_body, tools, "tools", tool_fields, struct tool_body, .max = LIMIT_TOOLS),                                      \
    FIELD_STRUCT(struct v1_messages_body, tool_choice, "tool_choice", choice_fields)

const struct field v1_count_fields[] = { PROMPT_FIELDS, FIELD_END };

const struct field v1_messages_fields[] = {
    PROMPT_FIELDS,
    FIELD_INT(struct v1_messages_body, max_tokens, "max_tokens", FIELD_REQUIRED, .min = 1, .max = 1 << 24),
    FIELD_STRINGS(struct v1_messages_body, stop_sequences, "stop_sequences", .max = 16),
    FIELD_DOUBLE(struct v1_messages_body, temperature, "temperature", .max = 1, .present_offset = offsetof(struct v1_messages_body, has_temperature)),
    FIELD_DOUBLE(struct v1_messages_body, top_p, "top_p", .max = 1, .present_offset = offsetof(struct v1_messages_body, has_top_p)),
    FIELD_OBJECT(struct v1_messages_body, thinking, "thinking", .help = "passed on to Anthropic; others think as they do by themselves"),
    FIELD_STRUCT(struct v1_messages_body, output, "output_config", output_fields),
    FIELD_BOOL(struct v1_messages_body, is_streamed, "stream"),
    FIELD_END,
};

/* ---- blocks ---- */

enum { IN_SYSTEM = 1, IN_RESULT = 2, IN_MESSAGE = 4 };

/* A message on its way. */
struct draft {
    struct arena *a;
    struct err *e;
    struct llm_message *messages; size_t n, n_most;     /* finished ones */
    struct llm_block *blocks; size_t n_blocks;          /* of the present one */
    struct llm_tool_call *calls; size_t n_calls;
    struct llm_thought *thoughts; size_t n_thoughts;
    unsigned char *order; size_t n_order;
    size_t n_room;                                      /* for each */
    unsigned where;                                     /* IN_: what is read */
};

static void add_piece(struct draft *d, enum llm_piece kind)
{
    assert(d->n_order < d->n_room);
    d->order[d->n_order++] = (unsigned char)kind;
}

static void add_block(struct draft *d, struct llm_block block)
{
    add_piece(d, LLM_PIECE_BLOCK);
    d->blocks[d->n_blocks++] = block;
}

static void add_message(struct draft *d, struct llm_message message)
{
    assert(d->n < d->n_most);
    d->messages[d->n++] = message;
}

static int need(const struct draft *d, const char *value, const char *path, const char *name)
{
    char below[PATH_SIZE];

    if (value)
        return 0;
    snprintf(below, sizeof(below), "%s.%s", path, name);
    return err_add_field(d->e, below, "is required in a block of this type");
}

static int add_text(struct draft *d, const struct block_body *b, const char *path)
{
    int r = need(d, b->text, path, "text");

    if (r == 0)
        add_block(d, (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = b->text });
    return r;
}

/* {type: base64, media_type, data} */
static int add_data(struct draft *d, const struct block_body *b, enum llm_block_kind kind, const char *path)
{
    int r = need(d, b->source.media_type, path, "source.media_type");

    if (r == 0)
        r = need(d, b->source.data, path, "source.data");
    if (r == 0 && !base64_is_padded(b->source.data))
        r = err_add_field(d->e, path, "must hold base64 with its padding in source.data");
    if (r == 0)
        add_block(d, (struct llm_block){ .kind = kind, .media_type = b->source.media_type, .base64 = b->source.data, .file_name = b->title });
    return r;
}

static int add_image(struct draft *d, const struct block_body *b, const char *path)
{
    const char *type = b->source.type ? b->source.type : "", *url = b->source.url ? b->source.url : "";

    if (strcmp(type, "base64") == 0)
        return add_data(d, b, LLM_BLOCK_IMAGE_DATA, path);
    if (strcmp(type, "url") != 0 || (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0))
        return err_add_field(d->e, path, "must have a source of type base64, or of type url with an http address");
    add_block(d, (struct llm_block){ .kind = LLM_BLOCK_IMAGE_URL, .url = url });
    return 0;
}

static int add_document(struct draft *d, const struct block_body *b, const char *path)
{
    const char *type = b->source.type ? b->source.type : "", *title = b->title ? b->title : "document";

    if (strcmp(type, "base64") == 0)
        return add_data(d, b, LLM_BLOCK_FILE_DATA, path);
    if (strcmp(type, "text") != 0 || !b->source.data)
        return err_add_field(d->e, path, "must have a source of type base64 or text with its data; addresses and ids of documents are not taken");
    add_block(d, (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = arena_printf(d->a, "[%s]\n%s", title, b->source.data) });
    return 0;
}

static int add_tool_use(struct draft *d, const struct block_body *b, const char *path)
{
    int r = need(d, b->id, path, "id");

    if (r == 0)
        r = need(d, b->name, path, "name");
    if (r < 0)
        return r;
    add_piece(d, LLM_PIECE_CALL);
    d->calls[d->n_calls++] = (struct llm_tool_call){ b->id, b->name, json_is_absent(b->input) ? "{}" : json_to_str(d->a, b->input) };
    return 0;
}

static int add_tool_result(struct draft *d, const struct block_body *b, const char *path);

/* Only its maker reads a thought again, and none without what proves it. */
static int add_thought(struct draft *d, const struct block_body *b, const char *path)
{
    bool is_hidden = strcmp(b->type, "redacted_thinking") == 0;
    const char *seal = is_hidden ? b->data : b->signature;

    if (!seal || !*seal)
        return 0;
    add_piece(d, LLM_PIECE_THOUGHT);
    d->thoughts[d->n_thoughts++] = (struct llm_thought){ is_hidden ? NULL : b->thinking ? b->thinking : "", seal };
    return 0;
}

static const struct {
    const char *type;
    int (*add)(struct draft *d, const struct block_body *b, const char *path);
    unsigned where;
} kinds[] = {
    { "text", add_text, IN_SYSTEM | IN_RESULT | IN_MESSAGE },
    { "image", add_image, IN_RESULT | IN_MESSAGE },
    { "document", add_document, IN_RESULT | IN_MESSAGE },
    { "tool_use", add_tool_use, IN_MESSAGE },
    { "tool_result", add_tool_result, IN_MESSAGE },
    { "thinking", add_thought, IN_MESSAGE },
    { "redacted_thinking", add_thought, IN_MESSAGE },
};

static const char *kinds_in(unsigned where)
{
    return where == IN_SYSTEM ? "text" : where == IN_RESULT ? "text, image or document" : "text, image, document, tool_use, tool_result or thinking";
}

static int read_block(struct draft *d, struct json_value value, const char *path)
{
    struct block_body b = { 0 };
    int r = fields_read(block_fields, value, &b, d->a, path, d->e);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i].type, b.type) == 0 && kinds[i].where & d->where)
            return kinds[i].add(d, &b, path);
    return r < 0 ? r : err_add_field(d->e, path, "must be a block of type %s", kinds_in(d->where));
}

/* How many blocks a content can become, not counted far beyond the limit: those of a tool's result stand one level deeper. */
static size_t most_blocks(struct json_value content)
{
    struct json_value block;
    size_t n = 1;

    for (struct json_iter it = json_iter(content); json_type(content) == JSON_ARRAY && n <= LIMIT_BLOCKS + 1 && json_next(&it, NULL, &block);)
        n += 1 + json_length(json_get(block, "content"));
    return n;
}

static int read_content(struct draft *d, struct json_value content, const char *path)
{
    struct json_value block;
    char below[PATH_SIZE];
    size_t i = 0;
    int r = 0, r_block;

    if (json_type(content) == JSON_STRING && json_cstr(content)) {
        add_block(d, (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = json_cstr(content) });
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

/* Only text can be a tool's answer everywhere: its images follow in the user's message. */
static int add_tool_result(struct draft *d, const struct block_body *b, const char *path)
{
    size_t n_room = most_blocks(b->content);
    struct draft inner = { .a = d->a, .e = d->e, .where = IN_RESULT, .n_room = n_room, .blocks = arena_array(d->a, n_room, sizeof(struct llm_block)),
                           .order = arena_array(d->a, n_room, 1) };
    struct llm_message result = { .role = LLM_TOOL, .tool_call_id = b->tool_use_id, .blocks = inner.blocks };
    char below[PATH_SIZE + 8];
    int r = need(d, b->tool_use_id, path, "tool_use_id");

    snprintf(below, sizeof(below), "%s.content", path);
    if (r == 0 && !json_is_absent(b->content))
        r = read_content(&inner, b->content, below);
    for (size_t i = 0; i < inner.n_blocks; i++) {
        if (inner.blocks[i].kind == LLM_BLOCK_TEXT)
            inner.blocks[result.n_blocks++] = inner.blocks[i];
        else
            add_block(d, inner.blocks[i]);
    }
    add_message(d, result);
    return r;
}

/* ---- messages ---- */

static enum llm_role role_of(const char *name)
{
    return strcmp(name, "assistant") == 0 ? LLM_ASSISTANT : strcmp(name, "system") == 0 ? LLM_SYSTEM : LLM_USER;
}

static void make_room(struct draft *d, size_t n)
{
    d->n_room = n;
    d->blocks = arena_array(d->a, n, sizeof(*d->blocks));
    d->calls = arena_array(d->a, n, sizeof(*d->calls));
    d->thoughts = arena_array(d->a, n, sizeof(*d->thoughts));
    d->order = arena_array(d->a, n, sizeof(*d->order));
    d->n_blocks = d->n_calls = d->n_thoughts = d->n_order = 0;
}

static int read_message(struct draft *d, enum llm_role role, struct json_value content, const char *path)
{
    int r;

    make_room(d, most_blocks(content));
    d->where = role == LLM_SYSTEM ? IN_SYSTEM : IN_MESSAGE;
    r = read_content(d, content, path);
    if (d->n_blocks > 0 || d->n_calls > 0)
        add_message(d, (struct llm_message){ .role = role, .blocks = d->blocks, .n_blocks = d->n_blocks, .tool_calls = d->calls,
                                             .n_tool_calls = d->n_calls, .thoughts = d->thoughts, .n_thoughts = d->n_thoughts,
                                             .order = d->order, .n_order = d->n_order });
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

/* Before room is made for them. */
static int check_blocks(const struct v1_messages_body *body, struct err *e)
{
    const struct message_body *items = body->messages.items;
    char path[PATH_SIZE];

    if (most_blocks(body->instructions) > LIMIT_BLOCKS + 1)
        return err_add_field(e, "system", "must have at most %d blocks", LIMIT_BLOCKS);
    for (size_t i = 0; i < body->messages.n; i++) {
        snprintf(path, sizeof(path), "messages[%zu].content", i);
        if (most_blocks(items[i].content) > LIMIT_BLOCKS + 1)
            return err_add_field(e, path, "must have at most %d blocks, those of tools' results among them", LIMIT_BLOCKS);
    }
    return 0;
}

static int read_messages(const struct v1_messages_body *body, struct arena *a, struct llm_ask *ret, struct err *e)
{
    struct draft d = { .a = a, .e = e };
    const struct message_body *items = body->messages.items;
    char path[PATH_SIZE];
    int r = check_blocks(body, e), r_message;

    if (r < 0)
        return r;
    d.n_most = most_messages(body);
    d.messages = arena_array(a, d.n_most, sizeof(struct llm_message));
    if (!json_is_absent(body->instructions))
        r = read_message(&d, LLM_SYSTEM, body->instructions, "system");
    for (size_t i = 0; i < body->messages.n; i++) {
        snprintf(path, sizeof(path), "messages[%zu].content", i);
        r_message = read_message(&d, role_of(items[i].role), items[i].content, path);
        r = r_message < 0 ? r_message : r;
    }
    ret->messages = d.messages;
    ret->n_messages = d.n;
    return r;
}

/* ---- tools ---- */

static int read_tools(const struct v1_messages_body *body, struct arena *a, struct llm_ask *ret, struct err *e)
{
    struct llm_tool *tools = arena_array(a, body->tools.n + 1, sizeof(*tools));
    const struct tool_body *items = body->tools.items;
    char path[PATH_SIZE];
    int r = 0;

    for (size_t i = 0; i < body->tools.n; i++) {
        snprintf(path, sizeof(path), "tools[%zu].type", i);
        if (items[i].type && strcmp(items[i].type, "custom") != 0)
            r = err_add_field(e, path, "must be custom or absent: tools that a provider runs itself are not passed on");
        tools[i] = (struct llm_tool){ .name = items[i].name, .description = items[i].description, .parameters = items[i].input_schema };
    }
    ret->tools = tools;
    ret->n_tools = body->tools.n;
    return r;
}

/* In OpenAI's words, as the ask has it. */
static int read_tool_choice(const struct v1_choice_body *choice, struct arena *a, struct llm_ask *ret, struct err *e)
{
    const char *type = choice->type ? choice->type : "auto";
    struct json_writer w;
    struct buf text;
    int r;

    if (strcmp(type, "tool") == 0 && !choice->name)
        return err_add_field(e, "tool_choice.name", "is required with the type tool");
    if (strcmp(type, "tool") != 0)
        return json_parse(a, strcmp(type, "any") == 0 ? SLICE_LIT("\"required\"") : strcmp(type, "none") == 0 ? SLICE_LIT("\"none\"") : SLICE_LIT("\"auto\""),
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

int v1_anthropic_ask(const struct v1_messages_body *body, struct arena *a, struct llm_ask *ret, struct err *e)
{
    struct llm_ask ask = {
        .model = body->model,
        .max_tokens = body->max_tokens,
        .temperature = body->has_temperature ? body->temperature : -1, .has_temperature = body->has_temperature,
        .top_p = body->top_p, .has_top_p = body->has_top_p,
        .stop = body->stop_sequences,
        .thinking = body->thinking, .output_effort = body->output.effort,
    };
    int r_stops = check_stops(&body->stop_sequences, e);
    int r = read_messages(body, a, &ask, e), r_tools = read_tools(body, a, &ask, e), r_choice = read_tool_choice(&body->tool_choice, a, &ask, e);

    if (r < 0 || r_tools < 0 || r_choice < 0 || r_stops < 0)
        return -EINVAL;
    *ret = ask;
    return 0;
}
