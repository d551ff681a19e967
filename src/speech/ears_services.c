/* The table of providers that hear over HTTP: OpenAI's transcriptions, which Groq, LocalAI, Lemonade and Hearth itself
 * take too, whisper.cpp's server, and Deepgram. */
#include "speech/ears_services.h"

#include <string.h>

static const char *const openai_models[] = { "whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", NULL };
static const char *const groq_models[] = { "whisper-large-v3-turbo", "whisper-large-v3", NULL };
static const char *const deepgram_models[] = { "nova-3", "nova-2", NULL };
static const char *const lemonade_models[] = { "Whisper-Large-v3-Turbo", NULL };
static const char *const usual_models[] = { "whisper-1", NULL };
static const char *const loaded_model[] = { "loaded", NULL };

const struct ears_service ears_services[] = {
    { "openai", &ears_openai, "/audio/transcriptions", openai_models },
    { "groq", &ears_openai, "/audio/transcriptions", groq_models },
    { "localai", &ears_openai, "/audio/transcriptions", usual_models },
    { "lemonade", &ears_openai, "/audio/transcriptions", lemonade_models },
    { "litellm", &ears_openai, "/audio/transcriptions", usual_models },
    { "generic-openai", &ears_openai, "/audio/transcriptions", usual_models },
    { "whispercpp", &ears_openai, "/inference", loaded_model },
    { "deepgram", &ears_deepgram, "/v1/listen", deepgram_models },
    { .preset = NULL },
};

const struct ears_service *ears_service_of(const char *preset)
{
    for (const struct ears_service *s = ears_services; s->preset; s++)
        if (strcmp(s->preset, preset) == 0)
            return s;
    return NULL;
}
