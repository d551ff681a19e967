#include "agents/page_text.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>

static int set_up(void **state)
{
    *state = arena_new();
    return 0;
}

static int tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

static const char *text_of_html(struct arena *a, const char *html)
{
    struct page page = { 0 };

    page_of_html(a, slice_of(html), &page);
    assert_true(utf8_is_valid(page.text));
    return arena_slicedup(a, page.text);
}

static void html_becomes_text_with_its_structure(void **state)
{
    struct arena *a = *state;

    assert_string_equal(
        text_of_html(a, "<html><head><title>T</title><style>x{}</style></head><body><h1>One</h1><p>Some  <b>bold</b>\n"
                        "text.<p>Next<ul><li>a<li>b<ol><li>c</ol></ul><script>alert('<p>')</script>"
                        "<table><tr><th>x<th>y<tr><td>1<td>2</table><a href=\"/x?y=1&amp;z\">link</a> &euro;&#33;"),
        "# One\n\nSome bold text.\n\nNext\n\n- a\n- b\n  - c\n\nx | y\n1 | 2\n\n[link](/x?y=1&z) \xe2\x82\xac!");
    assert_string_equal(text_of_html(a, "<pre>a\n  b</pre>c<br>d"), "a\n  b\n\nc\nd");
    assert_string_equal(text_of_html(a, "<img alt='a cat' src=x> <img src=y>"), "[image: a cat]");
    assert_string_equal(text_of_html(a, "<a href='javascript:x()'>a</a><a href='#t'>b</a><a href=/><img src=x></a>"),
                        "ab");
    assert_string_equal(text_of_html(a, ""), "");
    assert_string_equal(text_of_html(a, "no tags"), "no tags");
}

static const char *page_with_link(struct arena *a, size_t n)
{
    char *link = arena_alloc(a, n + 1);

    memset(link, 'x', n);
    link[0] = '/';
    link[n] = '\0';
    return arena_printf(a, "<a href='%s'>there</a>", link);
}

static void a_link_that_is_too_long_is_left_out(void **state)
{
    struct arena *a = *state;
    const char *text = text_of_html(a, page_with_link(a, LIMIT_PAGE_LINK));

    assert_memory_equal(text, "[there](/x", 10);
    assert_int_equal(strlen(text), strlen("[there]()") + LIMIT_PAGE_LINK);
    assert_string_equal(text_of_html(a, page_with_link(a, LIMIT_PAGE_LINK + 1)), "there");
}

static void the_title_is_read_and_has_a_limit(void **state)
{
    struct arena *a = *state;
    struct page page = { 0 };
    struct buf html;

    page_of_html(a, SLICE_LIT("<title> A \n title </title>x"), &page);
    assert_string_equal(page.title, "A title");
    page_of_html(a, SLICE_LIT("<p>none"), &page);
    assert_null(page.title);
    buf_init(&html, MIB(1));
    buf_add_str(&html, "<title>x");
    for (int i = 0; i < 1000; i++)
        buf_add_str(&html, "\xc3\xa4");
    page_of_html(a, buf_slice(&html), &page);
    assert_true(utf8_is_valid(slice_of(page.title)));
    assert_in_range(strlen(page.title), 990, 1000);
    buf_clear(&html);
}

static const char *text_of(struct arena *a, struct slice body, const char *type)
{
    struct page page = { 0 };
    struct err e = { 0 };

    if (page_text(a, body, type, &page, &e) < 0)
        return arena_strdup(a, e.code);
    assert_true(utf8_is_valid(page.text));
    return arena_slicedup(a, page.text);
}

static void encodings_are_converted(void **state)
{
    struct arena *a = *state;

    assert_string_equal(text_of(a, SLICE_LIT("caf\xe9 \x80"), "text/plain; charset=ISO-8859-1"),
                        "caf\xc3\xa9 \xe2\x82\xac");
    assert_string_equal(text_of(a, SLICE_LIT("caf\xe9"), "text/plain"), "caf\xc3\xa9");
    assert_string_equal(text_of(a, SLICE_LIT("caf\xc3\xa9"), "text/plain"), "caf\xc3\xa9");
    assert_string_equal(text_of(a, SLICE_LIT("a\xff z"), "text/plain; charset=\"utf-8\""), "a\xef\xbf\xbd z");
    assert_string_equal(text_of(a, SLICE_LIT("\xff\xfeh\0i\0"), "text/plain"), "hi");
    assert_string_equal(text_of(a, SLICE_LIT("\xef\xbb\xbfhi"), "text/plain"), "hi");
    assert_string_equal(text_of(a, SLICE_LIT("<meta charset=shift_jis><p>\x82\xa0"), "text/html"), "\xe3\x81\x82");
    assert_string_equal(text_of(a, SLICE_LIT("<meta charset=utf-16><p>\xc3\xa9"), "text/html"), "\xc3\xa9");
    assert_string_equal(text_of(a, SLICE_LIT("<meta charset=koi8-r><p>\xc3\xa9"), "text/html;charset=utf-8"),
                        "\xc3\xa9");
    assert_string_equal(text_of(a, SLICE_LIT("x"), "text/plain; charset=utf-7"), "BAD_ENCODING");
    assert_string_equal(text_of(a, SLICE_LIT("x"), "text/plain; charset=ISO-2022-CN-EXT"), "BAD_ENCODING");
    assert_string_equal(text_of(a, SLICE_LIT("\x82"), "text/plain; charset=shift_jis"), "\xef\xbf\xbd");
}

