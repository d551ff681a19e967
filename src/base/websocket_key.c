#include "base/websocket_key.h"
#include "base/base64.h"
#include "base/hash.h"

#include <openssl/evp.h>

enum { SHA1_BYTES = 20, TEXT_BYTES = 4 << 10 };

#define HANDSHAKE_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* RFC 6455 section 1.3 */

void websocket_key(struct buf *out)
{
    char bytes[WEBSOCKET_KEY_BYTES];

    random_bytes(bytes, sizeof(bytes));
    base64_encode(out, (struct slice){ bytes, sizeof(bytes) });
}

int websocket_accept(struct buf *out, const char *key, struct err *e)
{
    unsigned char hash[SHA1_BYTES];
    struct buf text;
    int r = 0;

    buf_init(&text, TEXT_BYTES);
    buf_printf(&text, "%s%s", key, HANDSHAKE_GUID);
    if (text.overflowed || EVP_Digest(buf_str(&text), text.n, hash, NULL, EVP_sha1(), NULL) != 1)
        r = err_set(e, -EIO, "INTERNAL_ERROR", "SHA-1 is not available, which the WebSocket handshake needs.");
    else
        base64_encode(out, (struct slice){ (const char *)hash, sizeof(hash) });
    buf_clear(&text);
    return r;
}
