/* ElevenLabs (elevenlabs.io/docs/api-reference/text-to-speech/stream), Deepgram (developers.deepgram.com/reference/
 * text-to-speech) and Azure (learn.microsoft.com/azure/ai-services/speech-service/rest-text-to-speech). */
#include "speech/account.h"

#include "base/limits.h"
#include "base/percent.h"
#include "speech/remote.h"

#include <string.h>

static const char *encoded(struct arena *a, const char *text)
{
    struct buf out;

    buf_init(&out, 4096);
    percent_encode(&out, slice_of(text));
    return buf_to_arena(&out, a);
}

/* ---- ElevenLabs ---- */

static void say_elevenlabs(const struct speech_account *acc, const struct speech_say *say, struct arena *a,
                           struct http_call_request *ret)
{
    struct speech_body body;

    speech_body_begin(&body);
    json_add_slice(&body.w, "text", say->text);
    json_add_string(&body.w, "model_id", say->model);
    if (say->speed != 1) {
        json_begin_object_as(&body.w, "voice_settings");
        json_add_double(&body.w, "speed", say->speed);
        json_end(&body.w);
    }
    speech_body_post(&body, acc,
                     arena_printf(a, "/v1/text-to-speech/%s/stream?output_format=pcm_%u", encoded(a, say->voice),
                                  acc->service->raw_rate),
                     a, ret);
}

static void read_elevenlabs(struct json_value root, struct arena *a, struct speech_voice_list *ret)
{
    struct json_value item;

    for (struct json_iter it = json_iter(json_get(root, "voices")); json_next(&it, NULL, &item);)
        speech_voice_add(ret, a, json_string(json_get(item, "voice_id")), json_cstr(json_get(item, "name")), NULL);
}

const struct speech_protocol speech_elevenlabs = { .say = say_elevenlabs,
                                                   .voices_path = "/v1/voices",
                                                   .read_voices = read_elevenlabs };

/* ---- Deepgram: a voice is a model ---- */

static void say_deepgram(const struct speech_account *acc, const struct speech_say *say, struct arena *a,
                         struct http_call_request *ret)
{
    struct speech_body body;

    speech_body_begin(&body);
    json_add_slice(&body.w, "text", say->text);
    speech_body_post(&body, acc,
                     arena_printf(a, "/v1/speak?model=%s&encoding=linear16&sample_rate=24000&container=wav",
                                  encoded(a, say->voice)),
                     a, ret);
}

/* {"tts": [{"canonical_name": "aura-2-thalia-en", "name": "thalia", "languages": ["en"]}]} */
static void read_deepgram(struct json_value root, struct arena *a, struct speech_voice_list *ret)
{
    struct json_value item;

    for (struct json_iter it = json_iter(json_get(root, "tts")); json_next(&it, NULL, &item);) {
        struct json_iter languages = json_iter(json_get(item, "languages"));
        struct json_value first = { 0 };

        if (!json_next(&languages, NULL, &first))
            first = (struct json_value){ 0 };
        speech_voice_add(ret, a, json_string(json_get(item, "canonical_name")), json_cstr(json_get(item, "name")),
                         json_cstr(first));
    }
}

const struct speech_protocol speech_deepgram = { .say = say_deepgram,
                                                 .voices_path = "/v1/models",
                                                 .read_voices = read_deepgram };

/* ---- Azure: SSML ---- */

static void add_xml(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        if (c == '<' || c == '>' || c == '&' || c == '\'' || c == '"')
            buf_printf(out, "&#%d;", c);
        else if (c >= ' ' || c == '\t' || c == '\n') /* XML has no other control characters */
            buf_add_char(out, text.p[i]);
    }
}

static void say_azure(const struct speech_account *acc, const struct speech_say *say, struct arena *a,
                      struct http_call_request *ret)
{
    struct buf body;

    buf_init(&body, LIMIT_SPEECH_REQUEST);
    buf_add_str(&body, "<speak version='1.0' xmlns='http://www.w3.org/2001/10/synthesis' xml:lang='");
    add_xml(&body, slice_of(*say->language ? say->language : "en-US"));
    buf_add_str(&body, "'><voice name='");
    add_xml(&body, slice_of(say->voice));
    buf_printf(&body, "'><prosody rate='%.3f'>", say->speed);
    add_xml(&body, say->text);
    buf_add_str(&body, "</prosody></voice></speak>");
    speech_remote_post(acc, "/cognitiveservices/v1", "application/ssml+xml", &body, a, ret);
}

/* [{"ShortName": "de-DE-KatjaNeural", "DisplayName": "Katja", "Locale": "de-DE"}, ...] */
static void read_azure(struct json_value root, struct arena *a, struct speech_voice_list *ret)
{
    struct json_iter it = json_iter(root);
    struct json_value item;

    while (json_type(root) == JSON_ARRAY && json_next(&it, NULL, &item))
        speech_voice_add(ret, a, json_string(json_get(item, "ShortName")), json_cstr(json_get(item, "DisplayName")),
                         json_cstr(json_get(item, "Locale")));
}

const struct speech_protocol speech_azure = { .say = say_azure,
                                              .voices_path = "/cognitiveservices/voices/list",
                                              .read_voices = read_azure,
                                              .header = { "x-microsoft-outputformat", "riff-24khz-16bit-mono-pcm" } };
