#include "base/json_text.h"

#include <ctype.h>

static struct slice from(struct slice text, size_t n)
{
    return (struct slice){ text.p + n, text.n - n };
}

/* ---- strings, numbers and words ---- */

/* A point and digits after it; 0: there are none. */
static size_t fraction_bytes(struct slice text)
{
    size_t n = text.n > 0 && text.p[0] == '.' ? slice_digits(from(text, 1)) : 0;

    return n > 0 ? 1 + n : 0;
}

static size_t exponent_bytes(struct slice text)
{
    size_t n_before = 1, n;

    if (text.n < 2 || (text.p[0] | 0x20) != 'e')
        return 0;
    n_before += text.p[1] == '+' || text.p[1] == '-';
    n = slice_digits(from(text, n_before));
    return n > 0 ? n_before + n : 0;
}

size_t json_text_number_bytes(struct slice text)
{
    size_t n = text.n > 0 && text.p[0] == '-', n_whole = slice_digits(from(text, n));

    if (n_whole == 0)
        return 0;
    n += text.p[n] == '0' ? 1 : n_whole;
    n += fraction_bytes(from(text, n));
    return n + exponent_bytes(from(text, n));
}

static size_t word_bytes(struct slice text)
{
    static const struct slice words[] = { { "true", 4 }, { "false", 5 }, { "null", 4 } };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (text.n >= words[i].n && memcmp(text.p, words[i].p, words[i].n) == 0)
            return words[i].n;
    return 0;
}

static size_t escape_bytes(struct slice text)
{
    enum { CODE_UNIT_BYTES = 6 };

    if (text.n < 2 || text.p[0] != '\\')
        return 0;
    if (memchr("\"\\/bfnrt", text.p[1], 8))
        return 2;
    if (text.n < CODE_UNIT_BYTES || text.p[1] != 'u')
        return 0;
    for (size_t i = 2; i < CODE_UNIT_BYTES; i++)
        if (!isxdigit((unsigned char)text.p[i]))
            return 0;
    return CODE_UNIT_BYTES;
}

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* Whether one of eight bytes is a quote, a backslash or a control character. */
static bool has_special(const char *p)
{
    uint64_t eight, quotes, slashes;

    memcpy(&eight, p, sizeof(eight));
    quotes = eight ^ EACH_BYTE('"');
    slashes = eight ^ EACH_BYTE('\\');
    return (((quotes - EACH_BYTE(1)) & ~quotes) | ((slashes - EACH_BYTE(1)) & ~slashes) |
            ((eight - EACH_BYTE(' ')) & ~eight)) &
           EACH_BYTE(0x80);
}

static size_t plain_bytes(struct slice text)
{
    size_t n = 0;

    while (text.n - n >= sizeof(uint64_t) && !has_special(text.p + n))
        n += sizeof(uint64_t);
    while (n < text.n && text.p[n] != '"' && text.p[n] != '\\' && (unsigned char)text.p[n] >= ' ')
        n++;
    return n;
}

/* Of a string that is closed. */
static size_t string_bytes(struct slice text)
{
    size_t n = 1, n_escape = 0;

    do {
        n += n_escape;
        n += plain_bytes(from(text, n));
        n_escape = escape_bytes(from(text, n));
    } while (n_escape > 0);
    return n < text.n && text.p[n] == '"' ? n + 1 : 0;
}

/* ---- a value ---- */

enum next { NEXT_VALUE, NEXT_VALUE_OR_END, NEXT_NAME, NEXT_NAME_OR_END, NEXT_COLON, NEXT_COMMA_OR_END };

/* The brackets that close what is open stand at the end of `to`, the innermost first: each of them is still to come in
 * the text, so that the place suffices for every text that is JSON. */
struct compaction {
    struct slice rest;
    char *to;
    char *closing, *end; /* equal: nothing is open */
    enum next next;
};

/* Copies the next n bytes. */
static bool pass(struct compaction *c, size_t n)
{
    if (n == 0 || n > (size_t)(c->closing - c->to))
        return false;
    memcpy(c->to, c->rest.p, n);
    c->to += n;
    c->rest = from(c->rest, n);
    return true;
}

static bool pass_sign(struct compaction *c)
{
    if (c->to == c->closing)
        return false;
    *c->to++ = *c->rest.p;
    c->rest = from(c->rest, 1);
    return true;
}

static bool pass_open(struct compaction *c, bool is_object)
{
    if (c->next > NEXT_VALUE_OR_END || !pass_sign(c) || c->closing == c->to)
        return false;
    *--c->closing = is_object ? '}' : ']';
    c->next = is_object ? NEXT_NAME_OR_END : NEXT_VALUE_OR_END;
    return true;
}

static bool pass_close(struct compaction *c)
{
    bool may_end = c->next == NEXT_COMMA_OR_END || c->next == NEXT_NAME_OR_END || c->next == NEXT_VALUE_OR_END;

    if (!may_end || c->closing == c->end || *c->closing != *c->rest.p)
        return false;
    c->closing++;
    c->next = NEXT_COMMA_OR_END;
    return pass_sign(c);
}

static bool pass_comma(struct compaction *c)
{
    if (c->next != NEXT_COMMA_OR_END || c->closing == c->end)
        return false;
    c->next = *c->closing == '}' ? NEXT_NAME : NEXT_VALUE;
    return pass_sign(c);
}

static bool pass_colon(struct compaction *c)
{
    bool is_next = c->next == NEXT_COLON;

    c->next = NEXT_VALUE;
    return is_next && pass_sign(c);
}

static bool pass_string(struct compaction *c)
{
    if (c->next >= NEXT_COLON)
        return false;
    c->next = c->next >= NEXT_NAME ? NEXT_COLON : NEXT_COMMA_OR_END;
    return pass(c, string_bytes(c->rest));
}

static bool pass_scalar(struct compaction *c)
{
    size_t n = json_text_number_bytes(c->rest);

    if (c->next > NEXT_VALUE_OR_END)
        return false;
    c->next = NEXT_COMMA_OR_END;
    return pass(c, n ? n : word_bytes(c->rest));
}

static bool pass_part(struct compaction *c)
{
    switch (*c->rest.p) {
    case '"':
        return pass_string(c);
    case ',':
        return pass_comma(c);
    case ':':
        return pass_colon(c);
    case '{':
    case '[':
        return pass_open(c, *c->rest.p == '{');
    case '}':
    case ']':
        return pass_close(c);
    default:
        return pass_scalar(c);
    }
}

size_t json_text_compact(struct slice text, char *to)
{
    struct compaction c = { .rest = text, .to = to, .closing = to + text.n, .end = to + text.n };

    while ((c.rest = slice_skip_blanks(c.rest)).n > 0)
        if (!pass_part(&c))
            return 0;
    return c.closing == c.end && c.next == NEXT_COMMA_OR_END ? (size_t)(c.to - to) : 0;
}
