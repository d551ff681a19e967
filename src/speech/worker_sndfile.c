#include "speech/worker_source.h"

#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct worker_source {
    const char *bytes; /* borrowed */
    sf_count_t n, at;
    SNDFILE *file;
    SF_INFO info;
};

/* ---- the file in memory ---- */

static sf_count_t length_of(void *arg)
{
    return ((struct worker_source *)arg)->n;
}

static sf_count_t seek_to(sf_count_t offset, int whence, void *arg)
{
    struct worker_source *s = arg;
    sf_count_t from = whence == SEEK_CUR ? s->at : whence == SEEK_END ? s->n : 0, to;

    if (__builtin_add_overflow(from, offset, &to) || to < 0 || to > s->n)
        return -1;
    s->at = to;
    return to;
}

static sf_count_t read_from(void *to, sf_count_t n, void *arg)
{
    struct worker_source *s = arg;

    if (n <= 0)
        return 0;
    n = n < s->n - s->at ? n : s->n - s->at;
    memcpy(to, s->bytes + s->at, (size_t)n);
    s->at += n;
    return n;
}

static sf_count_t place_of(void *arg)
{
    return ((struct worker_source *)arg)->at;
}

/* ---- the reader ---- */

static void close_source(struct worker_source *s)
{
    if (s && s->file)
        sf_close(s->file);
    free(s);
}

static struct worker_source *make_source(const char *bytes, size_t n)
{
    struct worker_source *s = calloc(1, sizeof(*s));

    if (s) {
        s->bytes = bytes;
        s->n = (sf_count_t)n;
    }
    return s;
}

static const char *open_source(struct worker_source *s, struct worker_source_info *ret_info)
{
    static SF_VIRTUAL_IO io = { length_of, seek_to, read_from, NULL, place_of };

    s->file = sf_open_virtual(&io, SFM_READ, &s->info, s);
    if (!s->file)
        return "is no audio that can be read: WAV, MP3, Ogg (Vorbis, Opus), FLAC, AIFF.";
    if (s->info.samplerate < SOURCE_RATE_MIN || s->info.samplerate > SOURCE_RATE_MAX || s->info.channels < 1 ||
        s->info.channels > SOURCE_CHANNELS_MAX)
        return "must have 4,000 to 384,000 samples a second and at most 32 channels.";
    *ret_info = (struct worker_source_info){ (uint32_t)s->info.samplerate, (uint32_t)s->info.channels };
    return NULL;
}

static size_t read_source(struct worker_source *s, float *frames, size_t n)
{
    sf_count_t n_read = sf_readf_float(s->file, frames, (sf_count_t)n);

    return n_read > 0 ? (size_t)n_read : 0;
}

const struct worker_reader worker_sndfile = { make_source, open_source, read_source, close_source };
