#include "http/list.h"

#include <strings.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct slice http_list_next(struct slice *rest, char separator)
{
    const char *end = rest->n > 0 ? memchr(rest->p, separator, rest->n) : NULL;
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    struct slice item = { rest->p, n };

    rest->p += end ? n + 1 : n;
    rest->n -= end ? n + 1 : n;
    while (item.n > 0 && is_blank(item.p[0]))
        item = (struct slice){ item.p + 1, item.n - 1 };
    while (item.n > 0 && is_blank(item.p[item.n - 1]))
        item.n--;
    return item;
}

bool http_list_item_is(struct slice item, const char *text)
{
    return item.n == strlen(text) && strncasecmp(item.p, text, item.n) == 0;
}
