/* Providers over HTTP that hear: one row for each preset of llm_presets that does (speech/ears_services.c), and the
 * readers of their answers. A configured provider becomes an engine of speech/ears_engine.h.
 *
 *     ears_http_engine(&account, &engine);        r = engine.begin(&engine, &context, &job, &wait, &run, e);
 */
#pragma once

#include "speech/ears_engine.h"

/* What a provider heard; in the arena. */
struct ears_heard {
    const struct heard_segment *segments;
    size_t n;
    double duration;
};

struct ears_protocol {
    /* Adds method, URL, headers and body; the recording is borrowed or copied to the arena. */
    void (*request)(const struct speech_account *acc, const struct ears_job *job, struct arena *a,
                    struct http_call_request *ret);
    /* -EBADMSG SPEECH_FAILED; the text begins with "it ...". */
    int (*read)(struct json_value root, struct arena *a, struct ears_heard *ret, struct err *e);
};

struct ears_service {
    const char *preset;
    const struct ears_protocol *protocol;
    const char *path;
    const char *const *models; /* NULL-ended, the best first */
};

extern const struct ears_service ears_services[];               /* ended by preset NULL */
const struct ears_service *ears_service_of(const char *preset); /* NULL: it does not hear */

extern const struct ears_protocol ears_openai, ears_deepgram;

/* Makes an engine of an account that hears; both are borrowed by its runs. */
void ears_http_engine(const struct speech_account *acc, struct ears_engine *ret);
