#include "base/visible.h"

#include "base/utf8.h"

/* Unicode 15.1: general categories Cc and Cf, separators of lines, and letters that are drawn as nothing. is_loose()
 * decides about joiners by their neighbours. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    { 0x00, 0x1f },       { 0x7f, 0x9f },       { 0xad, 0xad },     { 0x34f, 0x34f },   { 0x600, 0x605 },
    { 0x61c, 0x61c },     { 0x6dd, 0x6dd },     { 0x70f, 0x70f },   { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 },
    { 0x180b, 0x180f },   { 0x200b, 0x200b },   { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },
    { 0x3164, 0x3164 },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0x1bca0, 0x1bca3 },
    { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

enum { ZERO_WIDTH_NON_JOINER = 0x200c, ZERO_WIDTH_JOINER = 0x200d };

static bool is_hidden(uint32_t c)
{
    for (size_t i = 0; i < ARRAY_SIZE(hidden) && hidden[i].first <= c; i++)
        if (c <= hidden[i].last)
            return true;
    return false;
}

static bool is_joiner(uint32_t c)
{
    return c == ZERO_WIDTH_JOINER || c == ZERO_WIDTH_NON_JOINER;
}

/* Whether a joiner is out of place: it belongs between two non-ASCII letters or within an emoji. */
static bool is_loose(uint32_t before, struct slice rest)
{
    size_t n = utf8_char_bytes(rest);
    uint32_t after = n ? utf8_code_point(rest.p, n) : 0;

    return before < 0x80 || after < 0x80 || is_hidden(after) || is_joiner(after);
}

static void add_escape(struct buf *out, uint32_t c, enum visible_form form)
{
    if (form != VISIBLE_JSON && (c == '\n' || c == '\r' || c == '\t'))
        buf_printf(out, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (c < 0x10000)
        buf_printf(out, "\\u%04x", c);
    else if (form == VISIBLE_JSON)
        buf_printf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
    else
        buf_printf(out, "\\U%08x", c);
}

/* Number of bytes of printable ASCII at the start of s. */
static size_t plain_bytes(struct slice s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] >= ' ' && s.p[n] < 0x7f)
        n++;
    return n;
}

/* Returns the character that was written, or 0 for an escape. */
static uint32_t add_character(struct buf *out, struct slice s, size_t n, uint32_t before, enum visible_form form)
{
    uint32_t c = utf8_code_point(s.p, n);
    bool is_kept = form != VISIBLE_LINE && (c == '\n' || c == '\t');

    if (!is_kept && (is_hidden(c) || (is_joiner(c) && is_loose(before, (struct slice){ s.p + n, s.n - n })))) {
        add_escape(out, c, form);
        return 0;
    }
    buf_add(out, s.p, n);
    return c;
}

void visible_add(struct buf *out, struct slice text, enum visible_form form)
{
    uint32_t before = 0;

    while (text.n > 0) {
        size_t n = plain_bytes(text);

        if (n) {
            buf_add(out, text.p, n);
            before = ' ';
        } else if ((n = utf8_char_bytes(text)) > 0) {
            before = add_character(out, text, n, before, form);
        } else {
            buf_printf(out, form == VISIBLE_JSON ? "\\ufffd" : "\\x%02x", (unsigned char)text.p[0]);
            before = 0;
            n = 1;
        }
        text = (struct slice){ text.p + n, text.n - n };
    }
}
