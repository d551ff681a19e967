/* Reads the answer to a request over plain HTTP as its bytes arrive (RFC 9112): interim answers, head, and a body that
 * ends by length, by chunks or with the connection. The grammar is http-parser's; the limits are those of every
 * transfer. Private to src/net.
 *
 * Embedded in its owner, zeroed; loop thread. Head and body go to the transfer, whose stop tells that the answer is
 * refused.
 *
 *     plain_reader_init(&reader, &transfer);
 *     n = plain_reader_feed(&reader, bytes);          fewer than given: the answer is complete, paused or refused
 *     plain_reader_end(&reader);                      the peer has closed
 */
#pragma once

#include "base/buf.h"
#include "net/transfer.h"

#include <http_parser.h>

struct plain_reader {
    struct http_parser parser;
    struct transfer *transfer; /* borrowed */
    struct buf line;           /* owned; name and value of the header that is being read */
    size_t n_name;             /* of line */
    size_t n_interim;          /* interim answers so far */
    bool has_value;            /* line has its name; what follows is the value */
    bool is_complete;
    bool takes_switch; /* 101 is the answer to an upgrade; set after plain_reader_init() */
};

void plain_reader_init(struct plain_reader *r, struct transfer *t);
void plain_reader_clear(struct plain_reader *r);
/* How many bytes were read. After a pause by transfer.is_paused the rest is to be fed again, once that is false. */
size_t plain_reader_feed(struct plain_reader *r, struct slice bytes);
/* Completes an answer that the end of the connection delimits. */
void plain_reader_end(struct plain_reader *r);
/* Whether the next request may use the connection of the complete answer. */
bool plain_reader_may_keep(const struct plain_reader *r);
