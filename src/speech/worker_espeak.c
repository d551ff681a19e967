/* espeak-ng in a worker. Its state is global, and concurrent calls crash: one sentence at a time. */
#include "base/limits.h"
#include "speech/worker_engine.h"

#include <espeak-ng/speak_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_MS = 60, WORDS_A_MINUTE = 175 };

/* libpcaudio's function, which libespeak-ng calls at its start and which would connect with a sound server. Without a
 * device espeak-ng works as before: its samples go to the callback. */
struct audio_object *create_audio_device_object(const char *device, const char *application, const char *description);
struct audio_object *create_audio_device_object(const char *device, const char *application, const char *description)
{
    return NULL;
}

static int rate;

static int take_samples(short *samples, int n, espeak_EVENT *events)
{
    return samples && n > 0 && !worker_samples_add(events->user_data, samples, (size_t)n);
}

static const char *start(void)
{
    rate = espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, BUFFER_MS, NULL, espeakINITIALIZE_DONT_EXIT);
    espeak_SetSynthCallback(take_samples);
    return rate > 0 ? NULL : "espeak-ng does not find its data (Debian: apt install espeak-ng-data).";
}

/* Voices of mbrola need files that Debian does not have. */
static bool is_usable(const espeak_VOICE *voice)
{
    return voice->languages && voice->languages[0] && strncmp(voice->identifier, "mb/", 3) != 0;
}

/* The file of a language ("gmw/en" of en-gb), because espeak_SetVoiceByName() does not know every language that it
 * lists, and may crash after a name that it does not know. NULL: the language is not listed. */
static const char *file_of(const char *language, size_t n)
{
    const espeak_VOICE **voices = espeak_ListVoices(NULL);

    for (size_t i = 0; voices && voices[i]; i++)
        if (is_usable(voices[i]) && strlen(voices[i]->languages + 1) == n &&
            memcmp(voices[i]->languages + 1, language, n) == 0)
            return voices[i]->identifier;
    return NULL;
}

static bool load_voice(const char *voice)
{
    char name[2 * LIMIT_SPEECH_VOICE + 1];
    size_t n_language = strcspn(voice, "+");
    const char *file = file_of(voice, n_language);

    if (!file || (size_t)snprintf(name, sizeof(name), "%s%s", file, voice + n_language) >= sizeof(name))
        return false;
    return espeak_SetVoiceByName(name) == EE_OK;
}

/* The list alone reads some 350 files, which takes longer than a sentence: a voice that is loaded stays. */
static bool choose_voice(const char *voice)
{
    static char loaded[LIMIT_SPEECH_VOICE + 1];

    if (*loaded && strcmp(voice, loaded) == 0)
        return true;
    *loaded = '\0';
    if (!load_voice(voice))
        return false;
    snprintf(loaded, sizeof(loaded), "%s", voice);
    return true;
}

static const char *version(void)
{
    return espeak_Info(NULL);
}

/* Control characters become spaces: U+0001 begins a command (amplitude, pitch, echo), and some commands stay in force
 * for the sentences of others. NULL: no memory. free() it. */
static char *without_commands(const char *text)
{
    char *copy = strdup(text);

    for (char *at = copy; at && *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
    return copy;
}

static const char *say(const struct worker_sentence *sentence, struct worker_samples *ret)
{
    char *text;
    espeak_ERROR r;

    ret->rate = rate;
    if (!choose_voice(sentence->voice))
        return "espeak-ng cannot load this voice.";
    espeak_SetParameter(espeakRATE, (int)(WORDS_A_MINUTE * sentence->speed + 0.5), 0);
    text = without_commands(sentence->text);
    if (!text)
        return "There is no memory for this sentence.";
    r = espeak_Synth(text, strlen(text) + 1, 0, POS_CHARACTER, 0, espeakCHARS_UTF8 | espeakENDPAUSE, NULL, ret);
    free(text);
    return r == EE_OK ? NULL : "espeak-ng cannot speak this sentence.";
}

static void list(void (*add)(const char *voice))
{
    const espeak_VOICE **voices = espeak_ListVoices(NULL);

    for (size_t i = 0; voices && voices[i]; i++)
        if (is_usable(voices[i]))
            add(voices[i]->languages + 1);
}

const struct worker_engine worker_engine = { .start = start, .version = version, .say = say, .list = list };
