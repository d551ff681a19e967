/* JSON as text: what the parser reads is JSON with the same values, and what is compact stays as it is. */
#include "base/json.h"
#include "base/json_text.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Neither depth, nor the size of a number, nor half of a surrogate pair, nor bad UTF-8 may be what the parser minds. */
static bool is_plain(struct slice text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] >= 0x80 || text.p[i] == '\\' || (text.p[i] | 0x20) == 'e')
            return false;
    return text.n <= 128;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice text = { (const char *)data, size };
    char *once = xcalloc(size, 1), *twice;
    size_t n = json_text_compact(text, once);
    struct json_value v, again;
    bool is_read = json_parse(a, text, &v, NULL) == 0;

    assert(n <= size && (n > 0 || !is_read));
    twice = xcalloc(n, 1);
    assert(json_text_compact((struct slice){ once, n }, twice) == n && memcmp(once, twice, n) == 0);
    if (is_read) {
        assert(json_parse(a, (struct slice){ once, n }, &again, NULL) == 0);
        assert(strcmp(json_to_str(a, v), json_to_str(a, again)) == 0);
    } else {
        assert(n == 0 || !is_plain(text));
    }
    free(once);
    free(twice);
    return 0;
}
