/* Text to speech (specification, "Text-to-speech"; decision D11; docs/speech.md). */
#include "api/api.h"
#include "api/resources/speech_audio.h"
#include "api/routes.h"
#include "base/base64.h"
#include "base/limits.h"
#include "http/sse.h"

#include <strings.h>

struct speech_body {
    const char *text, *provider, *voice, *language, *model, *format;
    double speed;
    int64_t n_steps;
};

static const struct field speech_fields[] = {
    FIELD_STRING(struct speech_body, text, "text", FIELD_REQUIRED, .min = 1, .max = LIMIT_SPEECH_TEXT,
                 .help = "read as Markdown"),
    FIELD_STRING(struct speech_body, provider, "provider", .max = LIMIT_NAME_CHARS,
                 .help = "absent: the one of the voice or of the language"),
    FIELD_STRING(struct speech_body, voice, "voice", .max = LIMIT_SPEECH_VOICE,
                 .help = "absent: the setting speech.voices, else the language's usual one"),
    FIELD_DOUBLE(struct speech_body, speed, "speed", .min = 0.5, .max = 2, .def = 1),
    FIELD_STRING(struct speech_body, language, "language", .max = LIMIT_SPEECH_VOICE,
                 .help = "like de or de-AT; absent: the setting speech.language"),
    FIELD_STRING(struct speech_body, format, "format", .one_of = speech_audio_formats,
                 .help = "absent: what the header Accept prefers, else wav; pcm: 16 bits, mono, little-endian"),
    FIELD_STRING(struct speech_body, model, "model", .max = LIMIT_NAME_CHARS * 2,
                 .help = "of a provider over HTTP; the engines of this machine have none"),
    FIELD_INT(struct speech_body, n_steps, "num_inference_steps", .min = 1, .max = 1000, .help = "no engine has steps"),
    FIELD_END,
};

static const struct field range_shape[] = { SHAPE_DOUBLE("min"), SHAPE_DOUBLE("max"), SHAPE_DOUBLE("default"),
                                            FIELD_END };
static const struct field voice_shape[] = { SHAPE_STRING("id"), SHAPE_STRING("name"),
                                            SHAPE_STRING("language", .help = "\"\": any"), FIELD_END };
static const struct field config_shape[] = {
    SHAPE_STRINGS("voices"),
    SHAPE_STRINGS("languages"),
    SHAPE_STRINGS("models", .help = "none: it has one"),
    SHAPE_LIST("details", voice_shape, .help = "of a remote provider's voices"),
    SHAPE_INT("max_characters", .flags = FIELD_NULLABLE, .help = "of a sentence sent to it"),
    SHAPE_OBJECT("speed", range_shape),
    FIELD_END
};
static const struct field provider_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("name"),
    SHAPE_STRING("type", .help = "local, or remote: a provider over HTTP"),
    SHAPE_BOOL("configured", .help = "false: something is not installed; `note` says what"),
    SHAPE_BOOL("supportsStreaming"),
    SHAPE_STRING("note", .flags = FIELD_NULLABLE),
    SHAPE_OBJECT("config", config_shape),
    FIELD_END,
};
static const struct field providers_answer[] = { SHAPE_LIST("providers", provider_shape),
                                                 SHAPE_STRING("default", .help = "speaks when a request names none"),
                                                 FIELD_END };

/* ---- the request ---- */

/* The first type of the header that can be served; parameters such as q are not weighed. */
static enum speech_format accepted_format(const char *accept)
{
    static const struct {
        const char *type;
        enum speech_format format;
    } types[] = { { "audio/wav", SPEECH_WAV },  { "audio/x-wav", SPEECH_WAV }, { "audio/wave", SPEECH_WAV },
                  { "audio/mpeg", SPEECH_MP3 }, { "audio/mp3", SPEECH_MP3 },   { "audio/pcm", SPEECH_PCM } };

    for (const char *at = accept; at && *at; at += strcspn(at, ","), at += *at == ',') {
        at += strspn(at, " \t");
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
            if (strcspn(at, ",; \t") == strlen(types[i].type) &&
                strncasecmp(at, types[i].type, strlen(types[i].type)) == 0)
                return types[i].format;
    }
    return SPEECH_WAV;
}

