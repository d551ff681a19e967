/* The frames of a WebSocket (RFC 6455 section 5), of a server or a client, through wslay: bytes in, whole messages out.
 *
 * The reader assembles fragments, checks masks, UTF-8 and control frames, answers pings and closes, and bounds a
 * message by its bytes and its frames before memory is taken for it. One thread at a time; no sockets here. A client
 * masks each frame that it sends with random bytes (section 5.3).
 *
 *     used = websocket_reader_feed(reader, bytes, &answers);      calls on_message for each whole message
 *     if (websocket_reader_is_over(reader)) ...                   the close frame is in `answers`
 */
#pragma once

#include "base/buf.h"

enum websocket_code { /* RFC 6455 section 7.4.1 */
                      WEBSOCKET_NORMAL = 1000,
                      WEBSOCKET_GOING_AWAY = 1001,
                      WEBSOCKET_PROTOCOL_ERROR = 1002,
                      WEBSOCKET_BAD_DATA = 1007,
                      WEBSOCKET_POLICY = 1008,
                      WEBSOCKET_TOO_BIG = 1009,
};

struct websocket_reader;

enum websocket_side { WEBSOCKET_SERVER, WEBSOCKET_CLIENT };

struct websocket_reader_config {
    enum websocket_side side; /* who reads */
    /* The message is borrowed. False: feed takes no more bytes until websocket_reader_go_on(). Must not call the
     * reader. */
    bool (*on_message)(void *arg, bool is_binary, struct slice message);
    void *arg;
};

struct websocket_reader *websocket_reader_new(const struct websocket_reader_config *c) MUST_CHECK;
struct websocket_reader *websocket_reader_free(struct websocket_reader *r);
/* Returns how many of the bytes were used: fewer than given while on_message has stopped the reader, or when the
 * conversation is over. Frames to be sent at once are appended to answers. */
size_t websocket_reader_feed(struct websocket_reader *r, struct slice bytes, struct buf *answers);
void websocket_reader_go_on(struct websocket_reader *r);
/* The peer has closed, or broke a rule: nothing more is read. */
bool websocket_reader_is_over(const struct websocket_reader *r);
/* The code of the peer's close frame, 1005 when it had none; 0: the peer has sent none. */
unsigned websocket_reader_peer_code(const struct websocket_reader *r);

/* Appends one frame of that side. */
void websocket_write_message(struct buf *out, enum websocket_side side, bool is_binary, struct slice message);
/* The reason is cut at LIMIT_SOCKET_CLOSE_REASON bytes. */
void websocket_write_close(struct buf *out, enum websocket_side side, enum websocket_code code, const char *reason);
