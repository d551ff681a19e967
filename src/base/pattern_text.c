/* The notation of ECMA-262 (22.2.1, flag u) as PCRE2 reads it. What both read alike is copied; what they read
 * differently is written out; what ECMA-262 does not have is refused. */
#include "base/pattern_private.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <stdio.h>

enum { MOST_REPEATS = 65535, HIGH_SURROGATE = 0xd800, LOW_SURROGATE = 0xdc00, SURROGATES_END = 0xe000 };

/* The escapes that stand for a set of characters, as members of a class. PCRE2 10.42 errs where \W and \p meet in a
 * negated class, and its \s is narrower than WhiteSpace and LineTerminator (12.2, 12.3). */
#define SPACES "\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}"
#define NO_SPACES                                                                                                      \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}"   \
    "\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}"
static const struct {
    char letter;
    const char *members;
} sets[] = {
    { 'd', "0-9" },        { 'D', "\\x{0}-/:-\\x{10ffff}" },
    { 'w', "0-9A-Z_a-z" }, { 'W', "\\x{0}-/:-@\\[-^`{-\\x{10ffff}" },
    { 's', SPACES },       { 'S', NO_SPACES },
};
#define NO_LINE_END "[^\\n\\r\\x{2028}\\x{2029}]"

struct reading {
    const char *at, *end;
    struct pattern_text *text;
    bool is_in_class;
    bool may_repeat; /* a quantifier may follow */
};

PRINTF_LIKE(2, 3)
static void refuse(struct reading *r, const char *fmt, ...)
{
    va_list ap;

    if (*r->text->why)
        return;
    va_start(ap, fmt);
    vsnprintf(r->text->why, PATTERN_WHY_SIZE, fmt, ap);
    va_end(ap);
}

static char peek(const struct reading *r, size_t n)
{
    return (size_t)(r->end - r->at) > n ? r->at[n] : '\0';
}

static bool starts_with(const struct reading *r, const char *s)
{
    size_t n = strlen(s);

    return (size_t)(r->end - r->at) >= n && memcmp(r->at, s, n) == 0;
}

static void copy(struct reading *r, size_t n)
{
    n = MIN(n, (size_t)(r->end - r->at));
    buf_add(&r->text->out, r->at, n);
    r->at += n;
}

static void write_char(struct reading *r, unsigned long code)
{
    buf_printf(&r->text->out, "\\x{%lx}", code);
}

/* ---- escapes ---- */

/* n_least to n_most digits of the base; false: fewer. */
static bool read_digits(struct reading *r, unsigned base, size_t n_least, size_t n_most, unsigned long *ret)
{
    char digits[16] = "";
    size_t n = 0;

    while (n < MIN(n_most, sizeof(digits) - 1) && memchr("0123456789abcdefABCDEF", peek(r, n), base == 16 ? 22 : 10)) {
        digits[n] = r->at[n];
        n++;
    }
    r->at += n;
    *ret = strtoul(digits, NULL, (int)base);
    return n >= n_least;
}

/* After a high surrogate: \uDC00 makes one character of both. */
static unsigned long join_surrogates(struct reading *r, unsigned long high)
{
    struct reading ahead = *r;
    unsigned long low;

    if (high < HIGH_SURROGATE || high >= LOW_SURROGATE || !starts_with(r, "\\u"))
        return high;
    ahead.at += 2;
    if (!read_digits(&ahead, 16, 4, 4, &low) || low < LOW_SURROGATE || low >= SURROGATES_END)
        return high;
    r->at = ahead.at;
    return 0x10000 + ((high - HIGH_SURROGATE) << 10) + (low - LOW_SURROGATE);
}

/* \u0041, \ud83d\ude00, \u{1f600}, \x41: at stands after the letter. */
static void read_code_point(struct reading *r, bool is_short)
{
    bool is_braced = !is_short && peek(r, 0) == '{', is_right;
    unsigned long code;

    r->at += is_braced;
    is_right = read_digits(r, 16, is_braced ? 1 : is_short ? 2 : 4, is_braced ? 15 : is_short ? 2 : 4, &code);
    if (is_braced && is_right) {
        is_right = peek(r, 0) == '}';
        r->at += is_right;
    }
    if (!is_right || code > 0x10ffff)
        return refuse(r, "has an escape \\%c that names no character", is_short ? 'x' : 'u');
    write_char(r, is_braced ? code : join_surrogates(r, code));
}

/* The long names of General_Category; PCRE2 knows the short ones, and the names of scripts and of yes-or-no properties.
 */
