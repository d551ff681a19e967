#include "face/refresh_token.h"

#include "base/base64.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

enum { ID_BYTES = 16, COUNTER_BYTES = 4, SIGNED_BYTES = ID_BYTES + COUNTER_BYTES, CODE_BYTES = 16 };
enum { TOKEN_BYTES = SIGNED_BYTES + CODE_BYTES, HEX = 16 };

static int digit_of(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

static void id_to_bytes(const char *id, unsigned char out[ID_BYTES])
{
    for (size_t i = 0, n = 0; n < ID_BYTES; i += 2, n++) {
        if (id[i] == '-')
            i++;
        out[n] = (unsigned char)(digit_of(id[i]) * HEX + digit_of(id[i + 1]));
    }
}

static void id_of_bytes(const unsigned char *b, char out[UUID_SIZE])
{
    char hex[2 * ID_BYTES + 1];

    hash_hex(b, ID_BYTES, hex);
    snprintf(out, UUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

static void add_code(unsigned char bytes[TOKEN_BYTES], struct slice secret)
{
    unsigned char code[HASH_BYTES];

    hash_hmac_sha256((struct slice){ (const char *)bytes, SIGNED_BYTES }, secret, code);
    memcpy(bytes + SIGNED_BYTES, code, CODE_BYTES);
}

void refresh_token_write(const struct refresh_token *token, struct slice secret, char out[REFRESH_TOKEN_CHARS + 1])
{
    unsigned char bytes[TOKEN_BYTES];
    struct buf text;

    id_to_bytes(token->session, bytes);
    for (int i = 0; i < COUNTER_BYTES; i++)
        bytes[ID_BYTES + i] = (unsigned char)(token->counter >> (24 - 8 * i));
    add_code(bytes, secret);
    buf_init(&text, REFRESH_TOKEN_CHARS);
    base64url_encode(&text, (struct slice){ (const char *)bytes, sizeof(bytes) });
    memcpy(out, buf_str(&text), REFRESH_TOKEN_CHARS + 1);
    buf_clear(&text);
}

static bool decode(struct slice text, unsigned char out[TOKEN_BYTES])
{
    struct buf bytes;
    bool is_token;

    buf_init(&bytes, TOKEN_BYTES + 3); /* the reader of base64 reserves a little more than it needs */
    is_token = text.n == REFRESH_TOKEN_CHARS && base64url_decode(&bytes, text) == 0 && bytes.n == TOKEN_BYTES;
    if (is_token)
        memcpy(out, bytes.p, TOKEN_BYTES);
    buf_clear(&bytes);
    return is_token;
}

int refresh_token_read(struct slice text, struct slice secret, struct refresh_token *ret, struct err *e)
{
    unsigned char given[TOKEN_BYTES], wanted[TOKEN_BYTES];
    bool is_right = decode(text, given);

    if (is_right) {
        memcpy(wanted, given, sizeof(wanted));
        add_code(wanted, secret);
        is_right = hash_equal(given, wanted, sizeof(given));
    }
    if (!is_right)
        return err_set(e, -ENOENT, "REFRESH_TOKEN_NOT_FOUND", "Invalid Refresh Token: Refresh Token Not Found");
    id_of_bytes(given, ret->session);
    ret->counter = 0;
    for (int i = 0; i < COUNTER_BYTES; i++)
        ret->counter = ret->counter << 8 | given[ID_BYTES + i];
    return 0;
}
