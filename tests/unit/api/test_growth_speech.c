/* The time to read what providers of speech send grows linearly with its length (growth.h). `store` of a case is the
 * preset, `op` what is read: v a list of voices, t a transcript, w a WAV. */
#include "growth.h"

#include "speech/ears_services.h"
#include "speech/remote.h"

#include <stdlib.h>

static void read_answer(struct arena *a, struct slice text, const struct growing *g)
{
    struct speech_voice_list voices = { NULL, 0 };
    struct ears_heard heard = { NULL, 0, 0 };
    struct json_value root = parse(a, text);

    if (g->op == 'v')
        speech_service_of(g->store)->protocol->read_voices(root, a, &voices);
    else if (ears_service_of(g->store)->protocol->read(root, a, &heard, NULL) < 0)
        fail_msg("%s: no transcript", g->name);
}

/* A text holds no NUL: each ~ becomes one. */
static void read_wav(struct arena *a, struct slice text, const struct growing *g)
{
    struct speech_pcm sound = { { NULL, 0 }, 0 };
    char *bytes = arena_slicedup(a, text);

    for (size_t i = 0; i < text.n; i++)
        if (bytes[i] == '~')
            bytes[i] = '\0';
    assert_int_equal(speech_wav_read((struct slice){ bytes, text.n }, a, &sound, NULL), -EBADMSG); /* without sound */
}

static void answers_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "voices", 2000, "{\"voices\":[", "\"voice-%\"", NULL, "]}", read_answer, .store = "kokoro", .op = 'v' },
        { "voices of ElevenLabs", 2000, "{\"voices\":[", "{\"voice_id\":\"v%\",\"name\":\"Voice %\"}", NULL, "]}",
          read_answer, .store = "elevenlabs", .op = 'v' },
        { "languages of Deepgram's voices", 500, "{\"tts\":[",
          "{\"canonical_name\":\"v%\",\"languages\":[\"en\",\"de\",\"fr\",\"es\"]}", NULL, "]}", read_answer,
          .store = "deepgram", .op = 'v' },
        { "voices of Azure", 1000, "[", "{\"ShortName\":\"v%\",\"Locale\":\"de-DE\"}", NULL, "]", read_answer,
          .store = "azure-speech", .op = 'v' },
        { "voices of Piper", 1000, "{", "\"v%\":{\"audio\":{}}", NULL, "}", read_answer, .store = "piper", .op = 'v' },
        { "segments", 500, "{\"text\":\"\",\"segments\":[", "{\"text\":\"a %\",\"start\":%,\"end\":%}", NULL, "]}",
          read_answer, .store = "openai", .op = 't' },
        { "words", 500, "{\"text\":\"a\",\"words\":[", "{\"word\":\"a%\",\"start\":%,\"end\":%}", NULL, "]}",
          read_answer, .store = "openai", .op = 't' },
        { "utterances", 500, "{\"results\":{\"utterances\":[",
          "{\"transcript\":\"a %\",\"start\":%,\"words\":[{\"word\":\"a\"},{\"word\":\"b\"}]}", NULL, "]}}",
          read_answer, .store = "deepgram", .op = 't' },
        { "chunks of a WAV", 20000, "RIFF....WAVE", "LIST~~~~", "", "", read_wav },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(answers_grow_with_their_length) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
