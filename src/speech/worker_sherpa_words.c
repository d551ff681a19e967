#include "speech/worker_sherpa_words.h"

#include "base/limits.h"

#include <math.h>
#include <string.h>

#define WORD_MARK "\xe2\x96\x81" /* U+2581, with which SentencePiece begins a word */

enum { WORD_BYTES = LIMIT_SPEECH_PHRASE / 2 }; /* languages without blanks are divided */

struct words {
    char text[WORD_BYTES + 1];
    size_t n;
    uint32_t start_ms, last_ms, duration_ms;
    bool (*add)(void *arg, const struct recognizer_word *word);
    void *arg;
};

/* Times never go back. The models say how sure they are of nothing. */
static bool end_word(struct words *w, uint32_t end_ms)
{
    struct recognizer_word word = { w->text, w->start_ms < w->last_ms ? w->last_ms : w->start_ms, 0, 1 };
    bool goes_on = true;

    word.end_ms = end_ms < word.start_ms ? word.start_ms : end_ms;
    w->text[w->n] = '\0';
    if (w->n > 0) {
        goes_on = w->add(w->arg, &word);
        w->last_ms = word.end_ms;
    }
    w->n = 0;
    return goes_on;
}

/* The pieces of one token; blanks divide words. */
static bool add_token(struct words *w, const char *token, uint32_t at_ms)
{
    bool goes_on = true;

    while (*token && goes_on) {
        size_t n_mark = strncmp(token, WORD_MARK, 3) == 0 ? 3 : (unsigned char)*token <= ' ';
        size_t n = 1;

        while (((unsigned char)token[n] & 0xc0) == 0x80)
            n++;
        if (n_mark > 0 || w->n + n > WORD_BYTES)
            goes_on = end_word(w, at_ms);
        if (n_mark == 0 && n <= WORD_BYTES - w->n) {
            w->start_ms = w->n == 0 ? at_ms : w->start_ms;
            memcpy(w->text + w->n, token, n);
            w->n += n;
        }
        token += n_mark > 0 ? n_mark : n;
    }
    return goes_on;
}

static uint32_t ms_of(float seconds, uint32_t duration_ms)
{
    return isfinite(seconds) ? (uint32_t)fmax(0, fmin(duration_ms, seconds * 1000.0)) : 0;
}

/* Without times of tokens a word begins where its share of the text does. */
static bool add_text(struct words *w, const char *text)
{
    size_t n_text = strlen(text);
    bool goes_on = true;

    for (size_t i = 0; i < n_text && goes_on;) {
        size_t n = strcspn(text + i, " ");
        char piece[WORD_BYTES + 1];
        size_t n_piece = n < WORD_BYTES ? n : WORD_BYTES;

        while (n_piece > 0 && n_piece < n && ((unsigned char)text[i + n_piece] & 0xc0) == 0x80)
            n_piece--;
        memcpy(piece, text + i, n_piece);
        piece[n_piece] = '\0';
        goes_on = add_token(w, piece, (uint32_t)((double)i / (double)n_text * w->duration_ms));
        i += n_piece > 0 ? n_piece : 1;
        goes_on = goes_on && end_word(w, (uint32_t)((double)i / (double)n_text * w->duration_ms));
    }
    return goes_on;
}

bool sherpa_words(const struct sherpa_heard *heard, uint32_t duration_ms,
                  bool (*add)(void *arg, const struct recognizer_word *word), void *arg)
{
    struct words w = { .duration_ms = duration_ms, .add = add, .arg = arg };
    bool goes_on = true;

    if (!heard || !heard->text)
        return false;
    if (!heard->times || !heard->tokens || heard->n_tokens <= 0)
        goes_on = add_text(&w, heard->text);
    else
        for (int32_t i = 0; i < heard->n_tokens && goes_on; i++)
            goes_on = !heard->tokens[i] || add_token(&w, heard->tokens[i], ms_of(heard->times[i], duration_ms));
    if (goes_on)
        (void)end_word(&w, duration_ms);
    return true;
}
