#include "api/resources/speech_audio.h"

#include "api/api.h"
#include "api/resources/metered.h"
#include "base/utf8.h"
#include "base/limits.h"

const char *const speech_audio_formats[] = {
    [SPEECH_WAV] = "wav", [SPEECH_MP3] = "mp3", [SPEECH_PCM] = "pcm", [N_SPEECH_FORMATS] = NULL
};

int speech_audio_format(const char *word)
{
    for (int i = 0; word && i < N_SPEECH_FORMATS; i++)
        if (strcmp(word, speech_audio_formats[i]) == 0)
            return i;
    return -1;
}

int speech_work_begin(struct request *req, const struct speech_plan *plan, const char *text, struct speech_work *ret,
                      struct err *e)
{
    int64_t retry_after_ms = 0, characters = (int64_t)utf8_length(slice_of(text));
    int r;

    *ret = (struct speech_work){ .speech = req->api->speech, .meter = req->api->meter, .plan = plan };
    r = meter_admit_speech(ret->meter, req->caller, characters, &ret->ticket, &retry_after_ms, e);
    if (r < 0)
        metered_retry_after(req->exchange, e, retry_after_ms);
    return r;
}

int speech_work_say(struct speech_work *work, size_t i, struct buf *audio, struct speech_frame_done *ret, struct err *e)
{
    int r = speech_say(work->speech, work->plan, i, audio, ret, e);

    if (r == 0)
        work->seconds += (double)ret->n_samples / ret->rate;
    return r;
}

int speech_work_say_live(struct speech_work *work, size_t i, const struct speech_tap *tap, struct err *e)
{
    struct speech_frame_done done = { 0 };
    int r = speech_say_live(work->speech, work->plan, i, tap, &done, e);

    if (r == 0)
        work->seconds += (double)done.n_samples / done.rate;
    return r;
}

void speech_work_end(struct speech_work *work, int r)
{
    const struct meter_use use = { .work = METER_SPEECH,
                                   .provider = work->plan->provider,
                                   .model = work->plan->voice,
                                   .audio_ms = (int64_t)(work->seconds * 1000 + 0.5),
                                   .is_failed = r < 0 };

    if (r == -EAGAIN && work->seconds <= 0)
        meter_give_back(work->meter, &work->ticket);
    else
        meter_count(work->meter, &work->ticket, &use);
}

void speech_audio_begin(const struct speech_plan *plan, struct buf *audio)
{
    const char header[SPEECH_WAV_HEADER] = { 0 };

    if (plan->format == SPEECH_WAV)
        buf_add(audio, header, sizeof(header));
}

void speech_audio_end(const struct speech_plan *plan, uint32_t rate, struct buf *audio)
{
    if (plan->format == SPEECH_WAV)
        speech_wav_header(audio->p, rate, audio->n - SPEECH_WAV_HEADER);
}

static int refuse_large(struct err *e)
{
    return err_set(e, -EFBIG, "REPLY_TOO_LARGE",
                   "The audio is larger than %d MiB; ask for audio/mpeg, or use /sdk/tts/stream.", LIMIT_REPLY >> 20);
}

static int say_all(struct request *req, struct speech_work *work, struct buf *audio, struct err *e)
{
    const struct speech_plan *plan = work->plan;
    struct speech_frame_done done = { 0 };
    int r = 0;

    speech_audio_begin(plan, audio);
    for (size_t i = 0; r == 0 && i < plan->sentences.n; i++)
        r = speech_work_say(work, i, audio, &done, e);
    if (audio->overflowed && !audio->is_starved)
        return refuse_large(e);
    if (r < 0)
        return r;
    speech_audio_end(plan, done.rate, audio);
    if (plan->format == SPEECH_PCM)
        http_response_header(req->exchange, "x-sample-rate", arena_printf(req->arena, "%u", done.rate));
    return 0;
}

int speech_audio_answer(struct request *req, struct response *res, struct speech_work *work, struct err *e)
{
    struct buf audio, *out;
    int r;

    buf_init_soft(&audio, LIMIT_REPLY, 0);
    r = say_all(req, work, &audio, e);
    if (r < 0) {
        buf_clear(&audio);
        return r;
    }
    out = response_start_raw(res, speech_mime_type(work->plan->format));
    buf_clear(out);
    *out = audio;
    return 0;
}
