/* OpenAI's transcriptions (platform.openai.com/docs/api-reference/audio/createTranscription), which whisper.cpp's
 * server (examples/server/README.md, /inference) answers in the same form, and Deepgram's
 * (developers.deepgram.com/reference/ speech-to-text/listen-pre-recorded). */
#include "speech/ears_services.h"

#include "base/limits.h"
#include "base/percent.h"
#include "base/uuid.h"
#include "speech/remote.h"

#include <string.h>

/* ---- what is sent ---- */

static const struct {
    size_t at;
    const char *bytes, *extension, *type;
} kinds[] = {
    { 0, "RIFF", "wav", "audio/wav" },   { 0, "OggS", "ogg", "audio/ogg" },
    { 0, "fLaC", "flac", "audio/flac" }, { 0, "ID3", "mp3", "audio/mpeg" },
    { 4, "ftyp", "m4a", "audio/mp4" },   { 0, "\x1a\x45\xdf\xa3", "webm", "audio/webm" },
};

/* OpenAI goes by the extension of the file's name. */
static size_t kind_of(struct slice recording)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        size_t n = strlen(kinds[i].bytes);

        if (recording.n >= kinds[i].at + n && memcmp(recording.p + kinds[i].at, kinds[i].bytes, n) == 0)
            return i;
    }
    return recording.n > 1 && (unsigned char)recording.p[0] == 0xff ? 3 : 0;
}

static void add_field(struct buf *body, const char *boundary, const char *name, const char *value)
{
    buf_printf(body, "--%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n", boundary, name, value);
}

static bool has_times(const char *model)
{
    return strncmp(model, "gpt-", 4) != 0;
}

static void request_openai(const struct speech_account *acc, const struct ears_job *job, struct arena *a,
                           struct http_call_request *ret)
{
    size_t kind = kind_of(job->recording);
    char boundary[UUID_SIZE];
    struct buf body;

    uuid_v4(boundary);
    buf_init(&body, LIMIT_SPEECH_UPLOAD + LIMIT_SPEECH_REQUEST);
    add_field(&body, boundary, "model", job->model);
    add_field(&body, boundary, "response_format", has_times(job->model) ? "verbose_json" : "json");
    if (has_times(job->model)) {
        add_field(&body, boundary, "timestamp_granularities[]", "segment");
        add_field(&body, boundary, "timestamp_granularities[]", "word");
    }
    if (job->language)
        add_field(&body, boundary, "language", job->language);
    buf_printf(&body,
               "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"recording.%s\"\r\n"
               "Content-Type: %s\r\n\r\n",
               boundary, kinds[kind].extension, kinds[kind].type);
    buf_add_slice(&body, job->recording);
    buf_printf(&body, "\r\n--%s--\r\n", boundary);
    speech_remote_post(acc, acc->ears->path, arena_printf(a, "multipart/form-data; boundary=%s", boundary), &body, a,
                       ret);
}

static void add_parameter(struct buf *path, const char *name, const char *value)
{
    buf_printf(path, "&%s=", name);
    percent_encode(path, slice_of(value));
}

static void request_deepgram(const struct speech_account *acc, const struct ears_job *job, struct arena *a,
                             struct http_call_request *ret)
{
    struct buf path, body;

    buf_init(&path, LIMIT_SPEECH_REQUEST);
    buf_printf(&path, "%s?smart_format=true&utterances=true", acc->ears->path);
    add_parameter(&path, "model", job->model);
    add_parameter(&path, job->language ? "language" : "detect_language", job->language ? job->language : "true");
    buf_init(&body, LIMIT_SPEECH_UPLOAD);
    buf_add_slice(&body, job->recording);
    speech_remote_post(acc, buf_to_arena(&path, a), kinds[kind_of(job->recording)].type, &body, a, ret);
}

/* ---- what comes back ---- */

static int refuse(struct err *e, const char *why)
{
    return err_set(e, -EBADMSG, "SPEECH_FAILED", "it sent %s.", why);
}

/* Seconds; what no recording can have is brought into it. LocalAI sends nanoseconds, as the encoder of Go writes
 * durations: a number above a million is one of these. */
static double time_of(struct json_value v)
{
    double s = json_double(v);

    if (s > 1e6)
        s /= 1e9;
    return s > 0 ? MIN(s, (double)LIMIT_SPEECH_RECORDING_S) : 0;
}

