/* Answers of servers on this machine (src/net/plain_reader.h), fed in pieces whose size the first byte chooses: neither
 * splitting nor pausing after each piece of the body may change the result. */
#include "net/plain_reader.h"

#include "base/limits.h"

#include <assert.h>
#include <stdlib.h>

enum { MOST_BODY = 1 << 20 };

struct reading {
    struct transfer transfer; /* first */
    struct buf head, body;
    size_t n_heads;
    bool pauses;
};

static void on_head(struct transfer *t)
{
    struct reading *r = CONTAINER_OF(t, struct reading, transfer);

    r->n_heads++;
    assert(t->head.status >= 200 && t->head.status <= 999 && t->head.n_headers <= LIMIT_UPSTREAM_HEADERS);
    for (size_t i = 0; i < t->head.n_headers; i++)
        buf_printf(&r->head, "%s=%s\n", t->head.headers[i].name, t->head.headers[i].value);
}

static size_t on_bytes(struct transfer *t, struct slice bytes)
{
    struct reading *r = CONTAINER_OF(t, struct reading, transfer);

    assert(r->n_heads == 1 && !t->is_paused);
    buf_add_slice(&r->body, bytes);
    t->is_paused = r->pauses;
    return bytes.n;
}

static void feed(struct plain_reader *reader, struct slice bytes)
{
    while (bytes.n > 0 && !reader->is_complete && reader->transfer->stop == 0) {
        size_t n;

        reader->transfer->is_paused = false;
        n = plain_reader_feed(reader, bytes);
        assert(n <= bytes.n &&
               (n == bytes.n || reader->is_complete || reader->transfer->is_paused || reader->transfer->stop < 0));
        bytes = (struct slice){ bytes.p + n, bytes.n - n };
    }
}

/* Each piece is a block of its own, so that a read beyond its end is found. */
static void read_answer(struct reading *r, struct slice text, size_t piece, bool pauses)
{
    struct plain_reader reader = { .is_complete = false };

    *r = (struct reading){ .transfer = { .on_head = on_head, .on_bytes = on_bytes }, .pauses = pauses };
    r->transfer.peer = xstrdup("peer:1");
    buf_init(&r->head, 2 * LIMIT_UPSTREAM_HEAD);
    buf_init(&r->body, MOST_BODY);
    plain_reader_init(&reader, &r->transfer);
    for (size_t at = 0; at < text.n; at += piece) {
        size_t n = MIN(piece, text.n - at);
        char *copy = xcalloc(1, n);

        memcpy(copy, text.p + at, n);
        feed(&reader, (struct slice){ copy, n });
        free(copy);
    }
    r->transfer.is_paused = false;
    plain_reader_end(&reader);
    buf_add_char(&r->head, reader.is_complete ? 'c' : 'i');
    plain_reader_clear(&reader);
}

static void clear(struct reading *r)
{
    buf_clear(&r->head);
    buf_clear(&r->body);
    transfer_clear(&r->transfer);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n)
{
    struct slice text = { (const char *)bytes + 1, n - 1 };
    struct reading whole, parts;

    if (n < 2)
        return 0;
    read_answer(&whole, text, text.n, false);
    read_answer(&parts, text, 1 + bytes[0] % 64, true);
    assert(whole.transfer.stop == parts.transfer.stop);
    if (whole.transfer.stop == 0)
        assert(slice_eq(buf_slice(&whole.head), buf_slice(&parts.head)) &&
               slice_eq(buf_slice(&whole.body), buf_slice(&parts.body)));
    clear(&whole);
    clear(&parts);
    return 0;
}
