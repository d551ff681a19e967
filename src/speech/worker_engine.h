/* What worker_main.c needs of an engine: one object `worker_engine`, in worker_espeak.c, worker_flite.c or
 * worker_sound.c. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct worker_sentence {
    const char *text, *voice; /* end with NUL */
    double speed;             /* 0.5 to 2.0; 1.0 is the engine's usual speed */
};

/* Samples of one sentence; free() them. */
struct worker_samples {
    int16_t *items;
    size_t n, n_allocated;
    int rate; /* samples a second */
};

struct worker_engine {
    /* Loads what every sentence needs. Returns NULL, or why the engine cannot work. */
    const char *(*start)(void);
    /* The version of the library, after the start. */
    const char *(*version)(void);
    /* Returns NULL, or why the sentence cannot be spoken. The samples belong to the caller in both cases. */
    const char *(*say)(const struct worker_sentence *sentence, struct worker_samples *ret);
    /* Calls add with the name of each voice. */
    void (*list)(void (*add)(const char *voice));
    /* A frame of its own; false: it cannot be taken. NULL: the engine has none. */
    bool (*take)(uint32_t kind, const char *bytes, size_t n);
};

extern const struct worker_engine worker_engine;

/* Appends n samples; false when the sentence became longer than LIMIT_SPEECH_AUDIO allows. worker_samples.c. */
bool worker_samples_add(struct worker_samples *s, const int16_t *items, size_t n);
/* Sends audio in frames; false: the service has gone. worker_main.c. */
bool worker_send_audio(const void *bytes, size_t n);
