/* The text of HTML, from the events of libxml2's parser. */
#include "agents/page_text.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <libxml/HTMLparser.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

enum {
    CHUNK_BYTES = 4096,
    TAG_BYTES = 256 << 10, /* of one start tag */
    TITLE_BYTES = 1000,
    NAME_BYTES = 100 /* after which the parser ends a name */,
    LIST_DEPTH = 8
};

enum role {
    ROLE_NONE,
    ROLE_SKIPPED,
    ROLE_HEADING,
    ROLE_ITEM,
    ROLE_LIST,
    ROLE_CELL,
    ROLE_LINK,
    ROLE_IMAGE,
    ROLE_PRE,
    ROLE_TITLE
};

/* breaks: line feeds before and after it. */
static const struct element {
    const char *name;
    enum role role;
    int breaks;
} elements[] = {
    { "a", ROLE_LINK, 0 },         { "address", ROLE_NONE, 1 },     { "article", ROLE_NONE, 2 },
    { "aside", ROLE_NONE, 2 },     { "blockquote", ROLE_NONE, 2 },  { "br", ROLE_NONE, 1 },
    { "canvas", ROLE_SKIPPED, 0 }, { "dd", ROLE_NONE, 1 },          { "details", ROLE_NONE, 1 },
    { "div", ROLE_NONE, 1 },       { "dl", ROLE_NONE, 2 },          { "dt", ROLE_NONE, 1 },
    { "fieldset", ROLE_NONE, 1 },  { "figcaption", ROLE_NONE, 1 },  { "figure", ROLE_NONE, 2 },
    { "footer", ROLE_NONE, 2 },    { "form", ROLE_NONE, 2 },        { "h1", ROLE_HEADING, 2 },
    { "h2", ROLE_HEADING, 2 },     { "h3", ROLE_HEADING, 2 },       { "h4", ROLE_HEADING, 2 },
    { "h5", ROLE_HEADING, 2 },     { "h6", ROLE_HEADING, 2 },       { "header", ROLE_NONE, 2 },
    { "hr", ROLE_NONE, 2 },        { "img", ROLE_IMAGE, 0 },        { "li", ROLE_ITEM, 1 },
    { "main", ROLE_NONE, 2 },      { "nav", ROLE_NONE, 2 },         { "ol", ROLE_LIST, 1 },
    { "p", ROLE_NONE, 2 },         { "pre", ROLE_PRE, 2 },          { "script", ROLE_SKIPPED, 0 },
    { "section", ROLE_NONE, 2 },   { "select", ROLE_SKIPPED, 0 },   { "style", ROLE_SKIPPED, 0 },
    { "summary", ROLE_NONE, 1 },   { "svg", ROLE_SKIPPED, 0 },      { "table", ROLE_NONE, 2 },
    { "td", ROLE_CELL, 0 },        { "template", ROLE_SKIPPED, 0 }, { "th", ROLE_CELL, 0 },
    { "title", ROLE_TITLE, 0 },    { "tr", ROLE_NONE, 1 },          { "ul", ROLE_LIST, 1 },
};

struct reader {
    htmlParserCtxtPtr parser; /* owned */
    struct buf out, title;
    const char *why_cut;
    int n_skipped, n_pre, n_lists; /* open elements of these roles */
    int breaks;                    /* line feeds that are due before the next text */
    bool has_space;                /* a space is due */
    bool is_title, is_link;
    size_t link_at; /* in out, after the bracket */
    char link[LIMIT_PAGE_LINK + 1];
};

static const struct element *find_element(const xmlChar *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(elements); i++)
        if (strcmp(elements[i].name, (const char *)name) == 0)
            return &elements[i];
    return NULL;
}

/* Ends the text; what was read stays. The rest of the chunk is parsed, and its events are ignored. */
static void stop(struct reader *r, const char *why)
{
    if (!r->why_cut)
        r->why_cut = why;
}

/* ---- text ---- */

static void add_due(struct reader *r)
{
    for (int i = 0; r->out.n > 0 && i < r->breaks; i++)
        buf_add_char(&r->out, '\n');
    if (r->out.n > 0 && r->breaks == 0 && r->has_space)
        buf_add_char(&r->out, ' ');
    r->breaks = 0;
    r->has_space = false;
}

static void add(struct reader *r, struct slice text)
{
    add_due(r);
    buf_add_slice(&r->out, text);
    if (r->out.overflowed)
        stop(r, "the text is too long");
}

static void add_str(struct reader *r, const char *text)
{
    add(r, slice_of(text));
}

