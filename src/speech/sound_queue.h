/* Sound that a client sends, as a source of sound (speech/listening.h). The loop adds what it has received, and the
 * thread that listens takes it. Bounded: a full queue says so, and the client is read again when there is room.
 *
 *     r = sound_queue_init(&q, has_room, arg, e);
 *     goes_on = sound_queue_add(&q, bytes);         the loop
 *     sound_queue_end(&q);
 *     request.source = sound_queue_source(&q);      the thread that listens
 *     sound_queue_clear(&q);                        when neither uses it
 */
#pragma once

#include "base/buf.h"
#include "speech/listening.h"

#include <pthread.h>

struct sound_queue {
    int fd; /* an eventfd: readable when something was added */
    void (*has_room)(void *arg);
    void *arg;
    struct buf taken; /* the thread that listens */
    pthread_mutex_t lock;
    struct buf added; /* the lock guards these */
    bool is_full, has_ended;
};

/* has_room is called on the thread that listens, after sound_queue_add() returned false. */
int sound_queue_init(struct sound_queue *q, void (*has_room)(void *arg), void *arg, struct err *e) MUST_CHECK;
void sound_queue_clear(struct sound_queue *q);
/* Whole samples, at most LIMIT_SPEECH_SESSION_FRAME bytes. False: the queue is full now. */
bool sound_queue_add(struct sound_queue *q, struct slice samples);
void sound_queue_end(struct sound_queue *q);
struct sound_source sound_queue_source(struct sound_queue *q);
