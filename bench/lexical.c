/* Embeds short texts with the built-in lexical model on one thread and prints how many a second.
 *
 *     bench_lexical [SECONDS]
 *
 * Texts are made of fixed words, 12 words (about 75 characters) each; every text differs. One JSON line.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "embed/lexical.h"

#include <stdio.h>
#include <stdlib.h>

enum { N_TEXTS = 4096, N_WORDS = 12 };

static const char *const words[] = {
    "invoice",     "please", "the",       "customer", "delayed", "shipping", "address", "of",
    "warehouse",   "refund", "yesterday", "with",     "number",  "contract", "a",       "meeting",
    "temperature", "sensor", "update",    "garden",   "and",     "library",  "river",   "engine",
};

static struct slice make_text(struct arena *a, size_t seed)
{
    char *text = arena_strdup(a, "");

    for (size_t i = 0; i < N_WORDS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        text = arena_printf(a, "%s%s%s", text, i ? " " : "", words[(seed >> 33) % ARRAY_SIZE(words)]);
    }
    return slice_of(text);
}

int main(int argc, char **argv)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice *texts = arena_array(a, N_TEXTS, sizeof(*texts));
    int64_t duration_us = (argc > 1 ? strtol(argv[1], NULL, 10) : 2) * 1000000, started_us, passed_us;
    float vector[LEXICAL_DIMENSIONS];
    double sum = 0, n_bytes = 0;
    size_t n = 0;

    for (size_t i = 0; i < N_TEXTS; i++) {
        texts[i] = make_text(a, i);
        n_bytes += (double)texts[i].n;
    }
    started_us = clock_mono_us();
    do {
        for (size_t i = 0; i < 256; i++) {
            lexical_embed(texts[n++ % N_TEXTS], vector);
            sum += vector[0];
        }
        passed_us = clock_mono_us() - started_us;
    } while (passed_us < duration_us);
    printf("{\"bench\":\"lexical\",\"texts\":%zu,\"bytes_per_text\":%.0f,\"texts_per_second\":%.0f,\"check\":%.3f}\n",
           n, n_bytes / N_TEXTS, (double)n * 1e6 / (double)passed_us, sum);
    return 0;
}
