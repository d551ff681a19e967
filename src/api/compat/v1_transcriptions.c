/* POST /v1/audio/transcriptions (platform.openai.com/docs/api-reference/audio/createTranscription), and
 * /v1/audio/translations, which is refused. */
#include "api/api.h"
#include "api/routes.h"
#include "api/compat/v1.h"
#include "api/compat/v1_openai_form.h"
#include "api/compat/v1_transcript_form.h"
#include "http/sse.h"
#include "speech/engines.h"

#include <string.h>

struct transcription_fields {
    const char *model, *language, *prompt, *phrases, *response_format;
    double temperature;
    bool stream;
};

static const char *const formats[] = { "json", "text", "srt", "verbose_json", "vtt", NULL };

#define TRANSCRIPTION_FIELDS                                                                                           \
    FIELD_STRING(struct transcription_fields, model, "model", .max = LIMIT_NAME_CHARS * 2,                             \
                 .help = "a provider of GET /sdk/stt/providers, or provider/model; any other: as configured"),         \
        FIELD_STRING(struct transcription_fields, language, "language", .max = LIMIT_SPEECH_VOICE,                     \
                     .help = "like en or en-US, or auto"),                                                             \
        FIELD_STRING(struct transcription_fields, prompt, "prompt", .max = LIMIT_FORM_FIELDS,                          \
                     .help = "no engine follows it: the header x-hearth-ignored says so"),                             \
        FIELD_STRING(struct transcription_fields, phrases, "phrases", .max = LIMIT_FORM_FIELDS,                        \
                     .help = "beyond OpenAI's: as of POST /sdk/stt/transcribe"),                                       \
        FIELD_STRING(struct transcription_fields, response_format, "response_format", .one_of = formats,               \
                     .def_str = "json"),                                                                               \
        FIELD_DOUBLE(struct transcription_fields, temperature, "temperature", .min = 0, .max = 1,                      \
                     .help = "changes nothing: the header x-hearth-ignored says so"),                                  \
        FIELD_BOOL(struct transcription_fields, stream, "stream", .help = "as events, with json or text")

static const struct field transcription_fields[] = { TRANSCRIPTION_FIELDS, FIELD_END };
static const struct field transcription_form[] = {
    SHAPE_STRING("file", .flags = FIELD_REQUIRED, .format = "binary", .help = "the recording"),
    TRANSCRIPTION_FIELDS,
    SHAPE_STRINGS("timestamp_granularities[]", .help = "segment, word; of verbose_json; absent: segment"),
    FIELD_END,
};

/* ---- the form ---- */

static bool is_format(const struct transcription_fields *fields, const char *name)
{
    return strcmp(fields->response_format, name) == 0;
}

/* Clients send one part for each, its name with or without brackets. */
static int read_granularities(const struct form *form, struct v1_transcript_parts *ret, struct err *e)
{
    *ret = (struct v1_transcript_parts){ false, false };
    for (size_t i = 0; i < form->n; i++) {
        const struct form_part *part = &form->parts[i];

        if (!slice_eq_str(part->name, "timestamp_granularities[]") &&
            !slice_eq_str(part->name, "timestamp_granularities"))
            continue;
        if (slice_eq_str(part->data, "segment"))
            ret->has_segments = true;
        else if (slice_eq_str(part->data, "word"))
            ret->has_words = true;
        else
            return err_add_field(e, "timestamp_granularities", "must be segment or word");
    }
    ret->has_segments = ret->has_segments || !ret->has_words;
    return 0;
}

/* "provider/model" names both. */
static void choose_model(struct request *req, const char *model, struct ears_request *wanted)
{
    const struct slice provider = { model, model ? strcspn(model, "/") : 0 };

    if (!model || !ears_is_provider(req->api->ears, provider))
        return;
    wanted->provider = arena_slicedup(req->arena, provider);
    if (model[provider.n] == '/')
        wanted->model = model + provider.n + 1;
}

static int read_request(struct request *req, struct transcription_fields *fields, struct v1_transcript_parts *parts,
                        struct ears_request *wanted, struct err *e)
{
    struct form form;
    int r = 0;

    if (!form_is_type(http_header(&req->exchange->request, "content-type")))
        return err_set(e, -EINVAL, "BAD_FORM", "The body must be a form: content-type multipart/form-data.");
    r = hearing_form_read(req, transcription_fields, fields, &form, &wanted->recording, e);
    if (r == 0)
        r = read_granularities(&form, parts, e);
    if (r == 0 && fields->stream && !is_format(fields, "json") && !is_format(fields, "text"))
        r = err_add_field(e, "response_format", "must be json or text with `stream`");
    if (r < 0)
        return r;
    choose_model(req, fields->model, wanted);
    wanted->language = fields->language;
    wanted->phrases = fields->phrases;
    wanted->caller = req->caller->actor;
    wanted->is_gone = &req->exchange->is_gone;
    return 0;
}

