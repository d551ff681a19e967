#include "agents/page_text.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <iconv.h>
#include <string.h>
#include <strings.h>

enum { SNIFF_BYTES = 1024, LABEL_BYTES = 40, PIECE_BYTES = 8192, TEXT_GROWTH = 3 };

#define REPLACEMENT "\xef\xbf\xbd"

/* ---- what it is ---- */

static struct slice trim(struct slice s)
{
    while (s.n > 0 && strchr(" \t\r\n\f", s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && strchr(" \t\r\n\f", s.p[s.n - 1]))
        s.n--;
    return s;
}

static bool is_word(struct slice s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

static bool starts_with(struct slice s, const char *word)
{
    return s.n >= strlen(word) && strncasecmp(s.p, word, strlen(word)) == 0;
}

static bool ends_with(struct slice s, const char *word)
{
    size_t n = strlen(word);

    return s.n >= n && strncasecmp(s.p + s.n - n, word, n) == 0;
}

/* The media type without its parameters. */
static struct slice essence(const char *type)
{
    return trim((struct slice){ type, strcspn(type, ";,") });
}

static bool is_text_type(struct slice type)
{
    static const char *const known[] = { "application/json",       "application/xml",     "application/javascript",
                                         "application/ecmascript", "application/yaml",    "application/x-yaml",
                                         "application/toml",       "application/x-sh",    "application/x-ndjson",
                                         "application/jsonl",      "application/graphql", "application/sql" };

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (is_word(type, known[i]))
            return true;
    return starts_with(type, "text/") || ends_with(type, "+json") || ends_with(type, "+xml");
}

static bool has_mark(struct slice body)
{
    return starts_with(body, "\xef\xbb\xbf") || starts_with(body, "\xff\xfe") || starts_with(body, "\xfe\xff");
}

/* A character that is cut at the end of the stretch does not count. */
static bool looks_like_text(struct slice body)
{
    struct slice s = { body.p, MIN(body.n, (size_t)SNIFF_BYTES) };

    if (has_mark(body))
        return true;
    while (s.n > 0) {
        size_t n = utf8_char_bytes(s);

        if (s.p[0] == '\0' || (n == 0 && (s.n >= 4 || body.n <= SNIFF_BYTES)))
            return false;
        n = n ? n : s.n;
        s = (struct slice){ s.p + n, s.n - n };
    }
    return true;
}

static enum page_kind kind_by_bytes(struct slice body)
{
    struct slice text = trim((struct slice){ body.p, MIN(body.n, (size_t)SNIFF_BYTES) });

    if (starts_with(text, "<!doctype html") || starts_with(text, "<html"))
        return PAGE_HTML;
    return looks_like_text(body) ? PAGE_TEXT : PAGE_OTHER;
}

enum page_kind page_kind(const char *type, struct slice body)
{
    struct slice name = type ? essence(type) : (struct slice){ NULL, 0 };

    if (name.n == 0 || is_word(name, "application/octet-stream"))
        return kind_by_bytes(body);
    if (is_word(name, "text/html") || is_word(name, "application/xhtml+xml"))
        return PAGE_HTML;
    return is_text_type(name) ? PAGE_TEXT : PAGE_OTHER;
}

/* ---- encodings ---- */

/* Labels of WHATWG Encoding and the names that iconv has for them. Others, above all UTF-7 and the forms of ISO 2022,
 * are not converted. */
static const struct {
    const char *label, *name;
} encodings[] = {
    { "utf-8", "UTF-8" },
    { "utf8", "UTF-8" },
    { "us-ascii", "CP1252" },
    { "ascii", "CP1252" },
    { "iso-8859-1", "CP1252" },
    { "iso8859-1", "CP1252" },
    { "latin1", "CP1252" },
    { "l1", "CP1252" },
    { "windows-1252", "CP1252" },
    { "cp1252", "CP1252" },
    { "utf-16", "UTF-16LE" },
    { "utf-16le", "UTF-16LE" },
    { "utf-16be", "UTF-16BE" },
    { "iso-8859-2", "ISO-8859-2" },
    { "iso-8859-3", "ISO-8859-3" },
    { "iso-8859-4", "ISO-8859-4" },
    { "iso-8859-5", "ISO-8859-5" },
    { "iso-8859-6", "ISO-8859-6" },
    { "iso-8859-7", "ISO-8859-7" },
    { "iso-8859-8", "ISO-8859-8" },
    { "iso-8859-9", "CP1254" },
    { "iso-8859-10", "ISO-8859-10" },
    { "iso-8859-13", "ISO-8859-13" },
    { "iso-8859-14", "ISO-8859-14" },
    { "iso-8859-15", "ISO-8859-15" },
    { "iso-8859-16", "ISO-8859-16" },
    { "windows-874", "CP874" },
    { "windows-1250", "CP1250" },
    { "windows-1251", "CP1251" },
    { "windows-1253", "CP1253" },
    { "windows-1254", "CP1254" },
    { "windows-1255", "CP1255" },
    { "windows-1256", "CP1256" },
    { "windows-1257", "CP1257" },
    { "windows-1258", "CP1258" },
    { "koi8-r", "KOI8-R" },
    { "koi8-u", "KOI8-U" },
    { "ibm866", "CP866" },
    { "macintosh", "MACINTOSH" },
    { "shift_jis", "CP932" },
    { "shift-jis", "CP932" },
    { "sjis", "CP932" },
    { "euc-jp", "EUC-JP" },
    { "gb2312", "GB18030" },
    { "gbk", "GB18030" },
    { "gb18030", "GB18030" },
    { "big5", "BIG5-HKSCS" },
    { "euc-kr", "CP949" },
};

/* The word after "charset=", with or without quotes. */
static struct slice charset_in(struct slice text)
{
    static const char word[] = "charset=";
    const size_t n_word = sizeof(word) - 1;

    for (size_t i = 0; i + n_word <= text.n; i++) {
        struct slice rest = { text.p + i + n_word, text.n - i - n_word };
        size_t n = 0;

        if (strncasecmp(text.p + i, word, n_word) != 0)
            continue;
        if (rest.n > 0 && (rest.p[0] == '"' || rest.p[0] == '\''))
            rest = (struct slice){ rest.p + 1, rest.n - 1 };
        while (n < rest.n && n < LABEL_BYTES && !strchr("\"'; \t\r\n>/", rest.p[n]))
            n++;
        return (struct slice){ rest.p, n };
    }
    return (struct slice){ NULL, 0 };
}

static const char *encoding_of_label(struct slice label)
{
    for (size_t i = 0; i < ARRAY_SIZE(encodings); i++)
        if (is_word(label, encodings[i].label))
            return encodings[i].name;
    return NULL;
}

/* What a page says of itself is read as ASCII, so it is not UTF-16 (HTML, section 13.2.3.2). */
static const char *encoding_by_meta(struct slice body)
{
    const char *name = encoding_of_label(charset_in((struct slice){ body.p, MIN(body.n, (size_t)SNIFF_BYTES) }));

    return name && strncmp(name, "UTF-16", 6) == 0 ? "UTF-8" : name;
}

static int find_encoding(struct slice body, const char *type, bool is_html, const char **ret, struct err *e)
{
    struct slice label = type ? charset_in(slice_of(type)) : (struct slice){ NULL, 0 };

    if (starts_with(body, "\xff\xfe"))
        *ret = "UTF-16LE";
    else if (starts_with(body, "\xfe\xff"))
        *ret = "UTF-16BE";
    else if (starts_with(body, "\xef\xbb\xbf"))
        *ret = "UTF-8";
    else if (label.n > 0)
        *ret = encoding_of_label(label);
    else
        *ret = is_html ? encoding_by_meta(body) : NULL;
    if (!*ret && label.n > 0)
        return err_set(e, -EINVAL, "BAD_ENCODING", "it is written in the encoding %.*s, which is not known here.",
                       (int)label.n, label.p);
    if (!*ret)
        *ret = utf8_is_valid(body) ? "UTF-8" : "CP1252";
    return 0;
}

/* UTF-8 itself: what is none, and NUL, become U+FFFD. */
static void add_utf8(struct buf *out, struct slice in)
{
    while (in.n > 0 && !out->overflowed) {
        size_t n = 0, n_char = 0;

        while (n < in.n && (n_char = utf8_char_bytes((struct slice){ in.p + n, in.n - n })) > 0 && in.p[n] != '\0')
            n += n_char;
        buf_add(out, in.p, n);
        if (n < in.n) {
            buf_add_str(out, REPLACEMENT);
            n++;
        }
        in = (struct slice){ in.p + n, in.n - n };
    }
}

static void add_converted(struct buf *out, iconv_t way, struct slice in)
{
    char *from = (char *)(uintptr_t)in.p; /* iconv() reads it only */
    size_t left = in.n;

    while (left > 0 && !out->overflowed) {
        char piece[PIECE_BYTES], *to = piece;
        size_t room = sizeof(piece), r = iconv(way, &from, &left, &to, &room);

        add_utf8(out, (struct slice){ piece, sizeof(piece) - room });
        if (r == (size_t)-1 && errno != E2BIG && left > 0) {
            buf_add_str(out, REPLACEMENT);
            from++;
            left--;
            iconv(way, NULL, NULL, NULL, NULL);
        }
    }
}

static int convert(struct arena *a, struct slice body, const char *encoding, struct slice *ret, struct err *e)
{
    iconv_t way = (iconv_t)-1;
    struct buf out;

    buf_init(&out, MAX(body.n, (size_t)1) * TEXT_GROWTH + sizeof(REPLACEMENT));
    if (strcmp(encoding, "UTF-8") != 0) {
        way = iconv_open("UTF-8", encoding);
        if (way == (iconv_t)-1)
            return err_set(e, -EINVAL, "BAD_ENCODING", "this machine cannot read the encoding %s.", encoding);
        add_converted(&out, way, body);
        iconv_close(way);
    } else {
        add_utf8(&out, body);
    }
    ret->n = out.n;
    ret->p = buf_to_arena(&out, a);
    return 0;
}

/* ---- the page ---- */

static void drop_mark(struct slice *text)
{
    if (starts_with(*text, "\xef\xbb\xbf"))
        *text = (struct slice){ text->p + 3, text->n - 3 };
}

/* At the start of a character. */
static void cut(struct slice text, struct page *ret)
{
    size_t n = MIN(text.n, (size_t)LIMIT_PAGE_TEXT);

    while (n < text.n && n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
        n--;
    ret->text = (struct slice){ text.p, n };
    if (n < text.n)
        ret->why_cut = "the text is too long";
}

int page_text(struct arena *a, struct slice body, const char *type, struct page *ret, struct err *e)
{
    enum page_kind kind = page_kind(type, body);
    struct page page = { 0 };
    struct slice text = { 0 };
    const char *encoding = NULL;
    int r;

    if (kind == PAGE_OTHER)
        return err_set(e, -EINVAL, "NO_TEXT", "it is no text but %.100s (%zu bytes).", type ? type : "binary data",
                       body.n);
    r = find_encoding(body, type, kind == PAGE_HTML, &encoding, e);
    if (r < 0)
        return r;
    if (strncmp(encoding, "UTF-16", 6) != 0 && memchr(body.p ? body.p : "", '\0', body.n))
        return err_set(e, -EINVAL, "NO_TEXT", "it is said to be text (%.100s), but has zero bytes.",
                       type ? type : "by its first bytes");
    r = convert(a, body, encoding, &text, e);
    if (r < 0)
        return r;
    drop_mark(&text);
    if (kind == PAGE_HTML)
        page_of_html(a, text, &page);
    else
        cut(text, &page);
    *ret = page;
    return 0;
}
