#include "embed/lexical.h"

#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>

enum {
    WORD_CHARS = 64, /* longer runs of letters are split into several words */
    GRAM_MIN = 3,
    GRAM_MAX = 4,
    N_SIGNS = 4, /* dimensions that one feature is added to */
    FEATURES_ON_STACK = 1024,
};

/* In sixteenths, like the rarity by which they are multiplied. */
enum { WEIGHT_WORD = 24, WEIGHT_PAIR = 10, WEIGHT_GRAM = 16 };

#define FNV_OFFSET 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u
#define GOLDEN 0x9e3779b97f4a7c15u

struct feature {
    uint64_t key;
    uint32_t weight, count;
};

struct features {
    struct feature on_stack[FEATURES_ON_STACK];
    struct feature *items; /* on_stack or owned */
    size_t n, cap;
};

/* A word of folded letters between its two boundary marks. */
struct word {
    uint32_t chars[WORD_CHARS + 2];
    size_t n; /* letters */
    bool has_digit, is_ideograph;
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t hash_chars(uint64_t kind, const uint32_t *chars, size_t n)
{
    uint64_t h = FNV_OFFSET ^ kind;

    for (size_t i = 0; i < n; i++)
        h = (h ^ chars[i]) * FNV_PRIME;
    return mix(h);
}

/* ---- characters ---- */

/* U+00C0..U+017F without their accents; a space stands for a character that is no letter. */
static const char latin[] = "aaaaaaaceeeeiiiidnooooo ouuuuyts"
                            "aaaaaaaceeeeiiiidnooooo ouuuuyty"
                            "aaaaaa"
                            "cccccccc"
                            "dddd"
                            "eeeeeeeeee"
                            "gggggggg"
                            "hhhh"
                            "iiiiiiiiii"
                            "ii"
                            "jj"
                            "kkk"
                            "llllllllll"
                            "nnnnnnnnn"
                            "oooooooo"
                            "rrrrrr"
                            "ssssssss"
                            "tttttt"
                            "uuuuuuuuuuuu"
                            "ww"
                            "yyy"
                            "zzzzzz"
                            "s";

struct range {
    uint32_t first, last;
};

static bool is_in(const struct range *ranges, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

static const struct range separators[] = {
    { 0x80, 0xBF },     { 0x2000, 0x206F }, { 0x2190, 0x25FF }, { 0x2900, 0x2BFF },
    { 0x3000, 0x303F }, { 0xFE10, 0xFE6F }, { 0xFF00, 0xFF0F },
};

/* Written without spaces between words, so each character is a word. */
static const struct range ideographs[] = {
    { 0x2600, 0x27BF }, { 0x3040, 0x30FF }, { 0x3400, 0x9FFF }, { 0xF900, 0xFAFF }, { 0x1F000, 0x3FFFF },
};

static uint32_t fold(uint32_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c + 32;
    if (c < 0xC0)
        return c;
    if (c < 0xC0 + sizeof(latin) - 1)
        return (uint32_t)latin[c - 0xC0];
    if ((c >= 0x391 && c <= 0x3A9) || (c >= 0x410 && c <= 0x42F))
        return c + 32;
    return c >= 0x400 && c <= 0x40F ? c + 80 : c;
}

static bool is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

/* c: a folded character. */
static bool is_letter(uint32_t c)
{
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || is_digit(c);
    return !is_in(separators, ARRAY_SIZE(separators), c);
}

static bool is_combining(uint32_t c)
{
    return c >= 0x300 && c <= 0x36F;
}

/* The next character of *s; a byte that starts no character reads as a space. */
static uint32_t next_char(struct slice *s)
{
    size_t n = (unsigned char)*s->p < 0x80 ? 1 : utf8_char_bytes(*s);
    uint32_t c = n ? utf8_code_point(s->p, n) : ' ';

    s->p += MAX(n, (size_t)1);
    s->n -= MAX(n, (size_t)1);
    return c;
}

/* ---- features ---- */

static void add_feature(struct features *f, uint64_t key, uint32_t weight)
{
    if (f->n == f->cap) {
        struct feature *grown = xrealloc(f->items == f->on_stack ? NULL : f->items, 2 * f->cap * sizeof(*grown));

        if (f->items == f->on_stack)
            memcpy(grown, f->on_stack, sizeof(f->on_stack));
        f->items = grown;
        f->cap *= 2;
    }
    f->items[f->n++] = (struct feature){ key, weight, 1 };
}

/* Short words are mostly frequent and carry little meaning; there is no corpus to count words in. In sixteenths. */
static uint32_t rarity_of(const struct word *w)
{
    static const uint8_t by_length[] = { 0, 4, 4, 7, 11, 14, 16 };

    return w->has_digit || w->is_ideograph ? 16 : by_length[MIN(w->n, ARRAY_SIZE(by_length) - 1)];
}

static void add_grams(struct features *f, const struct word *w, uint32_t rarity)
{
    size_t n_marked = w->n + 2;

    for (size_t n = GRAM_MIN; n <= GRAM_MAX; n++)
        for (size_t at = 0; at + n <= n_marked; at++)
            add_feature(f, hash_chars(n, w->chars + at, n), WEIGHT_GRAM * rarity);
}

/* Ends the current word; *before is the hash of the previous word, 0 when there is none. */
static void end_word(struct features *f, struct word *w, uint64_t *before)
{
    uint32_t rarity = rarity_of(w);
    uint64_t key;

    if (w->n == 0)
        return;
    w->chars[0] = '<';
    w->chars[w->n + 1] = '>';
    key = hash_chars(1, w->chars, w->n + 2);
    add_feature(f, key, WEIGHT_WORD * rarity);
    if (*before)
        add_feature(f, mix(*before * 31 + key), WEIGHT_PAIR * 16);
    if (!w->is_ideograph)
        add_grams(f, w, rarity);
    *before = key;
    w->n = 0;
    w->has_digit = w->is_ideograph = false;
}

static void add_letter(struct features *f, struct word *w, uint32_t c, uint64_t *before)
{
    bool is_ideograph = c >= 0x2600 && is_in(ideographs, ARRAY_SIZE(ideographs), c);

    if (is_ideograph || w->n == WORD_CHARS)
        end_word(f, w, before);
    w->chars[++w->n] = c;
    w->has_digit |= is_digit(c);
    w->is_ideograph = is_ideograph;
    if (is_ideograph)
        end_word(f, w, before);
}

static void add_words(struct features *f, struct slice text)
{
    struct word w = { .n = 0 };
    uint64_t before = 0;

    while (text.n > 0) {
        uint32_t c = fold(next_char(&text));

        if (is_combining(c))
            continue;
        if (is_letter(c))
            add_letter(f, &w, c, &before);
        else
            end_word(f, &w, &before);
    }
    end_word(f, &w, &before);
}

/* A text without a word is one feature, unchanged. */
static void add_bytes(struct features *f, struct slice text)
{
    uint64_t h = FNV_OFFSET;

    for (size_t i = 0; i < text.n; i++)
        h = (h ^ (unsigned char)text.p[i]) * FNV_PRIME;
    add_feature(f, mix(h), WEIGHT_WORD);
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = ((const struct feature *)a)->key, y = ((const struct feature *)b)->key;

    return (x > y) - (x < y);
}

/* Merges equal features and counts them. */
static void count_features(struct features *f)
{
    size_t n = 0;

    qsort(f->items, f->n, sizeof(*f->items), by_key);
    for (size_t i = 0; i < f->n; i++) {
        if (n > 0 && f->items[n - 1].key == f->items[i].key)
            f->items[n - 1].count++;
        else
            f->items[n++] = f->items[i];
    }
    f->n = n;
}

/* ---- projection ---- */

/* 1 + log2(count) in sixteenths, linear between powers of two. */
static int64_t sublinear(uint32_t count)
{
    int log2 = 31 - __builtin_clz(count);

    return 16 + 16 * log2 + (int64_t)(((uint64_t)(count - (1u << log2)) * 16) >> log2);
}

static void project(const struct features *f, int64_t sums[LEXICAL_DIMENSIONS])
{
    for (size_t i = 0; i < f->n; i++) {
        int64_t weight = f->items[i].weight * sublinear(f->items[i].count);

        for (uint64_t k = 1; k <= N_SIGNS; k++) {
            uint64_t x = mix(f->items[i].key + k * GOLDEN);

            sums[(x >> 32) * LEXICAL_DIMENSIONS >> 32] += x & 1 ? weight : -weight;
        }
    }
}

/* Makes the sums so small that the sum of their squares is an exact integer. */
static void scale_down(int64_t sums[LEXICAL_DIMENSIONS])
{
    int64_t max = 0;

    for (size_t i = 0; i < LEXICAL_DIMENSIONS; i++)
        max = MAX(max, sums[i] < 0 ? -sums[i] : sums[i]);
    for (; max >= 1 << 26; max /= 2)
        for (size_t i = 0; i < LEXICAL_DIMENSIONS; i++)
            sums[i] /= 2;
}

static void normalise(const int64_t sums[LEXICAL_DIMENSIONS], float ret[LEXICAL_DIMENSIONS])
{
    int64_t squares = 0;
    double length;

    for (size_t i = 0; i < LEXICAL_DIMENSIONS; i++)
        squares += sums[i] * sums[i];
    length = sqrt((double)squares);
    for (size_t i = 0; i < LEXICAL_DIMENSIONS; i++)
        ret[i] = (float)((double)sums[i] / length);
}

static bool is_zero(const int64_t sums[LEXICAL_DIMENSIONS])
{
    for (size_t i = 0; i < LEXICAL_DIMENSIONS; i++)
        if (sums[i] != 0)
            return false;
    return true;
}

void lexical_embed(struct slice text, float ret[LEXICAL_DIMENSIONS])
{
    struct features f;
    int64_t sums[LEXICAL_DIMENSIONS] = { 0 };

    f.items = f.on_stack;
    f.n = 0;
    f.cap = FEATURES_ON_STACK;
    add_words(&f, text);
    if (f.n == 0)
        add_bytes(&f, text);
    count_features(&f);
    project(&f, sums);
    if (is_zero(sums))
        sums[f.items[0].key % LEXICAL_DIMENSIONS] = 1; /* all contributions have cancelled out */
    scale_down(sums);
    normalise(sums, ret);
    if (f.items != f.on_stack)
        free(f.items);
}
