#include "base/json_write.h"

#include "base/utf8.h"
#include <assert.h>
#include <string.h>

void json_write_init(struct json_writer *w, struct buf *out)
{
    *w = (struct json_writer){ .out = out };
}

/* Writes what precedes every value: comma, name, colon. */
static void begin_value(struct json_writer *w, const char *name)
{
    assert(w->is_object[w->depth] == (name != NULL));
    assert(w->depth > 0 || !w->has_items[0]);
    if (w->has_items[w->depth])
        buf_add_char(w->out, ',');
    w->has_items[w->depth] = true;
    if (name) {
        json_quote(w->out, slice_of(name));
        buf_add_char(w->out, ':');
    }
}

static void begin_container(struct json_writer *w, const char *name, bool is_object)
{
    begin_value(w, name);
    assert(w->depth + 1u < ARRAY_SIZE(w->is_object));
    w->depth++;
    w->has_items[w->depth] = false;
    w->is_object[w->depth] = is_object;
    buf_add_char(w->out, is_object ? '{' : '[');
}

void json_begin_object_as(struct json_writer *w, const char *name)
{
    begin_container(w, name, true);
}

void json_begin_array_as(struct json_writer *w, const char *name)
{
    begin_container(w, name, false);
}

void json_end(struct json_writer *w)
{
    assert(w->depth > 0);
    buf_add_char(w->out, w->is_object[w->depth] ? '}' : ']');
    w->depth--;
}

void json_add_string(struct json_writer *w, const char *name, const char *s)
{
    if (s)
        json_add_slice(w, name, slice_of(s));
    else
        json_add_null(w, name);
}

void json_add_slice(struct json_writer *w, const char *name, struct slice s)
{
    begin_value(w, name);
    json_quote(w->out, s);
}

void json_add_escaped(struct json_writer *w, const char *name, struct slice escaped)
{
    begin_value(w, name);
    buf_add_char(w->out, '"');
    buf_add_slice(w->out, escaped);
    buf_add_char(w->out, '"');
}

void json_add_int(struct json_writer *w, const char *name, int64_t i)
{
    char text[INT_TEXT_SIZE];

    begin_value(w, name);
    buf_add(w->out, text, int_text(text, i));
}

void json_add_double(struct json_writer *w, const char *name, double d)
{
    char text[32];

    begin_value(w, name);
    buf_add(w->out, text, json_format_double(text, d));
}

void json_add_floats(struct json_writer *w, const char *name, const float *items, size_t n)
{
    char text[32];

    json_begin_array_as(w, name);
    for (size_t i = 0; i < n; i++) {
        begin_value(w, NULL);
        buf_add(w->out, text, json_format_float(text, items[i]));
    }
    json_end(w);
}

static void add_word(struct json_writer *w, const char *name, const char *word)
{
    begin_value(w, name);
    buf_add_str(w->out, word);
}

void json_add_bool(struct json_writer *w, const char *name, bool b)
{
    add_word(w, name, b ? "true" : "false");
}

void json_add_null(struct json_writer *w, const char *name)
{
    add_word(w, name, "null");
}

void json_add_raw(struct json_writer *w, const char *name, const char *json_text)
{
    add_word(w, name, json_text && *json_text ? json_text : "null");
}

void json_add_value(struct json_writer *w, const char *name, struct json_value v)
{
    begin_value(w, name);
    json_print(w->out, v);
}

void json_add_strings(struct json_writer *w, const char *name, const char *const *items, size_t n)
{
    json_begin_array_as(w, name);
    for (size_t i = 0; i < n; i++)
        json_add_string(w, NULL, items[i]);
    json_end(w);
}

static bool is_plain_ascii(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* Whether is_plain_ascii() holds for eight bytes, found without looking at each: the high bit of a byte of x - 0x01...
 * is set when the byte was 0 (or one below it was). */
static bool are_plain_ascii(const char *p)
{
    const uint64_t ones = 0x0101010101010101, highs = ones << 7;
    uint64_t x, quotes, backslashes;

    memcpy(&x, p, sizeof(x));
    quotes = x ^ (ones * '"');
    backslashes = x ^ (ones * '\\');
    return ((x | (x - ones * 0x20) | (quotes - ones) | (backslashes - ones)) & highs) == 0;
}

/* Number of bytes at the start of s that need no escape in a string. */
static size_t plain_bytes(struct slice s)
{
    size_t n = 0;

    for (;;) {
        while (n + sizeof(uint64_t) <= s.n && are_plain_ascii(s.p + n))
            n += sizeof(uint64_t);
        while (n < s.n && is_plain_ascii(s.p[n]))
            n++;
        if (n == s.n || (unsigned char)s.p[n] < 0x80)
            return n;
        size_t n_char = utf8_char_bytes((struct slice){ s.p + n, s.n - n });
        if (n_char == 0)
            return n;
        n += n_char;
    }
}

/* Adds one byte that is not allowed in a string: escaped (RFC 8259 section 7), or replaced when it is not UTF-8. */
static void add_escaped(struct buf *out, char c)
{
    static const char *const short_escapes[] = {
        ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r", ['"'] = "\\\"", ['\\'] = "\\\\",
    };
    unsigned char byte = (unsigned char)c;

    if (byte >= 0x80)
        buf_add_str(out, "\xEF\xBF\xBD");
    else if (byte < ARRAY_SIZE(short_escapes) && short_escapes[byte])
        buf_add_str(out, short_escapes[byte]);
    else
        buf_printf(out, "\\u%04x", (unsigned)byte);
}

/* Most texts need no escape. */
static void quote_plain(struct buf *out, struct slice s)
{
    char *to = buf_reserve(out, s.n + 2);

    if (!to)
        return;
    to[0] = to[s.n + 1] = '"';
    if (s.n > 0)
        memcpy(to + 1, s.p, s.n);
    out->n += s.n + 2;
}

/* n_plain: plain_bytes(s) */
static void escape(struct buf *out, struct slice s, size_t n_plain)
{
    for (size_t n = n_plain; s.n > 0; n = plain_bytes(s)) {
        buf_add(out, s.p, n);
        if (n < s.n)
            add_escaped(out, s.p[n++]);
        s = (struct slice){ s.p + n, s.n - n };
    }
}

void json_escape(struct buf *out, struct slice s)
{
    escape(out, s, plain_bytes(s));
}

void json_quote(struct buf *out, struct slice s)
{
    size_t n = plain_bytes(s);

    if (n == s.n) {
        quote_plain(out, s);
        return;
    }
    buf_add_char(out, '"');
    escape(out, s, n);
    buf_add_char(out, '"');
}
