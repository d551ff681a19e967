#include "net/sse_reader.h"

#include "base/limits.h"

enum { WINDOW = 512, MOST_RETRY_MS = 24 * 3600 * 1000 };

void sse_reader_init(struct sse_reader *r, int (*on_event)(void *arg, const struct sse_event *ev), void *arg)
{
    *r = (struct sse_reader){ .on_event = on_event, .arg = arg, .retry_ms = -1 };
    buf_init(&r->line, LIMIT_SSE_EVENT);
    buf_init(&r->data, LIMIT_SSE_EVENT);
}

void sse_reader_limit(struct sse_reader *r, size_t max_event)
{
    r->line.max = r->data.max = max_event;
}

void sse_reader_clear(struct sse_reader *r)
{
    buf_clear(&r->line);
    buf_clear(&r->data);
}

/* Copies the first line of data into `data`; until then it stays in the bytes being fed. */
static void keep_first(struct sse_reader *r)
{
    buf_add_slice(&r->data, r->first);
    r->first = (struct slice){ NULL, 0 };
}

/* Section 9.2.6: an event without data is not dispatched. */
static int dispatch(struct sse_reader *r)
{
    struct sse_event event = { .event = *r->event ? slice_of(r->event) : SLICE_LIT("message"), .id = slice_of(r->id) };
    int result = 0;

    if (r->has_data) {
        event.data = r->first.n > 0 ? r->first : buf_slice(&r->data);
        result = r->on_event(r->arg, &event);
    }
    buf_reset(&r->data);
    r->first = (struct slice){ NULL, 0 };
    r->has_data = false;
    r->event[0] = '\0';
    return result;
}

static void add_data(struct sse_reader *r, struct slice value)
{
    if (!r->has_data) {
        r->has_data = true;
        r->first = value;
        if (value.n > r->data.max)
            keep_first(r); /* overflows */
        return;
    }
    keep_first(r);
    buf_add_char(&r->data, '\n');
    buf_add_slice(&r->data, value);
}

/* A value too long for a known name is treated as empty. */
static void keep(char *to, size_t size, struct slice value)
{
    size_t n = value.n < size ? value.n : 0;

    if (n > 0)
        memcpy(to, value.p, n);
    to[n] = '\0';
}

/* Digits only, otherwise the field is ignored; a number beyond the maximum counts as the maximum. */
static void take_retry(struct sse_reader *r, struct slice value)
{
    int64_t ms = 0;

    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return;
        ms = MIN(10 * ms + value.p[i] - '0', (int64_t)MOST_RETRY_MS);
    }
    if (value.n > 0)
        r->retry_ms = ms;
}

static void take_field(struct sse_reader *r, struct slice name, struct slice value)
{
    if (slice_eq_str(name, "data"))
        add_data(r, value);
    else if (slice_eq_str(name, "event"))
        keep(r->event, sizeof(r->event), value);
    else if (slice_eq_str(name, "id") && (value.n == 0 || !memchr(value.p, 0, value.n)))
        keep(r->id, sizeof(r->id), value);
    else if (slice_eq_str(name, "retry"))
        take_retry(r, value);
}

static int take_line(struct sse_reader *r, struct slice line)
{
    const char *colon = line.n > 0 ? memchr(line.p, ':', line.n) : NULL;
    struct slice name = line, value = { NULL, 0 };

    if (line.n == 0)
        return dispatch(r);
    if (colon) {
        name.n = (size_t)(colon - line.p);
        value = (struct slice){ colon + 1, line.n - name.n - 1 };
        if (value.n > 0 && value.p[0] == ' ')
            value = (struct slice){ value.p + 1, value.n - 1 };
    }
    take_field(r, name, value);
    return 0;
}

/* Bytes up to the next line end; n when there is none. Searches in windows: when one kind of line end never occurs, the
 * search for it does not scan all bytes each time. */
static size_t line_length(struct slice bytes)
{
    for (size_t at = 0; at < bytes.n; at += WINDOW) {
        size_t n = MIN(bytes.n - at, (size_t)WINDOW);
        const char *lf = memchr(bytes.p + at, '\n', n);
        const char *cr = memchr(bytes.p + at, '\r', lf ? (size_t)(lf - bytes.p) - at : n);

        if (cr || lf)
            return (size_t)((cr ? cr : lf) - bytes.p);
    }
    return bytes.n;
}

static struct slice skip(struct slice bytes, size_t n)
{
    return (struct slice){ bytes.p + n, bytes.n - n };
}

/* Takes one complete line from the front, or keeps the rest for later. */
static int take_piece(struct sse_reader *r, struct slice *bytes)
{
    size_t n = line_length(*bytes);
    struct slice line = { bytes->p, n };
    bool is_whole = n < bytes->n;
    int result;

    if (r->line.n > 0 || !is_whole) {
        buf_add_slice(&r->line, line);
        line = buf_slice(&r->line);
    }
    if (!is_whole) {
        *bytes = skip(*bytes, n);
        return 0;
    }
    r->had_cr = bytes->p[n] == '\r';
    *bytes = skip(*bytes, n + 1);
    result = r->line.overflowed ? 0 : take_line(r, line);
    if (r->line.n > 0 && !r->line.overflowed) {
        keep_first(r);
        buf_reset(&r->line);
    }
    return result;
}

/* Drops a byte order mark before the first line; the mark may arrive split. */
static void drop_mark(struct sse_reader *r)
{
    static const char mark[] = "\xef\xbb\xbf";

    if (r->is_begun || (r->line.n < 3 && memcmp(buf_str(&r->line), mark, r->line.n) == 0))
        return;
    if (memcmp(r->line.p, mark, 3) == 0)
        buf_consume(&r->line, 3);
    r->is_begun = true;
}

/* Adds the first bytes to the line buffer one by one until it is clear whether they are a byte order mark. */
static struct slice feed_begin(struct sse_reader *r, struct slice bytes)
{
    if (r->line.n == 0 && bytes.n > 0 && bytes.p[0] != '\xef')
        r->is_begun = true;
    while (!r->is_begun && bytes.n > 0 && bytes.p[0] != '\r' && bytes.p[0] != '\n') {
        buf_add_char(&r->line, bytes.p[0]);
        bytes = skip(bytes, 1);
        drop_mark(r);
    }
    r->is_begun = r->is_begun || bytes.n > 0;
    return bytes;
}

int sse_reader_feed(struct sse_reader *r, struct slice bytes, struct err *e)
{
    int result = 0;

    if (!r->is_begun)
        bytes = feed_begin(r, bytes);
    while (result == 0 && bytes.n > 0 && !r->line.overflowed && !r->data.overflowed) {
        bool is_second_half = r->had_cr && bytes.p[0] == '\n'; /* of CR LF */

        r->had_cr = false;
        if (is_second_half)
            bytes = skip(bytes, 1);
        else
            result = take_piece(r, &bytes);
    }
    keep_first(r);
    if (result < 0)
        return result;
    if (r->line.overflowed || r->data.overflowed)
        return err_set(e, -EMSGSIZE, "UPSTREAM_TOO_LARGE", "The upstream sent an event of more than %zu bytes.",
                       r->data.max);
    return 0;
}
