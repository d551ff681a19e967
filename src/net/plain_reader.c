#include "net/plain_reader.h"

#include "base/limits.h"

enum { SWITCHING = 101, NO_CONTENT = 204, NOT_MODIFIED = 304, COLON_AND_END = 4 };

static struct plain_reader *reader_of(struct http_parser *parser)
{
    return CONTAINER_OF(parser, struct plain_reader, parser);
}

/* The error that libcurl has for the same bytes: a body that cannot be delimited is a broken connection. */
static int err_invalid(struct plain_reader *r, const char *why)
{
    struct transfer *t = r->transfer;

    snprintf(t->detail, sizeof(t->detail), "%s", why);
    t->stop = transfer_result(t, t->is_answered ? CURLE_RECV_ERROR : CURLE_WEIRD_SERVER_REPLY, err_place(&t->why));
    return -1;
}

/* ---- http-parser's callbacks: anything but 0 ends the reading ---- */

static int on_begin(struct http_parser *parser)
{
    struct plain_reader *r = reader_of(parser);

    buf_reset(&r->line);
    r->has_value = false;
    r->n_name = 0;
    return 0;
}

/* The status is known once the first header or the end of the head is. */
static int begin_head(struct plain_reader *r)
{
    struct transfer *t = r->transfer;

    return t->arena ? 0 : transfer_begin_head(t, r->parser.status_code >= 100 ? (int)r->parser.status_code : 0);
}

static int add_line(struct plain_reader *r)
{
    struct slice name = { r->line.p, r->n_name }, value = { r->line.p + r->n_name, r->line.n - r->n_name };
    int stop = r->n_name > 0 ? transfer_add_header(r->transfer, name, value, r->line.n + COLON_AND_END) : 0;

    buf_reset(&r->line);
    r->has_value = false;
    r->n_name = 0;
    return stop;
}

static int add_text(struct plain_reader *r, const char *text, size_t n)
{
    buf_add(&r->line, text, n);
    return r->line.overflowed ? transfer_refuse_head(r->transfer) : 0;
}

static int on_name(struct http_parser *parser, const char *text, size_t n)
{
    struct plain_reader *r = reader_of(parser);

    if (r->transfer->is_answered) /* trailers */
        return 0;
    if (begin_head(r) < 0 || (r->has_value && add_line(r) < 0) || add_text(r, text, n) < 0)
        return -1;
    r->n_name = r->line.n;
    return 0;
}

static int on_value(struct http_parser *parser, const char *text, size_t n)
{
    struct plain_reader *r = reader_of(parser);

    if (r->transfer->is_answered)
        return 0;
    r->has_value = true;
    return add_text(r, text, n) < 0 ? -1 : 0;
}

enum { HAS_BODY = 0, HAS_NO_BODY = 1, REFUSED = -1 };

static int end_interim(struct plain_reader *r)
{
    struct transfer *t = r->transfer;

    if (r->parser.status_code == SWITCHING)
        return err_invalid(r, "it switched protocols, which no request asked for");
    if (++r->n_interim > LIMIT_UPSTREAM_INTERIM)
        return err_invalid(r, "too many interim answers");
    t->arena = arena_free(t->arena);
    return HAS_NO_BODY;
}

static int on_head(struct http_parser *parser)
{
    struct plain_reader *r = reader_of(parser);
    struct transfer *t = r->transfer;
    unsigned status = parser->status_code;

    if (begin_head(r) < 0 || (r->has_value && add_line(r) < 0))
        return REFUSED;
    if (status < 200 && !(status == SWITCHING && r->takes_switch))
        return end_interim(r);
    transfer_end_head(t);
    if (t->stop < 0)
        return REFUSED;
    return status < 200 || status == NO_CONTENT || status == NOT_MODIFIED ? HAS_NO_BODY : HAS_BODY;
}

static int on_body(struct http_parser *parser, const char *bytes, size_t n)
{
    struct transfer *t = reader_of(parser)->transfer;

    t->on_bytes(t, (struct slice){ bytes, n });
    if (t->stop < 0)
        return -1;
    if (t->is_paused)
        http_parser_pause(parser, 1);
    return 0;
}

/* Reading stops here: bytes after the answer belong to no request. */
static int on_complete(struct http_parser *parser)
{
    struct plain_reader *r = reader_of(parser);

    if (!r->transfer->is_answered)
        return 0;
    r->is_complete = true;
    http_parser_pause(parser, 1);
    return 0;
}

static const http_parser_settings callbacks = {
    .on_message_begin = on_begin,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

/* ---- feeding ---- */

void plain_reader_init(struct plain_reader *r, struct transfer *t)
{
    plain_reader_clear(r);
    *r = (struct plain_reader){ .transfer = t };
    http_parser_init(&r->parser, HTTP_RESPONSE);
    r->parser.allow_chunked_length = 1; /* the chunks decide (RFC 9112 section 6.3) */
    buf_init(&r->line, LIMIT_UPSTREAM_HEAD);
}

void plain_reader_clear(struct plain_reader *r)
{
    buf_clear(&r->line);
}

/* http-parser's error, unless a callback has stopped the transfer with its own. */
static void check(struct plain_reader *r)
{
    enum http_errno why = HTTP_PARSER_ERRNO(&r->parser);

    if (why == HPE_OK || why == HPE_PAUSED || r->transfer->stop < 0)
        return;
    if (why == HPE_HEADER_OVERFLOW && !r->transfer->is_answered)
        transfer_refuse_head(r->transfer);
    else
        err_invalid(r, http_errno_description(why));
}

size_t plain_reader_feed(struct plain_reader *r, struct slice bytes)
{
    size_t n;

    if (r->is_complete || r->transfer->stop < 0 || bytes.n == 0)
        return 0;
    if (HTTP_PARSER_ERRNO(&r->parser) == HPE_PAUSED)
        http_parser_pause(&r->parser, 0);
    n = http_parser_execute(&r->parser, &callbacks, bytes.p, bytes.n);
    check(r);
    return n;
}

void plain_reader_end(struct plain_reader *r)
{
    if (r->is_complete || r->transfer->stop < 0)
        return;
    if (HTTP_PARSER_ERRNO(&r->parser) == HPE_PAUSED)
        http_parser_pause(&r->parser, 0);
    http_parser_execute(&r->parser, &callbacks, NULL, 0);
}

bool plain_reader_may_keep(const struct plain_reader *r)
{
    unsigned both = F_CHUNKED | F_CONTENTLENGTH; /* RFC 9112 section 6.3: close after such an answer */

    return r->is_complete && http_should_keep_alive(&r->parser) && (r->parser.flags & both) != both;
}
