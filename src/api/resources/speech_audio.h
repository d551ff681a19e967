/* The spoken audio of a plan as one file, for the routes of speech. For handlers, on their worker.
 *
 *     speech_audio_begin(&plan, &audio);
 *     r = speech_say(speech, &plan, 0, &audio, &done, e);
 *     speech_audio_end(&plan, done.rate, &audio);
 */
#pragma once

#include "api/route.h"
#include "speech/speech.h"

/* wav, mp3, pcm; NULL-ended. */
extern const char *const speech_audio_formats[];
/* -1: the word is NULL. */
int speech_audio_format(const char *word);

/* Room for the header of a WAV, which speech_audio_end() writes when the number of samples is known. */
void speech_audio_begin(const struct speech_plan *plan, struct buf *audio);
void speech_audio_end(const struct speech_plan *plan, uint32_t rate, struct buf *audio);
/* Speaks everything and answers with it. -EFBIG REPLY_TOO_LARGE; or as speech_say(). */
int speech_audio_answer(struct request *req, struct response *res, const struct speech_plan *plan,
                        struct err *e) MUST_CHECK;