static const char *trimmed(struct arena *a, struct slice text)
{
    while (text.n > 0 && (unsigned char)text.p[0] <= ' ')
        text = (struct slice){ text.p + 1, text.n - 1 };
    while (text.n > 0 && (unsigned char)text.p[text.n - 1] <= ' ')
        text.n--;
    return arena_slicedup(a, text);
}

static struct slice text_of(struct json_value v, const char *first, const char *second)
{
    struct slice text = json_string(json_get(v, first));

    return text.n > 0 ? text : json_string(json_get(v, second));
}

/* An OpenAI word has no confidence; whisper.cpp calls it probability. */
static double confidence_of(struct json_value word)
{
    struct json_value v = json_get(word, "confidence");

    if (json_is_absent(v))
        v = json_get(word, "probability");
    return json_is_absent(v) ? 1 : MAX(0.0, MIN(1.0, json_double(v)));
}

static struct heard_word *read_words(struct json_value list, struct arena *a, size_t *ret_n)
{
    struct heard_word *words = arena_array(a, json_length(list) + 1, sizeof(*words));
    struct json_value item;
    size_t n = 0;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);) {
        const char *text = trimmed(a, text_of(item, "punctuated_word", "word"));
        double start = time_of(json_get(item, "start"));

        if (*text)
            words[n++] =
                (struct heard_word){ text, start, MAX(start, time_of(json_get(item, "end"))), confidence_of(item) };
    }
    *ret_n = n;
    return words;
}

/* Segments without text are left out; words may be in them or come after. */
static size_t read_segments(struct json_value list, const char *text_name, struct arena *a, struct heard_segment *ret)
{
    struct json_value item;
    size_t n = 0;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);) {
        const char *text = trimmed(a, json_string(json_get(item, text_name)));
        double start = time_of(json_get(item, "start"));

        if (!*text)
            continue;
        ret[n] = (struct heard_segment){ .text = text, .start = start };
        ret[n].end = MAX(start, time_of(json_get(item, "end")));
        ret[n].words = read_words(json_get(item, "words"), a, &ret[n].n_words);
        n++;
    }
    return n;
}

/* A word belongs to the last segment that begins before it; both are in order, what is not stays where it is. */
static void share_words(struct heard_segment *segments, size_t n, const struct heard_word *words, size_t n_words)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        size_t from = at;

        while (at < n_words && (i + 1 == n || words[at].start < segments[i + 1].start))
            at++;
        segments[i].words = words + from;
        segments[i].n_words = at - from;
    }
}

/* {"text", "duration", "segments": [{"start", "end", "text", "words"}], "words": [{"word", "start", "end"}]}; only
 * `text` is certain. */
static int read_openai(struct json_value root, struct arena *a, struct ears_heard *ret, struct err *e)
{
    struct json_value list = json_get(root, "segments"), text = json_get(root, "text");
    struct heard_segment *segments = arena_array(a, json_length(list) + 1, sizeof(*segments));
    size_t n_words = 0;
    const struct heard_word *words = read_words(json_get(root, "words"), a, &n_words);

    if (json_type(text) != JSON_STRING)
        return refuse(e, "no transcript");
    ret->duration = time_of(json_get(root, "duration"));
    ret->n = read_segments(list, "text", a, segments);
    if (ret->n == 0 && *trimmed(a, json_string(text)))
        segments[ret->n++] = (struct heard_segment){ .text = trimmed(a, json_string(text)), .end = ret->duration };
    if (n_words > 0)
        share_words(segments, ret->n, words, n_words);
    ret->segments = segments;
    if (ret->n > 0)
        ret->duration = MAX(ret->duration, segments[ret->n - 1].end);
    return 0;
}

/* {"metadata": {"duration"}, "results": {"utterances": [{"start", "end", "transcript", "words"}], "channels": [...]}}
 */
static int read_deepgram(struct json_value root, struct arena *a, struct ears_heard *ret, struct err *e)
{
    struct json_value results = json_get(root, "results"), list = json_get(results, "utterances");
    struct heard_segment *segments = arena_array(a, json_length(list) + 1, sizeof(*segments));

    if (json_type(results) != JSON_OBJECT || json_type(list) != JSON_ARRAY)
        return refuse(e, "no transcript");
    ret->duration = time_of(json_get(json_get(root, "metadata"), "duration"));
    ret->n = read_segments(list, "transcript", a, segments);
    ret->segments = segments;
    return 0;
}

const struct ears_protocol ears_openai = { request_openai, read_openai };
const struct ears_protocol ears_deepgram = { request_deepgram, read_deepgram };