static enum speech_format format_of(const struct request *req)
{
    const struct speech_body *body = req->body;
    int format = speech_audio_format(body->format);

    return format < 0 ? accepted_format(http_header(&req->exchange->request, "accept")) : (enum speech_format)format;
}

static int plan_of(struct request *req, struct arena *a, struct speech_plan *ret, struct err *e)
{
    const struct speech_body *body = req->body;
    const struct speech_request wanted = { .text = slice_of(body->text),
                                           .text_name = "text",
                                           .provider = body->provider,
                                           .voice = body->voice,
                                           .model = body->model,
                                           .language = body->language,
                                           .speed = body->speed,
                                           .format = format_of(req),
                                           .caller = req->caller->actor,
                                           .is_gone = &req->exchange->is_gone };

    return speech_plan(req->api->speech, &wanted, a, ret, e);
}

/* ---- the whole audio ---- */

static int speak(struct request *req, struct response *res, struct err *e)
{
    const struct speech_body *body = req->body;
    struct speech_plan plan;
    struct speech_work work;
    int r = plan_of(req, req->arena, &plan, e);

    if (r == 0)
        r = speech_work_begin(req, &plan, body->text, &work, e);
    if (r < 0)
        return r;
    r = speech_audio_answer(req, res, &work, e);
    speech_work_end(&work, r);
    return r;
}

/* ---- the stream ---- */

struct narration {
    struct speech_work *work;
    const struct speech_plan *plan;
    struct http_stream *stream;
    struct buf audio, text; /* of one chunk */
};

/* Server-Sent Events (decision D11): the event line directly precedes its one data line. */
static int push(struct narration *n, const char *event)
{
    return sse_push(n->stream, event, NULL, buf_slice(&n->text));
}

static void begin_data(struct narration *n, struct json_writer *w)
{
    buf_reset(&n->text);
    json_write_init(w, &n->text);
    json_begin_object(w);
}

static int push_info(struct narration *n)
{
    struct json_writer w;

    begin_data(n, &w);
    json_add_int(&w, "totalChunks", (int64_t)n->plan->sentences.n);
    json_add_string(&w, "mimeType", speech_mime_type(n->plan->format));
    json_end(&w);
    return push(n, "info");
}

static void push_failure(struct narration *n, const struct err *why)
{
    struct json_writer w;

    begin_data(n, &w);
    json_add_string(&w, "error", why->text);
    json_add_string(&w, "code", why->code);
    json_end(&w);
    if (push(n, "error") < 0)
        return; /* the client has left */
}

static int push_done(struct narration *n)
{
    struct json_writer w;

    begin_data(n, &w);
    json_add_int(&w, "totalChunks", (int64_t)n->plan->sentences.n);
    json_end(&w);
    return push(n, "done");
}

static int push_chunk(struct narration *n, size_t i, uint32_t rate)
{
    struct buf encoded;
    struct json_writer w;
    int r;

    buf_init(&encoded, LIMIT_STREAM_PUSH);
    base64_encode_data(&encoded, buf_slice(&n->audio));
    begin_data(n, &w);
    json_add_int(&w, "index", (int64_t)i);
    json_add_int(&w, "total", (int64_t)n->plan->sentences.n);
    json_add_escaped(&w, "audio", buf_slice(&encoded));
    json_add_string(&w, "mimeType", speech_mime_type(n->plan->format));
    json_add_int(&w, "sampleRate", rate);
    json_end(&w);
    r = buf_check(&encoded, NULL);
    buf_clear(&encoded);
    return r < 0 ? r : push(n, "chunk");
}

static int narrate_sentence(struct narration *n, size_t i, struct err *e)
{
    struct speech_frame_done done = { 0 };
    int r;

    buf_reset(&n->audio);
    speech_audio_begin(n->plan, &n->audio);
    r = speech_work_say(n->work, i, &n->audio, &done, e);
    if (r < 0)
        return r;
    speech_audio_end(n->plan, done.rate, &n->audio);
    return push_chunk(n, i, done.rate);
}

