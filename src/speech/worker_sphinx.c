/* PocketSphinx with Debian's English model. */
#include "speech/worker_recognizer.h"

#include "base/limits.h"

#include <ctype.h>
#include <pocketsphinx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODEL "/usr/share/pocketsphinx/model/en-us/"
#define SEARCH "phrases"

enum { FRAME_MS = 10 };

static ps_decoder_t *decoder; /* lives as long as the worker */
static char sentence[256];    /* about what is wrong */
static bool is_guessing;      /* an utterance is open */

const char *recognizer_name(void)
{
    return "PocketSphinx";
}

const char *recognizer_start(char **args)
{
    cmd_ln_t *config;

    if (access(MODEL "en-us.lm.bin", R_OK) != 0)
        return "The model of PocketSphinx is not installed.";
    config = cmd_ln_init(NULL, ps_args(), TRUE, "-hmm", MODEL "en-us", "-lm", MODEL "en-us.lm.bin", "-dict",
                         MODEL "cmudict-en-us.dict", "-logfn", "/dev/null", "-remove_silence", "no", NULL);
    decoder = config ? ps_init(config) : NULL;
    return decoder ? NULL : "PocketSphinx cannot load its model.";
}

static bool is_known(const char *word)
{
    char *found = ps_lookup_word(decoder, word);

    ckd_free(found);
    return found != NULL;
}

/* Adds one phrase to the grammar: lower case, single blanks. */
static const char *add_phrase(char **at, char *phrase)
{
    char *rest = NULL;

    for (char *p = phrase; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    for (char *word = strtok_r(phrase, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
        if (!is_known(word)) {
            snprintf(sentence, sizeof(sentence), "has the word \"%.100s\", which the engine does not know.", word);
            return sentence;
        }
        *at = stpcpy(stpcpy(*at, word), " ");
    }
    return NULL;
}

const char *recognizer_expect_list(char *list)
{
    static const char head[] = "#JSGF V1.0; grammar " SEARCH "; public <p> = ";
    char *grammar = malloc(sizeof(head) + 3 * strlen(list) + 4), *at, *rest = NULL;
    const char *why = NULL;

    if (!grammar)
        return "is too long.";
    at = stpcpy(grammar, head);
    for (char *line = strtok_r(list, "\n", &rest); line && !why; line = strtok_r(NULL, "\n", &rest)) {
        if (line[strspn(line, " \t\r")] == '\0')
            continue;
        if (at[-2] != '=')
            at = stpcpy(at, "| ");
        why = add_phrase(&at, line);
    }
    stpcpy(at, ";");
    if (!why)
        why = recognizer_expect_grammar(grammar);
    free(grammar);
    return why;
}

const char *recognizer_expect_grammar(const char *jsgf)
{
    if (ps_set_jsgf_string(decoder, SEARCH, jsgf) == 0 && ps_set_search(decoder, SEARCH) == 0)
        return NULL;
    return "is no grammar in JSGF, or has words that the engine does not know.";
}

/* Fillers such as <sil>, [NOISE] and ++NOISE++ are no words; "and(2)" is a second pronunciation of "and". */
static bool is_word(const char *text)
{
    return *text && !strchr("<[+(", *text);
}

static bool add_word(ps_seg_t *at, bool (*add)(void *arg, const struct recognizer_word *word), void *arg)
{
    char text[LIMIT_SPEECH_PHRASE];
    int from = 0, to = 0;
    int32 acoustic, language, backoff;
    int32 probability = ps_seg_prob(at, &acoustic, &language, &backoff);
    double confidence = logmath_exp(ps_get_logmath(decoder), probability);

    if (!is_word(ps_seg_word(at)))
        return true;
    snprintf(text, sizeof(text), "%s", ps_seg_word(at));
    text[strcspn(text, "(")] = '\0';
    ps_seg_frames(at, &from, &to);
    return add(arg, &(struct recognizer_word){ text, (uint32_t)from * FRAME_MS, ((uint32_t)to + 1) * FRAME_MS,
                                               confidence < 1 ? confidence : 1 });
}

/* The guess is heard as it comes, the segment once more as a whole: its levels are known by then. */
static void stop_guessing(void)
{
    if (is_guessing)
        ps_end_utt(decoder);
    is_guessing = false;
}

const char *recognizer_guess(const int16_t *samples, size_t n, bool is_first)
{
    const char *guess;
    int32 score;

    if (is_first)
        stop_guessing();
    if (!is_guessing && ps_start_utt(decoder) < 0)
        return "";
    is_guessing = true;
    if (ps_process_raw(decoder, samples, n, FALSE, FALSE) < 0)
        return "";
    guess = ps_get_hyp(decoder, &score);
    return guess ? guess : "";
}

const char *recognizer_hear(const int16_t *samples, size_t n,
                            bool (*add)(void *arg, const struct recognizer_word *word), void *arg)
{
    int32 score;
    bool goes_on = true;

    stop_guessing();
    if (ps_start_utt(decoder) < 0 || ps_process_raw(decoder, samples, n, FALSE, TRUE) < 0 || ps_end_utt(decoder) < 0)
        return "PocketSphinx cannot hear this.";
    if (!ps_get_hyp(decoder, &score))
        return NULL;
    for (ps_seg_t *at = ps_seg_iter(decoder); at; at = ps_seg_next(at)) {
        goes_on = goes_on && add_word(at, add, arg);
        if (!goes_on) {
            ps_seg_free(at);
            break;
        }
    }
    return NULL;
}
