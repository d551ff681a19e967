/* POST /v1/audio/speech (platform.openai.com/docs/api-reference/audio/createSpeech), and GET /v1/audio/voices, which
 * OpenAI does not have but servers of this interface do. */
#include "api/api.h"
#include "api/resources/speech_audio.h"
#include "api/routes.h"
#include "api/compat/v1.h"
#include "api/compat/v1_openai_form.h"
#include "base/base64.h"
#include "base/limits.h"
#include "http/sse.h"

#include <string.h>

/* OpenAI's PCM, whose players do not ask. A length that nobody knows yet in a WAV that is streamed. */
enum { PCM_RATE = 24000, TOKENS_A_SECOND = 20, BYTES_A_TOKEN = 4 };
static const size_t open_length = UINT32_MAX - SPEECH_WAV_HEADER + 8;

struct audio_body {
    const char *input, *model, *language, *instructions, *response_format, *stream_format;
    struct json_value voice;
    double speed;
};

static const char *const stream_formats[] = { "audio", "sse", NULL };

static const struct field audio_fields[] = {
    FIELD_STRING(struct audio_body, input, "input", FIELD_REQUIRED, .min = 1, .max = LIMIT_SPEECH_TEXT,
                 .help = "read as Markdown"),
    FIELD_STRING(
        struct audio_body, model, "model", .max = LIMIT_NAME_CHARS * 2,
        .help =
            "the id of a provider of GET /sdk/tts/providers; any other: as configured, or of the provider that `voice` names"),
    FIELD_ANY(struct audio_body, voice, "voice",
              .help = "a name of GET /v1/audio/voices, or {id}; absent, or a name of OpenAI's: as configured"),
    FIELD_STRING(struct audio_body, language, "language", .max = LIMIT_SPEECH_VOICE,
                 .help = "like de or de-AT; absent: the setting speech.language"),
    FIELD_STRING(struct audio_body, instructions, "instructions", .max = LIMIT_SPEECH_TEXT,
                 .help = "no engine follows any: the header x-hearth-ignored says so"),
    FIELD_STRING(struct audio_body, response_format, "response_format", .one_of = speech_audio_formats,
                 .def_str = "mp3", .help = "pcm: 24 kHz, 16 bits, mono, little-endian"),
    FIELD_STRING(struct audio_body, stream_format, "stream_format", .one_of = stream_formats,
                 .help = "absent: audio, but a WAV is sent whole; what a provider sends is passed on while it arrives"),
    FIELD_DOUBLE(struct audio_body, speed, "speed", .min = 0.5, .max = 2, .def = 1),
    FIELD_END,
};

/* ---- the voice ---- */

/* Programs send these names unasked, as the interface requires a voice. */
static bool is_of_openai(const char *voice)
{
    static const char *const names[] = { "alloy", "ash",  "ballad", "coral",   "echo",  "fable", "onyx",
                                         "nova",  "sage", "verse",  "shimmer", "marin", "cedar", "default" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(voice, names[i]) == 0)
            return true;
    return false;
}

/* "": as configured; NULL: neither a name nor an object with one. */
static const char *voice_name(struct json_value voice)
{
    if (json_type(voice) == JSON_OBJECT)
        voice = json_get(voice, "id");
    else if (json_is_absent(voice))
        return "";
    return json_cstr(voice);
}

static int check_body(const struct request *req, const void *body, struct err *e)
{
    const char *name = voice_name(((const struct audio_body *)body)->voice);

    if (name && strlen(name) <= LIMIT_SPEECH_VOICE + LIMIT_NAME_CHARS)
        return 0;
    return err_add_field(e, "voice", "must be the name of a voice, or an object with it in `id`");
}

/* "provider/voice" names both. */
static void choose_voice(const struct request *req, const char *name, struct speech_request *wanted)
{
    const struct slice provider = { name, strcspn(name, "/") };

    if (name[provider.n] == '/' && speech_is_provider(req->api->speech, provider)) {
        wanted->provider = arena_slicedup(req->arena, provider);
        wanted->voice = name + provider.n + 1;
    } else if (!is_of_openai(name)) {
        wanted->voice = name;
    } else if (wanted->provider) { /* which may be OpenAI, or a server with its names */
        wanted->voice = name;
        wanted->is_voice_optional = true;
    }
}