static void narrate(struct narration *n)
{
    struct err e;
    int r = push_info(n);

    err_init(&e);
    for (size_t i = 0; r == 0 && i < n->plan->sentences.n; i++)
        r = narrate_sentence(n, i, &e);
    if (r < 0 && *e.code)
        push_failure(n, &e);
    else if (r == 0)
        r = push_done(n);
    speech_work_end(n->work, r);
}

static int stream(struct request *req, struct response *res, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new(); /* the exchange may end first */
    const struct speech_body *body = req->body;
    struct speech_plan plan;
    struct speech_work work;
    struct narration n = { .work = &work, .plan = &plan };
    int r = plan_of(req, a, &plan, e);

    if (r == 0)
        r = speech_work_begin(req, &plan, body->text, &work, e);
    if (r < 0)
        return r;
    buf_init(&n.audio, LIMIT_SPEECH_AUDIO + SPEECH_WAV_HEADER);
    buf_init(&n.text, LIMIT_STREAM_PUSH);
    n.stream = request_take_events(req, res);
    narrate(&n);
    http_stream_end(n.stream);
    buf_clear(&n.audio);
    buf_clear(&n.text);
    return 0;
}

/* ---- the providers ---- */

static void write_voice(struct json_writer *w, const struct speech_voice *voice)
{
    json_begin_object(w);
    json_add_string(w, "id", voice->id);
    json_add_string(w, "name", voice->name);
    json_add_string(w, "language", voice->language);
    json_end(w);
}

static void write_config(struct json_writer *w, const struct speech_provider *provider)
{
    json_begin_object_as(w, "config");
    json_add_strings(w, "voices", provider->voices, provider->n_voices);
    json_add_strings(w, "languages", provider->languages, provider->n_languages);
    json_add_strings(w, "models", provider->models, provider->n_models);
    json_begin_array_as(w, "details");
    for (size_t i = 0; provider->details && i < provider->n_voices; i++)
        write_voice(w, &provider->details[i]);
    json_end(w);
    if (provider->max_characters > 0)
        json_add_int(w, "max_characters", (int64_t)provider->max_characters);
    else
        json_add_null(w, "max_characters");
    json_begin_object_as(w, "speed");
    json_add_double(w, "min", 0.5);
    json_add_double(w, "max", 2);
    json_add_double(w, "default", 1);
    json_end(w);
    json_end(w);
}

static int list_providers(struct request *req, struct response *res, struct err *e)
{
    const struct speech_provider *providers;
    size_t n = speech_providers(req->api->speech, &req->exchange->is_gone, req->arena, &providers);
    struct json_writer *w = &res->json;

    json_begin_array_as(w, "providers");
    for (size_t i = 0; i < n; i++) {
        json_begin_object(w);
        json_add_string(w, "id", providers[i].id);
        json_add_string(w, "name", providers[i].name);
        json_add_string(w, "type", providers[i].is_remote ? "remote" : "local");
        json_add_bool(w, "configured", providers[i].is_configured);
        json_add_bool(w, "supportsStreaming", true);
        json_add_string(w, "note", providers[i].note);
        write_config(w, &providers[i]);
        json_end(w);
    }
    json_end(w);
    json_add_string(w, "default", speech_default_provider(req->api->speech, req->arena));
    return 0;
}

const struct route speech_routes[] = {
    { .method = HTTP_GET,
      .path = "/sdk/tts/providers",
      .permission = PERM_NONE,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .answer = providers_answer,
      .handler = list_providers,
      .summary = "Engines that speak, with their voices",
      .tag = "Speech" },
    { .method = HTTP_POST,
      .path = "/sdk/tts",
      .permission = PERM_TTS_GENERATE,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      ROUTE_BODY(speech_fields, struct speech_body),
      .answer_type = "audio/wav",
      .handler = speak,
      .summary = "Speak a text; the answer is the audio",
      .tag = "Speech" },
    { .method = HTTP_POST,
      .path = "/sdk/tts/stream",
      .permission = PERM_TTS_GENERATE,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      ROUTE_BODY(speech_fields, struct speech_body),
      .answer_type = "text/event-stream",
      .handler = stream,
      .summary = "Speak a text sentence by sentence",
      .tag = "Speech" },
    ROUTE_END,
};
