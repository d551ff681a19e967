#include "speech/worker_engine.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

bool worker_samples_add(struct worker_samples *s, const int16_t *items, size_t n)
{
    size_t n_wanted = s->n + n, n_new;
    int16_t *grown;

    if (n_wanted > LIMIT_SPEECH_AUDIO / sizeof(*items))
        return false;
    if (n_wanted > s->n_allocated) {
        n_new = n_wanted * 2;
        grown = realloc(s->items, n_new * sizeof(*items));
        if (!grown)
            return false;
        s->items = grown;
        s->n_allocated = n_new;
    }
    if (n > 0)
        memcpy(s->items + s->n, items, n * sizeof(*items));
    s->n = n_wanted;
    return true;
}
