#include "speech/worker_recording.h"

#include "speech/ears_frames.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RATE_MIN = 4000, RATE_MAX = 384000, CHANNELS_MAX = 32 };

/* ---- the file in memory ---- */

static sf_count_t length_of(void *arg)
{
    return ((struct worker_recording *)arg)->n;
}

static sf_count_t seek_to(sf_count_t offset, int whence, void *arg)
{
    struct worker_recording *r = arg;
    sf_count_t from = whence == SEEK_CUR ? r->at : whence == SEEK_END ? r->n : 0, to;

    if (__builtin_add_overflow(from, offset, &to) || to < 0 || to > r->n)
        return -1;
    r->at = to;
    return to;
}

static sf_count_t read_from(void *to, sf_count_t n, void *arg)
{
    struct worker_recording *r = arg;

    if (n <= 0)
        return 0;
    n = n < r->n - r->at ? n : r->n - r->at;
    memcpy(to, r->bytes + r->at, (size_t)n);
    r->at += n;
    return n;
}

static sf_count_t place_of(void *arg)
{
    return ((struct worker_recording *)arg)->at;
}

/* ---- samples ---- */

const char *worker_recording_open(struct worker_recording *r, const char *bytes, size_t n)
{
    static SF_VIRTUAL_IO io = { length_of, seek_to, read_from, NULL, place_of };
    int wrong = 0;

    memset(r, 0, sizeof(*r));
    r->bytes = bytes;
    r->n = (sf_count_t)n;
    r->file = sf_open_virtual(&io, SFM_READ, &r->info, r);
    if (!r->file)
        return "is no audio that can be read: WAV, MP3, Ogg (Vorbis, Opus), FLAC, AIFF.";
    if (r->info.samplerate < RATE_MIN || r->info.samplerate > RATE_MAX || r->info.channels > CHANNELS_MAX)
        return "must have 4,000 to 384,000 samples a second and at most 32 channels.";
    r->rates = src_new(SRC_SINC_FASTEST, 1, &wrong);
    r->frames = calloc(RECORDING_BLOCK, (size_t)r->info.channels * sizeof(*r->frames));
    return r->rates && r->frames ? NULL : "is too large.";
}

/* A file of floating-point numbers may hold any. */
static float within(float sample)
{
    return isfinite(sample) ? fmaxf(-1, fminf(1, sample)) : 0;
}

/* The next block, its channels mixed. */
static void fill(struct worker_recording *r)
{
    int n_channels = r->info.channels;
    sf_count_t n = sf_readf_float(r->file, r->frames, RECORDING_BLOCK);

    r->is_at_end = n <= 0;
    r->n_mono = n > 0 ? (size_t)n : 0;
    r->mono_at = 0;
    r->n_read += r->n_mono;
    for (size_t i = 0; i < r->n_mono; i++) {
        float sum = 0;

        for (int c = 0; c < n_channels; c++)
            sum += within(r->frames[i * (size_t)n_channels + (size_t)c]);
        r->mono[i] = sum / (float)n_channels;
    }
}

size_t worker_recording_read(struct worker_recording *r, int16_t ret[RECORDING_BLOCK])
{
    float out[RECORDING_BLOCK];
    SRC_DATA data = { .data_out = out,
                      .output_frames = RECORDING_BLOCK,
                      .src_ratio = (double)EARS_RATE / r->info.samplerate };

    do {
        if (r->mono_at == r->n_mono && !r->is_at_end)
            fill(r);
        data.data_in = r->mono + r->mono_at;
        data.input_frames = (long)(r->n_mono - r->mono_at);
        data.end_of_input = r->is_at_end;
        if (src_process(r->rates, &data) != 0)
            return 0;
        r->mono_at += (size_t)data.input_frames_used;
    } while (data.output_frames_gen == 0 && !r->is_at_end);
    for (long i = 0; i < data.output_frames_gen; i++)
        ret[i] = (int16_t)lrintf(within(out[i]) * 32767);
    return (size_t)data.output_frames_gen;
}

double worker_recording_seconds(const struct worker_recording *r)
{
    return (double)r->n_read / r->info.samplerate;
}

void worker_recording_close(struct worker_recording *r)
{
    if (r->file)
        sf_close(r->file);
    if (r->rates)
        src_delete(r->rates);
    free(r->frames);
}
