/* The microphone as a source of sound (speech/listening.h): ALSA's device, opened by a worker of its own
 * (hearth-speech-microphone), which is killed when the sound ends. One at a time for the whole service. Nothing opens
 * it but a request, and only while that request listens.
 *
 *     r = microphone_take(&m, ears, e);
 *     request.source = microphone_source(&m, 60000, note, arg);
 *     ... listening_end(l) ...
 *     microphone_give(&m);
 */
#pragma once

#include "speech/listening.h"

struct speech_worker;

struct microphone {
    struct ears *ears; /* borrowed */
    uint32_t max_ms;
    void (*on_change)(void *arg, bool is_open); /* the person is told */
    void *arg;
    struct speech_worker *worker;
    struct ears_answer *answer;
};

/* Opens nothing yet. -EBUSY MICROPHONE_BUSY */
int microphone_take(struct microphone *m, struct ears *ears, struct err *e) MUST_CHECK;
void microphone_give(struct microphone *m);
/* open() fails with -ENODEV NO_AUDIO_DEVICE, also without the worker's program. on_change: NULL, or called when the
 * device has been opened and closed, on the thread that listens. */
struct sound_source microphone_source(struct microphone *m, int64_t max_ms, void (*on_change)(void *arg, bool is_open),
                                      void *arg) MUST_CHECK;
/* For `hearth doctor`: opens the device for a moment, and records nothing. -EBUSY while somebody listens. */
int microphone_check(struct ears *ears, struct err *e) MUST_CHECK;
