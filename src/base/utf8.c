#include "base/utf8.h"

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Well-formed sequences by first byte: how many bytes, and the bounds of the second (RFC 3629 section 4). */
struct lead {
    unsigned char first, last, bytes, second_min, second_max;
};

static const struct lead leads[] = {
    { 0xC2, 0xDF, 2, 0x80, 0xBF }, { 0xE0, 0xE0, 3, 0xA0, 0xBF }, { 0xE1, 0xEC, 3, 0x80, 0xBF },
    { 0xED, 0xED, 3, 0x80, 0x9F }, { 0xEE, 0xEF, 3, 0x80, 0xBF }, { 0xF0, 0xF0, 4, 0x90, 0xBF },
    { 0xF1, 0xF3, 4, 0x80, 0xBF }, { 0xF4, 0xF4, 4, 0x80, 0x8F },
};

static const struct lead *lead_of(unsigned char byte)
{
    for (size_t i = 0; i < ARRAY_SIZE(leads); i++)
        if (byte >= leads[i].first && byte <= leads[i].last)
            return &leads[i];
    return NULL;
}

size_t utf8_char_bytes(struct slice s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    const struct lead *lead;

    if (s.n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    lead = lead_of(p[0]);
    if (!lead || s.n < lead->bytes || p[1] < lead->second_min || p[1] > lead->second_max)
        return 0;
    for (size_t i = 2; i < lead->bytes; i++)
        if (!is_continuation(p[i]))
            return 0;
    return lead->bytes;
}

static size_t ascii_bytes(struct slice s)
{
    const uint64_t high_bits = 0x8080808080808080u;
    uint64_t word;
    size_t n = 0;

    for (; s.n - n >= sizeof word; n += sizeof word) {
        memcpy(&word, s.p + n, sizeof word);
        if (word & high_bits)
            break;
    }
    while (n < s.n && (unsigned char)s.p[n] < 0x80)
        n++;
    return n;
}

bool utf8_is_valid(struct slice s)
{
    while (s.n > 0) {
        size_t n = ascii_bytes(s);
        if (n == 0)
            n = utf8_char_bytes(s);
        if (n == 0)
            return false;
        s = (struct slice){ s.p + n, s.n - n };
    }
    return true;
}

size_t utf8_length(struct slice s)
{
    size_t n_characters = 0;

    for (size_t i = 0; i < s.n; i++)
        n_characters += !is_continuation((unsigned char)s.p[i]);
    return n_characters;
}

struct slice utf8_head(struct slice s, size_t max)
{
    size_t n = MIN(s.n, max);

    while (n > 0 && n < s.n && is_continuation((unsigned char)s.p[n]))
        n--;
    return (struct slice){ s.p, n };
}
