#include "speech/sound_reader.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "speech/ears_recording.h"

#include <string.h>

enum { SAMPLE_BYTES = 2, FIRST_BYTES = 12, MESSAGE_BYTES = 200 };

static int on_event(void *arg, const struct sse_event *event);

void speech_sound_reader_init(struct speech_sound_reader *r, enum speech_sound_form form, uint32_t rate,
                              const struct speech_sink *sink)
{
    *r = (struct speech_sound_reader){ .form = form, .sink = sink, .n_left = SIZE_MAX };
    r->has_head = form != SPEECH_SOUND_FILE;
    r->wav = (struct speech_wav){ SPEECH_WAV_PCM, 1, rate, 8 * SAMPLE_BYTES, 0, SIZE_MAX };
    sse_reader_init(&r->events, on_event, r);
    sse_reader_limit(&r->events, LIMIT_SPEECH_EVENT);
    buf_init(&r->file, LIMIT_SPEECH_REPLY);
    buf_init(&r->samples, LIMIT_SPEECH_REPLY + SPEECH_SOUND_FRAME);
}

void speech_sound_reader_clear(struct speech_sound_reader *r)
{
    sse_reader_clear(&r->events);
    buf_clear(&r->file);
    buf_clear(&r->samples);
}

struct slice speech_sound_reader_file(const struct speech_sound_reader *r)
{
    return r->is_other ? buf_slice(&r->file) : (struct slice){ NULL, 0 };
}

static int refuse(struct err *e, const char *why)
{
    return err_set(e, -EBADMSG, "SPEECH_FAILED", "it %s.", why);
}

/* ---- samples ---- */

/* Puts the bytes of an incomplete sample before those that follow. */
static struct slice complete_part(struct speech_sound_reader *r, struct slice bytes)
{
    const size_t n_frame = speech_wav_frame(&r->wav), n = MIN(n_frame - r->n_part, bytes.n);

    if (r->n_part == 0)
        return bytes;
    memcpy(r->part + r->n_part, bytes.p, n);
    r->n_part += n;
    if (r->n_part == n_frame) {
        speech_wav_mix(&r->wav, (struct slice){ r->part, n_frame }, &r->samples);
        r->n_part = 0;
    }
    return (struct slice){ bytes.p + n, bytes.n - n };
}

static int pass_on(struct speech_sound_reader *r, struct err *e)
{
    const struct speech_pcm piece = { buf_slice(&r->samples), r->wav.rate };

    if (piece.samples.n == 0)
        return 0;
    r->sink_r = r->sink->take(r->sink->arg, &piece, e);
    return MIN(r->sink_r, 0);
}

static int take_sound(struct speech_sound_reader *r, struct slice bytes, struct err *e)
{
    size_t n;

    bytes.n = MIN(bytes.n, r->n_left); /* what follows the samples of a WAV is no sound */
    if (bytes.n > LIMIT_SPEECH_REPLY - r->n_sound)
        return err_set(e, -EBADMSG, "SPEECH_FAILED", "it sent more than %d MiB of sound for a sentence.",
                       LIMIT_SPEECH_REPLY >> 20);
    r->n_sound += bytes.n;
    r->n_left -= r->n_left == SIZE_MAX ? 0 : bytes.n;
    buf_reset(&r->samples);
    bytes = complete_part(r, bytes);
    n = speech_wav_mix(&r->wav, bytes, &r->samples);
    if (n < bytes.n) {
        memcpy(r->part, bytes.p + n, bytes.n - n); /* less than a frame, which fits */
        r->n_part = bytes.n - n;
    }
    return pass_on(r, e);
}

/* ---- a file ---- */

/* The samples that arrived with the end of the head. */
static int take_head(struct speech_sound_reader *r, struct err *e)
{
    const size_t n_head = r->wav.n_head;

    r->has_head = true;
    r->n_left = r->wav.n_data;
    return take_sound(r, (struct slice){ r->file.p + n_head, r->file.n - n_head }, e);
}