static void break_lines(struct reader *r, int n)
{
    r->breaks = MAX(r->breaks, n);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

/* Stretches of blanks become one space. */
static void add_words(struct reader *r, struct slice text)
{
    while (text.n > 0) {
        size_t n = 0;

        while (n < text.n && !is_blank(text.p[n]))
            n++;
        if (n > 0)
            add(r, (struct slice){ text.p, n });
        r->has_space = r->has_space || n < text.n;
        while (n < text.n && is_blank(text.p[n]))
            n++;
        text = (struct slice){ text.p + n, text.n - n };
    }
}

static void add_title(struct reader *r, struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        bool is_new_space = is_blank(text.p[i]) && r->title.n > 0 && r->title.p[r->title.n - 1] != ' ';

        if (!is_blank(text.p[i]) || is_new_space)
            buf_add_char(&r->title, is_blank(text.p[i]) ? ' ' : text.p[i]);
    }
}

static void on_text(void *arg, const xmlChar *bytes, int n)
{
    struct reader *r = arg;
    struct slice text = { (const char *)bytes, (size_t)MAX(n, 0) };

    if (r->why_cut || r->n_skipped > 0 || text.n == 0)
        return;
    if (r->is_title)
        add_title(r, text);
    else if (r->n_pre > 0)
        add(r, text);
    else
        add_words(r, text);
}

/* The text of scripts and styles. */
static void on_raw_text(void *arg, const xmlChar *bytes, int n)
{
}

/* ---- elements ---- */

static const char *attribute(const xmlChar **attributes, const char *name)
{
    for (const xmlChar **at = attributes; at && at[0]; at += 2)
        if (strcmp((const char *)at[0], name) == 0)
            return (const char *)at[1];
    return NULL;
}

/* An address that a reader may want to follow; places of the same page, programs and data are none. */
static bool is_followed(const char *link)
{
    return link && *link && *link != '#' && strlen(link) <= LIMIT_PAGE_LINK &&
           strncasecmp(link, "javascript:", 11) != 0 && strncasecmp(link, "data:", 5) != 0 &&
           !strpbrk(link, " \t\r\n()<>");
}

static void begin_link(struct reader *r, const char *link)
{
    if (!is_followed(link) || r->is_link)
        return;
    add_str(r, "[");
    snprintf(r->link, sizeof(r->link), "%s", link);
    r->is_link = true;
    r->link_at = r->out.n;
}

static void end_link(struct reader *r)
{
    if (!r->is_link)
        return;
    r->is_link = false;
    if (r->out.n == r->link_at && r->out.n > 0) { /* without a text */
        r->out.n--;
        return;
    }
    buf_add_str(&r->out, "](");
    buf_add_str(&r->out, r->link);
    buf_add_str(&r->out, ")");
}

static void begin_item(struct reader *r)
{
    add_str(r, "");
    for (int i = 1; i < MIN(r->n_lists, (int)LIST_DEPTH); i++)
        buf_add_str(&r->out, "  ");
    buf_add_str(&r->out, "- ");
}

static void add_image(struct reader *r, const char *words)
{
    if (!words || !*words)
        return;
    add_str(r, "[image: ");
    add_words(r, slice_of(words));
    r->has_space = false;
    add_str(r, "]");
}

static void begin_role(struct reader *r, const struct element *element, const xmlChar **attributes)
{
    switch (element->role) {
    case ROLE_HEADING:
        add(r, (struct slice){ "###### ", (size_t)(element->name[1] - '0') });
        r->has_space = true;
        break;
    case ROLE_ITEM:
        begin_item(r);
        break;
    case ROLE_CELL:
        if (r->breaks == 0 && r->out.n > 0)
            add_str(r, " | ");
        r->has_space = false;
        break;
    case ROLE_LINK:
        begin_link(r, attribute(attributes, "href"));
        break;
    case ROLE_IMAGE:
        add_image(r, attribute(attributes, "alt"));
        break;
    default:
        break;
    }
}

/* by: +1 at the start of the element, -1 at its end. */
static void count_role(struct reader *r, enum role role, int by)
{
    int *count = role == ROLE_SKIPPED ? &r->n_skipped
                 : role == ROLE_PRE   ? &r->n_pre
                 : role == ROLE_LIST  ? &r->n_lists
                                      : NULL;

    if (count)
        *count = MAX(*count + by, 0);
    if (role == ROLE_TITLE)
        r->is_title = by > 0;
}

static void on_start(void *arg, const xmlChar *name, const xmlChar **attributes)
{
    struct reader *r = arg;
    const struct element *element = find_element(name);

    if (r->parser->nameNr > LIMIT_PAGE_DEPTH)
        stop(r, "its elements are nested too deep");
    if (!element || r->why_cut)
        return;
    count_role(r, element->role, 1);
    if (r->n_skipped > 0)
        return;
    break_lines(r, element->breaks);
    begin_role(r, element, attributes);
}

