/* The "engine" of sound that others made: the service sends the samples of a provider's answer, and the worker gives
 * them the requested speed (libsonic), loudness and format, as the other workers do for their own. */
#include "speech/worker_engine.h"

#include "speech/worker_frames.h"

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

static bool take(const char *bytes, size_t n)
{
    int16_t items[LIMIT_SPEECH_FRAME / sizeof(int16_t)];

    if (n % sizeof(*items) != 0)
        return false;
    memcpy(items, bytes, n);
    return worker_samples_add(&given, items, n / sizeof(*items));
}

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

/* The text is the rate. */
static const char *say(const struct worker_sentence *sentence, struct worker_samples *ret)
{
    long rate = strtol(sentence->text, NULL, 10);
    const char *why = NULL;

    if (rate < SPEECH_RATE_MIN || rate > SPEECH_RATE_MAX)
        return "The sound has a rate that cannot be used.";
    ret->rate = (int)rate;
    if (sentence->speed != 1)
        why = change_speed(sentence->speed, ret);
    else if (!worker_samples_add(ret, given.items, given.n))
        why = "The sound is too long.";
    free(given.items);
    given = (struct worker_samples){ 0 };
    return why;
}

const struct worker_engine worker_engine = {
    .start = start, .version = version, .say = say, .list = list, .take = take
};
