/* Results of tools: content blocks of MCP as the model's message and as rich blocks for people. */
#include "agents/loop_private.h"
#include "agents/message.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <string.h>

/* ---- for the model ---- */

/* Most bytes of a server's words that name a resource or a type of content. */
enum { NAME_BYTES = 500, URI_BYTES = 2000, TYPE_BYTES = 80 };

struct gathering {
    struct arena *arena;
    struct buf text;
    struct llm_block images[LIMIT_TOOL_RESULT_IMAGES];
    size_t n_images;
};

/* Texts of JSON may hold NUL, texts of messages may not. */
static void add_line(struct gathering *g, struct slice text)
{
    size_t begin = g->text.n + (g->text.n > 0);

    if (g->text.n > 0)
        buf_add_char(&g->text, '\n');
    buf_add_slice(&g->text, text);
    for (char *at; begin < g->text.n && (at = memchr(g->text.p + begin, '\0', g->text.n - begin));)
        *at = ' ';
}

static void add_image(struct gathering *g, struct json_value block)
{
    if (g->n_images == LIMIT_TOOL_RESULT_IMAGES || !agent_message_image(block, &g->images[g->n_images])) {
        add_line(g, SLICE_LIT("[an image that cannot be shown to the model]"));
        return;
    }
    g->n_images++;
    add_line(g, slice_of(arena_printf(g->arena, "[image %zu]", g->n_images)));
}

static const char *or_nothing(const char *text)
{
    return text ? text : "";
}

/* The server's text in at most max bytes. */
static const char *shortened(struct arena *a, const char *text, size_t max)
{
    return arena_slicedup(a, utf8_head(slice_of(or_nothing(text)), max));
}

static void add_link(struct gathering *g, struct json_value link)
{
    const char *uri = json_cstr(json_get(link, "uri")), *name = json_cstr(json_get(link, "name"));

    add_line(g, slice_of(arena_printf(g->arena, "[resource %s %s]", shortened(g->arena, name, NAME_BYTES),
                                      shortened(g->arena, uri, URI_BYTES))));
}

static void add_resource(struct gathering *g, struct json_value resource)
{
    struct json_value text = json_get(resource, "text");

    if (json_type(text) == JSON_STRING) {
        add_line(g, json_string(text));
        return;
    }
    add_link(g, resource);
}

static void add_block(struct gathering *g, struct json_value block)
{
    const char *type = or_nothing(json_cstr(json_get(block, "type")));

    if (strcmp(type, "text") == 0)
        add_line(g, json_string(json_get(block, "text")));
    else if (strcmp(type, "image") == 0)
        add_image(g, block);
    else if (strcmp(type, "resource_link") == 0)
        add_link(g, block);
    else if (strcmp(type, "resource") == 0)
        add_resource(g, json_get(block, "resource"));
    else
        add_line(g, slice_of(arena_printf(g->arena, "[content of the type %s, which cannot be shown to the model]",
                                          shortened(g->arena, type, TYPE_BYTES))));
}

/* Cut at a whole character. */
static const char *cut(struct arena *a, struct slice text, bool *ret_is_cut)
{
    const struct slice head = utf8_head(text, LIMIT_TOOL_RESULT_BYTES);

    *ret_is_cut = head.n < text.n;
    if (!*ret_is_cut)
        return arena_slicedup(a, text);
    return arena_printf(a, "%.*s\n[The result was cut here: %zu of its %zu bytes are shown.]", (int)head.n, head.p,
                        head.n, text.n);
}

static void finish(struct gathering *g, struct loop_result *ret)
{
    struct llm_block *blocks = arena_array(g->arena, g->n_images + 1, sizeof(*blocks));
    const char *text = cut(g->arena, buf_slice(&g->text), &ret->is_cut);

    blocks[0] = (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = *text ? text : "(no output)" };
    memcpy(blocks + 1, g->images, g->n_images * sizeof(*blocks));
    ret->blocks = blocks;
    ret->n_blocks = g->n_images + 1;
    buf_clear(&g->text);
}

