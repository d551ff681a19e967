/* The trial of a provider of speech: it speaks one word, or hears half a second of silence. */
#include "api/api.h"
#include "api/resources/providers.h"
#include "api/resources/speech_audio.h"
#include "base/clock.h"
#include "speech/ears.h"

enum { SILENCE_RATE = 16000, SILENCE_SAMPLES = SILENCE_RATE / 2 };

static int speak(struct request *req, const char *name, const char *model, struct provider_speech_trial *ret,
                 struct err *e)
{
    const struct speech_request wanted = { .text = SLICE_LIT("Hello."),
                                           .text_name = "text",
                                           .provider = name,
                                           .model = model,
                                           .speed = 1,
                                           .format = SPEECH_PCM,
                                           .caller = req->caller->actor,
                                           .is_gone = &req->exchange->is_gone };
    struct speech_frame_done done = { 0 };
    struct speech_plan plan;
    struct buf audio;
    int r = speech_plan(req->api->speech, &wanted, req->arena, &plan, e);

    if (r < 0)
        return r;
    buf_init(&audio, LIMIT_SPEECH_AUDIO);
    r = speech_say(req->api->speech, &plan, 0, &audio, &done, e);
    buf_clear(&audio);
    ret->model = *plan.model ? plan.model : plan.voice;
    if (r == 0)
        ret->text =
            arena_printf(req->arena, "%s works: its voice %s spoke for %.1f s, after %lld ms.", name, plan.voice,
                         (double)done.n_samples / done.rate, (long long)(clock_mono_ms() - ret->began_ms));
    return r;
}

static int hear(struct request *req, const char *name, const char *model, struct provider_speech_trial *ret,
                struct err *e)
{
    char *recording = arena_array(req->arena, SPEECH_WAV_HEADER + 2 * SILENCE_SAMPLES, 1);
    const struct ears_request wanted = { .recording = { recording, SPEECH_WAV_HEADER + 2 * SILENCE_SAMPLES },
                                         .provider = name,
                                         .model = model,
                                         .caller = req->caller->actor,
                                         .is_gone = &req->exchange->is_gone };
    struct hearing *h = NULL;
    int r;

    memset(recording, 0, wanted.recording.n);
    speech_wav_header(recording, SILENCE_RATE, (size_t)2 * SILENCE_SAMPLES);
    r = hearing_start(req->api->ears, &wanted, &h, e);
    hearing_end(h);
    if (r == 0)
        ret->text = arena_printf(req->arena, "%s works: it heard half a second of silence in %lld ms.", name,
                                 (long long)(clock_mono_ms() - ret->began_ms));
    return r;
}

int provider_try_speech(struct request *req, const struct llm_account *acc, const char *model,
                        struct provider_speech_trial *ret, struct err *e)
{
    int r;

    *ret = (struct provider_speech_trial){ .began_ms = clock_mono_ms(), .model = model };
    if (!llm_account_is_for_speech(acc))
        return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE",
                       "%s is not for speech; add it again with `--for all` or `--for speech`.", acc->name);
    r = acc->preset->can_speak ? speak(req, acc->name, model, ret, e) : hear(req, acc->name, model, ret, e);
    ret->ms = clock_mono_ms() - ret->began_ms;
    return r;
}
