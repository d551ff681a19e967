#include "speech/worker_vosk_result.h"

#include "base/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double hours_ms = LIMIT_SPEECH_RECORDING_S * 1000.0;

/* Behind `"name" :` within the object that ends at end; NULL: it has no such member. */
static const char *member(const char *object, const char *end, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = object; (at = memchr(at, '"', (size_t)(end - at))); at++) {
        if ((size_t)(end - at) <= n + 2 || strncmp(at + 1, name, n) != 0 || at[n + 1] != '"')
            continue;
        at += n + 2;
        at += strspn(at, " \t\n");
        return *at == ':' ? at + 1 + strspn(at + 1, " \t\n") : NULL;
    }
    return NULL;
}

/* A finite number from 0 to most; false: none. */
static bool read_number(const char *at, double most, double *ret)
{
    char *end = NULL;
    double number = at ? strtod(at, &end) : NAN;

    if (!at || end == at || !isfinite(number))
        return false;
    *ret = fmax(0, fmin(most, number));
    return true;
}

/* A string without escapes: words have none. */
static bool read_word(const char *at, char ret[LIMIT_SPEECH_PHRASE])
{
    size_t n;

    if (!at || *at != '"')
        return false;
    n = strcspn(at + 1, "\"\\ \n");
    if (n == 0 || n >= LIMIT_SPEECH_PHRASE || at[1 + n] != '"')
        return false;
    memcpy(ret, at + 1, n);
    ret[n] = '\0';
    return true;
}

static bool read_object(const char *object, const char *end, char text[LIMIT_SPEECH_PHRASE],
                        struct recognizer_word *ret)
{
    double from, to, confidence;

    if (!read_word(member(object, end, "word"), text) || !read_number(member(object, end, "start"), hours_ms, &from) ||
        !read_number(member(object, end, "end"), hours_ms, &to) ||
        !read_number(member(object, end, "conf"), 1, &confidence) || to < from)
        return false;
    *ret = (struct recognizer_word){ text, (uint32_t)fmin(from * 1000, hours_ms), (uint32_t)fmin(to * 1000, hours_ms),
                                     confidence };
    return true;
}

void vosk_result_partial(const char *json, char *ret, size_t size)
{
    const char *at = json ? member(json, json + strlen(json), "partial") : NULL;
    size_t n;

    ret[0] = '\0';
    if (!at || *at != '"')
        return;
    at++;
    n = strcspn(at, "\"\\");
    for (n = n < size ? n : size - 1; n > 0 && !strchr("\"\\ ", at[n]);)
        n--;
    memcpy(ret, at, n);
    ret[n] = '\0';
}

bool vosk_result_words(const char *json, bool (*add)(void *arg, const struct recognizer_word *word), void *arg)
{
    const char *at = json ? json + strspn(json, " \t\n") : "", *end;
    char text[LIMIT_SPEECH_PHRASE];
    struct recognizer_word word;

    if (*at != '{')
        return false;
    for (at = strchr(at + 1, '{'); at; at = strchr(end, '{')) {
        end = strchr(at, '}');
        if (!end || !read_object(at, end, text, &word))
            return false;
        if (!add(arg, &word))
            break;
    }
    return true;
}
