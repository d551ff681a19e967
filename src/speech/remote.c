#include "speech/remote.h"

#include "base/limits.h"
#include "speech/ears_recording.h"

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

int speech_remote_call(const struct speech_account *acc, struct http_call_request *request, const struct net_wait *wait,
                       struct arena *a, struct http_answer *ret, struct err *e)
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
    r = http_call(request, a, wait->is_gone, ret, e);
    acc->note(acc->arg, r < 0 ? r : ret->status >= 500 ? -EIO : 0);
    return r < 0 ? speech_remote_blame(acc, r, e) : check_status(acc, ret, e);
}

/* Small servers send no type, or one for any bytes. */
static bool is_audio(const struct http_answer *answer)
{
    const char *type = http_answer_header(answer, "content-type");

    return !type || strncasecmp(type, "audio/", 6) == 0 || strncasecmp(type, "application/octet-stream", 24) == 0;
}

/* A file that is no WAV is never read in this process. */
static bool is_other_file(struct slice body)
{
    return ears_recording_kind(body) == EARS_PLAIN && memcmp(body.p, "RIFF", 4) != 0;
}

static int read_sound(const struct speech_protocol *protocol, struct slice body, struct arena *a,
                      struct speech_pcm *ret, struct err *e)
{
    if (protocol->raw_rate)
        return speech_pcm_read(body, protocol->raw_rate, ret, e);
    if (!is_other_file(body))
        return speech_wav_read(body, a, ret, e);
    *ret = (struct speech_pcm){ body, 0 };
    return 0;
}

int speech_remote_say(const struct speech_account *acc, const struct speech_say *say, const struct net_wait *wait,
                      struct arena *a, struct speech_pcm *ret, struct err *e)
{
    const struct speech_protocol *protocol = acc->service->protocol;
    struct http_call_request request;
    struct http_answer answer = { 0 };
    int r;

    if (protocol->run) {
        r = protocol->run(acc, say, wait, a, ret, e);
        return r < 0 && r != -ENODEV ? speech_remote_blame(acc, r, e) : r;
    }
    protocol->say(acc, say, a, &request);
    request.max_reply = LIMIT_SPEECH_REPLY;
    r = speech_remote_call(acc, &request, wait, a, &answer, e);
    if (r < 0)
        return r;
    if (!is_audio(&answer))
        return lied(acc, e, http_answer_header(&answer, "content-type"));
    r = read_sound(protocol, answer.body, a, ret, e);
    return r < 0 ? speech_remote_blame(acc, r, e) : 0;
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
