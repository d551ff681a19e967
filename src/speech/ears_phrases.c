#include "speech/ears_phrases.h"

#include <string.h>

/* The longest text of LIMIT_SPEECH_PHRASES phrases, each with its end. */
enum { MAX_TEXT = LIMIT_SPEECH_PHRASES * (LIMIT_SPEECH_PHRASE + 1) };

static bool is_phrase(struct slice phrase)
{
    for (size_t i = 0; i < phrase.n; i++)
        if (!memchr("'-. \t", phrase.p[i], 5) && !(phrase.p[i] >= '0' && phrase.p[i] <= '9') &&
            !((phrase.p[i] | 0x20) >= 'a' && (phrase.p[i] | 0x20) <= 'z'))
            return false;
    return phrase.n <= LIMIT_SPEECH_PHRASE;
}

static int read_list(char *list, size_t *ret_n, struct err *e)
{
    for (char *at = list; *at;) {
        size_t n = strcspn(at, ",\n");
        struct slice phrase = slice_trim((struct slice){ at, n });

        if (!is_phrase(phrase))
            return err_add_field(e, "phrases",
                                 "must have phrases of at most %d letters, digits, blanks, apostrophes, hyphens and "
                                 "full stops, divided by commas or lines",
                                 LIMIT_SPEECH_PHRASE);
        *ret_n += phrase.n > 0;
        at += n;
        if (*at)
            *at++ = '\n';
    }
    return 0;
}

int ears_phrases_read(struct arena *a, const char *given, enum ears_phrases *ret_kind, struct slice *ret_text,
                      struct err *e)
{
    struct slice text = slice_trim(slice_of(given));
    size_t n = 0;
    char *list;
    int r;

    *ret_kind = EARS_NO_PHRASES;
    *ret_text = (struct slice){ "", 0 };
    if (text.n > MAX_TEXT)
        return err_add_field(e, "phrases", "must have at most %d bytes", MAX_TEXT);
    if (text.n >= 5 && memcmp(text.p, "#JSGF", 5) == 0) {
        *ret_kind = EARS_GRAMMAR;
        *ret_text = text;
        return 0;
    }
    list = arena_slicedup(a, text);
    r = read_list(list, &n, e);
    if (r == 0 && n > LIMIT_SPEECH_PHRASES)
        r = err_add_field(e, "phrases", "must have at most %d phrases", LIMIT_SPEECH_PHRASES);
    if (r < 0 || n == 0)
        return r;
    *ret_kind = EARS_WORD_LIST;
    *ret_text = slice_of(list);
    return 0;
}
