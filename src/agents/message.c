#include "agents/message.h"

#include "base/base64.h"
#include "base/json_write.h"
#include "base/limits.h"

#include <string.h>

static const char *const roles[] = {
    [LLM_SYSTEM] = "system", [LLM_USER] = "user", [LLM_ASSISTANT] = "assistant", [LLM_TOOL] = "tool"
};

static const struct {
    enum llm_block_kind kind;
    const char *type;
} kinds[] = {
    { LLM_BLOCK_TEXT, "text" },      { LLM_BLOCK_IMAGE_URL, "image_url" }, { LLM_BLOCK_IMAGE_DATA, "image" },
    { LLM_BLOCK_FILE_DATA, "file" }, { LLM_BLOCK_FILE_URL, "file_url" },
};

const char *agent_role_name(enum llm_role role)
{
    return roles[role];
}

static bool takes_type(const char *type)
{
    static const char *const types[] = { "image/png", "image/jpeg", "image/gif", "image/webp" };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

bool agent_message_image(struct json_value block, struct llm_block *ret)
{
    const char *type = json_cstr(json_get(block, "mimeType")), *data = json_cstr(json_get(block, "data"));

    *ret = (struct llm_block){ .kind = LLM_BLOCK_IMAGE_DATA, .media_type = type, .base64 = data };
    return type && data && takes_type(type) && strlen(data) <= LIMIT_TOOL_IMAGE_BYTES && base64_is_padded(data);
}

/* ---- writing ---- */

static void add_text(struct json_writer *w, const char *name, const char *text)
{
    if (text)
        json_add_string(w, name, text);
}

static void write_block(struct json_writer *w, const struct llm_block *block)
{
    json_begin_object(w);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (kinds[i].kind == block->kind)
            json_add_string(w, "type", kinds[i].type);
    add_text(w, "text", block->text);
    add_text(w, "url", block->url);
    add_text(w, "media_type", block->media_type);
    add_text(w, "data", block->base64);
    add_text(w, "filename", block->file_name);
    add_text(w, "detail", block->detail);
    json_end(w);
}

static void write_content(struct json_writer *w, const struct llm_message *m)
{
    if (m->n_blocks == 0)
        return;
    if (m->n_blocks == 1 && m->blocks[0].kind == LLM_BLOCK_TEXT) {
        json_add_string(w, "content", m->blocks[0].text);
        return;
    }
    json_begin_array_as(w, "content");
    for (size_t i = 0; i < m->n_blocks; i++)
        write_block(w, &m->blocks[i]);
    json_end(w);
}

static void write_calls(struct json_writer *w, const struct llm_message *m)
{
    if (m->n_tool_calls == 0)
        return;
    json_begin_array_as(w, "tool_calls");
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        json_begin_object(w);
        add_text(w, "id", m->tool_calls[i].id);
        add_text(w, "name", m->tool_calls[i].name);
        add_text(w, "arguments", m->tool_calls[i].arguments);
        add_text(w, "extra", m->tool_calls[i].extra);
        json_end(w);
    }
    json_end(w);
}

static void write_thoughts(struct json_writer *w, const struct llm_message *m)
{
    add_text(w, "reasoning", m->reasoning);
    if (m->n_thoughts > 0) {
        json_begin_array_as(w, "thoughts");
        for (size_t i = 0; i < m->n_thoughts; i++) {
            json_begin_object(w);
            add_text(w, "text", m->thoughts[i].text);
            add_text(w, "signature", m->thoughts[i].signature);
            json_end(w);
        }
        json_end(w);
    }
    if (m->n_order > 0) {
        json_begin_array_as(w, "order");
        for (size_t i = 0; i < m->n_order; i++)
            json_add_int(w, NULL, m->order[i]);
        json_end(w);
    }
}

void agent_message_print(struct buf *out, const struct llm_message *m)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "role", roles[m->role]);
    write_content(&w, m);
    write_calls(&w, m);
    add_text(&w, "tool_call_id", m->tool_call_id);
    add_text(&w, "name", m->name);
    if (m->is_error)
        json_add_bool(&w, "is_error", true);
    write_thoughts(&w, m);
    json_end(&w);
}

/* ---- reading ---- */

