#include "agents/builtin_answer.h"

#include "base/limits.h"

#include <stdarg.h>

static void begin(struct json_writer *w, struct buf *out)
{
    buf_init(out, LIMIT_REPLY);
    json_write_init(w, out);
    json_begin_array(w);
    json_begin_object(w);
}

static int end(struct json_writer *w, struct arena *a, struct mcp_result *ret, struct err *e)
{
    struct mcp_result result = { 0 };
    int r;

    json_end(w);
    json_end(w);
    r = buf_check(w->out, e);
    if (r == 0)
        r = json_parse(a, buf_slice(w->out), &result.content, e);
    buf_clear(w->out);
    if (r == 0)
        *ret = result;
    return r;
}

int builtin_answer_text(struct arena *a, struct slice text, struct mcp_result *ret, struct err *e)
{
    struct json_writer w;
    struct buf out;

    begin(&w, &out);
    json_add_string(&w, "type", "text");
    json_add_slice(&w, "text", text);
    return end(&w, a, ret, e);
}

int builtin_answer_printf(struct arena *a, struct mcp_result *ret, struct err *e, const char *fmt, ...)
{
    const char *text;
    va_list ap;

    va_start(ap, fmt);
    text = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return builtin_answer_text(a, slice_of(text), ret, e);
}

int builtin_answer_json(struct arena *a, struct slice json, struct mcp_result *ret, struct err *e)
{
    struct json_value structured = { 0 };
    int r = json_parse(a, json, &structured, e);

    if (r == 0)
        r = builtin_answer_text(a, json, ret, e);
    if (r == 0)
        ret->structured = structured;
    return r;
}

void builtin_answer_begin(struct json_writer *w, struct buf *out)
{
    buf_init(out, LIMIT_REPLY);
    json_write_init(w, out);
    json_begin_object(w);
}

int builtin_answer_finish(struct json_writer *w, struct arena *a, struct mcp_result *ret, struct err *e)
{
    int r;

    json_end(w);
    r = buf_check(w->out, e);
    if (r == 0)
        r = builtin_answer_json(a, buf_slice(w->out), ret, e);
    buf_clear(w->out);
    return r;
}

int builtin_answer_image(struct arena *a, const char *type, const char *base64, struct mcp_result *ret, struct err *e)
{
    struct json_writer w;
    struct buf out;

    begin(&w, &out);
    json_add_string(&w, "type", "image");
    json_add_string(&w, "data", base64);
    json_add_string(&w, "mimeType", type);
    return end(&w, a, ret, e);
}

static bool is_inside_character(struct slice text, size_t at)
{
    return at < text.n && ((unsigned char)text.p[at] & 0xc0) == 0x80;
}

struct builtin_page builtin_page_of(struct slice text, int64_t start)
{
    size_t from = start > 0 ? MIN((size_t)start, text.n) : 0, n;

    while (is_inside_character(text, from))
        from++;
    n = MIN(text.n - from, (size_t)LIMIT_TOOL_TEXT);
    while (n > 0 && is_inside_character(text, from + n))
        n--;
    return (struct builtin_page){ .text = { text.p + from, n }, .start = from, .n_left = text.n - from - n };
}
