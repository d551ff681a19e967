/* The speech worker: reads requests from standard input and answers on standard output (worker_frames.h), one sentence
 * at a time. Built once for each engine; the hearth program links none of the engines. Its limits are its own: no
 * network, no other programs, no file written, LIMIT_SPEECH_WORKER_MB of address space. */
#include "speech/worker_frames.h"
#include "speech/worker_limits.h"
#include "speech/worker_output.h"
#include "speech/worker_pipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- frames ---- */

bool worker_send_audio(const void *bytes, size_t n)
{
    const char *at = bytes;

    for (size_t n_part; n > 0; at += n_part, n -= n_part) {
        n_part = n < LIMIT_SPEECH_FRAME ? n : LIMIT_SPEECH_FRAME;
        if (!worker_send(SPEECH_FRAME_AUDIO, at, n_part))
            return false;
    }
    return true;
}

static bool send_failure(const char *why)
{
    return worker_send(SPEECH_FRAME_FAILED, why, strlen(why));
}

/* ---- requests ---- */

static const char *send_mp3(const struct worker_samples *s, bool *ret_is_sent)
{
    struct worker_encoder *encoder = worker_encoder_new(s->rate);
    const char *why = encoder ? NULL : "The sentence cannot be encoded as MP3.";

    for (int i = 0; i < 2 && !why && *ret_is_sent; i++) { /* the samples, and the end */
        const unsigned char *bytes;
        size_t n;

        why = worker_encoder_add(encoder, i == 0 ? s->items : NULL, s->n, &bytes, &n);
        *ret_is_sent = why || worker_send_audio(bytes, n);
    }
    worker_encoder_free(encoder);
    return why;
}

static const char *send_as(enum speech_format format, const struct worker_samples *s, bool *ret_is_sent)
{
    if (format == SPEECH_MP3)
        return send_mp3(s, ret_is_sent);
    *ret_is_sent = worker_send_audio(s->items, s->n * sizeof(*s->items));
    return NULL;
}

static bool say(enum speech_format format, const struct worker_sentence *sentence)
{
    struct worker_samples samples = { 0 };
    struct speech_frame_done done;
    int32_t loudness = SPEECH_LOUDNESS_UNKNOWN;
    bool is_sent = true;
    const char *why = worker_engine.say(sentence, &samples);

    if (!why && samples.n == 0)
        why = "The engine gave no sound for this sentence.";
    if (!why) {
        loudness = worker_level(&samples, sentence->voice);
        why = send_as(format, &samples, &is_sent);
    }
    done = (struct speech_frame_done){ (uint32_t)samples.rate, (uint32_t)samples.n, loudness };
    free(samples.items);
    return is_sent && (why ? send_failure(why) : worker_send(SPEECH_FRAME_DONE, &done, sizeof(done)));
}

/* False: the frame breaks the protocol, or the service has gone. */
static bool take_say(const char *bytes, size_t n)
{
    struct speech_frame_say head;
    char voice[LIMIT_SPEECH_VOICE + 1] = "";
    char *text;
    bool goes_on;

    if (n < sizeof(head))
        return false;
    memcpy(&head, bytes, sizeof(head));
    n -= sizeof(head);
    if (head.n_voice > LIMIT_SPEECH_VOICE || head.n_voice > n || head.n_text != n - head.n_voice ||
        head.format >= N_SPEECH_FORMATS || head.speed_permille < 500 || head.speed_permille > 2000)
        return false;
    memcpy(voice, bytes + sizeof(head), head.n_voice);
    text = strndup(bytes + sizeof(head) + head.n_voice, head.n_text);
    goes_on = text && say((enum speech_format)head.format,
                          &(struct worker_sentence){ text, voice, head.speed_permille / 1000.0 });
    free(text);
    return goes_on;
}

static bool has_failed; /* of a list: the service has gone */

static void add_voice(const char *voice)
{
    char line[LIMIT_SPEECH_VOICE + 2];
    size_t n = strlen(voice);

    if (n > LIMIT_SPEECH_VOICE || has_failed)
        return;
    memcpy(line, voice, n);
    line[n] = '\n';
    has_failed = !worker_send(SPEECH_FRAME_VOICES, line, n + 1);
}

static bool take_list(void)
{
    const struct speech_frame_done none = { SPEECH_RATE_MIN, 0, SPEECH_LOUDNESS_UNKNOWN };

    worker_engine.list(add_voice);
    return !has_failed && worker_send(SPEECH_FRAME_DONE, &none, sizeof(none));
}

static bool send_hello(void)
{
    struct speech_frame_hello hello = { SPEECH_FRAMES_VERSION, "" };

    snprintf(hello.engine, sizeof(hello.engine), "%s", worker_engine.version());
    return worker_send(SPEECH_FRAME_HELLO, &hello, sizeof(hello));
}

static bool take_frame(uint32_t kind, const char *bytes, size_t n)
{
    if (kind == SPEECH_FRAME_SAY)
        return take_say(bytes, n);
    if (kind == SPEECH_FRAME_LIST)
        return take_list();
    return worker_engine.take && worker_engine.take(kind, bytes, n);
}

int main(void)
{
    static char bytes[LIMIT_SPEECH_FRAME];
    struct speech_frame frame;
    const char *why = worker_limit() ? worker_engine.start() : "The worker cannot limit itself.";
    bool goes_on = true;

    if (!why && !worker_refuse_calls(false))
        why = "The worker cannot limit itself.";
    if (why || !send_hello())
        return why ? !send_failure(why) : 1;
    worker_widen_pipe();
    while (goes_on && worker_read(&frame, sizeof(frame)) && frame.n_bytes <= sizeof(bytes) &&
           worker_read(bytes, frame.n_bytes))
        goes_on = take_frame(frame.kind, bytes, frame.n_bytes);
    return !goes_on;
}