static enum llm_role role_of(struct json_value name)
{
    for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
        if (slice_eq_str(json_string(name), roles[i]))
            return (enum llm_role)i;
    return LLM_USER;
}

static struct llm_block block_of(struct json_value v)
{
    struct llm_block block = { .text = json_cstr(json_get(v, "text")),
                               .url = json_cstr(json_get(v, "url")),
                               .media_type = json_cstr(json_get(v, "media_type")),
                               .base64 = json_cstr(json_get(v, "data")),
                               .file_name = json_cstr(json_get(v, "filename")),
                               .detail = json_cstr(json_get(v, "detail")) };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (slice_eq_str(json_string(json_get(v, "type")), kinds[i].type))
            block.kind = kinds[i].kind;
    if (block.kind == LLM_BLOCK_TEXT && !block.text)
        block.text = "";
    return block;
}

static void read_content(struct arena *a, struct json_value content, struct llm_message *ret)
{
    size_t n = json_type(content) == JSON_ARRAY ? json_length(content) : json_type(content) == JSON_STRING;
    struct llm_block *blocks = arena_array(a, n + 1, sizeof(*blocks));
    struct json_value item;

    ret->blocks = blocks;
    if (json_type(content) == JSON_STRING) {
        const char *text = json_cstr(content);

        blocks[ret->n_blocks++] = (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = text ? text : "" };
        return;
    }
    for (struct json_iter it = json_iter(content); n > 0 && json_next(&it, NULL, &item);)
        blocks[ret->n_blocks++] = block_of(item);
}

static void read_calls(struct arena *a, struct json_value list, struct llm_message *ret)
{
    struct llm_tool_call *calls = arena_array(a, json_length(list) + 1, sizeof(*calls));
    struct json_value item;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);) {
        const char *id = json_cstr(json_get(item, "id")), *name = json_cstr(json_get(item, "name")),
                   *arguments = json_cstr(json_get(item, "arguments"));

        calls[ret->n_tool_calls++] =
            (struct llm_tool_call){ id ? id : "", name ? name : "", arguments ? arguments : "{}",
                                    json_cstr(json_get(item, "extra")) };
    }
    ret->tool_calls = calls;
}

static void read_thoughts(struct arena *a, struct json_value list, struct llm_message *ret)
{
    struct llm_thought *thoughts = arena_array(a, json_length(list) + 1, sizeof(*thoughts));
    struct json_value item;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        thoughts[ret->n_thoughts++] =
            (struct llm_thought){ json_cstr(json_get(item, "text")), json_cstr(json_get(item, "signature")) };
    ret->thoughts = thoughts;
}

static void read_order(struct arena *a, struct json_value list, struct llm_message *ret)
{
    unsigned char *order = arena_alloc(a, json_length(list) + 1);
    struct json_value item;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        order[ret->n_order++] = (unsigned char)json_int(item);
    ret->order = ret->n_order > 0 ? order : NULL;
}

int agent_message_read(struct arena *a, const char *text, struct llm_message *ret, struct err *e)
{
    struct json_value v = { 0 };
    int r = json_parse(a, slice_of(text), &v, e);

    if (r < 0)
        return r;
    *ret = (struct llm_message){ .role = role_of(json_get(v, "role")),
                                 .tool_call_id = json_cstr(json_get(v, "tool_call_id")),
                                 .name = json_cstr(json_get(v, "name")),
                                 .is_error = json_bool(json_get(v, "is_error")),
                                 .reasoning = json_cstr(json_get(v, "reasoning")) };
    read_content(a, json_get(v, "content"), ret);
    read_calls(a, json_get(v, "tool_calls"), ret);
    read_thoughts(a, json_get(v, "thoughts"), ret);
    read_order(a, json_get(v, "order"), ret);
    return 0;
}

struct llm_message agent_message_of(struct arena *a, enum llm_role role, const char *text)
{
    struct llm_block *block = ARENA_NEW(a, struct llm_block);

    *block = (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = text };
    return (struct llm_message){ .role = role, .blocks = block, .n_blocks = 1 };
}

char *agent_message_text(struct arena *a, const struct llm_message *m)
{
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    for (size_t i = 0; i < m->n_blocks; i++)
        if (m->blocks[i].kind == LLM_BLOCK_TEXT)
            buf_add_str(&out, m->blocks[i].text);
    return buf_to_arena(&out, a);
}
