/* The table of providers that speak over HTTP. Each answers one sentence with WAV or raw samples, so that speed,
 * loudness and format are the same for all engines. OpenAI's pcm has 24 kHz; its models tts-1 and tts-1-hd know no
 * events (platform.openai.com/docs/api-reference/audio/createSpeech). */
#include "speech/account.h"

#include "base/limits.h"

#include <string.h>

static const char *const openai_voices[] = { "alloy", "ash",  "ballad",  "coral", "echo",  "fable", "nova",
                                             "onyx",  "sage", "shimmer", "verse", "marin", "cedar", NULL };
static const char *const openai_models[] = { "gpt-4o-mini-tts", "tts-1", "tts-1-hd", NULL };
static const char *const elevenlabs_models[] = { "eleven_multilingual_v2", "eleven_flash_v2_5", "eleven_turbo_v2_5",
                                                 NULL };
static const char *const kokoro_models[] = { "kokoro", NULL };
static const char *const none[] = { NULL };

/* clang-format off */
const struct speech_service speech_services[] = {
    { "openai",         &speech_openai,     .model = "gpt-4o-mini-tts", .voice = "alloy", .models = openai_models, .voices = openai_voices, .raw_rate = 24000, .events = "gpt-", .max_characters = 4096, .min_speed = 0.25, .max_speed = 4 },
    { "kokoro",         &speech_openai,     .model = "kokoro", .voice = "af_heart", .models = kokoro_models, .min_speed = 0.25, .max_speed = 4 },
    { "localai",        &speech_openai,     .model = "tts-1", .voice = "alloy", .models = none },
    { "lemonade",       &speech_openai,     .model = "kokoro-v1", .voice = "af_heart", .models = none, .min_speed = 0.25, .max_speed = 4 },
    { "litellm",        &speech_openai,     .model = "tts-1", .voice = "alloy", .models = none, .max_characters = 4096, .min_speed = 0.25, .max_speed = 4 },
    { "generic-openai", &speech_openai,     .model = "tts-1", .voice = "alloy", .models = none, .min_speed = 0.25, .max_speed = 4 },
    { "piper",          &speech_piper,      .model = "", .voice = "", .models = none, .min_speed = 0.5, .max_speed = 2 },
    { "elevenlabs",     &speech_elevenlabs, .model = "eleven_multilingual_v2", .voice = "21m00Tcm4TlvDq8ikWAM", .models = elevenlabs_models, .raw_rate = 24000, .max_characters = 10000, .min_speed = 0.7, .max_speed = 1.2 },
    { "deepgram",       &speech_deepgram,   .model = "", .voice = "aura-2-thalia-en", .models = none, .max_characters = 2000 },
    { "azure-speech",   &speech_azure,      .model = "", .voice = "en-US-AvaMultilingualNeural", .models = none, .min_speed = 0.5, .max_speed = 2 },
    { .preset = NULL },
};
/* clang-format on */

const struct speech_service *speech_service_of(const char *preset)
{
    for (const struct speech_service *s = speech_services; s->preset; s++)
        if (strcmp(s->preset, preset) == 0)
            return s;
    return NULL;
}

bool speech_service_sends_events(const struct speech_service *service, const char *model)
{
    return service->events && strncmp(model, service->events, strlen(service->events)) == 0;
}

bool speech_voice_is_name(struct slice id)
{
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] <= ' ' || id.p[i] > '~')
            return false;
    return id.n > 0 && id.n <= LIMIT_SPEECH_VOICE;
}

bool speech_voice_add(struct speech_voice_list *list, struct arena *a, struct slice id, const char *name,
                      const char *language)
{
    struct speech_voice *items;

    if (!speech_voice_is_name(id) || list->n == LIMIT_SPEECH_VOICES)
        return false;
    if (list->n == 0)
        list->items = arena_array(a, LIMIT_SPEECH_VOICES, sizeof(*list->items));
    items = (struct speech_voice *)list->items;
    items[list->n] = (struct speech_voice){ .id = arena_slicedup(a, id), .language = language ? language : "" };
    items[list->n].name = name && *name ? name : items[list->n].id;
    list->n++;
    return true;
}
