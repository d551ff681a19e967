/* The first byte chooses what a provider of speech sends: a file, raw samples or events. The sound is the same, or is
 * refused, whether it arrives whole or in pieces of the second byte's size, but for what is refused later. */
#include "speech/sound_reader.h"

#include "base/limits.h"
#include "speech/worker_frames.h"

#include <assert.h>

enum { RATE = 24000, MOST_INPUT = 8192 };

static int keep(void *arg, const struct speech_pcm *piece, struct err *e)
{
    assert(piece->samples.n >= 2 && piece->samples.n % 2 == 0);
    assert(piece->rate >= SPEECH_RATE_MIN && piece->rate <= SPEECH_RATE_MAX);
    buf_add_slice(arg, piece->samples);
    return 0;
}

/* Returns the result; the samples are in out, and n_file is the length of a file that is no WAV. */
static int read_all(struct slice bytes, enum speech_sound_form form, size_t n_piece, struct buf *out, size_t *n_file)
{
    const struct speech_sink sink = { keep, out, true };
    struct speech_sound_reader reader;
    int r = 0;

    speech_sound_reader_init(&reader, form, RATE, &sink);
    while (r == 0 && bytes.n > 0 && !reader.is_done) {
        const size_t n = MIN(n_piece, bytes.n);

        r = speech_sound_reader_feed(&reader, (struct slice){ bytes.p, n }, NULL);
        bytes = (struct slice){ bytes.p + n, bytes.n - n };
    }
    if (r == 0)
        r = speech_sound_reader_end(&reader, NULL);
    *n_file = speech_sound_reader_file(&reader).n;
    assert(r != 0 || out->n > 0 || *n_file > 0);
    speech_sound_reader_clear(&reader);
    return r;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    struct buf whole, pieces;
    size_t n_whole = 0, n_pieces = 0;
    struct slice bytes;
    int r, r_pieces;

    if (n < 2 || n > MOST_INPUT)
        return 0;
    bytes = (struct slice){ (const char *)data + 2, n - 2 };
    buf_init(&whole, LIMIT_SPEECH_REPLY);
    buf_init(&pieces, LIMIT_SPEECH_REPLY);
    r = read_all(bytes, (enum speech_sound_form)(data[0] % 3), MAX(bytes.n, (size_t)1), &whole, &n_whole);
    r_pieces = read_all(bytes, (enum speech_sound_form)(data[0] % 3), (size_t)data[1] + 1, &pieces, &n_pieces);
    assert(r == r_pieces);
    if (r == 0)
        assert(n_whole == n_pieces && slice_eq(buf_slice(&whole), buf_slice(&pieces)));
    buf_clear(&whole);
    buf_clear(&pieces);
    return 0;
}
