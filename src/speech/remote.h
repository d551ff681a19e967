/* Requests to providers of speech over HTTP, and the checks of their answers: a wrong status, type, length or an answer
 * that is no audio is an error that names the lie. Blocks a worker; any thread. Results are in the arena.
 *
 *     r = speech_remote_say(&account, &say, &sink, &wait, arena, &file, e);
 *     r = speech_remote_voices(&account, &wait, arena, &list, e);
 */
#pragma once

#include "base/json_write.h"
#include "speech/account.h"
#include "speech/sound_reader.h"

/* The sink takes the samples while they arrive, and those of a failure that comes later too; a whole file that is no
 * WAV is returned in ret (in the arena) instead, which is empty otherwise. -EIO SPEECH_FAILED; -EBUSY RATE_LIMIT and
 * -EINVAL INVALID_MODEL as the account's refuse() says; -ECANCELED; or what the sink returned. */
int speech_remote_say(const struct speech_account *acc, const struct speech_say *say, const struct speech_sink *sink,
                      const struct net_wait *wait, struct arena *a, struct slice *ret, struct err *e) MUST_CHECK;
/* No voices when the provider has no list. Errors as above. */
int speech_remote_voices(const struct speech_account *acc, const struct net_wait *wait, struct arena *a,
                         struct speech_voice_list *ret, struct err *e) MUST_CHECK;

/* A JSON object that becomes the body of a POST.
 *
 *     speech_body_begin(&body);
 *     json_add_string(&body.w, "voice", say->voice);
 *     speech_body_post(&body, acc, "/audio/speech", arena, request);
 */
struct speech_body {
    struct json_writer w;
    struct buf bytes;
};
void speech_body_begin(struct speech_body *body);
/* Takes the body, as speech_remote_post() does. */
void speech_body_post(struct speech_body *body, const struct speech_account *acc, const char *path, struct arena *a,
                      struct http_call_request *ret);

/* A POST to the base URL and path, whose parameters may follow it. Takes the body. */
void speech_remote_post(const struct speech_account *acc, const char *path, const char *type, struct buf *body,
                        struct arena *a, struct http_call_request *ret);
/* Sends it, with the account's headers and limits; the answer's status is 2xx. max_reply 0: LIMIT_REPLY. */
int speech_remote_call(const struct speech_account *acc, struct http_call_request *request, const struct net_wait *wait,
                       struct arena *a, struct http_answer *ret, struct err *e) MUST_CHECK;
/* Puts the provider's name before a text that begins with "it ...", as SPEECH_FAILED without secrets. r -ECANCELED
 * stays what it is; returns r or -EIO. */
int speech_remote_blame(const struct speech_account *acc, int r, struct err *e);
