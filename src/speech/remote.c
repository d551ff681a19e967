#include "speech/remote.h"

#include "base/limits.h"
#include "net/http_pull.h"

#include <string.h>
#include <strings.h>

enum { OWN_HEADERS = 3 };

int speech_remote_blame(const struct speech_account *acc, int r, struct err *e)
{
    if (r == -ECANCELED)
        return r;
    if (strcmp(e->code, "SPEECH_FAILED") == 0)
        err_prefix(e, r, "%.64s", acc->name);
    acc->blame(acc->arg, r, e);
    snprintf(e->code, sizeof(e->code), "SPEECH_FAILED");
    return -EIO;
}

static int lied(const struct speech_account *acc, struct err *e, const char *what)
{
    return speech_remote_blame(acc, err_set(e, -EBADMSG, "SPEECH_FAILED", "it sent %.80s.", what), e);
}

/* An address may have parameters, which stay at its end. */
static const char *address(const struct speech_account *acc, const char *path, struct arena *a)
{
    size_t n = strcspn(acc->base_url, "?");
    const char *parameters = acc->base_url + n;

    while (n > 0 && acc->base_url[n - 1] == '/')
        n--;
    if (*parameters && strchr(path, '?'))
        return arena_printf(a, "%.*s%s&%s", (int)n, acc->base_url, path, parameters + 1);
    return arena_printf(a, "%.*s%s%s", (int)n, acc->base_url, path, parameters);
}

static void add_headers(const struct speech_account *acc, const char *type, struct arena *a,
                        struct http_call_request *ret)
{
    struct http_call_header *headers = arena_array(a, acc->n_headers + OWN_HEADERS, sizeof(*headers));
    size_t n = 0;

    for (size_t i = 0; i < acc->n_headers; i++)
        headers[n++] = acc->headers[i];
    if (type)
        headers[n++] = (struct http_call_header){ "content-type", type };
    if (acc->service && acc->service->protocol->header.name)
        headers[n++] = acc->service->protocol->header;
    headers[n++] = (struct http_call_header){ "user-agent", "hearth" };
    ret->headers = headers;
    ret->n_headers = n;
}

void speech_remote_post(const struct speech_account *acc, const char *path, const char *type, struct buf *body,
                        struct arena *a, struct http_call_request *ret)
{
    size_t n = body->n;

    *ret = (struct http_call_request){ .method = "POST", .url = address(acc, path, a) };
    ret->body = (struct slice){ buf_to_arena(body, a), n };
    add_headers(acc, type, a, ret);
}

void speech_body_begin(struct speech_body *body)
{
    buf_init(&body->bytes, LIMIT_SPEECH_REQUEST);
    json_write_init(&body->w, &body->bytes);
    json_begin_object(&body->w);
}

void speech_body_post(struct speech_body *body, const struct speech_account *acc, const char *path, struct arena *a,
                      struct http_call_request *ret)
{
    json_end(&body->w);
    speech_remote_post(acc, path, "application/json", &body->bytes, a, ret);
}

/* ---- the answer ---- */

static int check_status(const struct speech_account *acc, const struct http_answer *answer, struct err *e)
{
    if (answer->status >= 200 && answer->status < 300)
        return 0;
    return acc->refuse(acc->arg, answer->status, answer->body, e);
}

/* Before a request: whether it may be made, and its limits of time. */
static int prepare(const struct speech_account *acc, struct http_call_request *request, const struct net_wait *wait,
                   struct err *e)
{
    int64_t left_ms;
    int r = acc->check(acc->arg, e);

    if (r < 0)
        return r;
    left_ms = net_wait_left(wait, e);
    if (left_ms < 0)
        return speech_remote_blame(acc, (int)left_ms, e);
    request->connect_ms = acc->connect_ms;
    request->total_ms = MIN(left_ms, acc->total_ms);
    request->is_moot = wait->is_leaving;
    return 0;
}

static void note(const struct speech_account *acc, int r, int status)
{
    acc->note(acc->arg, r < 0 ? r : status >= 500 ? -EIO : 0);
}

