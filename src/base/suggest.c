#include "base/suggest.h"

enum { SUGGEST_MAX_CHARS = 40, SUGGEST_CHARS_PER_SLIP = 3 };

/* Number of letters to add, remove, replace or swap with the next (optimal string alignment). */
static size_t distance(const char *a, const char *b)
{
    size_t d[SUGGEST_MAX_CHARS + 1][SUGGEST_MAX_CHARS + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > SUGGEST_MAX_CHARS || m > SUGGEST_MAX_CHARS)
        return SIZE_MAX;
    for (size_t i = 0; i <= n; i++)
        d[i][0] = i;
    for (size_t k = 0; k <= m; k++)
        d[0][k] = k;
    for (size_t i = 1; i <= n; i++)
        for (size_t k = 1; k <= m; k++) {
            d[i][k] = MIN(MIN(d[i - 1][k], d[i][k - 1]) + 1, d[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                d[i][k] = MIN(d[i][k], d[i - 2][k - 2] + 1);
        }
    return d[n][m];
}

struct nearest {
    const char *words;
    size_t distance;
};

static void consider(struct nearest *best, const char *typed, const char *words)
{
    size_t n = distance(typed, words);

    if (n > 0 && n < best->distance && n <= strlen(typed) / SUGGEST_CHARS_PER_SLIP)
        *best = (struct nearest){ words, n };
}

const char *suggest_name(const char *typed, const char *const *names, size_t n)
{
    struct nearest best = { NULL, SIZE_MAX };

    for (size_t i = 0; i < n; i++)
        consider(&best, typed, names[i]);
    return best.words;
}
