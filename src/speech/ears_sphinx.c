/* PocketSphinx with Debian's model of American English: small and free, exact for phrases. */
#include "speech/ears_worker.h"

static const struct ears_model english = { "en-us", "English (United States)", "en" };

static size_t models(const struct ears_engine *engine, const struct ears_context *c, struct arena *a,
                     const struct ears_model **ret)
{
    *ret = &english;
    return 1;
}

static const struct ears_engine sphinx = {
    .id = "pocketsphinx_local",
    .name = "PocketSphinx (this machine)",
    .description = "English, on this machine, without a network",
    .needs = "libpocketsphinx3 pocketsphinx-en-us libsndfile1 libsamplerate0",
    .program = "hearth-speech-ears",
    .takes_phrases = true,
    .hears_live = true,
    .models = models,
    EARS_BY_WORKER,
};

const struct ears_engine *const ears_engines[N_EARS_ENGINES] = { &sphinx, &ears_vosk, &ears_sherpa };
