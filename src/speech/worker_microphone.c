/* The worker of the microphone: opens one ALSA device, sends what it records (ears_frames.h), and ends. PulseAudio and
 * PipeWire are reached through ALSA's plugins. */
#include "speech/ears_frames.h"
#include "speech/worker_limits.h"
#include "speech/worker_pipe.h"

#include <alsa/asoundlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = EARS_RATE / 20, LATENCY_US = 500000 };

static bool send_failure(const char *why)
{
    return worker_send(SPEECH_FRAME_FAILED, why, strlen(why));
}

static bool refuse(const char *device, int r)
{
    char bytes[512];
    const struct ears_frame_refused why = { EARS_NO_DEVICE };
    int n;

    memcpy(bytes, &why, sizeof(why));
    n = snprintf(bytes + sizeof(why), sizeof(bytes) - sizeof(why), "ALSA says of \"%s\": %.80s.", device,
                 snd_strerror(r));
    return worker_send(EARS_FRAME_REFUSED, bytes, sizeof(why) + (size_t)n);
}

/* ---- the device ---- */

/* A device in use is no reason to wait: it is opened without waiting, and read with. */
static int open_as(snd_pcm_t **ret, const char *name)
{
    int r = snd_pcm_open(ret, name, SND_PCM_STREAM_CAPTURE, SND_PCM_NONBLOCK);

    if (r < 0)
        return r;
    r = snd_pcm_nonblock(*ret, 0);
    if (r == 0)
        r = snd_pcm_set_params(*ret, SND_PCM_FORMAT_S16_LE, SND_PCM_ACCESS_RW_INTERLEAVED, 1, EARS_RATE, 1, LATENCY_US);
    if (r < 0)
        snd_pcm_close(*ret);
    return r;
}

/* Hardware without this rate or this number of channels is converted by ALSA's plug. */
static int open_device(snd_pcm_t **ret, const char *name)
{
    char plug[LIMIT_SPEECH_DEVICE + 16];
    int r = open_as(ret, name), r_plug;

    if (r != -EINVAL)
        return r;
    snprintf(plug, sizeof(plug), "plug:'%s'", name);
    r_plug = open_as(ret, plug);
    return r_plug < 0 ? r : 0;
}

/* ---- recording ---- */

/* The number of samples; 0: the sound has ended. */
static snd_pcm_sframes_t read_block(snd_pcm_t *pcm, int16_t samples[BLOCK], size_t n_most)
{
    snd_pcm_sframes_t n = snd_pcm_readi(pcm, samples, n_most);

    if (n == -EPIPE || n == -ESTRPIPE || n == -EINTR) { /* samples were lost, or the machine slept */
        n = snd_pcm_recover(pcm, (int)n, 1);
        if (n == 0)
            n = snd_pcm_readi(pcm, samples, n_most);
    }
    return n;
}

static bool record(snd_pcm_t *pcm, const char *device, uint32_t max_ms)
{
    const struct ears_frame_opened opened = { EARS_RATE, 1 };
    uint64_t n_left = (uint64_t)max_ms * EARS_RATE / 1000, n_all = 0;
    int16_t samples[BLOCK] = { 0 }; /* ALSA's device `null` leaves them as they are */
    struct ears_frame_done done;
    snd_pcm_sframes_t n = 1;

    if (!worker_send(EARS_FRAME_OPENED, &opened, sizeof(opened)))
        return false;
    while (n > 0 && n_left > 0) {
        n = read_block(pcm, samples, n_left < BLOCK ? n_left : BLOCK);
        if (n < 0)
            return refuse(device, (int)n);
        if (n > 0 && !worker_send(EARS_FRAME_SOUND, samples, (size_t)n * sizeof(*samples)))
            return false;
        n_left -= (uint64_t)n;
        n_all += (uint64_t)n;
    }
    done.duration_ms = (uint32_t)(n_all * 1000 / EARS_RATE);
    return worker_send(EARS_FRAME_DONE, &done, sizeof(done));
}

static bool serve(const char *device, uint32_t max_ms)
{
    snd_pcm_t *pcm = NULL;
    int r = open_device(&pcm, device);

    if (r == 0 && max_ms > 0)
        r = snd_pcm_start(pcm);
    if (r < 0)
        return refuse(device, r);
    if (!worker_refuse_calls(true))
        return send_failure("The worker cannot limit itself.");
    return record(pcm, device, max_ms);
}

/* False: the frame breaks the protocol, or the service has gone. */
static bool take_record(void)
{
    struct speech_frame frame;
    struct ears_frame_record wanted;
    char device[LIMIT_SPEECH_DEVICE + 1] = "";

    if (!worker_read(&frame, sizeof(frame)) || frame.kind != EARS_FRAME_RECORD || frame.n_bytes < sizeof(wanted) ||
        frame.n_bytes > sizeof(wanted) + LIMIT_SPEECH_DEVICE || !worker_read(&wanted, sizeof(wanted)) ||
        !worker_read(device, frame.n_bytes - sizeof(wanted)))
        return false;
    return serve(device, wanted.max_ms < LIMIT_SPEECH_LISTEN_MS ? wanted.max_ms : LIMIT_SPEECH_LISTEN_MS);
}

int main(void)
{
    const struct speech_frame_hello hello = { SPEECH_FRAMES_VERSION, "ALSA" };

    /* PulseAudio otherwise keeps sound back for up to two seconds. */
    if (!worker_limit_device() || setenv("PULSE_LATENCY_MSEC", "20", 0) < 0)
        return !send_failure("The worker cannot limit itself.");
    return !worker_send(SPEECH_FRAME_HELLO, &hello, sizeof(hello)) || !take_record();
}
