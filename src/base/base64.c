#include "base/base64.h"

#include <sodium.h>
#include <string.h>

static void encode(struct buf *out, struct slice bytes, int variant)
{
    size_t size = sodium_base64_encoded_len(bytes.n, variant);
    char *to = buf_reserve(out, size - 1);

    if (!to)
        return;
    sodium_bin2base64(to, size, (const unsigned char *)bytes.p, bytes.n, variant);
    out->n += size - 1;
}

void base64_encode(struct buf *out, struct slice bytes)
{
    encode(out, bytes, sodium_base64_VARIANT_ORIGINAL);
}

void base64url_encode(struct buf *out, struct slice bytes)
{
    encode(out, bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

static size_t decoded_length(struct slice text)
{
    size_t n = text.n / 4 * 3;

    if (text.n >= 4 && text.p[text.n - 1] == '=')
        n -= text.p[text.n - 2] == '=' ? 2 : 1;
    return n;
}

/* libsodium 1.0.18 accepts some bytes above 0x7f as letters of the alphabet. */
static bool is_ascii(struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        if ((unsigned char)text.p[i] > 0x7f)
            return false;
    }
    return true;
}

bool base64_is_padded(const char *text)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = strspn(text, alphabet);

    n += strspn(text + n, "=");
    return n > 0 && n % 4 == 0 && text[n] == '\0';
}

/* length: of the bytes, at least. */
static int decode(struct buf *out, struct slice text, size_t length, int variant)
{
    size_t written;
    char *to;

    if (!is_ascii(text))
        return -EINVAL;
    to = buf_reserve(out, length);
    if (!to)
        return -E2BIG;
    if (sodium_base642bin((unsigned char *)to, length, text.p, text.n, NULL, &written, NULL, variant) < 0)
        return -EINVAL;
    out->n += written;
    return 0;
}

int base64_decode(struct buf *out, struct slice text)
{
    return text.n % 4 != 0 ? -EINVAL : decode(out, text, decoded_length(text), sodium_base64_VARIANT_ORIGINAL);
}

int base64url_decode(struct buf *out, struct slice text)
{
    return decode(out, text, text.n / 4 * 3 + text.n % 4, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}
