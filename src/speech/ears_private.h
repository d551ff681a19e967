/* What ears.c shares with live sound (listening.c, microphone.c). */
#pragma once

#include "speech/ears_engine.h"

const struct ears_context *ears_context_of(const struct ears *ears);
/* The engine, and what is asked of it; the recording is not looked at. Strings in the arena or the request. */
int ears_plan(const struct ears *ears, const struct ears_request *request, struct arena *a,
              const struct ears_engine **ret_engine, struct ears_job *job, struct err *e) MUST_CHECK;
/* The only microphone: false while LIMIT_SPEECH_LISTENERS requests have it. */
bool ears_take_microphone(struct ears *ears) MUST_CHECK;
void ears_give_microphone(struct ears *ears);
