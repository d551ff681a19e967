/* Speech to text (specification, "Speech-to-text"; decision D11; docs/speech.md). */
#include "api/resources/hearing.h"

#include "api/api.h"
#include "api/routes.h"
#include "base/budget.h"
#include "http/sse.h"
#include "speech/ears_recording.h"
#include "speech/keep.h"

struct hearing_fields {
    const char *provider, *model, *language, *phrases;
    bool keeps;
};

#define HEARING_FIELDS                                                                                                 \
    EARS_FIELDS(struct hearing_fields),                                                                                \
        FIELD_BOOL(struct hearing_fields, keeps, "keep",                                                               \
                   .help = "true: the recording is kept in the caller's data folder; `path` says where")

static const struct field hearing_query[] = { HEARING_FIELDS, FIELD_END };
static const struct field hearing_form[] = { SHAPE_STRING("file", .flags = FIELD_REQUIRED, .format = "binary",
                                                          .help = "WAV, MP3, Ogg (Vorbis, Opus), FLAC or AIFF"),
                                             HEARING_FIELDS, FIELD_END };

const struct field heard_word_shape[] = { SHAPE_STRING("word"), SHAPE_DOUBLE("start", .help = "seconds"),
                                          SHAPE_DOUBLE("end"), SHAPE_DOUBLE("confidence", .help = "0 to 1"),
                                          FIELD_END };
static const struct field segment_shape[] = { SHAPE_DOUBLE("start"), SHAPE_DOUBLE("end"), SHAPE_STRING("text"),
                                              SHAPE_LIST("words", heard_word_shape), FIELD_END };
static const struct field transcript_answer[] = {
    SHAPE_STRING("text", .help = "\"\" when nobody speaks"), SHAPE_DOUBLE("duration", .help = "seconds"),
    SHAPE_LIST("segments", segment_shape),
    SHAPE_STRING("path", .flags = FIELD_OPTIONAL, .help = "of the recording, with `keep`"), FIELD_END
};

static const struct field model_shape[] = { SHAPE_STRING("id"), SHAPE_STRING("name"),
                                            SHAPE_STRING("language", .help = "\"\": any"), SHAPE_BOOL("recommended"),
                                            FIELD_END };
static const struct field provider_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("name"),
    SHAPE_STRING("description"),
    SHAPE_BOOL("configured", .help = "false: something is not installed; `note` says what"),
    SHAPE_STRING("note", .flags = FIELD_NULLABLE),
    SHAPE_LIST("models", model_shape),
    FIELD_END,
};
static const struct field providers_answer[] = { SHAPE_LIST("providers", provider_shape),
                                                 SHAPE_STRING("default", .help = "hears when a request names none"),
                                                 FIELD_END };

/* ---- the request ---- */

bool hearing_wants_events(const struct request *req)
{
    const char *accept = http_header(&req->exchange->request, "accept");

    return accept && strstr(accept, "text/event-stream");
}

int hearing_form_read(const struct request *req, const struct field *table, void *fields, struct form *ret,
                      struct slice *ret_recording, struct err *e)
{
    const struct http_request *sent = &req->exchange->request;
    const struct form_part *file;
    int r = form_read(http_header(sent, "content-type"), sent->body, ret, e);

    if (r == 0)
        r = form_fields(ret, table, fields, req->arena, e);
    if (r < 0)
        return r;
    file = form_find(ret, "file");
    if (!file)
        return err_add_field(e, "file", "must be a part of the form: the recording");
    *ret_recording = file->data;
    return 0;
}

/* The recording is the part `file` of a form, and else the whole body. */
static int read_request(struct request *req, struct hearing_request *wanted, struct err *e)
{
    struct hearing_fields fields = *(const struct hearing_fields *)req->query;
    struct ears_request *ret = &wanted->ears;
    struct form form;
    int r = 0;

    ret->recording = req->exchange->request.body;
    if (form_is_type(http_header(&req->exchange->request, "content-type")))
        r = hearing_form_read(req, hearing_query, &fields, &form, &ret->recording, e);
    ret->provider = fields.provider;
    ret->model = fields.model;
    ret->language = fields.language;
    ret->phrases = fields.phrases;
    ret->is_gone = &req->exchange->is_gone;
    wanted->keeps = fields.keeps;
    return r;
}

/* ---- the whole transcript ---- */

