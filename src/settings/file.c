#include "settings/file.h"
#include "base/utf8.h"

struct place {
    const char *name;
    int line;
};

static int refuse(const struct place *at, struct err *e, const char *what)
{
    return err_set(e, -EINVAL, "BAD_SETTING", "%s:%d: %s", at->name, at->line, what);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct slice skip(struct slice s, size_t n)
{
    return (struct slice){ s.p + n, s.n - n };
}

static struct slice trim(struct slice s)
{
    while (s.n > 0 && is_blank(s.p[0]))
        s = skip(s, 1);
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static bool has_control_bytes(struct slice line)
{
    for (size_t i = 0; i < line.n; i++)
        if (((unsigned char)line.p[i] < 0x20 && line.p[i] != '\t') || line.p[i] == 0x7f)
            return true;
    return false;
}

static bool is_comment_or_empty(struct slice s)
{
    s = trim(s);
    return s.n == 0 || s.p[0] == '#';
}

/* The value ends before a # that follows a blank. */
static struct slice bare_value(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '#' && (i == 0 || is_blank(s.p[i - 1])))
            s.n = i;
    return trim(s);
}

static bool unescape(char c, char *ret)
{
    static const char from[] = "\"\\nt", to[] = "\"\\\n\t";
    const char *found = c ? strchr(from, c) : NULL;

    if (found)
        *ret = to[found - from];
    return found != NULL;
}

/* s begins after the opening quote. */
static int quoted_value(struct arena *a, struct slice s, const struct place *at, char **ret, struct err *e)
{
    char *out = arena_alloc(a, s.n + 1);
    size_t n = 0, i = 0;

    for (; i < s.n && s.p[i] != '"'; i++) {
        out[n] = s.p[i];
        if (s.p[i] == '\\' && (++i == s.n || !unescape(s.p[i], &out[n])))
            return refuse(at, e, "after a backslash only \", \\, n and t may stand");
        n++;
    }
    if (i == s.n)
        return refuse(at, e, "the closing quote is missing");
    if (!is_comment_or_empty(skip(s, i + 1)))
        return refuse(at, e, "nothing but a comment may follow the closing quote");
    *ret = out;
    return 0;
}

static int parse_value(struct arena *a, struct slice s, const struct place *at, char **ret, struct err *e)
{
    s = trim(s);
    if (s.n > 0 && s.p[0] == '"')
        return quoted_value(a, skip(s, 1), at, ret, e);
    *ret = arena_slicedup(a, bare_value(s));
    return 0;
}

static int parse_line(struct arena *a, struct slice line, const struct place *at, settings_file_fn *fn, void *arg,
                      struct err *e)
{
    struct slice key = trim(line), rest;
    char *value = NULL;
    size_t n = 0;
    int r;

    if (has_control_bytes(line) || !utf8_is_valid(line))
        return refuse(at, e, "the line is not UTF-8 text");
    if (is_comment_or_empty(line))
        return 0;
    while (n < key.n && is_key_char(key.p[n]))
        n++;
    rest = trim(skip(key, n));
    if (n == 0 || rest.n == 0 || rest.p[0] != '=')
        return refuse(at, e, "a line must be `key = value`, with a key of lower-case letters, digits, _ and .");
    r = parse_value(a, skip(rest, 1), at, &value, e);
    return r < 0 ? r : fn(arg, arena_strndup(a, key.p, n), value, at->line, e);
}

int settings_file_parse(struct arena *a, struct slice text, const char *name, settings_file_fn *fn, void *arg,
                        struct err *e)
{
    struct place at = { .name = name };
    int r = 0;

    while (text.n > 0 && r == 0) {
        const char *end = memchr(text.p, '\n', text.n);
        struct slice line = { text.p, end ? (size_t)(end - text.p) : text.n };

        text = skip(text, end ? line.n + 1 : line.n);
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        at.line++;
        r = parse_line(a, line, &at, fn, arg, e);
    }
    return r;
}
