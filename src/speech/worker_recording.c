#include "speech/worker_recording.h"

#include "speech/ears_frames.h"
#include "speech/worker_mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *worker_recording_open(struct worker_recording *r, const struct worker_reader *reader, const char *bytes,
                                  size_t n)
{
    const char *why;
    int wrong = 0;

    memset(r, 0, sizeof(*r));
    r->reader = reader;
    r->source = reader->make(bytes, n);
    why = r->source ? reader->open(r->source, &r->info) : "is too large.";
    if (why)
        return why;
    r->rates = src_new(SRC_SINC_FASTEST, 1, &wrong);
    r->frames = calloc(RECORDING_BLOCK, (size_t)r->info.n_channels * sizeof(*r->frames));
    return r->rates && r->frames ? NULL : "is too large.";
}

/* The next block, its channels mixed. */
static void fill(struct worker_recording *r)
{
    uint32_t n_channels = r->info.n_channels;

    r->n_mono = r->reader->read(r->source, r->frames, RECORDING_BLOCK);
    r->is_at_end = r->n_mono == 0;
    r->mono_at = 0;
    r->n_read += r->n_mono;
    for (size_t i = 0; i < r->n_mono; i++)
        r->mono[i] = worker_mix(r->frames + i * n_channels, n_channels);
}

size_t worker_recording_read(struct worker_recording *r, int16_t ret[RECORDING_BLOCK])
{
    float out[RECORDING_BLOCK];
    SRC_DATA data = { .data_out = out,
                      .output_frames = RECORDING_BLOCK,
                      .src_ratio = (double)EARS_RATE / r->info.rate };

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
        ret[i] = (int16_t)lrintf(worker_sample(out[i]) * 32767);
    return (size_t)data.output_frames_gen;
}

double worker_recording_seconds(const struct worker_recording *r)
{
    return (double)r->n_read / r->info.rate;
}

void worker_recording_close(struct worker_recording *r)
{
    r->reader->close(r->source);
    if (r->rates)
        src_delete(r->rates);
    free(r->frames);
}
