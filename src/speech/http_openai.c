/* OpenAI's speech (platform.openai.com/docs/api-reference/audio/createSpeech), which Kokoro-FastAPI, LocalAI, Lemonade
 * and Hearth itself take too, and Piper's own HTTP server (github.com/OHF-Voice/piper1-gpl, docs/API_HTTP.md). */
#include "speech/account.h"

#include "speech/remote.h"

#include <string.h>

static void say_openai(const struct speech_account *acc, const struct speech_say *say, struct arena *a,
                       struct http_call_request *ret)
{
    struct speech_body body;

    speech_body_begin(&body);
    json_add_string(&body.w, "model", say->model);
    json_add_slice(&body.w, "input", say->text);
    json_add_string(&body.w, "voice", say->voice);
    json_add_string(&body.w, "response_format", acc->service->raw_rate ? "pcm" : "wav");
    if (speech_service_sends_events(acc->service, say->model))
        json_add_string(&body.w, "stream_format", "sse");
    if (say->speed != 1)
        json_add_double(&body.w, "speed", say->speed);
    speech_body_post(&body, acc, "/audio/speech", a, ret);
}

/* {"voices": ["af_bella", ...]}, {"voices": [{"id", "name", "language"}, ...]} or the list alone. */
static void read_openai(struct json_value root, struct arena *a, struct speech_voice_list *ret)
{
    struct json_value list = json_type(root) == JSON_ARRAY ? root : json_get(root, "voices"), item;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);) {
        bool is_object = json_type(item) == JSON_OBJECT;
        struct slice id = json_string(is_object ? json_get(item, "id") : item);

        if (is_object && id.n == 0)
            id = json_string(json_get(item, "name"));
        speech_voice_add(ret, a, id, is_object ? json_cstr(json_get(item, "name")) : NULL,
                         is_object ? json_cstr(json_get(item, "language")) : NULL);
    }
}

const struct speech_protocol speech_openai = {
    .say = say_openai,
    .voices_path = "/audio/voices",
    .read_voices = read_openai,
};

static void say_piper(const struct speech_account *acc, const struct speech_say *say, struct arena *a,
                      struct http_call_request *ret)
{
    struct speech_body body;

    speech_body_begin(&body);
    json_add_slice(&body.w, "text", say->text);
    if (*say->voice)
        json_add_string(&body.w, "voice", say->voice);
    if (say->speed != 1)
        json_add_double(&body.w, "length_scale", 1 / say->speed);
    speech_body_post(&body, acc, "/", a, ret);
}

/* {"de_DE-thorsten-medium": {"language": {"code": "de_DE"}, ...}, ...} */
static void read_piper(struct json_value root, struct arena *a, struct speech_voice_list *ret)
{
    struct json_iter it = json_iter(root);
    struct json_value item;
    struct slice id;

    while (json_type(root) == JSON_OBJECT && json_next(&it, &id, &item)) {
        const char *code = json_cstr(json_get(json_get(item, "language"), "code"));

        speech_voice_add(ret, a, id, NULL, code ? code : arena_strndup(a, id.p, strcspn(id.p, "-")));
    }
}

const struct speech_protocol speech_piper = { .say = say_piper, .voices_path = "/voices", .read_voices = read_piper };
