#include "net/line_reader.h"

#include "base/limits.h"

void line_reader_init(struct line_reader *r, int (*on_line)(void *arg, struct slice line), void *arg)
{
    *r = (struct line_reader){ .on_line = on_line, .arg = arg };
    buf_init(&r->line, LIMIT_SSE_EVENT);
}

void line_reader_clear(struct line_reader *r)
{
    buf_clear(&r->line);
}

static int take_line(struct line_reader *r, struct slice line)
{
    while (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    return line.n > 0 ? r->on_line(r->arg, line) : 0;
}

int line_reader_end(struct line_reader *r)
{
    int result = take_line(r, buf_slice(&r->line));

    buf_reset(&r->line);
    return result;
}

int line_reader_feed(struct line_reader *r, struct slice bytes, struct err *e)
{
    const char *end;
    int result = 0;

    while (result == 0 && bytes.n > 0 && !r->line.overflowed && (end = memchr(bytes.p, '\n', bytes.n))) {
        struct slice line = { bytes.p, (size_t)(end - bytes.p) };

        bytes = (struct slice){ end + 1, bytes.n - line.n - 1 };
        if (r->line.n == 0 && line.n <= r->line.max) {
            result = take_line(r, line);
            continue;
        }
        buf_add_slice(&r->line, line);
        if (!r->line.overflowed)
            result = line_reader_end(r);
    }
    if (result < 0)
        return result;
    buf_add_slice(&r->line, bytes);
    if (r->line.overflowed)
        return err_set(e, -EMSGSIZE, "UPSTREAM_TOO_LARGE", "The upstream sent a line of more than %d bytes.",
                       LIMIT_SSE_EVENT);
    return 0;
}
