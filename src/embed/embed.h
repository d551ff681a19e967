/* Embeddings by a provider over HTTP: texts in, vectors out, in the order of the texts, all or nothing.
 *
 * A call is cut into batches as the provider's row says; batches go out side by side up to a limit, each is tried again when that may help, and
 * the first failure ends the call. embed_remote() blocks a worker; any thread. What comes back lives in the arena.
 *
 *     const struct embed_account acc = { .name = "openai", .service = embed_service_of("openai"), .base_url = url, ... };
 *     r = embed_remote(&acc, &ask, arena, &vectors, e);
 */
#pragma once

#include "base/json.h"
#include "base/json_write.h"
#include "net/http_client.h"

enum embed_purpose { EMBED_ANY, EMBED_QUERY, EMBED_DOCUMENT };   /* what the texts are in a search, for models that tell them apart */

struct embed_ask {
    const struct slice *texts; size_t n;
    enum embed_purpose purpose;
    const char *model;
    int64_t n_dimensions;               /* 0: as the model makes them */
    const atomic_bool *is_gone;         /* may be NULL */
};

struct embed_vectors {
    const float *items;                 /* n * n_dimensions */
    size_t n, n_dimensions;
    const char *model;                  /* as the provider tells it, else as asked */
    int64_t n_tokens;                   /* 0: not told */
    int64_t upstream_us;                /* waited for the provider; of batches side by side the longest row */
    int64_t retry_after_ms;             /* also on failure: what the provider asks for; 0: nothing */
};

/* The part of a call that is one request. */
struct embed_batch { const struct slice *texts; size_t n; int64_t waited_us; };

/* The elements of an answer's vectors, in the order of the batch. */
struct embed_reply { struct json_value *vectors; size_t n; const char *model; int64_t n_tokens; };

struct embed_service;

struct embed_protocol {
    const char *path;                   /* behind the base URL */
    /* What stands in a request beside its model and texts, which all take as `model` and `input`. */
    void (*write)(struct json_writer *w, const struct embed_service *service, const struct embed_ask *ask);
    /* -EBADMSG UPSTREAM_INVALID; -E2BIG when the provider took the first text of several only: then they are asked one by one. */
    int (*read)(struct json_value root, const struct embed_batch *batch, struct arena *a, struct embed_reply *ret, struct err *e);
};

extern const struct embed_protocol embed_openai, embed_ollama;

/* One vector of an answer: an array of numbers, or base64 of their bytes (little endian). read: false unless it has n finite numbers. */
size_t embed_vector_length(struct json_value vector);
bool embed_vector_read(struct json_value vector, float *ret, size_t n) MUST_CHECK;

struct embed_service {
    const char *id;                     /* of the provider */
    const struct embed_protocol *protocol;
    size_t max_batch;                   /* texts in one request */
    size_t max_tokens;                  /* of one text; 0: not known. A text of six times as many characters is refused here */
    unsigned n_parallel;                /* requests at a time */
    const char *dimensions;             /* the request's member for the dimensions wished for; NULL: "dimensions" */
    bool has_base64;                    /* asked for base64 instead of numbers: half the bytes */
    bool has_input_type;                /* is told "query" or "document" */
    bool truncates;                     /* cuts long texts silently unless told `truncation: false` */
    const char *deployment_key;         /* header of the key at addresses that embed_is_deployment(); NULL: has no such addresses */
};

extern const struct embed_service embed_services[];     /* ended by id NULL */
/* Never NULL: providers without a row are asked as generic ones. */
const struct embed_service *embed_service_of(const char *provider_id);
/* Azure's older API: `.../openai/deployments` or `.../openai/deployments/<name>`, the key in a header of its own, `api-version` in the query. */
bool embed_is_deployment(const struct embed_service *service, const char *base_url);

struct embed_account {
    const char *name;                   /* for sentences */
    const struct embed_service *service;
    const char *base_url;
    const struct http_ask_header *headers; size_t n_headers;    /* credentials among them */
    unsigned n_retries;
    int64_t connect_ms, first_byte_ms, idle_ms, total_ms;       /* as in struct http_ask */
    int64_t retry_after_max_ms;
    /* What an answer that is no 2xx means: a negative with e filled, -EAGAIN or -EBUSY when trying again may help. */
    int (*refuse)(const void *arg, int status, struct slice body, struct err *e);
    int64_t (*retry_after_ms)(const struct http_answer *answer);        /* 0: none */
    const void *arg;
};

/* -EINVAL INPUT_TOO_LONG; as http_call(); what refuse() says; -EBADMSG UPSTREAM_INVALID. Texts of the last are "it ...": the caller names the provider. */
int embed_remote(const struct embed_account *acc, const struct embed_ask *ask, struct arena *a, struct embed_vectors *ret, struct err *e) MUST_CHECK;