static int plan_of(struct request *req, struct arena *a, struct speech_plan *ret, struct err *e)
{
    const struct audio_body *body = req->body;
    struct speech_request wanted = { .text = slice_of(body->input),
                                     .text_name = "input",
                                     .language = body->language,
                                     .speed = body->speed,
                                     .format = (enum speech_format)speech_audio_format(body->response_format),
                                     .caller = req->caller->actor,
                                     .is_gone = &req->exchange->is_gone };

    if (wanted.format == SPEECH_PCM)
        wanted.rate = PCM_RATE;
    if (body->model && speech_is_provider(req->api->speech, slice_of(body->model)))
        wanted.provider = body->model;
    choose_voice(req, voice_name(body->voice), &wanted);
    if (wanted.provider && wanted.provider != body->model)
        wanted.model = body->model;
    return speech_plan(req->api->speech, &wanted, a, ret, e);
}

static void add_headers(const struct request *req, const struct speech_plan *plan)
{
    const struct audio_body *body = req->body;

    http_response_header(req->exchange, "x-hearth-voice",
                         arena_printf(req->arena, "%s/%s", plan->provider, plan->voice));
    if (body->instructions && *body->instructions)
        http_response_header(req->exchange, "x-hearth-ignored", "instructions");
}

/* ---- the stream ---- */

struct broadcast {
    struct request *req;
    struct response *res;
    struct speech_work *work;
    const struct speech_plan *plan;
    size_t n_input; /* bytes of the text */
    bool is_events;
    struct http_stream *stream; /* NULL: no sound has come */
    struct buf audio;           /* not yet sent */
    struct buf text;            /* of one event */
};

static int push_event(struct broadcast *b)
{
    return sse_push(b->stream, NULL, NULL, buf_slice(&b->text));
}

static void begin_event(struct broadcast *b, struct json_writer *w, const char *type)
{
    buf_reset(&b->text);
    json_write_init(w, &b->text);
    json_begin_object(w);
    json_add_string(w, "type", type);
}

static int push_delta(struct broadcast *b)
{
    struct buf encoded;
    struct json_writer w;
    int r;

    buf_init(&encoded, LIMIT_STREAM_PUSH);
    base64_encode_data(&encoded, buf_slice(&b->audio));
    begin_event(b, &w, "speech.audio.delta");
    json_add_escaped(&w, "audio", buf_slice(&encoded));
    json_end(&w);
    r = buf_check(&encoded, NULL);
    buf_clear(&encoded);
    return r < 0 ? r : push_event(b);
}

/* Clients expect tokens; they are estimated from the bytes of the text and the seconds of the audio. */
static int push_done(struct broadcast *b)
{
    int64_t n_in = (int64_t)(b->n_input / BYTES_A_TOKEN) + 1, n_out = (int64_t)(b->work->seconds * TOKENS_A_SECOND) + 1;
    struct json_writer w;

    begin_event(b, &w, "speech.audio.done");
    json_begin_object_as(&w, "usage");
    json_add_int(&w, "input_tokens", n_in);
    json_add_int(&w, "output_tokens", n_out);
    json_add_int(&w, "total_tokens", n_in + n_out);
    json_add_bool(&w, "estimated", true);
    json_end(&w);
    json_end(&w);
    return push_event(b);
}

static int push_audio(struct broadcast *b)
{
    int r = 0;

    if (b->audio.n > 0)
        r = b->is_events ? push_delta(b) : http_stream_push(b->stream, buf_slice(&b->audio));
    buf_reset(&b->audio);
    return r;
}

/* The answer begins with its first sound, so that what fails at once is answered with a status. The pieces together are
 * one file: only the first one of a WAV has a header. */
static void begin(struct broadcast *b, uint32_t rate)
{
    const enum speech_format format = b->plan->format;

    b->stream = request_take_stream(b->req, b->res, b->is_events ? "text/event-stream" : speech_mime_type(format));
    speech_audio_begin(b->plan, &b->audio);
    if (format == SPEECH_WAV)
        speech_wav_header(b->audio.p, rate, open_length);
}

/* Does not wait for a client that reads slowly: the sentence then stays here until its end, for which
 * LIMIT_SPEECH_AUDIO is the bound. */
static int take_audio(void *arg, uint32_t rate, struct slice audio)
{
    struct broadcast *b = arg;

    if (!b->stream)
        begin(b, rate);
    buf_add_slice(&b->audio, audio);
    if (http_stream_is_gone(b->stream))
        return -EPIPE;
    return http_stream_is_full(b->stream) ? buf_check(&b->audio, NULL) : push_audio(b);
}

