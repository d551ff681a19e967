/* The first byte chooses: a text read as Markdown and split into sentences, or the answer of a speech worker. No
 * sentence is above its limit, empty, or outside of the text; pieces do not change what is read. */
#include "base/utf8.h"
#include "speech/answer.h"
#include "speech/script.h"
#include "speech/sentences.h"
#include "speech/spoken.h"

#include <assert.h>

enum { N_TEXT = 4096 };

static const char *const languages[] = { "en", "de", "ja", "x" };

static void split(struct slice text, const char *language)
{
    struct arena *a = arena_new();
    struct speech_sentences s = { NULL, 0 };
    struct slice spoken = speech_spoken(a, text, speech_language_of(text, language));

    assert(utf8_is_valid(spoken));
    assert(speech_sentences(a, spoken, language, &s, NULL) == 0);
    for (size_t i = 0; i < s.n; i++) {
        assert(s.items[i].n > 0 && s.items[i].p >= spoken.p && s.items[i].p + s.items[i].n <= spoken.p + spoken.n);
        assert(utf8_is_valid(s.items[i]) && utf8_length(s.items[i]) <= LIMIT_SPEECH_SENTENCE);
        assert(i == 0 || s.items[i].p >= s.items[i - 1].p + s.items[i - 1].n);
    }
    arena_free(a);
}

static void answer(struct slice bytes, size_t piece)
{
    struct speech_answer read;
    struct buf out;
    int r = 0;

    buf_init(&out, N_TEXT);
    speech_answer_init(&read, &out, N_TEXT);
    read.is_start = bytes.n % 2;
    for (size_t at = 0; r == 0 && at < bytes.n; at += piece)
        r = speech_answer_feed(&read, (struct slice){ bytes.p + at, MIN(piece, bytes.n - at) }, NULL);
    assert(!out.overflowed);
    speech_answer_clear(&read);
    buf_clear(&out);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    struct slice rest = { (const char *)data + 1, n - 1 };
    struct arena *a;

    if (n < 1 || n > N_TEXT)
        return 0;
    if (data[0] < 128 && utf8_is_valid(rest) && !memchr(rest.p, '\0', rest.n))
        split(rest, languages[data[0] % 4]);
    if (data[0] < 128)
        return 0;
    answer(rest, 1 + data[0] % 32);
    a = arena_new();
    (void)speech_answer_voices(a, rest);
    arena_free(a);
    return 0;
}
