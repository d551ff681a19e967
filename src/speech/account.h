/* Providers of speech over HTTP that the administrator configured, as the layer above describes them: speech/ knows how
 * each kind is asked (its rows: speech/services.c, speech/ears_services.c), and not where addresses and keys are kept.
 *
 * Plain values, in the arena that they were listed in; any thread.
 *
 *     n = accounts.list(accounts.arg, arena, &items);
 *     r = speech_remote_say(&items[0], &say, &sink, &wait, arena, &file, e);
 */
#pragma once

#include "base/json.h"
#include "net/http_client.h"
#include "net/wait.h"

struct speech_service;
struct ears_service;

struct speech_account {
    const char *name;                     /* the `provider` of requests */
    const char *label;                    /* for a person */
    const struct speech_service *service; /* NULL: it does not speak */
    const struct ears_service *ears;      /* NULL: it does not hear */
    const char *base_url, *model;         /* model NULL: the service's */
    const char *const *models;            /* written by hand */
    size_t n_models;
    const struct http_call_header *headers;
    size_t n_headers; /* with the credentials */
    int64_t connect_ms, total_ms;
    int64_t list_ms; /* how long a list of voices is good */
    bool is_local;   /* a program of this machine (speech/programs.h): of the functions below it has blame() alone */
    /* Called before each request: -EAGAIN PROVIDER_UNAVAILABLE while it rests after failures, or when a server that was
     * found on this machine is no longer the user's. */
    int (*check)(const void *arg, struct err *e);
    void (*note)(const void *arg, int r); /* how the request ended: 0, or an error of http_call() */
    /* Turns an answer whose status is not 2xx into an error without secrets. */
    int (*refuse)(const void *arg, int status, struct slice body, struct err *e);
    /* Completes an error of http_call() with the provider's name, and takes secrets out of every error. */
    void (*blame)(const void *arg, int r, struct err *e);
    const void *arg;
};

/* Who knows the accounts; list NULL: there are none. */
struct speech_accounts {
    size_t (*list)(void *arg, struct arena *a, const struct speech_account **ret);
    void *arg;
};

struct speech_voice {
    const char *id;       /* what requests name; visible ASCII */
    const char *name;     /* for a person; never NULL */
    const char *language; /* "de", "de-AT"; "": any */
};

struct speech_voice_list {
    const struct speech_voice *items;
    size_t n;
};

/* One sentence. */
struct speech_say {
    struct slice text;
    const char *voice, *model, *language; /* language "": not known */
    double speed;                         /* within the service's range, or 1 */
};

struct speech_pcm;

/* Whether this model of the provider sends its sound as events. */
bool speech_service_sends_events(const struct speech_service *service, const char *model);

struct speech_protocol {
    /* Of a program of this machine, which has nothing of the members below. Errors of speech_remote_say(); the text
     * begins with "it ...". */
    int (*run)(const struct speech_account *acc, const struct speech_say *say, const struct net_wait *wait,
               struct arena *a, struct speech_pcm *ret, struct err *e);
    /* -ENODEV SPEECH_UNAVAILABLE when there are none. */
    int (*list)(const struct speech_account *acc, struct arena *a, struct speech_voice_list *ret, struct err *e);
    /* Adds method, URL, headers of its own and body to the request; everything in the arena. */
    void (*say)(const struct speech_account *acc, const struct speech_say *say, struct arena *a,
                struct http_call_request *ret);
    const char *voices_path; /* GET base URL + path lists the voices; NULL: there is no list */
    /* Appends what it finds in the list. */
    void (*read_voices)(struct json_value root, struct arena *a, struct speech_voice_list *ret);
    struct http_call_header header; /* sent with every request; name NULL: none */
};

/* One row for each preset of llm_presets that speaks. */
struct speech_service {
    const char *preset;
    const struct speech_protocol *protocol;
    const char *model;           /* when nothing names one; "": none is sent */
    const char *voice;           /* when nothing names one and there is no list */
    const char *const *models;   /* NULL-ended, for the list of providers */
    const char *const *voices;   /* NULL-ended: of a provider without a list; NULL: any name is taken */
    uint32_t raw_rate;           /* it is asked for 16-bit samples, of this rate; 0: for a WAV */
    const char *events;          /* how the names of models begin that send events (OpenAI: `stream_format: sse`) */
    size_t max_characters;       /* of one request, which has one sentence; 0: unknown */
    double min_speed, max_speed; /* what it does itself; 0: nothing, then the samples are stretched here */
};

extern const struct speech_service speech_services[];               /* ended by preset NULL */
const struct speech_service *speech_service_of(const char *preset); /* NULL: it does not speak */

extern const struct speech_protocol speech_openai, speech_piper, speech_elevenlabs, speech_deepgram, speech_azure;

/* Appends a voice whose id can be sent and whose list is not full; false: it is left out. name NULL: the id. */
bool speech_voice_add(struct speech_voice_list *list, struct arena *a, struct slice id, const char *name,
                      const char *language);
/* Whether a name of a voice can be sent: visible ASCII, at most LIMIT_SPEECH_VOICE. */
bool speech_voice_is_name(struct slice id);
