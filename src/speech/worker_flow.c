#include "speech/worker_flow.h"

#include "speech/worker_frames.h"
#include "speech/worker_gain.h"
#include "speech/worker_output.h"
#include "speech/worker_pipe.h"
#include "speech/worker_speed.h"

#include <stdlib.h>
#include <string.h>

static struct {
    bool is_open;
    struct speech_frame_begin head;
    struct worker_speed *speed;     /* NULL: as it comes */
    struct worker_encoder *encoder; /* NULL: samples are sent */
    struct worker_gain *gain;
    struct worker_samples faster, level; /* of one frame: after the speed, after the gain */
    size_t n_samples;                    /* sent so far */
} flow;

bool worker_flow_is_open(void)
{
    return flow.is_open;
}

static void close_flow(void)
{
    worker_speed_free(flow.speed);
    worker_encoder_free(flow.encoder);
    worker_gain_free(flow.gain);
    free(flow.faster.items);
    free(flow.level.items);
    memset(&flow, 0, sizeof(flow));
}

static bool fail(const char *why)
{
    close_flow();
    (void)!worker_send(SPEECH_FRAME_FAILED, why, strlen(why));
    return false;
}

static bool begin(const char *bytes, size_t n)
{
    struct speech_frame_begin *head = &flow.head;

    if (flow.is_open || n != sizeof(*head))
        return false;
    memcpy(head, bytes, sizeof(*head));
    if (head->format >= N_SPEECH_FORMATS || head->speed_permille < 500 || head->speed_permille > 2000 ||
        head->rate < SPEECH_RATE_MIN || head->rate > SPEECH_RATE_MAX)
        return false;
    flow.gain = worker_gain_new((int)head->rate, head->loudness);
    if (head->speed_permille != 1000)
        flow.speed = worker_speed_new((int)head->rate, head->speed_permille / 1000.0);
    if (head->format == SPEECH_MP3)
        flow.encoder = worker_encoder_new((int)head->rate);
    if (!flow.gain || (head->speed_permille != 1000 && !flow.speed) || (head->format == SPEECH_MP3 && !flow.encoder))
        return fail("The sentence cannot begin.");
    flow.is_open = true;
    return worker_send(SPEECH_FRAME_TAKEN, NULL, 0);
}

/* items NULL: the end. NULL, or why not. */
static const char *send_mp3(const int16_t *items, size_t n, bool *ret_is_sent)
{
    const unsigned char *bytes;
    size_t n_bytes;
    const char *why = worker_encoder_add(flow.encoder, items, n, &bytes, &n_bytes);

    *ret_is_sent = why || worker_send_audio(bytes, n_bytes);
    return why;
}

/* Sends what the gain has made. NULL, or why not. */
static const char *send_level(bool is_end, bool *ret_is_sent)
{
    const char *why = NULL;

    flow.n_samples += flow.level.n;
    if (flow.n_samples > LIMIT_SPEECH_AUDIO / sizeof(int16_t))
        return "The sound is too long.";
    if (!flow.encoder)
        *ret_is_sent = worker_send_audio(flow.level.items, flow.level.n * sizeof(*flow.level.items));
    else if (flow.level.n > 0)
        why = send_mp3(flow.level.items, flow.level.n, ret_is_sent);
    if (flow.encoder && is_end && !why && *ret_is_sent)
        why = send_mp3(NULL, 0, ret_is_sent);
    return why;
}

static bool make_level(const int16_t *items, size_t n, bool is_end)
{
    flow.faster.n = flow.level.n = 0;
    if (flow.speed && !worker_speed_add(flow.speed, items, n, &flow.faster))
        return false;
    if (flow.speed && is_end && !worker_speed_end(flow.speed, &flow.faster))
        return false;
    if (flow.speed) {
        items = flow.faster.items;
        n = flow.faster.n;
    }
    return worker_gain_add(flow.gain, items, n, &flow.level) && (!is_end || worker_gain_end(flow.gain, &flow.level));
}

/* False: the service has gone, or it knows why. */
static bool change(const int16_t *items, size_t n, bool is_end)
{
    bool is_sent = true;
    const char *why = make_level(items, n, is_end) ? send_level(is_end, &is_sent) : "The sound is too long.";

    return why ? fail(why) : is_sent;
}

static bool add(const char *bytes, size_t n)
{
    int16_t items[LIMIT_SPEECH_FRAME / sizeof(int16_t)];

    if (n % sizeof(*items) != 0)
        return false;
    memcpy(items, bytes, n);
    return change(items, n / sizeof(*items), false) && worker_send(SPEECH_FRAME_TAKEN, NULL, 0);
}

static bool end(void)
{
    struct speech_frame_done done = { .rate = flow.head.rate };

    if (!change(NULL, 0, true))
        return false;
    if (flow.n_samples == 0)
        return fail("The engine gave no sound for this sentence.");
    done.n_samples = (uint32_t)flow.n_samples;
    done.loudness = worker_gain_loudness(flow.gain);
    close_flow();
    return worker_send(SPEECH_FRAME_DONE, &done, sizeof(done));
}

bool worker_flow_take(uint32_t kind, const char *bytes, size_t n)
{
    if (kind == SPEECH_FRAME_BEGIN)
        return begin(bytes, n);
    if (!flow.is_open)
        return false;
    return kind == SPEECH_FRAME_SAMPLES ? add(bytes, n) : kind == SPEECH_FRAME_END && n == 0 && end();
}
