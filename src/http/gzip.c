#include "http/gzip.h"
#include "http/list.h"

#include <strings.h>
#include <zlib.h>

enum { GZIP_LEVEL = 4, GZIP_WINDOW_BITS = 15 + 16, GZIP_MEMORY = 8 };

/* A weight of zero means refused: "q=0", "q=0.000". */
static bool is_refused_weight(struct slice parameters)
{
    while (parameters.n > 0) {
        struct slice parameter = http_list_next(&parameters, ';');

        if (parameter.n < 2 || strncasecmp(parameter.p, "q=", 2) != 0)
            continue;
        for (size_t i = 2; i < parameter.n; i++)
            if (parameter.p[i] >= '1' && parameter.p[i] <= '9')
                return false;
        return true;
    }
    return false;
}

bool http_accepts_gzip(const char *value)
{
    struct slice rest = slice_of(value ? value : "");
    bool any = false;

    while (rest.n > 0) {
        struct slice parameters = http_list_next(&rest, ',');
        struct slice coding = http_list_next(&parameters, ';');

        if (http_list_item_is(coding, "gzip") || http_list_item_is(coding, "x-gzip"))
            return !is_refused_weight(parameters);
        if (http_list_item_is(coding, "*"))
            any = !is_refused_weight(parameters);
    }
    return any;
}

bool http_gzip(struct slice in, struct buf *out)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)in.p, .avail_in = (uInt)in.n };
    char *to;
    int r;

    if (in.n > UINT32_MAX / 2 ||
        deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    to = buf_reserve(out, in.n); /* no more room than the plain bytes need: otherwise the plain bytes are better */
    z.next_out = (Bytef *)to;
    z.avail_out = (uInt)in.n;
    r = to ? deflate(&z, Z_FINISH) : Z_MEM_ERROR;
    if (r == Z_STREAM_END)
        out->n += z.total_out;
    deflateEnd(&z);
    return r == Z_STREAM_END;
}