int speech_remote_call(const struct speech_account *acc, struct http_call_request *request, const struct net_wait *wait,
                       struct arena *a, struct http_answer *ret, struct err *e)
{
    int r = prepare(acc, request, wait, e);

    if (r < 0)
        return r;
    r = http_call(request, a, wait->is_gone, ret, e);
    note(acc, r, ret->status);
    return r < 0 ? speech_remote_blame(acc, r, e) : check_status(acc, ret, e);
}

/* ---- one sentence ---- */

/* The answer to one request for sound, while it is read. */
struct sound_call {
    const struct speech_account *acc;
    const struct speech_say *say;
    const struct speech_sink *sink;
    const struct net_wait *wait;
    struct http_pull *pull;
    struct speech_sound_reader reader;
    struct arena *arena;
};

static bool has_type(const struct http_answer *head, const char *wanted)
{
    const char *type = http_answer_header(head, "content-type");

    return type && strncasecmp(type, wanted, strlen(wanted)) == 0;
}

/* Small servers send no type, or one for any bytes. */
static bool is_audio(const struct http_answer *head)
{
    return !http_answer_header(head, "content-type") || has_type(head, "audio/") ||
           has_type(head, "application/octet-stream");
}

static int begin_reading(struct sound_call *c, struct err *e)
{
    const struct http_answer *head = http_pull_head(c->pull);
    const struct speech_service *service = c->acc->service;
    enum speech_sound_form form = service->raw_rate ? SPEECH_SOUND_RAW : SPEECH_SOUND_FILE;

    if (has_type(head, "text/event-stream") && speech_service_sends_events(service, c->say->model))
        form = SPEECH_SOUND_EVENTS;
    else if (!is_audio(head))
        return lied(c->acc, e, http_answer_header(head, "content-type"));
    speech_sound_reader_init(&c->reader, form, service->raw_rate, c->sink);
    return 0;
}

/* How the connection ended is told to the account; a lie is no failure of the connection. */
static int read_sound(struct sound_call *c, struct err *e)
{
    struct slice bytes = { NULL, 1 };
    int r = 0, read_r = 0;

    while (r == 0 && read_r == 0 && bytes.n > 0 && !c->reader.is_done) {
        read_r = http_pull_read(c->pull, c->wait, &bytes, e);
        if (read_r == 0 && bytes.n > 0)
            r = speech_sound_reader_feed(&c->reader, bytes, e);
    }
    note(c->acc, r < 0 ? -ECANCELED : read_r, http_pull_head(c->pull)->status);
    if (c->reader.sink_r < 0)
        return c->reader.sink_r;
    r = MIN(r, read_r);
    if (r == 0)
        r = speech_sound_reader_end(&c->reader, e);
    return r < 0 ? speech_remote_blame(c->acc, r, e) : 0;
}

static int refuse_status(struct sound_call *c, struct err *e)
{
    struct http_answer answer = *http_pull_head(c->pull);
    struct buf body;
    int r;

    buf_init(&body, LIMIT_SPEECH_REFUSAL);
    r = http_pull_read_all(c->pull, c->wait, &body, NULL);
    note(c->acc, r == -EMSGSIZE ? 0 : r, answer.status);
    answer.body = buf_slice(&body);
    r = check_status(c->acc, &answer, e);
    buf_clear(&body);
    return r;
}

static int take_answer(struct sound_call *c, struct slice *ret, struct err *e)
{
    const struct http_answer *head = http_pull_head(c->pull);
    int r;

    if (head->status < 200 || head->status >= 300)
        return refuse_status(c, e);
    r = begin_reading(c, e);
    if (r < 0)
        return r;
    r = read_sound(c, e);
    if (r == 0)
        ret->n = speech_sound_reader_file(&c->reader).n;
    if (r == 0 && ret->n > 0)
        ret->p = buf_to_arena(&c->reader.file, c->arena);
    speech_sound_reader_clear(&c->reader);
    return r;
}