static const struct {
    const char *name, *code;
} categories[] = {
    { "Cased_Letter", "L&" },
    { "Close_Punctuation", "Pe" },
    { "Combining_Mark", "M" },
    { "Connector_Punctuation", "Pc" },
    { "Control", "Cc" },
    { "Currency_Symbol", "Sc" },
    { "Dash_Punctuation", "Pd" },
    { "Decimal_Number", "Nd" },
    { "Enclosing_Mark", "Me" },
    { "Final_Punctuation", "Pf" },
    { "Format", "Cf" },
    { "Initial_Punctuation", "Pi" },
    { "LC", "L&" },
    { "Letter", "L" },
    { "Letter_Number", "Nl" },
    { "Line_Separator", "Zl" },
    { "Lowercase_Letter", "Ll" },
    { "Mark", "M" },
    { "Math_Symbol", "Sm" },
    { "Modifier_Letter", "Lm" },
    { "Modifier_Symbol", "Sk" },
    { "Nonspacing_Mark", "Mn" },
    { "Number", "N" },
    { "Open_Punctuation", "Ps" },
    { "Other", "C" },
    { "Other_Letter", "Lo" },
    { "Other_Number", "No" },
    { "Other_Punctuation", "Po" },
    { "Other_Symbol", "So" },
    { "Paragraph_Separator", "Zp" },
    { "Private_Use", "Co" },
    { "Punctuation", "P" },
    { "Separator", "Z" },
    { "Space_Separator", "Zs" },
    { "Spacing_Mark", "Mc" },
    { "Surrogate", "Cs" },
    { "Symbol", "S" },
    { "Titlecase_Letter", "Lt" },
    { "Unassigned", "Cn" },
    { "Uppercase_Letter", "Lu" },
    { "cntrl", "Cc" },
    { "digit", "Nd" },
    { "punct", "P" },
};

/* \p{…}: at stands after the letter. */
static void read_property(struct reading *r, char letter)
{
    static const char *const prefixes[] = { "General_Category=", "gc=" };
    const char *close = memchr(r->at, '}', (size_t)(r->end - r->at));
    struct slice name;

    if (peek(r, 0) != '{' || !close)
        return refuse(r, "has an escape \\%c without a property in braces", letter);
    name = (struct slice){ r->at + 1, (size_t)(close - r->at - 1) };
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (name.n > strlen(prefixes[i]) && memcmp(name.p, prefixes[i], strlen(prefixes[i])) == 0)
            name = (struct slice){ name.p + strlen(prefixes[i]), name.n - strlen(prefixes[i]) };
    for (size_t i = 0; i < ARRAY_SIZE(categories); i++)
        if (slice_eq_str(name, categories[i].name))
            name = slice_of(categories[i].code);
    buf_printf(&r->text->out, "\\%c{%.*s}", letter, (int)name.n, name.p);
    r->at = close + 1;
}

/* False: the letter stands for no set. */
static bool write_set(struct reading *r, char letter)
{
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
        if (sets[i].letter == letter) {
            buf_printf(&r->text->out, r->is_in_class ? "%s" : "[%s]", sets[i].members);
            return true;
        }
    return false;
}

/* \1 outside a class; \0 anywhere. */
static void read_numbered(struct reading *r, char letter)
{
    unsigned long n;

    if (letter == '0' && !memchr("0123456789", peek(r, 0), 10))
        return write_char(r, 0);
    r->at--;
    if (letter == '0' || r->is_in_class || !read_digits(r, 10, 1, 6, &n))
        return refuse(r, "has the escape \\%c, which ECMA-262 does not have here", letter);
    buf_printf(&r->text->out, "\\g{%lu}", n);
}

static void read_control(struct reading *r)
{
    char letter = peek(r, 0);

    if (!memchr("abcdefghijklmnopqrstuvwxyz", letter | 0x20, 26))
        return refuse(r, "has an escape \\c without a letter");
    write_char(r, (unsigned long)letter & 31);
    r->at++;
}

static void read_boundary(struct reading *r, char letter)
{
    if (r->is_in_class && letter == 'B')
        return refuse(r, "has the escape \\B in a class");
    if (r->is_in_class)
        return write_char(r, '\b');
    buf_printf(&r->text->out, "\\%c", letter);
    r->may_repeat = false;
}

static void read_letter_escape(struct reading *r, char letter)
{
    if (write_set(r, letter))
        return;
    if (strchr("fnrt", letter))
        return buf_printf(&r->text->out, "\\%c", letter);
    if (letter == 'p' || letter == 'P')
        return read_property(r, letter);
    if (letter == 'u' || letter == 'x')
        return read_code_point(r, letter == 'x');
    if (letter == 'b' || letter == 'B')
        return read_boundary(r, letter);
    if (letter == 'c')
        return read_control(r);
    if (letter == 'v')
        return write_char(r, '\v');
    if (letter == 'k' && peek(r, 0) == '<' && !r->is_in_class)
        return buf_add_str(&r->text->out, "\\k");
    refuse(r, "has the escape \\%c, which ECMA-262 does not have", letter);
}

static void read_escape(struct reading *r)
{
    char letter = peek(r, 1);

    if (r->end - r->at < 2)
        return refuse(r, "ends in a backslash");
    r->at += 2;
    r->may_repeat = true;
    if (memchr("0123456789", letter, 10))
        return read_numbered(r, letter);
    if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z'))
        return read_letter_escape(r, letter);
    if (letter < ' ' || letter == '\x7f') /* and the first byte of a longer character */
        r->at--;
    else
        buf_printf(&r->text->out, "\\%c", letter);
}

