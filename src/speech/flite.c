/* flite: four English voices, more natural than espeak-ng's. */
#include "speech/engines.h"

static const char *voice_of(const struct speech_voices *known, const char *language, struct arena *a)
{
    return speech_is_english(language) ? "rms" : NULL;
}

static bool has_voice(const struct speech_voices *known, const char *voice)
{
    return speech_voices_find(known, slice_of(voice)) != NULL;
}

static struct speech_voices languages(const struct speech_voices *known)
{
    static const char *const english[] = { "en", NULL };

    return (struct speech_voices){ english, 1 };
}

const struct speech_engine speech_flite = {
    .id = "flite_local",
    .name = "Flite (this machine)",
    .program = "hearth-speech-flite",
    .packages = "libflite1 libmp3lame0 libebur128-1",
    .note = "English only",
    .voice_of = voice_of,
    .has_voice = has_voice,
    .languages = languages,
};