static struct heard_segment *add_segment(struct transcript *t, struct arena *a)
{
    if (t->n == t->n_allocated) {
        struct heard_segment *grown = arena_array(a, MAX(t->n_allocated * 2, (size_t)8), sizeof(*grown));

        if (t->n > 0)
            memcpy(grown, t->segments, t->n * sizeof(*grown));
        t->segments = grown;
        t->n_allocated = MAX(t->n_allocated * 2, (size_t)8);
    }
    return &t->segments[t->n++];
}

static int hear_all(struct request *req, struct hearing *h, struct transcript *t, struct buf *text, struct err *e)
{
    struct heard_segment segment;
    int r;

    while ((r = hearing_next(h, req->arena, &segment, e)) == 1) {
        buf_add_str(text, t->n > 0 ? " " : "");
        buf_add_str(text, segment.text);
        *add_segment(t, req->arena) = segment;
    }
    t->duration = hearing_duration(h);
    return r < 0 ? r : buf_check(text, e);
}

/* What nobody could read is not kept. */
static int start(struct request *req, struct hearing_request *wanted, struct hearing **ret, struct err *e)
{
    const struct speech_keeper keeper = { req->api->data_dir, req->caller->scope };
    const struct slice recording = wanted->ears.recording;
    int r = heard_begin_request(req, &wanted->count, e);

    if (r == 0 && wanted->keeps && req->exchange->purse.holder)
        r = budget_check(req->exchange->purse.holder, BUDGET_DISK, 1, e);
    if (r == 0)
        r = hearing_start(req->api->ears, &wanted->ears, ret, e);
    if (r == 0 && wanted->keeps)
        r = speech_keep_file(&keeper, recording, ears_recording_ending(recording), req->arena, &wanted->path, e);
    if (r < 0) {
        heard_end(&wanted->count, (struct ears_who){ NULL, NULL }, 0, r);
        *ret = hearing_end(*ret);
    }
    return r;
}

int transcript_read(struct request *req, struct hearing_request *wanted, struct transcript *ret, struct err *e)
{
    struct hearing *h = NULL;
    struct buf text;
    int r = start(req, wanted, &h, e);

    *ret = (struct transcript){ .text = "" };
    if (r < 0)
        return r;
    http_exchange_forget_body(req->exchange);
    buf_init(&text, 2 * LIMIT_SPEECH_TRANSCRIPT);
    r = hear_all(req, h, ret, &text, e);
    ret->text = buf_to_arena(&text, req->arena);
    heard_end(&wanted->count, hearing_who(h), ret->duration, r);
    hearing_end(h);
    return r;
}

void heard_words_write(struct json_writer *w, const struct heard_segment *segment)
{
    for (size_t i = 0; i < segment->n_words; i++) {
        json_begin_object(w);
        json_add_string(w, "word", segment->words[i].text);
        json_add_double(w, "start", segment->words[i].start);
        json_add_double(w, "end", segment->words[i].end);
        json_add_double(w, "confidence", segment->words[i].confidence);
        json_end(w);
    }
}

static void write_segment(struct json_writer *w, const struct heard_segment *segment)
{
    json_begin_object(w);
    json_add_double(w, "start", segment->start);
    json_add_double(w, "end", segment->end);
    json_add_string(w, "text", segment->text);
    json_begin_array_as(w, "words");
    heard_words_write(w, segment);
    json_end(w);
    json_end(w);
}

static int answer_whole(struct request *req, struct response *res, struct hearing_request *wanted, struct err *e)
{
    struct transcript t;
    struct json_writer *w = &res->json;
    int r = transcript_read(req, wanted, &t, e);

    if (r < 0)
        return r;
    json_add_string(w, "text", t.text);
    json_add_double(w, "duration", t.duration);
    json_begin_array_as(w, "segments");
    for (size_t i = 0; i < t.n; i++)
        write_segment(w, &t.segments[i]);
    json_end(w);
    if (wanted->path)
        json_add_string(w, "path", wanted->path);
    return 0;
}

/* ---- the stream ---- */

static int push_segment(struct dictation *d, const struct heard_segment *segment)
{
    struct json_writer w;

    buf_reset(&d->event);
    json_write_init(&w, &d->event);
    write_segment(&w, segment);
    return sse_push(d->stream, "segment", NULL, buf_slice(&d->event));
}

static void push_end(struct dictation *d, int r, const struct err *why)
{
    struct json_writer w;

    buf_reset(&d->event);
    json_write_init(&w, &d->event);
    json_begin_object(&w);
    if (r < 0) {
        json_add_string(&w, "error", why->text);
        json_add_string(&w, "code", why->code);
    } else {
        json_add_slice(&w, "text", buf_slice(&d->whole));
        json_add_double(&w, "duration", hearing_duration(d->hearing));
        if (d->path)
            json_add_string(&w, "path", d->path);
    }
    json_end(&w);
    if (sse_push(d->stream, r < 0 ? "error" : "final", NULL, buf_slice(&d->event)) < 0)
        return; /* the client has left */
}

