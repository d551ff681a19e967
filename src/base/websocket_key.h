/* The two values that prove a WebSocket handshake (RFC 6455 sections 4.1 and 4.2.2). Pure functions; any thread.
 *
 *     websocket_key(&key);                         a client's Sec-WebSocket-Key
 *     r = websocket_accept(&accept, key, e);       what the server answers: Sec-WebSocket-Accept
 */
#pragma once

#include "base/buf.h"

enum { WEBSOCKET_KEY_BYTES = 16 };

/* Appends the base64 of 16 random bytes. */
void websocket_key(struct buf *out);
/* Appends the base64 of the SHA-1 of the key and a fixed text. -EIO INTERNAL_ERROR without SHA-1. */
int websocket_accept(struct buf *out, const char *key, struct err *e) MUST_CHECK;
