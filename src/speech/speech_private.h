/* Shared by speech.c, speech_say.c and speech_choice.c: the state, and the choice of who speaks. */
#pragma once

#include "speech/cache.h"
#include "speech/engines.h"
#include "speech/levels.h"
#include "speech/pool.h"
#include "speech/speech.h"
#include "speech/turns.h"
#include "speech/voice_lists.h"

struct engine_state {
    const struct speech_engine *engine;
    struct speech_pool *pool;
};

struct speech {
    struct speech_config config;
    struct speech_cache *cache;
    struct engine_state states[N_SPEECH_ENGINES];
    struct speech_pool *sound;        /* gives the sound of providers its speed, loudness and format */
    struct speech_turns turns;        /* of requests to providers */
    struct speech_voice_lists *lists; /* of providers */
    struct speech_levels *levels;     /* of their voices */
};

struct engine_state *speech_state_of(struct speech *s, struct slice id); /* NULL: no engine of this machine */
size_t speech_cache_bytes(const struct speech *s);                       /* that the cache may hold */
/* The configured providers that speak, in the arena. */
size_t speech_accounts_of(const struct speech *s, struct arena *a, const struct speech_account **ret);

/* The language of a request: its own, else speech.language, or one of the text's script where that language has another
 * one and the request and speech.voices name no provider. */
const char *speech_language(struct speech *s, const struct speech_request *request, struct arena *a);

/* Who speaks: an engine of this machine, or a provider. */
struct speech_target {
    struct engine_state *state;           /* NULL: the account */
    const struct speech_account *account; /* in the arena */
    const char *voice, *model, *language; /* model: of the account */
};

/* The provider named by the request, else by the setting for this language, else flite for English, else espeak. A
 * voice without a provider belongs to the first provider that has it. Nothing leaves this machine unless the request or
 * the setting names a provider, or a voice that no engine of this machine has. -EINVAL VALIDATION_ERROR names the
 * field; -ENODEV SPEECH_UNAVAILABLE. */
int speech_choose(struct speech *s, const struct speech_request *request, const char *language, struct arena *a,
                  struct speech_target *ret, struct err *e) MUST_CHECK;