static const struct dictation_form sdk_events = { push_segment, push_end };

/* 0, or why there is no whole transcript. */
static int dictate(struct dictation *d)
{
    struct heard_segment segment;
    struct err e;
    int r = 1;

    err_init(&e);
    while (r == 1) {
        AUTO(arena_freep) struct arena *a = arena_new();

        r = hearing_next(d->hearing, a, &segment, &e);
        if (r != 1)
            break;
        if (d->form->segment(d, &segment) < 0)
            return -ECANCELED; /* the client has left */
        buf_add_str(&d->whole, d->whole.n > 0 ? " " : "");
        buf_add_str(&d->whole, segment.text);
    }
    d->form->end(d, r, &e);
    return r;
}

int dictation_answer(struct request *req, struct response *res, struct hearing_request *wanted,
                     const struct dictation_form *form, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new(); /* the exchange may end first */
    struct dictation d = { .form = form };
    int r = start(req, wanted, &d.hearing, e);

    if (r < 0)
        return r;
    d.path = wanted->path ? arena_strdup(a, wanted->path) : NULL;
    buf_init(&d.whole, 2 * LIMIT_SPEECH_TRANSCRIPT);
    buf_init(&d.event, LIMIT_STREAM_PUSH);
    d.stream = request_take_events(req, res);
    r = dictate(&d);
    heard_end(&wanted->count, hearing_who(d.hearing), hearing_duration(d.hearing), r);
    hearing_end(d.hearing); /* the exchange, and is_gone with it, may end with the stream */
    http_stream_end(d.stream);
    buf_clear(&d.whole);
    buf_clear(&d.event);
    return 0;
}

static int transcribe(struct request *req, struct response *res, struct err *e)
{
    struct hearing_request wanted = { .ears.caller = req->caller->actor };
    int r = read_request(req, &wanted, e);

    if (r < 0)
        return r;
    return hearing_wants_events(req) ? dictation_answer(req, res, &wanted, &sdk_events, e)
                                     : answer_whole(req, res, &wanted, e);
}

/* ---- the providers ---- */

static void write_model(struct json_writer *w, const struct ears_model *model, bool is_best)
{
    json_begin_object(w);
    json_add_string(w, "id", model->id);
    json_add_string(w, "name", model->name);
    json_add_string(w, "language", model->language);
    json_add_bool(w, "recommended", is_best);
    json_end(w);
}

static void write_provider(struct json_writer *w, const struct ears_provider *provider)
{
    json_begin_object(w);
    json_add_string(w, "id", provider->id);
    json_add_string(w, "name", provider->name);
    json_add_string(w, "description", provider->description);
    json_add_bool(w, "configured", provider->is_configured);
    json_add_string(w, "note", provider->note);
    json_begin_array_as(w, "models");
    for (size_t i = 0; i < provider->n_models; i++)
        write_model(w, &provider->models[i], i == 0);
    json_end(w);
    json_end(w);
}

static int list_providers(struct request *req, struct response *res, struct err *e)
{
    const struct ears_provider *providers;
    size_t n = ears_providers(req->api->ears, req->arena, &providers);
    struct json_writer *w = &res->json;

    json_begin_array_as(w, "providers");
    for (size_t i = 0; i < n; i++)
        write_provider(w, &providers[i]);
    json_end(w);
    json_add_string(w, "default", providers[0].id);
    return 0;
}

const struct route hearing_routes[] = {
    { .method = HTTP_GET,
      .path = "/sdk/stt/providers",
      .permission = PERM_NONE,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      .answer = providers_answer,
      .handler = list_providers,
      .summary = "Engines that hear, with their models",
      .tag = "Speech" },
    { .method = HTTP_POST,
      .path = "/sdk/stt/transcribe",
      .permission = PERM_STT_TRANSCRIBE,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      ROUTE_QUERY(hearing_query, struct hearing_fields),
      .own_body = hearing_form,
      .takes_form = true,
      .max_body = LIMIT_SPEECH_UPLOAD + LIMIT_FORM_FIELDS + (64 << 10),
      .answer = transcript_answer,
      .handler = transcribe,
      .summary = "What is said in a recording; by Server-Sent Events when `accept` asks for them",
      .tag = "Speech" },
    ROUTE_END,
};