static int take_file(struct speech_sound_reader *r, struct slice bytes, struct err *e)
{
    int result;

    buf_add_slice(&r->file, bytes);
    if (r->file.overflowed)
        return refuse(e, "sent too much for a sentence");
    if (r->is_other || r->file.n < FIRST_BYTES)
        return 0;
    r->is_other = ears_recording_kind(buf_slice(&r->file)) == EARS_PLAIN && memcmp(r->file.p, "RIFF", 4) != 0;
    if (r->is_other)
        return 0;
    result = speech_wav_head(buf_slice(&r->file), &r->wav, e);
    if (result == 0 && r->file.n > LIMIT_SPEECH_WAV_HEAD)
        return refuse(e, "sent a WAV whose samples do not begin");
    return result > 0 ? take_head(r, e) : result;
}

/* ---- events ---- */

static int take_base64(struct speech_sound_reader *r, struct json_value audio, struct err *e)
{
    struct buf decoded;
    int result;

    if (json_type(audio) != JSON_STRING)
        return refuse(e, "sent an event of sound without sound");
    buf_init(&decoded, LIMIT_SPEECH_EVENT);
    if (base64_decode(&decoded, json_string(audio)) < 0)
        result = refuse(e, "sent sound that is no base64");
    else
        result = take_sound(r, buf_slice(&decoded), e);
    buf_clear(&decoded);
    return result;
}

static int refuse_with(struct json_value error, struct err *e)
{
    struct slice message = json_string(json_type(error) == JSON_OBJECT ? json_get(error, "message") : error);

    message = utf8_head(message, MESSAGE_BYTES);
    return err_set(e, -EBADMSG, "SPEECH_FAILED", "it broke off: %.*s", (int)message.n, message.n > 0 ? message.p : "");
}

static int take_event(struct speech_sound_reader *r, struct json_value root, struct err *e)
{
    struct slice type = json_string(json_get(root, "type"));

    if (slice_eq_str(type, "error") || !json_is_absent(json_get(root, "error")))
        return refuse_with(json_get(root, "error"), e);
    if (slice_eq_str(type, "speech.audio.delta"))
        return take_base64(r, json_get(root, "audio"), e);
    r->is_done = slice_eq_str(type, "speech.audio.done");
    return 0;
}

/* Events after the last one, and events of other types, are left aside. */
static int on_event(void *arg, const struct sse_event *event)
{
    struct speech_sound_reader *r = arg;
    struct json_value root = { 0 };
    struct arena *a;
    int result;

    if (r->is_done || slice_eq_str(event->data, "[DONE]"))
        return 0;
    a = arena_new();
    if (json_parse(a, event->data, &root, NULL) < 0 || json_type(root) != JSON_OBJECT)
        result = refuse(r->why, "sent an event that is no JSON object");
    else
        result = take_event(r, root, r->why);
    arena_free(a);
    return result;
}

static int take_events(struct speech_sound_reader *r, struct slice bytes, struct err *e)
{
    int result;

    r->why = e;
    result = sse_reader_feed(&r->events, bytes, e);
    r->why = NULL;
    return result == -EMSGSIZE ? refuse(e, "sent an event that is too long") : result;
}

/* ---- the whole ---- */

int speech_sound_reader_feed(struct speech_sound_reader *r, struct slice bytes, struct err *e)
{
    if (r->form == SPEECH_SOUND_EVENTS)
        return take_events(r, bytes, e);
    return r->has_head ? take_sound(r, bytes, e) : take_file(r, bytes, e);
}

static int end_file(const struct speech_sound_reader *r, struct err *e)
{
    if (r->is_other)
        return 0;
    if (!r->has_head)
        return refuse(e, r->file.n == 0            ? "sent nothing"
                         : r->file.n < FIRST_BYTES ? "sent something that is no WAV"
                                                   : "sent a WAV without sound");
    if (r->n_left > 0 && r->n_left != SIZE_MAX)
        return refuse(e, "sent a WAV that breaks off");
    return r->n_sound < speech_wav_frame(&r->wav) ? refuse(e, "sent a WAV without sound") : 0;
}

int speech_sound_reader_end(struct speech_sound_reader *r, struct err *e)
{
    if (r->form == SPEECH_SOUND_FILE)
        return end_file(r, e);
    if (r->form == SPEECH_SOUND_EVENTS && !r->is_done)
        return refuse(e, "sent events that break off");
    if (r->n_sound == 0)
        return refuse(e, "sent nothing");
    return r->n_part > 0 ? refuse(e, "sent half a sample: the sound breaks off") : 0;
}
