/* The first byte chooses: a WAV, a list of voices, a transcript of a provider of speech, or the end of a model of
 * sherpa-onnx. Samples are whole, voices can be sent, times lie within a recording, speakers can be listed. */
#include "speech/ears_services.h"
#include "speech/programs_sherpa.h"
#include "speech/remote.h"

#include "base/limits.h"
#include "speech/worker_frames.h"

#include <assert.h>

static void read_wav(struct slice bytes, struct arena *a)
{
    struct speech_pcm sound = { { NULL, 0 }, 0 };

    if (speech_wav_read(bytes, a, &sound, NULL) < 0)
        return;
    assert(sound.samples.n >= 2 && sound.samples.n % 2 == 0 && sound.samples.n <= bytes.n);
    assert(sound.rate >= SPEECH_RATE_MIN && sound.rate <= SPEECH_RATE_MAX);
}

static void read_voices(const struct speech_protocol *protocol, struct json_value root, struct arena *a)
{
    struct speech_voice_list list = { NULL, 0 };

    protocol->read_voices(root, a, &list);
    assert(list.n <= LIMIT_SPEECH_VOICES);
    for (size_t i = 0; i < list.n; i++)
        assert(speech_voice_is_name(slice_of(list.items[i].id)) && list.items[i].name && list.items[i].language);
}

static void read_transcript(const struct ears_protocol *protocol, struct json_value root, struct arena *a)
{
    struct ears_heard heard = { NULL, 0, 0 };

    if (protocol->read(root, a, &heard, NULL) < 0)
        return;
    for (size_t i = 0; i < heard.n; i++) {
        const struct heard_segment *s = &heard.segments[i];

        assert(*s->text && s->start >= 0 && s->end >= s->start && s->end <= LIMIT_SPEECH_RECORDING_S);
        for (size_t k = 0; k < s->n_words; k++)
            assert(*s->words[k].text && s->words[k].start >= 0 && s->words[k].end >= s->words[k].start &&
                   s->words[k].end <= LIMIT_SPEECH_RECORDING_S && s->words[k].confidence >= 0 &&
                   s->words[k].confidence <= 1);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    static const struct speech_protocol *const voices[] = { &speech_openai, &speech_elevenlabs, &speech_deepgram,
                                                            &speech_azure, &speech_piper };
    static const struct ears_protocol *const ears[] = { &ears_openai, &ears_deepgram };
    const struct slice rest = { (const char *)data + 1, n - 1 };
    struct json_value root = { 0 };
    struct arena *a;

    if (n < 1 || n > 4096)
        return 0;
    a = arena_new();
    if (data[0] == 255)
        assert(speech_sherpa_speakers(rest) >= 1 && speech_sherpa_speakers(rest) <= LIMIT_SPEECH_VOICES);
    else if (data[0] < 64)
        read_wav(rest, a);
    else if (json_parse(a, rest, &root, NULL) == 0 && data[0] < 160)
        read_voices(voices[data[0] % ARRAY_SIZE(voices)], root, a);
    else if (root.doc)
        read_transcript(ears[data[0] % ARRAY_SIZE(ears)], root, a);
    arena_free(a);
    return 0;
}
