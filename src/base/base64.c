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

/* --- data that is no secret --- */

enum { LETTER = 0x40 /* a byte of the alphabet; below it are the letter's six bits */ };

#define LETTERS(first, value)                                                                                          \
    [first] = LETTER | (value), [(first) + 1] = LETTER | ((value) + 1), [(first) + 2] = LETTER | ((value) + 2),        \
    [(first) + 3] = LETTER | ((value) + 3), [(first) + 4] = LETTER | ((value) + 4)
#define LETTERS_26(first, value)                                                                                       \
    LETTERS(first, value), LETTERS((first) + 5, (value) + 5), LETTERS((first) + 10, (value) + 10),                     \
        LETTERS((first) + 15, (value) + 15), LETTERS((first) + 20, (value) + 20),                                      \
        [(first) + 25] = LETTER | ((value) + 25)

static const uint8_t letters[256] = {
    LETTERS_26('A', 0), LETTERS_26('a', 26), LETTERS('0', 52),
    LETTERS('5', 57),   ['+'] = LETTER | 62, ['/'] = LETTER | 63,
};

/* Returns LETTER when all four are of the alphabet. */
static unsigned decode_four(const char *text, char *out)
{
    unsigned a = letters[(uint8_t)text[0]], b = letters[(uint8_t)text[1]];
    unsigned c = letters[(uint8_t)text[2]], d = letters[(uint8_t)text[3]];
    unsigned bits = (a << 18 & 0xfc0000) | (b << 12 & 0x3f000) | (c << 6 & 0xfc0) | (d & 0x3f);

    out[0] = (char)(bits >> 16);
    out[1] = (char)(bits >> 8);
    out[2] = (char)bits;
    return a & b & c & d & LETTER;
}

/* The group with the padding stands for n bytes, 1 or 2; its unused bits must be zero. */
static bool decode_last(const char *text, char *out, size_t n)
{
    char group[4] = { text[0], text[1], n == 2 ? text[2] : 'A', 'A' }, bytes[3];
    bool is_valid = decode_four(group, bytes) == LETTER && bytes[2] == 0 && (n == 2 || bytes[1] == 0);

    memcpy(out, bytes, n);
    return is_valid;
}

static void encode_three(const uint8_t *bytes, char *out)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = (unsigned)bytes[0] << 16 | (unsigned)bytes[1] << 8 | bytes[2];

    out[0] = alphabet[bits >> 18];
    out[1] = alphabet[bits >> 12 & 0x3f];
    out[2] = alphabet[bits >> 6 & 0x3f];
    out[3] = alphabet[bits & 0x3f];
}

void base64_encode_data(struct buf *out, struct slice bytes)
{
    size_t size = sodium_base64_encoded_len(bytes.n, sodium_base64_VARIANT_ORIGINAL) - 1, n_last = bytes.n % 3;
    char *to = buf_reserve(out, size);
    uint8_t last[3] = { 0 };

    if (!to || size == 0)
        return;
    for (size_t i = 0; i < bytes.n / 3; i++)
        encode_three((const uint8_t *)bytes.p + 3 * i, to + 4 * i);
    if (n_last > 0) {
        memcpy(last, bytes.p + bytes.n - n_last, n_last);
        encode_three(last, to + size - 4);
        memset(to + size - (3 - n_last), '=', 3 - n_last);
    }
    out->n += size;
}

int base64_decode_into(struct slice text, char *out, size_t n)
{
    unsigned known = LETTER;

    if (text.n % 4 != 0 || decoded_length(text) != n)
        return -EINVAL;
    for (size_t i = 0; i < n / 3; i++)
        known &= decode_four(text.p + 4 * i, out + 3 * i);
    if (n % 3 != 0 && !decode_last(text.p + n / 3 * 4, out + n / 3 * 3, n % 3))
        known = 0;
    return known == LETTER ? 0 : -EINVAL;
}
