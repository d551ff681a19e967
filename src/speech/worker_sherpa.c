/* sherpa-onnx: a library and a model that a person has put into the data folder. Its interface takes a struct whose
 * beginning is declared here; that beginning belongs to version 1.13, so no other version is used. */
#include "speech/ears_frames.h"
#include "speech/worker_library.h"
#include "speech/worker_recognizer.h"
#include "speech/worker_sherpa_words.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION "1.13."

/* SherpaOnnxOfflineRecognizerConfig up to the model of SenseVoice; what follows is 0, which means the default. */
struct sherpa_config {
    int32_t rate, n_features;
    struct {
        const char *encoder, *decoder, *joiner;
    } transducer;
    const char *paraformer, *nemo_ctc;
    struct {
        const char *encoder, *decoder, *language, *task;
        int32_t tail_paddings, has_token_times, has_segment_times;
    } whisper;
    const char *tdnn, *tokens;
    int32_t n_threads, debug;
    const char *provider, *model_type, *modeling_unit, *bpe_vocabulary, *telespeech_ctc;
    struct {
        const char *model, *language;
        int32_t has_punctuation;
    } sense_voice;
    char rest[8192];
};

static struct {
    const char *(*version)(void);
    void *(*new_recognizer)(const struct sherpa_config *config);
    void *(*new_stream)(void *recognizer);
    void (*accept)(void *stream, int32_t rate, const float *samples, int32_t n);
    void (*decode)(void *recognizer, void *stream);
    const struct sherpa_heard *(*result)(void *stream);
    void (*free_result)(const struct sherpa_heard *result);
    void (*free_stream)(void *stream);
    void *recognizer; /* lives as long as the worker */
} sherpa;

static const struct worker_function functions[] = {
    { "SherpaOnnxGetVersionStr", &sherpa.version },
    { "SherpaOnnxCreateOfflineRecognizer", &sherpa.new_recognizer },
    { "SherpaOnnxCreateOfflineStream", &sherpa.new_stream },
    { "SherpaOnnxAcceptWaveformOffline", &sherpa.accept },
    { "SherpaOnnxDecodeOfflineStream", &sherpa.decode },
    { "SherpaOnnxGetOfflineStreamResult", &sherpa.result },
    { "SherpaOnnxDestroyOfflineRecognizerResult", &sherpa.free_result },
    { "SherpaOnnxDestroyOfflineStream", &sherpa.free_stream },
};

static struct sherpa_config config;
static char sentence[400];
static float floats[EARS_SEGMENT_S * EARS_RATE];

const char *recognizer_name(void)
{
    return "sherpa-onnx";
}

static const char *load(const char *path)
{
    const char *why = worker_library_load(path, functions, sizeof(functions) / sizeof(functions[0]));

    if (why || strncmp(sherpa.version(), VERSION, strlen(VERSION)) == 0)
        return why;
    snprintf(sentence, sizeof(sentence), "The library is version %.20s; " VERSION "x is needed.", sherpa.version());
    return sentence;
}

/* ---- the model ---- */

/* The file of that name in the folder, its small form first; NULL: none. Lives as long as the worker. */
static const char *find(const char *folder, const char *pattern)
{
    char *found = NULL;
    bool is_small = false;
    DIR *dir = opendir(folder);

    for (struct dirent *at = dir ? readdir(dir) : NULL; at; at = readdir(dir)) {
        if (fnmatch(pattern, at->d_name, 0) != 0 || (found && is_small))
            continue;
        is_small = strstr(at->d_name, "int8") != NULL;
        if (found && !is_small)
            continue;
        free(found);
        if (asprintf(&found, "%s/%s", folder, at->d_name) < 0)
            found = NULL;
    }
    if (dir)
        closedir(dir);
    return found;
}

/* One file, whose kind the name of its folder says. */
static bool take_single(const char *folder, const char *name)
{
    const char *model = find(folder, "*model*.onnx");

    if (strstr(name, "sense-voice"))
        config.sense_voice.model = model;
    else if (strstr(name, "paraformer"))
        config.paraformer = model;
    else if (strstr(name, "nemo") || strstr(name, "ctc"))
        config.nemo_ctc = model;
    else
        return false;
    return model != NULL;
}

static bool take_model(const char *folder)
{
    const char *encoder = find(folder, "*encoder*.onnx"), *decoder = find(folder, "*decoder*.onnx"),
               *joiner = find(folder, "*joiner*.onnx"), *slash = strrchr(folder, '/');

    config.tokens = find(folder, "*tokens.txt");
    if (encoder && decoder && joiner) {
        config.transducer.encoder = encoder;
        config.transducer.decoder = decoder;
        config.transducer.joiner = joiner;
    } else if (encoder && decoder) {
        config.whisper.encoder = encoder;
        config.whisper.decoder = decoder;
    } else if (!take_single(folder, slash ? slash + 1 : folder)) {
        return false;
    }
    return config.tokens != NULL;
}

/* args: the library, the folder of the model. */
const char *recognizer_start(char **args)
{
    const char *why = args[0] && args[1] ? load(args[0]) : "The worker needs a library and a model.";

    if (why)
        return why;
    config.rate = EARS_RATE;
    config.n_features = 80;
    config.n_threads = 1;
    config.provider = "cpu";
    sherpa.recognizer = take_model(args[1]) ? sherpa.new_recognizer(&config) : NULL;
    if (sherpa.recognizer)
        return NULL;
    snprintf(sentence, sizeof(sentence),
             "sherpa-onnx cannot load the model in %.200s: it is damaged, or no transducer, Whisper, SenseVoice, "
             "Paraformer or CTC model.",
             args[1]);
    return sentence;
}

const char *recognizer_expect_list(char *list)
{
    return "must be absent: sherpa-onnx takes none.";
}

const char *recognizer_expect_grammar(const char *jsgf)
{
    return "must be absent: sherpa-onnx takes none.";
}

/* These models hear whole segments only. */
const char *recognizer_guess(const int16_t *samples, size_t n, bool is_first)
{
    return "";
}

const char *recognizer_hear(const int16_t *samples, size_t n,
                            bool (*add)(void *arg, const struct recognizer_word *word), void *arg)
{
    void *stream = sherpa.new_stream(sherpa.recognizer);
    const struct sherpa_heard *heard;
    bool is_read;

    if (!stream || n > sizeof(floats) / sizeof(floats[0]))
        return "sherpa-onnx cannot hear this.";
    for (size_t i = 0; i < n; i++)
        floats[i] = (float)samples[i] / 32768;
    sherpa.accept(stream, EARS_RATE, floats, (int32_t)n);
    sherpa.decode(sherpa.recognizer, stream);
    heard = sherpa.result(stream);
    is_read = sherpa_words(heard, (uint32_t)(n * 1000 / EARS_RATE), add, arg);
    if (heard)
        sherpa.free_result(heard);
    sherpa.free_stream(stream);
    return is_read ? NULL : "sherpa-onnx gave no result.";
}
