#include "base/floats.h"

#include "base/base64.h"
#include <math.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied in little-endian order");

/* What a float has in place of an exponent when it is infinite or no number. */
#define NOT_FINITE UINT32_C(0x7f800000)

size_t floats_in_base64(struct slice text)
{
    while (text.n > 0 && text.p[text.n - 1] == '=')
        text.n--;
    return (text.n / 4 * 3 + text.n % 4 * 3 / 4) / sizeof(float);
}

bool floats_read_base64(struct slice text, float *ret, size_t n)
{
    return base64_decode_into(text, (char *)ret, n * sizeof(*ret)) == 0;
}

/* Without a branch for each number, so that the compiler compares many at once. */
static bool are_finite(const float *items, size_t n)
{
    uint32_t n_wrong = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &items[i], sizeof(bits));
        n_wrong += (bits & NOT_FINITE) == NOT_FINITE;
    }
    return n_wrong == 0;
}

size_t floats_count_finite(const float *items, size_t n)
{
    size_t i = 0;

    if (are_finite(items, n))
        return n;
    while (isfinite(items[i]))
        i++;
    return i;
}
