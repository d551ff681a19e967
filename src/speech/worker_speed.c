#include "speech/worker_speed.h"

#include <sonic.h>
#include <stdlib.h>

enum { BLOCK = 4096 };

struct worker_speed {
    sonicStream stream;
};

struct worker_speed *worker_speed_free(struct worker_speed *s)
{
    if (s && s->stream)
        sonicDestroyStream(s->stream);
    free(s);
    return NULL;
}

struct worker_speed *worker_speed_new(int rate, double speed)
{
    struct worker_speed *s = calloc(1, sizeof(*s));

    if (s)
        s->stream = sonicCreateStream(rate, 1);
    if (!s || !s->stream)
        return worker_speed_free(s);
    sonicSetSpeed(s->stream, (float)speed);
    return s;
}

static bool drain(struct worker_speed *s, struct worker_samples *out)
{
    int16_t block[BLOCK];
    int n;

    while ((n = sonicReadShortFromStream(s->stream, block, BLOCK)) > 0)
        if (!worker_samples_add(out, block, (size_t)n))
            return false;
    return true;
}

bool worker_speed_add(struct worker_speed *s, const int16_t *items, size_t n, struct worker_samples *out)
{
    for (size_t at = 0; at < n;) {
        const size_t n_part = n - at < BLOCK ? n - at : BLOCK;

        if (!sonicWriteShortToStream(s->stream, (short *)items + at, (int)n_part) || !drain(s, out))
            return false;
        at += n_part;
    }
    return true;
}

bool worker_speed_end(struct worker_speed *s, struct worker_samples *out)
{
    return sonicFlushStream(s->stream) && drain(s, out);
}