void loop_result_of(struct arena *a, const struct mcp_result *from, struct loop_result *ret)
{
    struct gathering *g = ARENA_NEW(a, struct gathering);
    struct json_value block;

    g->arena = a;
    buf_init(&g->text, LIMIT_REPLY);
    for (struct json_iter it = json_iter(from->content); json_next(&it, NULL, &block);)
        add_block(g, block);
    if (g->text.n == 0 && !json_is_absent(from->structured))
        json_print(&g->text, from->structured);
    finish(g, ret);
    ret->is_error = from->is_error;
}

void loop_result_text(struct arena *a, const char *text, struct loop_result *ret)
{
    struct llm_block *block = ARENA_NEW(a, struct llm_block);

    *block = (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = arena_strdup(a, text) };
    *ret = (struct loop_result){ .blocks = block, .n_blocks = 1, .is_error = true };
}

/* ---- for people ---- */

static void show(const struct turn *t, const char *data_type, struct buf *json)
{
    struct json_value data = { 0 };

    if (!json->overflowed && json_parse(t->arena, buf_slice(json), &data, NULL) == 0)
        t->l->on->on_block(t->l->on->arg, data_type, data);
    buf_clear(json);
}

/* Arguments may be no JSON: then they are shown as text. */
static void add_input(const struct turn *t, struct json_writer *w, const char *arguments)
{
    struct json_value input = { 0 };

    if (arguments && *arguments && json_parse(t->arena, slice_of(arguments), &input, NULL) == 0)
        json_add_value(w, "input", input);
    else
        json_add_string(w, "input", arguments);
}

static void show_use(const struct turn *t, const struct agent_step *step)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "toolName", step->tool_name);
    add_input(t, &w, step->arguments);
    json_add_string(&w, "content", step->message->blocks[0].text);
    json_add_string(&w, "status", step->is_error ? "failed" : "completed");
    json_end(&w);
    show(t, "toolUse", &out);
}

static void show_image(const struct turn *t, const struct agent_step *step, const struct llm_block *image)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "toolName", step->tool_name);
    json_add_string(&w, "mimeType", image->media_type);
    json_add_string(&w, "data", image->base64);
    json_end(&w);
    show(t, "image", &out);
}

static bool is_file(struct json_value block)
{
    const char *type = or_nothing(json_cstr(json_get(block, "type")));

    return strcmp(type, "resource_link") == 0 || strcmp(type, "resource") == 0;
}

static void add_file(struct json_writer *w, struct json_value block)
{
    static const char *const members[] = { "uri", "name", "title", "mimeType", "size" };
    struct json_value inner = json_get(block, "resource"), from = json_is_absent(inner) ? block : inner;

    json_begin_object(w);
    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        if (!json_is_absent(json_get(from, members[i])))
            json_add_value(w, members[i], json_get(from, members[i]));
    json_end(w);
}

static void show_files(const struct turn *t, const struct agent_step *step, struct json_value content)
{
    struct json_value block;
    struct json_writer w;
    size_t n = 0;
    struct buf out;

    buf_init(&out, MIB(1));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "toolName", step->tool_name);
    json_begin_array_as(&w, "files");
    for (struct json_iter it = json_iter(content); json_next(&it, NULL, &block);)
        if (is_file(block)) {
            add_file(&w, block);
            n++;
        }
    json_end(&w);
    json_end(&w);
    if (n > 0)
        show(t, "files", &out);
    buf_clear(&out);
}

void loop_result_show(const struct turn *t, const struct agent_step *step, const struct mcp_result *from)
{
    if (!t->l->on->on_block)
        return;
    show_use(t, step);
    for (size_t i = 1; i < step->message->n_blocks; i++)
        show_image(t, step, &step->message->blocks[i]);
    show_files(t, step, from->content);
    if (json_type(from->structured) == JSON_OBJECT)
        t->l->on->on_block(t->l->on->arg, "json", from->structured);
}
