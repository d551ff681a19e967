/* espeak-ng: over a hundred languages. Its voices are its languages; a variant may follow, as in en-us+f3. */
#include "speech/engines.h"

#include "base/limits.h"

#include <strings.h>

/* Languages whose usual voice has another tag. */
static const struct {
    const char *language, *voice;
} usual[] = { { "en", "en-us" }, { "fr", "fr-fr" },  { "zh", "cmn" },
              { "no", "nb" },    { "zh-CN", "cmn" }, { "zh-HK", "yue" } };

static const char *listed(const struct speech_voices *known, struct slice language)
{
    for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
        if (language.n == strlen(usual[i].language) && strncasecmp(language.p, usual[i].language, language.n) == 0)
            return speech_voices_find(known, slice_of(usual[i].voice));
    return speech_voices_find(known, language);
}

/* de-AT is spoken by de, where there is no voice of its own. */
static const char *voice_of(const struct speech_voices *known, const char *language, struct arena *a)
{
    char *tag = arena_strdup(a, language);
    const char *found;

    for (char *at = tag; *at; at++)
        if (*at == '_')
            *at = '-';
    found = listed(known, slice_of(tag));
    return found ? found : listed(known, (struct slice){ tag, strcspn(tag, "-") });
}

static bool has_voice(const struct speech_voices *known, const char *voice)
{
    size_t n = strcspn(voice, "+");
    const char *variant = voice + n;

    if (strlen(voice) > LIMIT_SPEECH_VOICE || !speech_voices_find(known, (struct slice){ voice, n }))
        return false;
    return !*variant || (variant[1] && strspn(variant + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                           "0123456789-_") == strlen(variant + 1));
}

static struct speech_voices languages(const struct speech_voices *known)
{
    return *known;
}

const struct speech_engine speech_espeak = {
    .id = "espeak_local",
    .name = "eSpeak NG (this machine)",
    .program = "hearth-speech-espeak",
    .packages = "libespeak-ng1 espeak-ng-data libmp3lame0 libebur128-1",
    .note = "Every voice takes a variant: de+f2 (m1 to m8, f1 to f5, whisper, croak)",
    .is_of_one_voice = true,
    .voice_of = voice_of,
    .has_voice = has_voice,
    .languages = languages,
};
