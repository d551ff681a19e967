/* Reads what the worker that hears answers, and that of the microphone (speech/ears_frames.h). The worker has read
 * foreign bytes and may have been taken over by them, so every length, number and order is checked. One thread; no I/O.
 *
 *     ears_answer_feed(&answer, bytes);
 *     while ((r = ears_answer_next(&answer, &event, e)) == 1)
 *         ...
 */
#pragma once

#include "base/buf.h"
#include "speech/ears_frames.h"

enum ears_event_kind { EARS_OPENED, EARS_WORD, EARS_SEGMENT, EARS_DONE, EARS_SOUND, EARS_GUESS };

struct ears_event {
    enum ears_event_kind kind;
    uint32_t start_ms, end_ms; /* of a word or a segment; EARS_DONE: end_ms is the duration */
    double confidence;         /* of a word, 0 to 1 */
    struct slice word;         /* or a guess, or samples; valid until the next call */
};

struct ears_answer {
    struct buf bytes;  /* received and not yet read */
    size_t n_consumed; /* of them, by the last event */
    size_t n_text;     /* of all words */
    uint32_t last_ms;  /* where the next word or segment may begin */
    bool is_open, is_done;
};

void ears_answer_init(struct ears_answer *a);
void ears_answer_clear(struct ears_answer *a);
/* At most LIMIT_SPEECH_FRAME bytes, after ears_answer_next() returned 0. */
void ears_answer_feed(struct ears_answer *a, struct slice bytes);
/* 1: an event; 0: more bytes are needed, or the answer is complete. -EINVAL AUDIO_UNREADABLE, -EINVAL VALIDATION_ERROR
 * for phrases, -EFBIG AUDIO_TOO_LONG, -ENODEV NO_AUDIO_DEVICE; -EIO SPEECH_FAILED for a failure that the worker reports
 * and for a frame that breaks the protocol. */
int ears_answer_next(struct ears_answer *a, struct ears_event *ret, struct err *e) MUST_CHECK;
