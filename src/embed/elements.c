#include "base/base64.h"
#include "embed/embed.h"

#include <math.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "base64 vectors are float32 in little-endian order");

size_t embed_vector_length(struct json_value vector)
{
    struct slice text = json_string(vector);

    if (json_type(vector) != JSON_STRING)
        return json_length(vector);
    while (text.n > 0 && text.p[text.n - 1] == '=')
        text.n--;
    return text.n * 3 / 4 / sizeof(float);
}

static size_t read_base64(struct slice text, float *ret, size_t n)
{
    struct buf bytes;
    size_t n_read;
    int r;

    buf_init(&bytes, n * sizeof(float) + sizeof(float));
    r = base64_decode(&bytes, text);
    n_read = r < 0 || bytes.n % sizeof(float) != 0 ? 0 : bytes.n / sizeof(float);
    if (n_read == n && n > 0) /* zero bytes: ret may have no memory */
        memcpy(ret, bytes.p, n * sizeof(float));
    buf_clear(&bytes);
    return n_read;
}

bool embed_vector_read(struct json_value vector, float *ret, size_t n)
{
    size_t n_read =
        json_type(vector) == JSON_STRING ? read_base64(json_string(vector), ret, n) : json_read_floats(vector, ret, n);

    for (size_t i = 0; i < n_read && n_read == n; i++)
        if (!isfinite(ret[i]))
            return false;
    return n_read == n;
}
