/* A page of the web: its type, a newline, its bytes. Whatever it is, its text is UTF-8 without NUL and within the
 * limit. */
#include "agents/page_text.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct page *page)
{
    assert(page->text.n <= LIMIT_PAGE_TEXT);
    assert(utf8_is_valid(page->text));
    assert(page->text.n == 0 || !memchr(page->text.p, '\0', page->text.n));
    assert(!page->title || utf8_is_valid(slice_of(page->title)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice all = { (const char *)data, size };
    const char *end = size > 0 ? memchr(all.p, '\n', all.n) : NULL;
    const char *type = end ? arena_strndup(a, all.p, (size_t)(end - all.p)) : NULL;
    struct slice body = end ? (struct slice){ end + 1, all.n - (size_t)(end - all.p) - 1 } : all;
    struct page page = { 0 };
    struct err e = { 0 };

    if (page_text(a, body, type, &page, &e) == 0)
        check(&page);
    else
        assert(*e.code);
    return 0;
}
