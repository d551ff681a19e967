/* The spoken audio of a plan as one file, for the routes of speech. For handlers, on their worker.
 *
 *     r = speech_work_begin(req, &plan, body->text, &work, e);
 *     speech_audio_begin(&plan, &audio);
 *     r = speech_work_say(&work, 0, &audio, &done, e);
 *     speech_audio_end(&plan, done.rate, &audio);
 *     speech_work_end(&work, r);
 */
#pragma once

#include "api/route.h"
#include "identity/meter.h"
#include "speech/speech.h"

/* wav, mp3, pcm; NULL-ended. */
extern const char *const speech_audio_formats[];
/* -1: the word is NULL. */
int speech_audio_format(const char *word);

/* One text that is spoken for one caller, counted (docs/usage.md). */
struct speech_work {
    struct speech *speech;
    struct meter *meter;
    const struct speech_plan *plan;
    struct meter_ticket ticket;
    double seconds; /* spoken so far */
};

/* The caller's limits. 0: speech_work_end() must follow. -EBUSY RATE_LIMIT. */
int speech_work_begin(struct request *req, const struct speech_plan *plan, const char *text, struct speech_work *ret,
                      struct err *e) MUST_CHECK;
/* As speech_say(). */
int speech_work_say(struct speech_work *work, size_t i, struct buf *audio, struct speech_frame_done *ret,
                    struct err *e) MUST_CHECK;
/* As speech_say_live(). */
int speech_work_say_live(struct speech_work *work, size_t i, const struct speech_tap *tap, struct err *e) MUST_CHECK;
/* r: of the whole. What waited for its first sentence and was turned away has cost nothing. */
void speech_work_end(struct speech_work *work, int r);

/* Room for the header of a WAV, which speech_audio_end() writes when the number of samples is known. */
void speech_audio_begin(const struct speech_plan *plan, struct buf *audio);
void speech_audio_end(const struct speech_plan *plan, uint32_t rate, struct buf *audio);
/* Speaks everything and answers with it. -EFBIG REPLY_TOO_LARGE; or as speech_say(). */
int speech_audio_answer(struct request *req, struct response *res, struct speech_work *work, struct err *e) MUST_CHECK;
