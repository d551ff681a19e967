#include "api/resources/speech_audio.h"

#include "api/api.h"
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

static int say_all(struct request *req, const struct speech_plan *plan, struct buf *audio, struct err *e)
{
    struct speech_frame_done done = { 0 };
    int r = 0;

    speech_audio_begin(plan, audio);
    for (size_t i = 0; r == 0 && i < plan->sentences.n; i++)
        r = speech_say(req->api->speech, plan, i, audio, &done, e);
    if (audio->overflowed && !audio->is_starved)
        return refuse_large(e);
    if (r < 0)
        return r;
    speech_audio_end(plan, done.rate, audio);
    if (plan->format == SPEECH_PCM)
        http_response_header(req->exchange, "x-sample-rate", arena_printf(req->arena, "%u", done.rate));
    return 0;
}

int speech_audio_answer(struct request *req, struct response *res, const struct speech_plan *plan, struct err *e)
{
    struct buf audio, *out;
    int r;

    buf_init_soft(&audio, LIMIT_REPLY, 0);
    r = say_all(req, plan, &audio, e);
    if (r < 0) {
        buf_clear(&audio);
        return r;
    }
    out = response_start_raw(res, speech_mime_type(plan->format));
    buf_clear(out);
    *out = audio;
    return 0;
}
