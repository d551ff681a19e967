/* The bytes of an answer: status line, headers, body, gzip. Pure functions; any thread.
 *
 * A reply is embedded in its sender (init/clear), built by the answering thread and sent by the loop.
 */
#pragma once

#include "http/http.h"
#include <time.h>

struct http_reply {
    struct buf head, body;
    size_t sent; /* bytes of both already passed to the kernel */
};

struct http_reply_head {
    int status;
    const char *content_type, *request_id;
    const struct http_header *headers; /* borrowed */
    size_t n_headers;
    bool is_gzip;   /* adds content-encoding */
    bool has_vary;  /* adds vary: accept-encoding */
    bool is_stream; /* no length: chunked, or up to the close for HTTP/1.0 */
    size_t content_length;
    bool keep_alive, is_http10;
    int retry_after_s; /* 0 = none */
};

/* How to answer on the exchange's connection. */
struct http_reply_way {
    bool keep_alive, is_http10;
    bool may_compress; /* false on the loop thread, where compression takes too long */
};

enum { HTTP_DATE_SIZE = 32 };
/* RFC 9110 section 5.6.7. */
void http_date_write(time_t time_s, char out[HTTP_DATE_SIZE]);

void http_reply_init(struct http_reply *r);
void http_reply_clear(struct http_reply *r);
void http_reply_move(struct http_reply *to, struct http_reply *from);

void http_reply_write_head(struct buf *out, const struct http_reply_head *head);
/* Takes the body from x->response and writes the complete answer. */
void http_reply_write(struct http_reply *out, struct http_exchange *x, const struct http_reply_way *way);
/* Writes the head of an answer without a body: 101. */
void http_reply_write_upgrade_head(struct buf *out, const struct http_exchange *x, const struct http_reply_way *way);
/* Writes the head of a streamed answer. */
void http_reply_write_stream_head(struct buf *out, const struct http_exchange *x, const struct http_reply_way *way);