static void add_headers(struct request *req, const struct transcription_fields *fields)
{
    bool has_prompt = fields->prompt && *fields->prompt;

    if (has_prompt || fields->temperature > 0)
        http_response_header(req->exchange, "x-hearth-ignored",
                             has_prompt && fields->temperature > 0 ? "prompt, temperature"
                             : has_prompt                          ? "prompt"
                                                                   : "temperature");
}

/* ---- events ---- */

static int push_event(struct dictation *d, const char *type, const char *member, const char *space, struct slice text)
{
    struct json_writer w;
    struct buf whole;

    buf_init(&whole, 2 * LIMIT_SPEECH_TRANSCRIPT);
    buf_add_str(&whole, space);
    buf_add_slice(&whole, text);
    buf_reset(&d->event);
    json_write_init(&w, &d->event);
    json_begin_object(&w);
    json_add_string(&w, "type", type);
    json_add_slice(&w, member, buf_slice(&whole));
    json_end(&w);
    buf_clear(&whole);
    return sse_push(d->stream, NULL, NULL, buf_slice(&d->event));
}

static int push_segment(struct dictation *d, const struct heard_segment *segment)
{
    return push_event(d, "transcript.text.delta", "delta", d->whole.n > 0 ? " " : "", slice_of(segment->text));
}

static void push_end(struct dictation *d, int r, const struct err *why)
{
    if (r == 0)
        r = push_event(d, "transcript.text.done", "text", "", buf_slice(&d->whole));
    else if (*why->code) {
        buf_reset(&d->event);
        v1_openai_form.error(&d->event, NULL, why);
        r = http_stream_push(d->stream, buf_slice(&d->event));
    }
    if (r < 0)
        return; /* the client has left */
}

static const struct dictation_form openai_events = { push_segment, push_end };

/* ---- the whole ---- */

/* The interface has the English names of languages, of which the engines here know one. */
static const char *language_of(const struct transcription_fields *fields)
{
    const char *language = fields->language;

    return !language || !*language || strcmp(language, "auto") == 0 || speech_is_english(language) ? "english"
                                                                                                   : language;
}

static void write_text(struct response *res, const struct transcription_fields *fields, const struct transcript *t)
{
    struct buf *out = response_start_raw(res, is_format(fields, "vtt")   ? "text/vtt; charset=utf-8"
                                              : is_format(fields, "srt") ? "application/x-subrip; charset=utf-8"
                                                                         : "text/plain; charset=utf-8");

    if (is_format(fields, "text")) {
        buf_add_str(out, t->text);
        buf_add_char(out, '\n');
    } else {
        v1_transcript_write_subtitles(out, t, is_format(fields, "vtt"));
    }
}

static int transcribe(struct request *req, struct response *res, struct err *e)
{
    struct transcription_fields fields = { .response_format = formats[0] };
    struct v1_transcript_parts parts;
    struct hearing_request wanted = { .keeps = false };
    struct transcript t;
    int r = read_request(req, &fields, &parts, &wanted.ears, e);

    if (r < 0)
        return r;
    add_headers(req, &fields);
    if (fields.stream)
        return dictation_answer(req, res, &wanted, &openai_events, e);
    r = transcript_read(req, &wanted, &t, e);
    if (r < 0)
        return r;
    if (is_format(&fields, "json"))
        v1_transcript_write(&res->json, &t);
    else if (is_format(&fields, "verbose_json"))
        v1_transcript_write_verbose(&res->json, &t, language_of(&fields), &parts);
    else
        write_text(res, &fields, &t);
    return 0;
}

static int refuse_translation(struct request *req, struct response *res, struct err *e)
{
    return err_set(e, -ENOTSUP, "NOT_IMPLEMENTED",
                   "Recordings are not translated here: POST /v1/audio/transcriptions gives the words that were said, "
                   "and POST /v1/chat/completions translates them.");
}

const struct route v1_transcription_routes[] = {
    { .method = HTTP_POST,
      .path = "/v1/audio/transcriptions",
      .permission = PERM_STT_TRANSCRIBE,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .is_bare = true,
      .own_body = transcription_form,
      .takes_form = true,
      .max_body = LIMIT_SPEECH_UPLOAD + LIMIT_FORM_FIELDS + (64 << 10),
      .answer = v1_transcript_shape,
      .may_stream = true,
      .error_form = &v1_openai_error,
      .handler = transcribe,
      .summary = "What is said in a recording, in OpenAI's form",
      .tag = "Compatible" },
    { .method = HTTP_POST,
      .path = "/v1/audio/translations",
      .permission = PERM_STT_TRANSCRIBE,
      .is_sdk = true,
      .is_bare = true,
      .is_refused = true,
      .status = 501,
      .own_body = transcription_form,
      .takes_form = true,
      .max_body = LIMIT_SPEECH_UPLOAD + LIMIT_FORM_FIELDS + (64 << 10),
      .error_form = &v1_openai_error,
      .handler = refuse_translation,
      .summary = "Not done here: recordings are not translated",
      .tag = "Compatible" },
    ROUTE_END,
};
