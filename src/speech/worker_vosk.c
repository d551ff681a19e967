/* Vosk: a library and a model that a person has put into the data folder. The functions that are used, as its C
 * interface declares them (alphacephei.com/vosk), are looked up in the library. */
#include "speech/worker_library.h"
#include "speech/worker_recognizer.h"
#include "speech/worker_vosk_result.h"

#include "speech/ears_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One library, one model, one list of phrases; they live as long as the worker. */
static struct {
    void *(*model_new)(const char *path);
    void *(*recognizer_new)(void *model, float rate);
    void *(*recognizer_new_grm)(void *model, float rate, const char *phrases);
    void (*set_words)(void *recognizer, int has_words);
    int (*accept)(void *recognizer, const short *samples, int n);
    const char *(*partial_result)(void *recognizer);
    const char *(*final_result)(void *recognizer);
    void (*free_recognizer)(void *recognizer);
    void (*set_log_level)(int level);
    void *model;
    char *phrases;  /* JSON, or NULL: anything */
    void *guessing; /* a recognizer, or NULL */
} vosk;

static const struct worker_function functions[] = {
    { "vosk_model_new", &vosk.model_new },
    { "vosk_recognizer_new", &vosk.recognizer_new },
    { "vosk_recognizer_new_grm", &vosk.recognizer_new_grm },
    { "vosk_recognizer_set_words", &vosk.set_words },
    { "vosk_recognizer_accept_waveform_s", &vosk.accept },
    { "vosk_recognizer_partial_result", &vosk.partial_result },
    { "vosk_recognizer_final_result", &vosk.final_result },
    { "vosk_recognizer_free", &vosk.free_recognizer },
    { "vosk_set_log_level", &vosk.set_log_level },
};

static char sentence[400], guess[LIMIT_SPEECH_PHRASE * 4];

const char *recognizer_name(void)
{
    return "Vosk";
}

/* One for each segment, because its times go on from one result to the next. */
static void *new_recognizer(void)
{
    void *recognizer = vosk.phrases ? vosk.recognizer_new_grm(vosk.model, EARS_RATE, vosk.phrases)
                                    : vosk.recognizer_new(vosk.model, EARS_RATE);

    if (recognizer)
        vosk.set_words(recognizer, 1);
    return recognizer;
}

static bool can_hear(void)
{
    void *recognizer = new_recognizer();

    if (recognizer)
        vosk.free_recognizer(recognizer);
    return recognizer != NULL;
}

/* args: the library, the folder of the model. */
const char *recognizer_start(char **args)
{
    const char *why = args[0] && args[1]
                          ? worker_library_load(args[0], functions, sizeof(functions) / sizeof(functions[0]))
                          : "The worker needs a library and a model.";

    if (why)
        return why;
    vosk.set_log_level(-1);
    vosk.model = vosk.model_new(args[1]);
    if (vosk.model && can_hear())
        return NULL;
    snprintf(sentence, sizeof(sentence), "Vosk cannot load the model in %.200s: it is damaged, or no model of Vosk.",
             args[1]);
    return sentence;
}

/* ["open the door", "close the door"]; quotes and backslashes are no part of words. */
const char *recognizer_expect_list(char *list)
{
    char *json = malloc(strlen(list) * 4 + 16), *at = json, *rest = NULL;

    if (!json)
        return "is too long.";
    *at++ = '[';
    for (char *line = strtok_r(list, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        line += strspn(line, " \t\r");
        if (!*line)
            continue;
        at = stpcpy(at, at[-1] == '[' ? "\"" : ", \"");
        for (; *line && *line != '\r'; line++)
            if (*line != '"' && *line != '\\')
                *at++ = *line;
        *at++ = '"';
    }
    stpcpy(at, "]");
    vosk.phrases = json;
    return can_hear() ? NULL : "has words that the model does not know.";
}

const char *recognizer_expect_grammar(const char *jsgf)
{
    return "must be phrases: Vosk reads no grammar.";
}

static void stop_guessing(void)
{
    if (vosk.guessing)
        vosk.free_recognizer(vosk.guessing);
    vosk.guessing = NULL;
}

const char *recognizer_guess(const int16_t *samples, size_t n, bool is_first)
{
    if (is_first)
        stop_guessing();
    if (!vosk.guessing)
        vosk.guessing = new_recognizer();
    if (!vosk.guessing || vosk.accept(vosk.guessing, samples, (int)n) < 0)
        return "";
    vosk_result_partial(vosk.partial_result(vosk.guessing), guess, sizeof(guess));
    return guess;
}

const char *recognizer_hear(const int16_t *samples, size_t n,
                            bool (*add)(void *arg, const struct recognizer_word *word), void *arg)
{
    void *recognizer = new_recognizer();
    const char *why = NULL;

    stop_guessing();
    if (!recognizer || vosk.accept(recognizer, samples, (int)n) < 0)
        why = "Vosk cannot hear this.";
    else if (!vosk_result_words(vosk.final_result(recognizer), add, arg))
        why = "Vosk answered with what is no result.";
    if (recognizer)
        vosk.free_recognizer(recognizer);
    return why;
}
