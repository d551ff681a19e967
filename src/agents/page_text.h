/* Pages of the web as text for a model: what a fetched body is, its text as UTF-8, and the text of HTML.
 *
 * Texts of other encodings are converted by iconv, from the encodings that the web uses (WHATWG Encoding) and no
 * others. HTML is read by libxml2's parser event by event, so no tree is built, nothing is fetched and no entity but
 * HTML's own is known. What would take more than linear time is cut: elements nested deeper than LIMIT_PAGE_DEPTH and
 * elements of more than about LIMIT_PAGE_ATTRIBUTES attributes end the text. Any thread; pure.
 *
 *     kind = page_kind("text/html; charset=latin1", body);
 *     r = page_text(arena, body, "text/html; charset=latin1", &page, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum page_kind { PAGE_HTML, PAGE_TEXT, PAGE_OTHER };

/* type: the value of the header Content-Type; NULL: none, then the first bytes decide. PAGE_TEXT: text of any kind,
 * JSON and XML among it, given as it is. */
enum page_kind page_kind(const char *type, struct slice body);

struct page {
    const char *title;   /* NULL: none */
    struct slice text;   /* UTF-8 without NUL, at most LIMIT_PAGE_TEXT bytes */
    const char *why_cut; /* NULL: it is whole */
};

/* -EINVAL NO_TEXT for PAGE_OTHER, names the type; -EINVAL BAD_ENCODING for an encoding that is not known. Bytes that
 * are none in the page's encoding become U+FFFD. */
int page_text(struct arena *a, struct slice body, const char *type, struct page *ret, struct err *e) MUST_CHECK;

/* The text of HTML in UTF-8: headings as "# ", list items as "- ", links as [text](address as written), the text of
 * scripts, styles and forms' choices left out. */
void page_of_html(struct arena *a, struct slice html, struct page *ret);
