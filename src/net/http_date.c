#include "net/http_date.h"

#include <time.h>

int http_date_parse(const char *text, int64_t *ret_wall_ms)
{
    struct tm date = { 0 };
    const char *end = text ? strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date) : NULL;

    if (!end || *end)
        return -EINVAL;
    *ret_wall_ms = (int64_t)timegm(&date) * 1000;
    return 0;
}
