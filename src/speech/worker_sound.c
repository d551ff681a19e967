/* The "engine" of sound that others made: the service sends the samples of a provider's answer, and the worker gives
 * them the requested speed (libsonic), loudness and format, as the other workers do for their own. */
#include "speech/worker_engine.h"

#include "speech/worker_frames.h"
#include "speech/worker_mix.h"
#include "speech/worker_source.h"

#include <math.h>
#include <sonic.h>
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
static bool take(const char *bytes, size_t n)
{
    int16_t items[LIMIT_SPEECH_FRAME / sizeof(int16_t)] = { 0 };

    memcpy(items, bytes, n);
    return worker_samples_add(&given, items, (n + 1) / sizeof(*items));
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

static bool drain(sonicStream stream, struct worker_samples *ret)
{
    int16_t block[BLOCK];
    int n;

    while ((n = sonicReadShortFromStream(stream, block, BLOCK)) > 0)
        if (!worker_samples_add(ret, block, (size_t)n))
            return false;
    return true;
}

static bool stretch(sonicStream stream, double speed, struct worker_samples *ret)
{
    sonicSetSpeed(stream, (float)speed);
    for (size_t at = 0; at < given.n;) {
        size_t n = given.n - at < BLOCK ? given.n - at : BLOCK;

        if (!sonicWriteShortToStream(stream, given.items + at, (int)n) || !drain(stream, ret))
            return false;
        at += n;
    }
    return sonicFlushStream(stream) && drain(stream, ret);
}

static const char *change_speed(double speed, struct worker_samples *ret)
{
    sonicStream stream = sonicCreateStream(ret->rate, 1);
    bool is_done = stream && stretch(stream, speed, ret);

    if (stream)
        sonicDestroyStream(stream);
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
