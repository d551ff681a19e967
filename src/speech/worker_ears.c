/* The worker that hears: takes one recording, or sound while it comes, and answers with what was said in it
 * (ears_frames.h), then ends. */
#include "speech/ears_frames.h"
#include "speech/segments.h"
#include "speech/worker_containers.h"
#include "speech/worker_limits.h"
#include "speech/worker_live.h"
#include "speech/worker_pipe.h"
#include "speech/worker_recognizer.h"
#include "speech/worker_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUESS_SAMPLES = EARS_RATE * 3 / 10 }; /* between two guesses */

/* One thread, one recording. */
static struct {
    struct segments segments;
    struct worker_recording recording;
    const struct worker_reader *reader;
    uint64_t first; /* sample of the segment at work */
    const char *failure;
    struct worker_live live;
    size_t n_guessed; /* samples of the segment that goes on */
    char guess[LIMIT_SPEECH_GUESS];
} ears;

static uint32_t ms_of(uint64_t sample)
{
    return (uint32_t)(sample * 1000 / EARS_RATE);
}

/* Sends a head and a text in one frame. */
static bool send_with_text(uint32_t kind, const void *head, size_t n_head, const char *text)
{
    char bytes[512];
    size_t n_text = strnlen(text, sizeof(bytes) - n_head);

    memcpy(bytes, head, n_head);
    memcpy(bytes + n_head, text, n_text);
    return worker_send(kind, bytes, n_head + n_text);
}

static bool send_failure(const char *why)
{
    return worker_send(SPEECH_FRAME_FAILED, why, strlen(why));
}

static bool send_refusal(enum ears_refusal why, const char *text)
{
    const struct ears_frame_refused refused = { why };

    return send_with_text(EARS_FRAME_REFUSED, &refused, sizeof(refused), text);
}

/* ---- segments ---- */

static bool send_word(void *arg, const struct recognizer_word *word)
{
    uint32_t from = ms_of(ears.first);
    const struct ears_frame_word head = { from + word->start_ms, from + word->end_ms,
                                          (uint32_t)(word->confidence * 1000 + 0.5) };

    return send_with_text(EARS_FRAME_WORD, &head, sizeof(head), word->text);
}

static int hear_segment(void *arg, const int16_t *samples, size_t n, uint64_t first)
{
    const struct ears_frame_segment segment = { ms_of(first), ms_of(first + n) };

    ears.first = first;
    ears.n_guessed = 0;
    ears.failure = recognizer_hear(samples, n, send_word, NULL);
    return ears.failure || !worker_send(EARS_FRAME_SEGMENT, &segment, sizeof(segment)) ? -1 : 0;
}

/* ---- live sound ---- */

/* A guess is sent when it has changed; one that is too long is not. */
static int send_guess(const char *guess)
{
    size_t n = strnlen(guess, sizeof(ears.guess));

    if (n == sizeof(ears.guess) || strcmp(guess, ears.guess) == 0)
        return 0;
    memcpy(ears.guess, guess, n + 1);
    return worker_send(EARS_FRAME_GUESS, guess, n) ? 0 : -1;
}

static int guess_segment(void *arg, const int16_t *samples, size_t n)
{
    size_t from = ears.n_guessed;

    if (n - from < GUESS_SAMPLES)
        return 0;
    if (from == 0)
        *ears.guess = '\0';
    ears.n_guessed = n;
    return send_guess(recognizer_guess(samples + from, n - from, from == 0));
}

/* 0: another frame may follow; 1: the end; below 0: the protocol is broken, or the engine failed. */
static int take_sound(void)
{
    static int16_t samples[LIMIT_SPEECH_FRAME / sizeof(int16_t)];
    struct speech_frame frame;

    if (!worker_read(&frame, sizeof(frame)) || frame.n_bytes > sizeof(samples) || frame.n_bytes % sizeof(*samples) ||
        !worker_read(samples, frame.n_bytes))
        return -1;
    if (frame.kind == EARS_FRAME_END)
        return worker_live_end(&ears.live, &ears.segments) < 0 || segments_end(&ears.segments) < 0 ? -1 : 1;
    if (frame.kind != EARS_FRAME_SOUND)
        return -1;
    return worker_live_add(&ears.live, samples, frame.n_bytes / sizeof(*samples), &ears.segments);
}

static bool hear_live(uint32_t rate, bool guesses)
{
    const struct ears_frame_opened opened = { rate, 1 };
    struct ears_frame_done done;
    int r = worker_live_open(&ears.live, rate) ? 0 : -1;

    segments_init(&ears.segments, hear_segment, NULL);
    ears.segments.grows = guesses ? guess_segment : NULL;
    if (r < 0 || !worker_send(EARS_FRAME_OPENED, &opened, sizeof(opened)))
        return false;
    while (r == 0 && worker_live_seconds(&ears.live) <= LIMIT_SPEECH_RECORDING_S)
        r = take_sound();
    if (r == 0)
        return send_refusal(EARS_TOO_LONG, "is longer than two hours.");
    if (r < 0)
        return ears.failure && send_failure(ears.failure);
    done.duration_ms = (uint32_t)(worker_live_seconds(&ears.live) * 1000 + 0.5);
    return worker_send(EARS_FRAME_DONE, &done, sizeof(done));
}

