/* The "engine" of sound that others made: the service sends the samples of a provider's answer, and the worker gives
 * them the requested speed (libsonic), loudness and format, as the other workers do for their own. */
#include "speech/worker_engine.h"

#include "speech/worker_flow.h"
#include "speech/worker_frames.h"
#include "speech/worker_mix.h"
#include "speech/worker_source.h"
#include "speech/worker_speed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096 };

static struct worker_samples given;

static const char *start(void)
{
    return NULL;
}

static const char *version(void)
{
    return "libsonic";
}

static void list(void (*add)(const char *voice))
{
}

/* The last byte of a file may be alone. */
static bool take_samples(const char *bytes, size_t n)
{
    int16_t items[LIMIT_SPEECH_FRAME / sizeof(int16_t)] = { 0 };

    memcpy(items, bytes, n);
    return worker_samples_add(&given, items, (n + 1) / sizeof(*items));
}

static bool take(uint32_t kind, const char *bytes, size_t n)
{
    if (kind == SPEECH_FRAME_SAMPLES && !worker_flow_is_open())
        return take_samples(bytes, n);
    return worker_flow_take(kind, bytes, n);
}

/* ---- a file ---- */

static const char *decode_all(struct worker_source *source, uint32_t n_channels, struct worker_samples *ret)
{
    static float frames[BLOCK * SOURCE_CHANNELS_MAX];
    int16_t block[BLOCK];
    size_t n;

    while ((n = worker_sndfile.read(source, frames, BLOCK)) > 0) {
        for (size_t i = 0; i < n; i++)
            block[i] = (int16_t)lrintf(worker_mix(frames + i * n_channels, n_channels) * 32767);
        if (!worker_samples_add(ret, block, n))
            return "it sent sound that is too long.";
    }
    return ret->n > 0 ? NULL : "it sent a file without sound.";
}

static const char *decode(struct worker_samples *ret)
{
    struct worker_source *source = worker_sndfile.make((const char *)given.items, given.n * sizeof(*given.items));
    struct worker_source_info info = { 0, 0 };
    const char *why = NULL;

    if (!source || worker_sndfile.open(source, &info))
        why = "it sent a file that cannot be read.";
    else if (info.rate < SPEECH_RATE_MIN || info.rate > SPEECH_RATE_MAX)
        why = "it sent sound that has not 8,000 to 48,000 samples a second.";
    else
        why = decode_all(source, info.n_channels, ret);
    ret->rate = (int)info.rate;
    worker_sndfile.close(source);
    return why;
}

/* The file is replaced by its samples. */
static const char *open_file(void)
{
    struct worker_samples decoded = { 0 };
    const char *why = decode(&decoded);

    free(given.items);
    given = decoded;
    return why;
}

/* ---- the speed ---- */

static const char *change_speed(double speed, struct worker_samples *ret)
{
    struct worker_speed *changed = worker_speed_new(ret->rate, speed);
    bool is_done = changed && worker_speed_add(changed, given.items, given.n, ret) && worker_speed_end(changed, ret);

    worker_speed_free(changed);
    return is_done ? NULL : "The sound cannot be brought to this speed.";
}

static const char *finish(const struct worker_sentence *sentence, struct worker_samples *ret)
{
    if (given.rate < SPEECH_RATE_MIN || given.rate > SPEECH_RATE_MAX)
        return "The sound has a rate that cannot be used.";
    ret->rate = given.rate;
    if (sentence->speed != 1)
        return change_speed(sentence->speed, ret);
    return worker_samples_add(ret, given.items, given.n) ? NULL : "The sound is too long.";
}

/* The text is the rate; 0: a file, which has a rate of its own. */
static const char *say(const struct worker_sentence *sentence, struct worker_samples *ret)
{
    const char *why = NULL;

    given.rate = (int)strtol(sentence->text, NULL, 10);
    if (given.rate == 0)
        why = open_file();
    if (!why)
        why = finish(sentence, ret);
    free(given.items);
    given = (struct worker_samples){ 0 };
    return why;
}

const struct worker_engine worker_engine = {
    .start = start, .version = version, .say = say, .list = list, .take = take
};
