#include "base/json_mend.h"

#include <string.h>

enum { ESCAPE_BYTES = 6 /* \uXXXX */ };

static struct slice part(struct slice text, size_t from, size_t to)
{
    return (struct slice){ text.p + from, to - from };
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The code unit that \uXXXX at the start of s stands for; -1 when there is no such escape. */
static int escaped_unit(struct slice s)
{
    int unit = 0;

    if (s.n < ESCAPE_BYTES || s.p[0] != '\\' || s.p[1] != 'u')
        return -1;
    for (size_t i = 2; i < ESCAPE_BYTES; i++) {
        int digit = hex_digit(s.p[i]);

        if (digit < 0)
            return -1;
        unit = 16 * unit + digit;
    }
    return unit;
}

static bool is_high(int unit)
{
    return unit >= 0xD800 && unit <= 0xDBFF;
}

static bool is_low(int unit)
{
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/* Copies the escape at the start of s, mended where needed; returns its length in bytes. */
static size_t mend_escape(struct slice s, struct buf *out)
{
    int unit = escaped_unit(s);
    size_t n = MIN(s.n, (size_t)2);

    if (unit >= 0)
        n = is_high(unit) && is_low(escaped_unit(part(s, ESCAPE_BYTES, s.n))) ? 2 * ESCAPE_BYTES : ESCAPE_BYTES;
    if (n == ESCAPE_BYTES && (is_high(unit) || is_low(unit)))
        buf_add_str(out, "\\ufffd");
    else
        buf_add(out, s.p, n);
    return n;
}

/* Length of the string at the start of s with its closing quote; without one, to the end of s. */
static size_t string_bytes(struct slice s)
{
    size_t n = 1;

    while (n < s.n && s.p[n] != '"')
        n += s.p[n] == '\\' ? 2 : 1;
    return MIN(n + 1, s.n);
}

static bool is_name(struct slice after)
{
    after = slice_skip_blanks(after);
    return after.n > 0 && after.p[0] == ':';
}

static size_t mend_string(struct slice s, struct buf *out)
{
    size_t n = string_bytes(s), at = 0;

    if (is_name(part(s, n, s.n))) {
        buf_add(out, s.p, n);
        return n;
    }
    while (at < n) {
        const char *backslash = memchr(s.p + at, '\\', n - at);
        size_t n_plain = backslash ? (size_t)(backslash - s.p) - at : n - at;

        buf_add(out, s.p + at, n_plain);
        at += n_plain;
        if (backslash)
            at += mend_escape(part(s, at, n), out);
    }
    return n;
}

static size_t span_of(struct slice s, const char *bytes)
{
    size_t n = 0;

    while (n < s.n && s.p[n] && strchr(bytes, s.p[n]))
        n++;
    return n;
}

static bool is_beyond_64_bits(struct slice digits, bool is_negative)
{
    const char *most = is_negative ? "9223372036854775808" : "18446744073709551615";
    size_t n = strlen(most);

    return digits.n > n || (digits.n == n && memcmp(digits.p, most, n) > 0);
}

static size_t mend_number(struct slice s, struct buf *out)
{
    bool is_negative = s.p[0] == '-';
    size_t n = span_of(s, "+-.0123456789eE"), n_digits = span_of(part(s, is_negative, n), "0123456789");

    buf_add(out, s.p, n);
    if (n == is_negative + n_digits && is_beyond_64_bits(part(s, is_negative, n), is_negative))
        buf_add_str(out, "e0");
    return n;
}

/* Copies everything up to the next string or number. */
static size_t copy_rest(struct slice s, struct buf *out)
{
    size_t n = 1;

    while (n < s.n && s.p[n] != '"' && s.p[n] != '-' && !(s.p[n] >= '0' && s.p[n] <= '9'))
        n++;
    buf_add(out, s.p, n);
    return n;
}

size_t json_mend(struct slice text, struct buf *out, size_t enough)
{
    size_t at = 0;

    while (at < text.n && out->n < enough) {
        struct slice s = part(text, at, text.n);

        if (s.p[0] == '"')
            at += mend_string(s, out);
        else if (s.p[0] == '-' || (s.p[0] >= '0' && s.p[0] <= '9'))
            at += mend_number(s, out);
        else
            at += copy_rest(s, out);
    }
    return at - MIN(at, out->n > enough ? out->n - enough : 0);
}