static void what_is_no_text_is_named(void **state)
{
    struct arena *a = *state;
    struct page page;
    struct err e = { 0 };

    assert_int_equal(page_text(a, SLICE_LIT("%PDF-1.4"), "application/pdf", &page, &e), -EINVAL);
    assert_string_equal(e.code, "NO_TEXT");
    assert_non_null(strstr(e.text, "application/pdf"));
    assert_string_equal(text_of(a, SLICE_LIT("\x89PNG\r\n\0\0"), NULL), "NO_TEXT");
    assert_string_equal(text_of(a, SLICE_LIT("a\0b"), "text/plain"), "NO_TEXT");
    assert_int_equal(page_kind("image/svg+xml", SLICE_LIT("")), PAGE_TEXT);
    assert_int_equal(page_kind("application/problem+json; x=y", SLICE_LIT("")), PAGE_TEXT);
    assert_int_equal(page_kind("TEXT/HTML", SLICE_LIT("")), PAGE_HTML);
    assert_int_equal(page_kind("application/octet-stream", SLICE_LIT(" \n<!DOCTYPE html><p>x")), PAGE_HTML);
    assert_int_equal(page_kind(NULL, SLICE_LIT("plain")), PAGE_TEXT);
    assert_int_equal(page_kind("video/mp4", SLICE_LIT("plain")), PAGE_OTHER);
}

/* Entities are HTML's own: nothing that a page declares is expanded, and nothing is fetched. */
static void declared_entities_are_not_expanded(void **state)
{
    struct arena *a = *state;
    const char *bomb = "<!DOCTYPE html [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">"
                       "<!ENTITY f SYSTEM \"file:///etc/passwd\">]><p>&b;&f;</p>";

    assert_null(strstr(text_of_html(a, bomb), "aaaaaaaaaaaaaaaaaaaa"));
    assert_null(strstr(text_of_html(a, bomb), "root:"));
}

static struct page page_of_many(struct arena *a, const char *head, const char *piece, size_t n, const char *tail)
{
    struct page page = { 0 };
    struct buf html;

    buf_init(&html, MIB(64));
    buf_add_str(&html, head);
    while (n-- > 0)
        buf_add_str(&html, piece);
    buf_add_str(&html, tail);
    page_of_html(a, buf_slice(&html), &page);
    buf_clear(&html);
    return page;
}

static void nesting_ends_at_its_limit(void **state)
{
    struct arena *a = *state;
    struct page page = page_of_many(a, "before", "<div>", LIMIT_PAGE_DEPTH - 10, "after");

    assert_null(page.why_cut);
    assert_non_null(strstr(page.text.p, "after"));
    page = page_of_many(a, "before", "<div>", 500000, "after");
    assert_non_null(page.why_cut);
    assert_non_null(strstr(page.text.p, "before"));
    assert_null(strstr(page.text.p, "after"));
}

static void an_element_of_endless_attributes_ends_the_page(void **state)
{
    struct arena *a = *state;
    struct buf names;
    struct page page;

    buf_init(&names, MIB(8));
    for (int i = 0; i < 400000; i++)
        buf_printf(&names, " a%x", (unsigned)i);
    page = page_of_many(a, "before<p", buf_str(&names), 1, ">after");
    assert_non_null(page.why_cut);
    page = page_of_many(a, "before<p x@y=\"", buf_str(&names), 1, "\">after"); /* no quoted value: x@y is no name */
    assert_non_null(page.why_cut);
    buf_clear(&names);

    page = page_of_many(a, "before<img src=\"data:image/png;base64,", "AAAA", 20000, "\">after"); /* one, but long */
    assert_null(page.why_cut);
    assert_non_null(strstr(page.text.p, "after"));
}

static void a_text_is_cut_at_its_limit(void **state)
{
    struct arena *a = *state;
    struct buf text;
    struct page page;

    buf_init(&text, MIB(64));
    while (text.n < LIMIT_PAGE_TEXT)
        buf_add_str(&text, "\xc3\xa4");
    assert_int_equal(page_text(a, buf_slice(&text), "text/plain", &page, NULL), 0);
    assert_int_equal(page.text.n, LIMIT_PAGE_TEXT);
    assert_null(page.why_cut);
    buf_add_char(&text, 'x');
    assert_int_equal(page_text(a, buf_slice(&text), "text/plain", &page, NULL), 0);
    assert_non_null(page.why_cut);
    assert_true(page.text.n <= LIMIT_PAGE_TEXT && utf8_is_valid(page.text));
    buf_clear(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(html_becomes_text_with_its_structure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_link_that_is_too_long_is_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_title_is_read_and_has_a_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(encodings_are_converted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_text_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(declared_entities_are_not_expanded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nesting_ends_at_its_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_element_of_endless_attributes_ends_the_page, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_text_is_cut_at_its_limit, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