/* ---- classes ---- */

static bool is_set_escape(const struct reading *r, size_t n)
{
    return peek(r, n) == '\\' && peek(r, n + 1) && strchr("dDwWsSpP", peek(r, n + 1));
}

/* One character or escape of a class. A hyphen beside a set of characters is no range, and no [:alpha:] is a name. */
static void read_member(struct reading *r)
{
    bool is_set = is_set_escape(r, 0), is_hyphen = peek(r, 0) == '-' && is_set_escape(r, 1);

    if (is_hyphen || memchr("[.:=", peek(r, 0), 4))
        buf_add_char(&r->text->out, '\\');
    if (peek(r, 0) == '\\')
        read_escape(r);
    else
        copy(r, 1);
    if (is_set && peek(r, 0) == '-') {
        buf_add_char(&r->text->out, '\\');
        copy(r, 1);
    }
}

static void read_class(struct reading *r)
{
    const char *start = r->at;

    r->is_in_class = true;
    copy(r, peek(r, 1) == '^' ? 2 : 1);
    while (r->at < r->end && *r->at != ']' && !*r->text->why)
        read_member(r);
    copy(r, 1);
    r->is_in_class = false;
    r->may_repeat = true;
    r->text->longest_class = MAX(r->text->longest_class, (size_t)(r->at - start));
}

/* ---- groups and quantifiers ---- */

/* (, (?:, (?=, (?!, (?<=, (?<!, (?<name> */
static void read_group(struct reading *r)
{
    static const char *const kinds[] = { "(?:", "(?=", "(?!", "(?<=", "(?<!" };
    const char *close;

    r->may_repeat = false;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (starts_with(r, kinds[i]))
            return copy(r, strlen(kinds[i]));
    if (!starts_with(r, "(?"))
        return copy(r, 1);
    close = memchr(r->at, '>', (size_t)(r->end - r->at));
    if (starts_with(r, "(?<") && close)
        return copy(r, (size_t)(close - r->at) + 1);
    refuse(r, "has a group (?%.1s, which ECMA-262 does not have", r->end - r->at > 2 ? r->at + 2 : "");
}

/* What follows a quantifier: ? makes it take as little as it can. */
static void end_quantifier(struct reading *r)
{
    if (!r->may_repeat)
        return refuse(r, "has a quantifier with nothing before it to repeat");
    if (peek(r, 0) == '?')
        copy(r, 1);
    r->may_repeat = false;
}

/* {2}, {2,}, {2,5}; any other brace is a character. */
static void read_braces(struct reading *r)
{
    struct reading ahead = *r;
    unsigned long least, most;
    bool is_quantifier;

    ahead.at++;
    is_quantifier = read_digits(&ahead, 10, 1, 15, &least);
    most = least;
    if (is_quantifier && peek(&ahead, 0) == ',') {
        ahead.at++;
        if (!read_digits(&ahead, 10, 1, 15, &most))
            most = least;
    }
    if (!is_quantifier || peek(&ahead, 0) != '}') {
        buf_add_char(&r->text->out, '\\');
        copy(r, 1);
        r->may_repeat = true;
        return;
    }
    if (MAX(least, most) > MOST_REPEATS)
        return refuse(r, "repeats more than %d times", MOST_REPEATS);
    r->text->largest_least = MAX(r->text->largest_least, least);
    copy(r, (size_t)(ahead.at + 1 - r->at));
    end_quantifier(r);
}

static void read_term(struct reading *r)
{
    switch (*r->at) {
    case '\\':
        return read_escape(r);
    case '[':
        return read_class(r);
    case '(':
        return read_group(r);
    case '{':
        return read_braces(r);
    case '*':
    case '+':
    case '?':
        copy(r, 1);
        return end_quantifier(r);
    case '.':
        buf_add_str(&r->text->out, NO_LINE_END);
        r->at++;
        break;
    default:
        r->may_repeat = !strchr("|^$", *r->at);
        return copy(r, 1);
    }
    r->may_repeat = true;
}

void pattern_translate(struct slice source, struct pattern_text *text)
{
    struct reading r = { .at = source.p, .end = source.p + source.n, .text = text };

    *text = (struct pattern_text){ .why = "" };
    buf_init(&text->out, 64 * (size_t)LIMIT_PATTERN_BYTES); /* \S, two bytes, is the shortest that becomes so long */
    if (source.n > LIMIT_PATTERN_BYTES)
        refuse(&r, "is longer than %d bytes", LIMIT_PATTERN_BYTES);
    else if (memchr(source.p, '\0', source.n))
        refuse(&r, "holds a NUL");
    while (r.at < r.end && !*text->why)
        read_term(&r);
    if (text->out.overflowed)
        refuse(&r, "is too long");
}
