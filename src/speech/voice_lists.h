/* The voices of configured providers, kept for a while: a list is asked for when it is needed and old. Also after a
 * failure the provider is left alone for some seconds, and the list of before counts. Owned by speech.c; any thread;
 * blocks while the provider is asked.
 *
 *     r = speech_voice_lists_get(lists, &account, &wait, arena, &voices, e);
 */
#pragma once

#include "speech/account.h"

struct speech_voice_lists;

struct speech_voice_lists *speech_voice_lists_new(void) MUST_CHECK;
struct speech_voice_lists *speech_voice_lists_free(struct speech_voice_lists *l);
/* No voices: the provider has no list, and every name is taken. A copy in the arena. Errors of
 * speech_remote_voices(). */
int speech_voice_lists_get(struct speech_voice_lists *l, const struct speech_account *acc, const struct net_wait *wait,
                           struct arena *a, struct speech_voice_list *ret, struct err *e) MUST_CHECK;
