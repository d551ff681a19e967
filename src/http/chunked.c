#include "http/chunked.h"
#include "base/limits.h"

enum { SIZE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER, TRAILER_LF, DONE };

enum { MAX_SIZE_DIGITS = 8, MAX_EXTRA_BYTES = LIMIT_HEADER_BYTES };

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 'a' - 'A';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* After the digits: the end of the line, or an extension, perhaps after a blank. */
static enum http_refusal end_of_size(struct http_chunked *c, char byte)
{
    if (c->n_digits == 0 || (byte != '\r' && byte != ';' && byte != ' ' && byte != '\t'))
        return REFUSE_CHUNK;
    c->step = byte == '\r' ? SIZE_LF : EXTENSION;
    return REFUSE_NONE;
}

static enum http_refusal read_size(struct http_chunked *c, char byte)
{
    int digit = hex_value(byte);

    if (digit < 0)
        return end_of_size(c, byte);
    if (++c->n_digits > MAX_SIZE_DIGITS)
        return REFUSE_CHUNK;
    c->left = c->left * 16 + (size_t)digit;
    return REFUSE_NONE;
}

static bool is_text(char byte)
{
    return (unsigned char)byte >= 0x20 ? byte != 0x7f : byte == '\t';
}

static enum http_refusal read_extension(struct http_chunked *c, char byte)
{
    if (byte == '\r')
        c->step = SIZE_LF;
    else if (!is_text(byte) || ++c->n_extra > MAX_EXTRA_BYTES)
        return REFUSE_CHUNK;
    return REFUSE_NONE;
}

static enum http_refusal end_of_size_line(struct http_chunked *c, char byte)
{
    if (byte != '\n')
        return REFUSE_CHUNK;
    c->step = c->left > 0 ? DATA : TRAILER;
    c->line_bytes = 0;
    return REFUSE_NONE;
}

static enum http_refusal read_data_cr(struct http_chunked *c, char byte)
{
    c->step = DATA_LF;
    return byte == '\r' ? REFUSE_NONE : REFUSE_CHUNK;
}

static enum http_refusal read_data_lf(struct http_chunked *c, char byte)
{
    c->step = SIZE;
    c->n_digits = 0;
    return byte == '\n' ? REFUSE_NONE : REFUSE_CHUNK;
}

static enum http_refusal read_trailer(struct http_chunked *c, char byte)
{
    if (byte == '\r') {
        c->step = TRAILER_LF;
        return REFUSE_NONE;
    }
    c->line_bytes++;
    return is_text(byte) && ++c->n_extra <= MAX_EXTRA_BYTES ? REFUSE_NONE : REFUSE_TRAILER;
}

static enum http_refusal end_of_trailer_line(struct http_chunked *c, char byte)
{
    if (byte != '\n')
        return REFUSE_TRAILER;
    c->step = c->line_bytes > 0 ? TRAILER : DONE;
    c->line_bytes = 0;
    return REFUSE_NONE;
}

static enum http_refusal (*const steps[])(struct http_chunked *c, char byte) = {
    [SIZE] = read_size,
    [EXTENSION] = read_extension,
    [SIZE_LF] = end_of_size_line,
    [DATA_CR] = read_data_cr,
    [DATA_LF] = read_data_lf,
    [TRAILER] = read_trailer,
    [TRAILER_LF] = end_of_trailer_line,
};

static size_t take_data(struct http_chunked *c, struct slice bytes, struct buf *body)
{
    size_t n = MIN(bytes.n, c->left);

    buf_add(body, bytes.p, n);
    c->left -= n;
    if (c->left == 0)
        c->step = DATA_CR;
    return n;
}

enum http_refusal http_chunked_feed(struct http_chunked *c, struct slice bytes, struct buf *body, size_t *ret_used)
{
    enum http_refusal why = REFUSE_NONE;
    size_t at = 0;

    while (at < bytes.n && c->step != DONE && !why) {
        if (c->step == DATA)
            at += take_data(c, (struct slice){ bytes.p + at, bytes.n - at }, body);
        else
            why = steps[c->step](c, bytes.p[at++]);
        if (!why && (body->overflowed || (c->step == DATA && c->left > body->max - body->n)))
            why = REFUSE_BODY_BYTES;
    }
    *ret_used = at;
    return why;
}

bool http_chunked_is_done(const struct http_chunked *c)
{
    return c->step == DONE;
}
