/* Hears sound while it comes, from the microphone (speech/microphone.h) or from a client (speech/sound_queue.h): one
 * worker that hears, one source, and the rules by which the sound ends: its time, counted in samples and by the clock,
 * and silence after speech.
 *
 * Every function blocks its worker thread; one thread for one listening.
 *
 *     r = listening_start(ears, &request, &l, e);
 *     while (r >= 0 && (r = listening_next(l, e)) == 1)
 *         ... listening_text(l) has changed
 *     l = listening_end(l);
 */
#pragma once

#include "net/wait.h"
#include "speech/ears.h"

struct listening;

enum sound { SOUND_NONE, SOUND_SAMPLES, SOUND_END };

/* Where the sound comes from. Called on the thread of the listening. */
struct sound_source {
    /* The engine is ready: the sound may begin. 0 or a failure of the whole request. */
    int (*open)(void *arg, const struct net_wait *wait, struct err *e);
    /* SOUND_NONE: none at the moment, fd() becomes readable. The samples (16 bits, one channel) are valid until the
     * next call. Below 0: a failure. */
    int (*take)(void *arg, struct slice *ret, struct err *e);
    int (*fd)(void *arg);
    void (*close)(void *arg); /* once after open(): the sound has ended, for whatever reason */
    void *arg;
};

struct listening_request {
    struct ears_request ears; /* without a recording */
    struct sound_source source;
    uint32_t rate;
    int64_t max_ms;     /* of sound, counted in samples */
    int64_t wall_ms;    /* and by the clock */
    int64_t quiet_ms;   /* the sound ends when no sample came for so long; 0: never */
    int64_t silence_ms; /* and after so much silence behind speech; 0: never. EARS_RATE only */
    bool guesses;       /* listening_next() also returns for what a segment seems to say */
    bool keeps;         /* listening_samples() */
};

/* Returns when the source is open. Fails as hearing_start(), and as the source. */
int listening_start(struct ears *ears, const struct listening_request *request, struct listening **ret,
                    struct err *e) MUST_CHECK;
/* 1: the text has changed; 0: the sound has ended, and the text is final. */
int listening_next(struct listening *l, struct err *e) MUST_CHECK;
struct slice listening_text(const struct listening *l); /* valid until the next call */
double listening_duration(const struct listening *l);   /* seconds of sound so far */
struct slice listening_samples(const struct listening *l);
struct ears_who listening_who(const struct listening *l); /* valid until its end */
/* Any time; NULL is fine; returns NULL. */
struct listening *listening_end(struct listening *l);
