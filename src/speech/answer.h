/* Reads what a worker answers (speech/worker_frames.h). A worker has read foreign text and may have been taken over by
 * it, so every length and number is checked. One thread; no I/O.
 *
 *     speech_answer_init(&answer, &audio, LIMIT_SPEECH_AUDIO);
 *     r = speech_answer_feed(&answer, bytes, e);         1: the answer is complete
 */
#pragma once

#include "base/buf.h"
#include "speech/engines.h"
#include "speech/worker_frames.h"

struct speech_answer {
    struct buf *out;     /* borrowed: AUDIO or VOICES bytes are appended */
    size_t n_out, n_max; /* appended bytes, and how many at most */
    bool is_start;       /* expects HELLO only */
    bool is_flow;        /* TAKEN ends an answer too, and the next one follows (worker_frames.h, BEGIN) */
    struct speech_frame_hello hello;
    struct speech_frame_done done;
    struct buf frame; /* the incomplete frame */
};

void speech_answer_init(struct speech_answer *a, struct buf *out, size_t n_max);
void speech_answer_clear(struct speech_answer *a);
/* 0: more is to come; 1: complete; -EIO SPEECH_FAILED for a failure that the worker reports and for a frame that breaks
 * the protocol. */
int speech_answer_feed(struct speech_answer *a, struct slice bytes, struct err *e) MUST_CHECK;
/* Splits a list of voices into names; those that are no names are left out. In the arena. */
struct speech_voices speech_answer_voices(struct arena *arena, struct slice list);
