/* The first byte chooses: a recording for libsndfile, or for ffmpeg's libraries where they are installed, or what Vosk
 * or sherpa-onnx says it heard. What a recording says of itself stays within the limits, blocks are never too long, and
 * a reader that refuses leaves nothing behind; words have text, and end after they begin. The libraries themselves are
 * not instrumented; ASan still sees what they do with our memory. */
#include "base/limits.h"
#include "base/slice.h"
#include "speech/ears_recording.h"
#include "speech/worker_recording.h"
#include "speech/worker_sherpa_words.h"
#include "speech/worker_vosk_result.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_MAX = 64 };

#ifdef HEARTH_HAS_CONTAINERS
extern const struct worker_reader hearth_containers;
#else
#define hearth_containers worker_sndfile
#endif

/* The worker ends after one recording, so what the libraries do not free of a damaged one does not matter. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libvorbis\nleak:libsndfile\nleak:libFLAC\nleak:libmpg123\nleak:libopus\nleak:libav\nleak:libswresample\n";
}

static void check_kind(struct slice bytes)
{
    assert(strlen(ears_recording_ending(bytes)) <= 5);
    assert((ears_recording_kind(bytes) == EARS_NO_RECORDING) == (strcmp(ears_recording_ending(bytes), "audio") == 0));
}

static bool check_word(void *arg, const struct recognizer_word *word)
{
    assert(*word->text && strlen(word->text) < LIMIT_SPEECH_PHRASE && !strchr(word->text, ' '));
    assert(word->start_ms <= word->end_ms && word->end_ms <= LIMIT_SPEECH_RECORDING_S * 1000);
    assert(word->confidence >= 0 && word->confidence <= 1);
    return true;
}

static void read_result(const unsigned char *data, size_t n)
{
    char *json = strndup((const char *)data, n), text[16];

    assert(json);
    (void)vosk_result_words(json, check_word, NULL);
    vosk_result_partial(json, text, sizeof(text));
    assert(strlen(text) < sizeof(text));
    free(json);
}

/* Each line is a token, its length the time; without a line the text alone. */
static void read_tokens(const unsigned char *data, size_t n)
{
    char *text = strndup((const char *)data, n), *whole = strndup((const char *)data, n), *rest = NULL;
    const char *tokens[64];
    float times[64];
    struct sherpa_heard heard = { whole, times, 0, whole, tokens };

    assert(text && whole);
    for (char *at = strtok_r(text, "\n", &rest); at && heard.n_tokens < 64; at = strtok_r(NULL, "\n", &rest)) {
        times[heard.n_tokens] = (float)strlen(at) - 1;
        tokens[heard.n_tokens++] = at;
    }
    assert(sherpa_words(&heard, 30000, check_word, NULL));
    heard.times = NULL;
    assert(sherpa_words(&heard, 30000, check_word, NULL));
    free(text);
    free(whole);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    static struct worker_recording recording;
    int16_t samples[RECORDING_BLOCK];
    const char *why;

    if (n < 1 || n > 65536)
        return 0;
    if (data[0] == 'V') {
        read_result(data + 1, n - 1);
        return 0;
    }
    check_kind((struct slice){ (const char *)data + 1, n - 1 });
    if (data[0] == 'S') {
        read_tokens(data + 1, n - 1);
        return 0;
    }
    why = worker_recording_open(&recording, data[0] % 2 ? &hearth_containers : &worker_sndfile, (const char *)data + 1,
                                n - 1);
    if (!why) {
        assert(recording.info.rate >= SOURCE_RATE_MIN && recording.info.rate <= SOURCE_RATE_MAX);
        assert(recording.info.n_channels >= 1 && recording.info.n_channels <= SOURCE_CHANNELS_MAX);
        for (int i = 0; i < BLOCKS_MAX; i++) {
            size_t n_read = worker_recording_read(&recording, samples);

            assert(n_read <= RECORDING_BLOCK);
            if (n_read == 0)
                break;
        }
        assert(worker_recording_seconds(&recording) >= 0);
    }
    worker_recording_close(&recording);
    return 0;
}
