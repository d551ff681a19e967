#include "speech/microphone.h"

#include "base/limits.h"
#include "speech/ears_private.h"
#include "speech/ears_worker.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

/* Where ALSA, PulseAudio and PipeWire look for their configuration and their servers. */
static const char *const variables[] = { "ALSA_CONFIG_PATH",
                                         "ALSA_CONFIG_DIR",
                                         "ALSA_CARD",
                                         "PULSE_SERVER",
                                         "PULSE_SOURCE",
                                         "PULSE_COOKIE",
                                         "PULSE_RUNTIME_PATH",
                                         "PULSE_CLIENTCONFIG",
                                         "PULSE_LATENCY_MSEC",
                                         "PIPEWIRE_REMOTE",
                                         "PIPEWIRE_RUNTIME_DIR",
                                         "XDG_CONFIG_HOME",
                                         NULL };

static const struct speech_engine alsa = {
    .id = "microphone",
    .name = "Microphone (ALSA)",
    .program = "hearth-speech-microphone",
    .packages = "libasound2 libasound2-plugins",
    .variables = variables,
};

/* ---- the worker ---- */

/* Without its program or its library there is no microphone. */
static int explain(int r, const struct err *why, struct err *e)
{
    if (r == -ENODEV)
        return err_set(e, r, "NO_AUDIO_DEVICE", "%s", why->text);
    return err_set(e, r, why->code, "%s", why->text);
}

static int start_worker(struct microphone *m, const struct net_wait *wait, struct err *e)
{
    struct err why;
    int r;

    err_init(&why);
    r = ears_worker_start(ears_context_of(m->ears), &alsa, wait, &m->worker, &why);
    return r < 0 ? explain(r, &why, e) : 0;
}

/* The pipe is empty and takes the whole request. */
static int send_request(struct microphone *m, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *device = settings_string(ears_context_of(m->ears)->settings, a, SETTING_SPEECH_MICROPHONE);
    const struct ears_frame_record record = { m->max_ms };
    const struct speech_frame frame = { EARS_FRAME_RECORD, (uint32_t)(sizeof(record) + strlen(device)) };
    struct buf bytes;
    ssize_t n;

    buf_init(&bytes, sizeof(frame) + sizeof(record) + LIMIT_SPEECH_DEVICE);
    buf_add(&bytes, &frame, sizeof(frame));
    buf_add(&bytes, &record, sizeof(record));
    buf_add_str(&bytes, device);
    n = write(speech_worker_ends(m->worker).stdin_fd, bytes.p, bytes.n);
    buf_clear(&bytes);
    return n > 0 ? 0 : err_set(e, -EIO, "SPEECH_FAILED", "The worker of the microphone ended.");
}

static int await_open(struct microphone *m, const struct net_wait *wait, struct err *e)
{
    struct ears_event event;
    int r = 0;

    while (r == 0) {
        r = ears_answer_next(m->answer, &event, e);
        if (r == 0)
            r = net_wait_fd(wait, speech_worker_ends(m->worker).stdout_fd, POLLIN, e);
        else if (r == 1)
            return 0;
        if (r == 0)
            r = ears_worker_receive(m->worker, m->answer, e);
    }
    return r == -ETIMEDOUT ? err_set(e, -ENODEV, "NO_AUDIO_DEVICE", "The microphone did not open within %d s.",
                                     LIMIT_SPEECH_SENTENCE_MS / 1000)
                           : r;
}

/* ---- the source ---- */

static void stop(struct microphone *m)
{
    m->worker = speech_worker_stop(m->worker);
    ears_answer_clear(m->answer);
    free(m->answer);
    m->answer = NULL;
}

static int open_microphone(void *arg, const struct net_wait *wait, struct err *e)
{
    struct microphone *m = arg;
    int r;

    m->answer = xcalloc(1, sizeof(*m->answer));
    ears_answer_init(m->answer);
    r = start_worker(m, wait, e);
    if (r == 0)
        r = send_request(m, e);
    if (r == 0)
        r = await_open(m, wait, e);
    if (r < 0)
        stop(m);
    else if (m->on_change)
        m->on_change(m->arg, true);
    return r;
}

static int take_samples(void *arg, struct slice *ret, struct err *e)
{
    struct microphone *m = arg;
    struct ears_event event;
    struct pollfd fd = { .fd = speech_worker_ends(m->worker).stdout_fd, .events = POLLIN };
    int r = ears_answer_next(m->answer, &event, e);

    if (r == 0 && poll(&fd, 1, 0) > 0) {
        r = ears_worker_receive(m->worker, m->answer, e);
        if (r == 0)
            r = ears_answer_next(m->answer, &event, e);
    }
    if (r <= 0)
        return r;
    *ret = event.word;
    return event.kind == EARS_SOUND ? SOUND_SAMPLES
           : event.kind == EARS_DONE
               ? SOUND_END
               : err_set(e, -EIO, "SPEECH_FAILED", "The worker of the microphone broke its protocol.");
}

static int fd_of(void *arg)
{
    return speech_worker_ends(((struct microphone *)arg)->worker).stdout_fd;
}

static void close_microphone(void *arg)
{
    struct microphone *m = arg;

    stop(m);
    if (m->on_change)
        m->on_change(m->arg, false);
}

struct sound_source microphone_source(struct microphone *m, int64_t max_ms, void (*on_change)(void *arg, bool is_open),
                                      void *arg)
{
    m->max_ms = (uint32_t)max_ms;
    m->on_change = on_change;
    m->arg = arg;
    return (struct sound_source){ open_microphone, take_samples, fd_of, close_microphone, m };
}

int microphone_take(struct microphone *m, struct ears *ears, struct err *e)
{
    *m = (struct microphone){ .ears = ears };
    return ears_take_microphone(ears)
               ? 0
               : err_set(e, -EBUSY, "MICROPHONE_BUSY", "Another request listens to the microphone; try again later.");
}

void microphone_give(struct microphone *m)
{
    ears_give_microphone(m->ears);
}

int microphone_check(struct ears *ears, struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_SPEECH_SENTENCE_MS, NULL, ears_context_of(ears)->is_leaving);
    struct microphone m;
    int r = microphone_take(&m, ears, e);

    if (r < 0)
        return r;
    r = open_microphone(&m, &wait, e);
    if (r == 0)
        stop(&m);
    microphone_give(&m);
    return r;
}
