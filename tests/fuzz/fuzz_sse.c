/* Streams of events and of lines, fed in pieces whose size the first byte chooses: splitting must not change the
 * result. */
#include "net/line_reader.h"
#include "net/sse_reader.h"

#include <assert.h>

enum { MAX_REPORTED = 1 << 20 };

static int note_event(void *arg, const struct sse_event *ev)
{
    struct buf *out = arg;

    buf_add_slice(out, ev->event);
    buf_add_char(out, '|');
    buf_add_slice(out, ev->id);
    buf_add_char(out, '|');
    buf_add_slice(out, ev->data);
    buf_add_char(out, '\n');
    return 0;
}

static int note_line(void *arg, struct slice line)
{
    assert(line.n > 0 && !memchr(line.p, '\n', line.n));
    buf_add_slice(arg, line);
    buf_add_char(arg, '\n');
    return 0;
}

static struct buf read_events(struct slice text, size_t piece)
{
    struct sse_reader reader;
    struct buf out;

    buf_init(&out, MAX_REPORTED);
    sse_reader_init(&reader, note_event, &out);
    for (size_t at = 0; at < text.n; at += piece)
        if (sse_reader_feed(&reader, (struct slice){ text.p + at, MIN(piece, text.n - at) }, NULL) < 0)
            break;
    sse_reader_clear(&reader);
    return out;
}

static struct buf read_lines(struct slice text, size_t piece)
{
    struct line_reader reader;
    struct buf out;

    buf_init(&out, MAX_REPORTED);
    line_reader_init(&reader, note_line, &out);
    for (size_t at = 0; at < text.n; at += piece)
        if (line_reader_feed(&reader, (struct slice){ text.p + at, MIN(piece, text.n - at) }, NULL) < 0)
            break;
    (void)!line_reader_end(&reader);
    line_reader_clear(&reader);
    return out;
}

static void compare(struct buf (*read)(struct slice text, size_t piece), struct slice text, size_t piece)
{
    struct buf split = read(text, piece), whole = read(text, text.n);

    assert(slice_eq(buf_slice(&split), buf_slice(&whole)));
    buf_clear(&split);
    buf_clear(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data + 1, size - 1 };

    if (size < 2)
        return 0;
    compare(read_events, text, (size_t)data[0] % 32 + 1);
    compare(read_lines, text, (size_t)data[0] % 32 + 1);
    return 0;
}
