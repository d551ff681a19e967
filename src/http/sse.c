#include "http/sse.h"
#include "base/limits.h"

#include <string.h>

struct http_stream *stream_start_as(struct http_exchange *x, const char *content_type)
{
    x->response.content_type = content_type;
    if (!http_has_response_header(x, "cache-control"))
        http_response_header(x, "cache-control", "no-store");
    http_response_header(x, "x-accel-buffering", "no");
    return http_stream_start(x);
}

struct http_stream *sse_start(struct http_exchange *x)
{
    return stream_start_as(x, "text/event-stream");
}

/* Adds "name: value" on one line: characters that would end the line are left out. */
static void add_field(struct buf *out, const char *name, const char *value)
{
    if (!value)
        return;
    buf_add_str(out, name);
    for (const char *c = value; *c; c++)
        if (*c != '\r' && *c != '\n')
            buf_add_char(out, *c);
    buf_add_char(out, '\n');
}

/* The bytes of text up to a line end, which may be CR LF, CR or LF (section 9.2.5). */
static struct slice next_line(struct slice *text)
{
    struct slice line = { text->p, 0 };
    size_t end;

    while (line.n < text->n && text->p[line.n] != '\r' && text->p[line.n] != '\n')
        line.n++;
    end = line.n;
    if (end < text->n)
        end += text->p[end] == '\r' && end + 1 < text->n && text->p[end + 1] == '\n' ? 2 : 1;
    *text = (struct slice){ text->p + end, text->n - end };
    return line;
}

static bool has_line_end(struct slice text)
{
    return text.n > 0 && (memchr(text.p, '\n', text.n) || memchr(text.p, '\r', text.n));
}

static void add_lines(struct buf *out, const char *prefix, struct slice text)
{
    bool has_more = has_line_end(text); /* without one, no byte need be looked at: many events are one long line */

    do {
        size_t before = text.n;
        struct slice line = has_more ? next_line(&text) : text;

        has_more = has_more && before > line.n; /* a line end was found: a line follows, even if empty */
        buf_add_str(out, prefix);
        buf_add_slice(out, line);
        buf_add_char(out, '\n');
    } while (has_more);
}

static int push_and_clear(struct http_stream *s, struct buf *event)
{
    int r;

    buf_add_char(event, '\n');
    r = event->overflowed ? -E2BIG : http_stream_push(s, buf_slice(event));
    buf_clear(event);
    return r;
}

int sse_push(struct http_stream *s, const char *event, const char *id, struct slice data)
{
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    add_field(&out, "event: ", event);
    add_field(&out, "id: ", id);
    add_lines(&out, "data: ", data);
    return push_and_clear(s, &out);
}