static void on_end(void *arg, const xmlChar *name)
{
    struct reader *r = arg;
    const struct element *element = find_element(name);

    if (!element || r->why_cut)
        return;
    count_role(r, element->role, -1);
    if (r->n_skipped > 0)
        return;
    if (element->role == ROLE_LINK)
        end_link(r);
    break_lines(r, element->breaks);
}

/* ---- reading ---- */

static void on_error(void *arg, xmlErrorPtr error)
{
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool may_begin_name(char c)
{
    return is_letter(c) || c == '_' || c == ':' || c == '.';
}

static bool is_in_name(char c)
{
    return may_begin_name(c) || (c >= '0' && c <= '9') || c == '-';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

static const char *skip_value(const char *at, const char *end)
{
    char quote;

    at = skip_blanks(at, end);
    quote = at < end ? *at : '\0';
    if (quote == '"' || quote == '\'') {
        const char *close = memchr(at + 1, quote, (size_t)(end - at - 1));

        return close ? close + 1 : end;
    }
    while (at < end && !is_blank(*at) && *at != '>')
        at++;
    return at;
}

/* One attribute as the parser reads it: a name of at most NAME_BYTES with an optional value, else everything up to a
 * blank. */
static const char *skip_attribute(const char *at, const char *end)
{
    const char *from = at, *after;

    if (!may_begin_name(*at)) {
        while (at < end && !is_blank(*at) && *at != '>')
            at++;
        return MAX(at, from + 1);
    }
    while (at < end && at - from < NAME_BYTES && is_in_name(*at))
        at++;
    after = skip_blanks(at, end);
    return after < end && *after == '=' ? skip_value(after + 1, end) : at;
}

/* The parser compares each attribute of an element with all before it, so a start tag that has not ended yet must not
 * become large before its attributes are counted. */
static bool is_tag_too_large(const struct reader *r)
{
    const char *at = (const char *)r->parser->input->cur, *end = (const char *)r->parser->input->end;
    size_t n = 0;

    if (end - at <= CHUNK_BYTES || at[0] != '<' || !is_letter(at[1]))
        return false;
    for (at++; at < end && n <= LIMIT_PAGE_ATTRIBUTES; n++)
        at = skip_blanks(skip_attribute(at, end), end);
    return n > LIMIT_PAGE_ATTRIBUTES || end - (const char *)r->parser->input->cur > TAG_BYTES;
}

static void read_html(struct reader *r, struct slice html)
{
    while (html.n > 0 && !r->why_cut) {
        size_t n = MIN(html.n, (size_t)CHUNK_BYTES);

        htmlParseChunk(r->parser, html.p, (int)n, n == html.n);
        html = (struct slice){ html.p + n, html.n - n };
        if (html.n > 0 && !r->why_cut && is_tag_too_large(r))
            stop(r, "one of its elements is too large");
    }
}

static void trim_end(struct buf *out)
{
    while (out->n > 0 && is_blank(out->p[out->n - 1]))
        out->n--;
}

static void begin_library(void)
{
    xmlInitParser();
}

void page_of_html(struct arena *a, struct slice html, struct page *ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    xmlSAXHandler events = { .startElement = on_start,
                             .endElement = on_end,
                             .characters = on_text,
                             .ignorableWhitespace = on_text,
                             .cdataBlock = on_raw_text,
                             .serror = on_error,
                             .initialized = XML_SAX2_MAGIC };
    struct reader *r = ARENA_NEW(a, struct reader);

    pthread_once(&once, begin_library);
    buf_init(&r->out, LIMIT_PAGE_TEXT);
    buf_init(&r->title, TITLE_BYTES);
    r->parser = htmlCreatePushParserCtxt(&events, r, NULL, 0, NULL, XML_CHAR_ENCODING_UTF8);
    if (r->parser) {
        htmlCtxtUseOptions(r->parser, HTML_PARSE_NONET | HTML_PARSE_IGNORE_ENC | HTML_PARSE_RECOVER);
        read_html(r, html);
        htmlFreeParserCtxt(r->parser);
    }
    trim_end(&r->out);
    while (!utf8_is_valid(buf_slice(&r->title))) /* it was cut within a character */
        r->title.n--;
    trim_end(&r->title);
    *ret = (struct page){ .title = r->title.n > 0 ? buf_to_arena(&r->title, a) : NULL, .why_cut = r->why_cut };
    buf_clear(&r->title);
    ret->text.n = r->out.n;
    ret->text.p = buf_to_arena(&r->out, a);
}