static int say(struct broadcast *b, size_t i, struct err *e)
{
    const struct speech_tap tap = { take_audio, b };
    int r = speech_work_say_live(b->work, i, &tap, e);

    return r < 0 ? r : push_audio(b);
}

static void finish(struct broadcast *b, int r, const struct err *e)
{
    if (r == 0 && b->is_events)
        r = push_done(b);
    speech_work_end(b->work, r);
    if (r < 0 && b->is_events && *e->code) {
        buf_reset(&b->text);
        v1_openai_form.error(&b->text, NULL, e);
        r = http_stream_push(b->stream, buf_slice(&b->text));
    }
    if (r < 0 && !b->is_events)
        http_stream_abort(b->stream);
    else
        http_stream_end(b->stream);
}

/* An error before the first sound is the caller's to answer. */
static int broadcast(struct broadcast *b, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < b->plan->sentences.n; i++)
        r = say(b, i, e);
    if (b->stream) {
        finish(b, r, e);
        return 0;
    }
    speech_work_end(b->work, r);
    return r;
}

static int stream(struct request *req, struct response *res, struct speech_work *work, struct err *e)
{
    const struct audio_body *body = req->body;
    struct broadcast b = { .req = req, .res = res, .work = work, .plan = work->plan, .n_input = strlen(body->input) };
    int r;

    b.is_events = body->stream_format && strcmp(body->stream_format, "sse") == 0;
    buf_init(&b.audio, LIMIT_SPEECH_AUDIO + SPEECH_WAV_HEADER);
    buf_init(&b.text, LIMIT_STREAM_PUSH);
    r = broadcast(&b, e);
    buf_clear(&b.audio);
    buf_clear(&b.text);
    return r;
}

static int speak(struct request *req, struct response *res, struct err *e)
{
    const struct audio_body *body = req->body;
    AUTO(arena_freep) struct arena *a = arena_new(); /* the exchange may end first */
    struct speech_plan plan;
    struct speech_work work;
    int r = plan_of(req, a, &plan, e);

    if (r == 0)
        r = speech_work_begin(req, &plan, body->input, &work, e);
    if (r < 0)
        return r;
    add_headers(req, &plan);
    if (plan.format != SPEECH_WAV || body->stream_format)
        return stream(req, res, &work, e);
    r = speech_audio_answer(req, res, &work, e);
    speech_work_end(&work, r);
    return r;
}

/* ---- the voices ---- */

static const struct field voice_shape[] = {
    SHAPE_STRING("id", .help = "provider/voice, for `voice` of POST /v1/audio/speech"),
    SHAPE_STRING("name"),
    SHAPE_STRING("provider"),
    FIELD_END,
};
static const struct field voices_answer[] = { SHAPE_LIST("voices", voice_shape), FIELD_END };

static void write_voices(struct request *req, struct json_writer *w, const struct speech_provider *provider)
{
    for (size_t i = 0; i < provider->n_voices; i++) {
        json_begin_object(w);
        json_add_string(w, "id", arena_printf(req->arena, "%s/%s", provider->id, provider->voices[i]));
        json_add_string(w, "name", provider->details ? provider->details[i].name : provider->voices[i]);
        json_add_string(w, "provider", provider->id);
        json_end(w);
    }
}

static int list_voices(struct request *req, struct response *res, struct err *e)
{
    const struct speech_provider *providers;
    size_t n = speech_providers(req->api->speech, &req->exchange->is_gone, req->arena, &providers);

    json_begin_array_as(&res->json, "voices");
    for (size_t i = 0; i < n; i++)
        write_voices(req, &res->json, &providers[i]);
    json_end(&res->json);
    return 0;
}

const struct route v1_speech_routes[] = {
    { .method = HTTP_POST,
      .path = "/v1/audio/speech",
      .permission = PERM_TTS_GENERATE,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .is_bare = true,
      ROUTE_BODY(audio_fields, struct audio_body),
      .check_body = check_body,
      .answer_type = "audio/mpeg",
      .may_stream = true,
      .error_form = &v1_openai_error,
      .handler = speak,
      .summary = "Speak a text, in OpenAI's form",
      .tag = "Compatible" },
    { .method = HTTP_GET,
      .path = "/v1/audio/voices",
      .permission = PERM_NONE,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .is_bare = true,
      .answer = voices_answer,
      .error_form = &v1_openai_error,
      .handler = list_voices,
      .summary = "The voices of all providers",
      .tag = "Compatible" },
    ROUTE_END,
};