/* ---- the recording ---- */

static bool is_too_long(void)
{
    return worker_recording_seconds(&ears.recording) > LIMIT_SPEECH_RECORDING_S;
}

static bool hear_samples(void)
{
    int16_t samples[RECORDING_BLOCK];
    struct ears_frame_done done;
    size_t n;
    int r = 0;

    while (r >= 0 && !is_too_long() && (n = worker_recording_read(&ears.recording, samples)) > 0)
        r = segments_add(&ears.segments, samples, n);
    if (is_too_long())
        return send_refusal(EARS_TOO_LONG, "is longer than two hours.");
    if (r >= 0)
        r = segments_end(&ears.segments);
    if (r < 0)
        return ears.failure && send_failure(ears.failure);
    done.duration_ms = (uint32_t)(worker_recording_seconds(&ears.recording) * 1000 + 0.5);
    return worker_send(EARS_FRAME_DONE, &done, sizeof(done));
}

static bool hear(const char *bytes, size_t n)
{
    const char *why = worker_recording_open(&ears.recording, ears.reader, bytes, n);
    const struct ears_frame_opened opened = { ears.recording.info.rate, ears.recording.info.n_channels };
    bool is_sent;

    if (why) {
        is_sent = send_refusal(EARS_UNREADABLE, why);
    } else {
        segments_init(&ears.segments, hear_segment, NULL);
        is_sent = worker_send(EARS_FRAME_OPENED, &opened, sizeof(opened)) && hear_samples();
    }
    worker_recording_close(&ears.recording);
    return is_sent;
}

static const char *expect(enum ears_phrases kind, char *phrases)
{
    return kind == EARS_WORD_LIST ? recognizer_expect_list(phrases)
           : kind == EARS_GRAMMAR ? recognizer_expect_grammar(phrases)
                                  : NULL;
}

static bool serve(const struct ears_frame_start *start, char *bytes)
{
    char *phrases = strndup(bytes, start->n_phrases);
    const char *why = phrases ? expect((enum ears_phrases)start->phrases, phrases) : "is too long.";
    bool is_sent;

    free(phrases);
    is_sent = why           ? send_refusal(EARS_BAD_PHRASES, why)
              : start->rate ? hear_live(start->rate, start->guesses)
                            : hear(bytes + start->n_phrases, start->n_recording);
    return is_sent;
}

/* False: the frame breaks the protocol, or the service has gone. */
static bool take_start(void)
{
    struct speech_frame frame;
    struct ears_frame_start start;
    char *bytes;
    bool is_served;

    if (!worker_read(&frame, sizeof(frame)) || frame.kind != EARS_FRAME_START || frame.n_bytes != sizeof(start) ||
        !worker_read(&start, sizeof(start)) || start.phrases >= N_EARS_PHRASES ||
        start.n_phrases > LIMIT_SPEECH_PHRASES * (LIMIT_SPEECH_PHRASE + 1) || start.n_recording > LIMIT_SPEECH_UPLOAD ||
        (start.rate && (start.rate < SPEECH_RATE_MIN || start.rate > SPEECH_RATE_MAX)))
        return false;
    bytes = malloc((size_t)start.n_phrases + start.n_recording + 1);
    is_served = bytes && worker_read(bytes, (size_t)start.n_phrases + start.n_recording) && serve(&start, bytes);
    free(bytes);
    return is_served;
}

/* Everything is loaded here: afterwards no file is opened. */
static const char *start(char **args)
{
    bool has_container = args[0] && strcmp(args[0], EARS_CONTAINERS) == 0;
    const char *why = worker_limit() ? NULL : "The worker cannot limit itself.";

    ears.reader = &worker_sndfile;
    if (!why && has_container)
        why = worker_containers_load(&ears.reader);
    if (!why)
        why = recognizer_start(args + has_container);
    return why || worker_refuse_calls(true) ? why : "The worker cannot limit itself.";
}

int main(int argc, char **argv)
{
    struct speech_frame_hello hello = { SPEECH_FRAMES_VERSION, "" };
    const char *why = start(argv + (argc > 0));

    snprintf(hello.engine, sizeof(hello.engine), "%s", recognizer_name());
    if (why || !worker_send(SPEECH_FRAME_HELLO, &hello, sizeof(hello)))
        return why ? !send_failure(why) : 1;
    return !take_start();
}
