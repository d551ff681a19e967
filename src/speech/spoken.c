#include "speech/spoken.h"

#include "base/buf.h"
#include "base/limits.h"

#include <strings.h>

struct reader {
    struct buf out;
    const char *language;
    char fence;     /* of the block of code that is being left out; 0: none */
    size_t n_fence; /* its marks */
};

/* Said instead of a block of code. */
static const struct {
    const char *language, *words;
} announcements[] = {
    { "en", "Code block." },       { "de", "Codeblock." },        { "fr", "Bloc de code." },
    { "es", "Bloque de código." }, { "it", "Blocco di codice." }, { "pt", "Bloco de código." },
    { "nl", "Codeblok." },
};

static const char *announcement_of(const char *language)
{
    for (size_t i = 0; i < ARRAY_SIZE(announcements); i++)
        if (strncasecmp(language, announcements[i].language, 2) == 0)
            return announcements[i].words;
    return announcements[0].words;
}

static void end_block(struct reader *r)
{
    while (r->out.n > 0 && r->out.p[r->out.n - 1] == ' ')
        r->out.n--;
    if (r->out.n > 0 && r->out.p[r->out.n - 1] != '\n')
        buf_add_char(&r->out, '\n');
}

static size_t count_marks(struct slice s, char mark)
{
    size_t n = 0;

    while (n < s.n && s.p[n] == mark)
        n++;
    return n;
}

static struct slice skip(struct slice s, size_t n)
{
    return (struct slice){ s.p + n, s.n - n };
}

/* ---- within a line ---- */

static bool is_word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A run of * or _ or ~ that is heard: a product, a name_with_underscores, a mark that stands alone. */
static bool is_heard(char before, char mark, size_t n, char after)
{
    if (mark == '~')
        return n < 2;
    if (mark == '_')
        return is_word_char(before) && is_word_char(after);
    return (is_digit(before) && is_digit(after)) || (char_is_blank(before) && char_is_blank(after));
}

/* The text up to the closing bracket, at most LIMIT_SPEECH_MARK_BYTES; 0: there is none. */
static size_t find_close(struct slice s, char open, char close)
{
    size_t depth = 1;

    for (size_t i = 0; i < s.n && i < LIMIT_SPEECH_MARK_BYTES; i++) {
        depth += s.p[i] == open;
        depth -= s.p[i] == close;
        if (depth == 0)
            return i + 1;
    }
    return 0;
}

/* [text](target), [text][name] and [^1]; s begins after the opening bracket. Returns what was read, 0 for no link. */
static size_t take_link(struct reader *r, struct slice s)
{
    size_t n_text = find_close(s, '[', ']'), n_target = 0;
    struct slice rest = skip(s, n_text);

    if (n_text == 0)
        return 0;
    if (s.p[0] == '^')
        return n_text;
    if (rest.n > 1 && rest.p[0] == '(')
        n_target = find_close(skip(rest, 1), '(', ')');
    else if (rest.n > 1 && rest.p[0] == '[')
        n_target = find_close(skip(rest, 1), '[', ']');
    if (n_target == 0)
        return 0;
    for (size_t i = 0; i + 1 < n_text; i++)
        if (!memchr("*_`[]", s.p[i], 5))
            buf_add_char(&r->out, s.p[i]);
    return n_text + 1 + n_target;
}

/* <https://...> is read, <b> and </b> are not; s begins after the <. */
static size_t take_tag(struct reader *r, struct slice s)
{
    size_t n = s.n > 0 && (is_word_char(s.p[0]) || s.p[0] == '/' || s.p[0] == '!') ? find_close(s, '<', '>') : 0;

    if (n > 0 && (memmem(s.p, n, "://", 3) || memchr(s.p, '@', n)) && !memchr(s.p, ' ', n))
        buf_add(&r->out, s.p, n - 1);
    else if (n > 0 && s.p[0] == 'b' && s.p[1] == 'r')
        buf_add_char(&r->out, ' ');
    return n;
}

static size_t take_emphasis(struct reader *r, struct slice line, size_t at)
{
    char mark = line.p[at], before = at > 0 ? line.p[at - 1] : ' ';
    size_t n = count_marks(skip(line, at), mark);

    if (is_heard(before, mark, n, at + n < line.n ? line.p[at + n] : ' '))
        buf_add(&r->out, line.p + at, n);
    return n;
}

/* Returns how many bytes belong to the mark that begins at `at`; 0: none begins. */
static size_t take_mark(struct reader *r, struct slice line, size_t at)
{
    struct slice after = skip(line, at + 1);
    size_t n = 0;

    switch (line.p[at]) {
    case '\\':
        return after.n > 0 && memchr("\\`*_{}[]()#+-.!|<>~", after.p[0], 19) ? 1 : 0;
    case '`':
        return count_marks(skip(line, at), '`');
    case '*':
    case '_':
    case '~':
        return take_emphasis(r, line, at);
    case '!':
        n = after.n > 0 && after.p[0] == '[' ? take_link(r, skip(after, 1)) : 0;
        return n ? n + 2 : 0;
    case '[':
        n = take_link(r, after);
        return n ? n + 1 : 0;
    case '<':
        n = take_tag(r, after);
        return n ? n + 1 : 0;
    default:
        return 0;
    }
}