/* What is heard at once may take as long as it is spoken, while it goes on. */
static void limit_live(const struct speech_account *acc, const struct net_wait *wait, struct http_call_request *request)
{
    request->first_byte_ms = request->idle_ms = acc->total_ms;
    request->total_ms = wait->total_ms;
}

static int request_sound(struct sound_call *c, struct slice *ret, struct err *e)
{
    struct http_call_request request;
    int r;

    c->acc->service->protocol->say(c->acc, c->say, c->arena, &request);
    r = prepare(c->acc, &request, c->wait, e);
    if (r < 0)
        return r;
    request.max_reply =
        speech_service_sends_events(c->acc->service, c->say->model) ? LIMIT_SPEECH_EVENTS : LIMIT_SPEECH_REPLY;
    if (c->sink->is_live)
        limit_live(c->acc, c->wait, &request);
    c->pull = http_pull_new();
    r = http_pull_open(c->pull, &request, c->wait, e);
    if (r < 0) {
        note(c->acc, r, 0);
        r = speech_remote_blame(c->acc, r, e);
    } else {
        r = take_answer(c, ret, e);
    }
    http_pull_free(c->pull);
    return r;
}

/* A program of this machine gives the sound at its end. */
static int run_program(const struct sound_call *c, struct slice *ret, struct err *e)
{
    struct speech_pcm sound = { { NULL, 0 }, 0 };
    int r = c->acc->service->protocol->run(c->acc, c->say, c->wait, c->arena, &sound, e);

    if (r < 0)
        return r != -ENODEV ? speech_remote_blame(c->acc, r, e) : r;
    if (sound.rate > 0)
        return c->sink->take(c->sink->arg, &sound, e);
    *ret = sound.samples;
    return 0;
}

int speech_remote_say(const struct speech_account *acc, const struct speech_say *say, const struct speech_sink *sink,
                      const struct net_wait *wait, struct arena *a, struct slice *ret, struct err *e)
{
    struct sound_call call = { .acc = acc, .say = say, .sink = sink, .wait = wait, .arena = a };

    *ret = (struct slice){ NULL, 0 };
    return acc->service->protocol->run ? run_program(&call, ret, e) : request_sound(&call, ret, e);
}

/* ---- voices ---- */

static bool has_no_list(const struct http_answer *answer)
{
    return answer->status == 404 || answer->status == 405 || answer->status == 501;
}

static int read_list(const struct speech_account *acc, struct slice body, struct arena *a,
                     struct speech_voice_list *ret, struct err *e)
{
    struct json_value root = { 0 };

    if (json_parse(a, body, &root, NULL) < 0)
        return lied(acc, e, "a list of voices that is no JSON");
    acc->service->protocol->read_voices(root, a, ret);
    return 0;
}

static void add_known(const struct speech_account *acc, struct arena *a, struct speech_voice_list *ret)
{
    for (size_t i = 0; acc->service->voices && acc->service->voices[i]; i++)
        speech_voice_add(ret, a, slice_of(acc->service->voices[i]), NULL, NULL);
}

int speech_remote_voices(const struct speech_account *acc, const struct net_wait *wait, struct arena *a,
                         struct speech_voice_list *ret, struct err *e)
{
    const char *path = acc->service->protocol->voices_path;
    struct http_call_request request = { .method = "GET", .max_reply = LIMIT_SPEECH_VOICES_REPLY };
    struct http_answer answer = { 0 };
    int r;

    *ret = (struct speech_voice_list){ NULL, 0 };
    if (acc->service->protocol->list)
        return acc->service->protocol->list(acc, a, ret, e);
    add_known(acc, a, ret);
    if (!path || ret->n > 0)
        return 0;
    request.url = address(acc, path, a);
    add_headers(acc, NULL, a, &request);
    r = speech_remote_call(acc, &request, wait, a, &answer, e);
    if (r < 0 && has_no_list(&answer)) {
        err_init(e);
        return 0;
    }
    return r < 0 ? r : read_list(acc, answer.body, a, ret, e);
}
