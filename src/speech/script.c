#include "speech/script.h"

#include "base/utf8.h"
#include "base/util.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* Ranges of Unicode 14 and the languages written in them, as far as espeak-ng has a voice. */
static const struct {
    uint32_t first, last;
    const char *language, *others; /* spoken; stay when configured */
} scripts[] = {
    { 0x370, 0x3ff, "el", "grc" },
    { 0x400, 0x52f, "ru", "uk be bg sr mk kk ky tt ba cv mn nog" },
    { 0x531, 0x58f, "hy", "hyw" },
    { 0x591, 0x5f4, "he", "yi" },
    { 0x600, 0x6ff, "ar", "fa ur ug sd ku" },
    { 0x900, 0x97f, "hi", "mr ne kok sa" },
    { 0x980, 0x9ff, "bn", "as bpy" },
    { 0xa00, 0xa7f, "pa", "" },
    { 0xa80, 0xaff, "gu", "" },
    { 0xb00, 0xb7f, "or", "" },
    { 0xb80, 0xbff, "ta", "" },
    { 0xc00, 0xc7f, "te", "" },
    { 0xc80, 0xcff, "kn", "" },
    { 0xd00, 0xd7f, "ml", "" },
    { 0xd80, 0xdff, "si", "" },
    { 0xe00, 0xe7f, "th", "" },
    { 0x1000, 0x109f, "my", "shn" },
    { 0x10a0, 0x10ff, "ka", "" },
    { 0x1200, 0x139f, "am", "" },
    { 0x3041, 0x30ff, "ja", "" },
    { 0x4e00, 0x9fff, "zh", "cmn yue hak ja" },
    { 0xac00, 0xd7a3, "ko", "" },
};

enum { N_SCRIPTS = ARRAY_SIZE(scripts), KANA = N_SCRIPTS - 3, HAN = N_SCRIPTS - 2 };

/* N_SCRIPTS: another one. */
static size_t script_of(uint32_t c)
{
    size_t i = 0;

    while (i < N_SCRIPTS && (c < scripts[i].first || c > scripts[i].last))
        i++;
    return i;
}

/* Letters of Europe, and all that the table does not have, count as others, except signs below U+00C0. */
static bool is_letter(uint32_t c)
{
    return (c | 0x20) - 'a' < 26 || (c >= 0xc0 && (c < 0x2000 || c >= 0x3041));
}

static size_t count_letters(struct slice text, size_t n_letters[N_SCRIPTS + 1])
{
    size_t n_all = 0, n;

    for (; text.n > 0; text = (struct slice){ text.p + n, text.n - n }) {
        uint32_t c;

        n = utf8_char_bytes(text);
        if (n == 0)
            break;
        c = utf8_code_point(text.p, n);
        if (!is_letter(c))
            continue;
        n_letters[script_of(c)]++;
        n_all++;
    }
    return n_all;
}

/* Whether the first part of a tag, "zh" of "zh-CN", is a word of the list. */
static bool has_word(const char *words, const char *tag)
{
    const size_t n_tag = strcspn(tag, "-_");

    for (size_t n; *words; words += n + strspn(words + n, " ")) {
        n = strcspn(words, " ");
        if (n == n_tag && strncasecmp(words, tag, n) == 0)
            return true;
    }
    return false;
}

const char *speech_language_of(struct slice text, const char *usual)
{
    size_t n_letters[N_SCRIPTS + 1] = { 0 }, n_all = count_letters(text, n_letters), most = 0;

    if (n_letters[KANA] > 0) { /* Japanese has both */
        n_letters[KANA] += n_letters[HAN];
        n_letters[HAN] = 0;
    }
    for (size_t i = 1; i < N_SCRIPTS; i++)
        if (n_letters[i] > n_letters[most])
            most = i;
    if (n_letters[most] * 2 <= n_all || has_word(scripts[most].language, usual) ||
        has_word(scripts[most].others, usual))
        return usual;
    return scripts[most].language;
}