static void read_inline(struct reader *r, struct slice line)
{
    for (size_t at = 0, n; at < line.n; at += n) {
        bool is_escaped = line.p[at] == '\\';

        n = take_mark(r, line, at);
        if (n > 0 && !is_escaped)
            continue;
        at += n; /* of an escaped mark the backslash is left out */
        buf_add_char(&r->out, line.p[at]);
        n = 1;
    }
}

/* ---- lines ---- */

/* A rule, the underline of a heading, the second row of a table. */
static bool is_drawn(struct slice line)
{
    size_t n_marks = 0;

    for (size_t i = 0; i < line.n; i++) {
        if (!memchr("-=*_|:+ ", line.p[i], 8))
            return false;
        n_marks += memchr("-=*_", line.p[i], 4) != NULL;
    }
    return n_marks >= 3;
}

static bool is_fence(const struct reader *r, struct slice line)
{
    char mark = line.n > 0 ? line.p[0] : ' ';
    size_t n = count_marks(line, mark);

    if (r->fence)
        return mark == r->fence && n >= r->n_fence && slice_trim(skip(line, n)).n == 0;
    return (mark == '`' || mark == '~') && n >= 3 && !memchr(line.p + n, '`', line.n - n);
}

static void take_fence(struct reader *r, struct slice line)
{
    end_block(r);
    if (r->fence) {
        r->fence = '\0';
        return;
    }
    r->fence = line.p[0];
    r->n_fence = count_marks(line, r->fence);
    buf_add_str(&r->out, announcement_of(r->language));
    end_block(r);
}

static void read_row(struct reader *r, struct slice line)
{
    bool is_first = true;

    end_block(r);
    while (line.n > 0) {
        const char *bar = memchr(line.p, '|', line.n);
        size_t n = bar ? (size_t)(bar - line.p) : line.n;
        struct slice cell = slice_trim((struct slice){ line.p, n });

        if (cell.n > 0 && !is_first)
            buf_add_str(&r->out, ", ");
        read_inline(r, cell);
        is_first = is_first && cell.n == 0;
        line = skip(line, MIN(n + 1, line.n));
    }
    end_block(r);
}

/* Length of "- ", "* ", "+ " with the box of a task; 0: no item begins. */
static size_t item_marks(struct slice line)
{
    if (line.n < 2 || !memchr("-*+", line.p[0], 3) || line.p[1] != ' ')
        return 0;
    if (line.n > 5 && line.p[2] == '[' && memchr(" xX", line.p[3], 3) && line.p[4] == ']')
        return 5;
    return 2;
}

static bool is_numbered(struct slice line)
{
    size_t n = 0;

    while (n < line.n && n < 9 && is_digit(line.p[n]))
        n++;
    return n > 0 && n + 1 < line.n && memchr(".)", line.p[n], 2) && line.p[n + 1] == ' ';
}

static void read_heading(struct reader *r, struct slice line)
{
    end_block(r);
    while (line.n > 0 && line.p[line.n - 1] == '#')
        line.n--;
    read_inline(r, slice_trim(line));
    end_block(r);
}

static void read_line(struct reader *r, struct slice line)
{
    size_t n_marks = count_marks(line, '#');

    if (line.n == 0 || is_drawn(line)) {
        end_block(r);
    } else if (n_marks >= 1 && n_marks <= 6 && n_marks < line.n && line.p[n_marks] == ' ') {
        read_heading(r, skip(line, n_marks));
    } else if (line.p[0] == '|') {
        read_row(r, line);
    } else {
        n_marks = item_marks(line);
        if (n_marks > 0 || is_numbered(line))
            end_block(r);
        read_inline(r, slice_trim(skip(line, n_marks)));
        buf_add_char(&r->out, ' ');
    }
}

static void take_line(struct reader *r, struct slice line)
{
    line = slice_trim(line);
    while (line.n > 0 && line.p[0] == '>' && !r->fence)
        line = slice_skip_blanks(skip(line, 1));
    if (is_fence(r, line))
        take_fence(r, line);
    else if (!r->fence)
        read_line(r, line);
}

struct slice speech_spoken(struct arena *a, struct slice markdown, const char *language)
{
    struct reader r = { .language = language };
    struct slice text;

    buf_init(&r.out, markdown.n * 8 + 64); /* a fence of three bytes becomes an announcement */
    while (markdown.n > 0) {
        const char *end = memchr(markdown.p, '\n', markdown.n);
        size_t n = end ? (size_t)(end - markdown.p) : markdown.n;

        take_line(&r, (struct slice){ markdown.p, n });
        markdown = skip(markdown, MIN(n + 1, markdown.n));
    }
    end_block(&r);
    text.n = r.out.n;
    text.p = buf_to_arena(&r.out, a);
    return text;
}
