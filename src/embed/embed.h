/* Embeddings by a provider over HTTP: texts in, vectors out, in the order of the texts, all or nothing.
 *
 * A call is cut into batches by the provider's row. Batches are sent in parallel up to a limit, each is tried again
 * when a retry may help, and the first failure ends the call. embed_remote() blocks a worker; any thread. Results live
 * in the arena.
 *
 *     const struct embed_account acc = { .name = "openai", .service = embed_service_of("openai"), .base_url = url };
 *     r = embed_remote(&acc, &request, arena, &vectors, e);
 */
#pragma once

#include "base/json.h"
#include "base/json_write.h"
#include "net/http_client.h"

enum embed_purpose {
    EMBED_ANY,
    EMBED_QUERY,
    EMBED_DOCUMENT
}; /* the role of the texts in a search, for models that distinguish the roles */

struct embed_request {
    const struct slice *texts;
    size_t n;
    enum embed_purpose purpose;
    const char *model;
    int64_t n_dimensions;       /* 0: the model's own number */
    const atomic_bool *is_gone; /* may be NULL */
};

struct embed_vectors {
    const float *items; /* n * n_dimensions */
    size_t n, n_dimensions;
    const char *model;      /* the name in the provider's answer, else the requested name */
    int64_t n_tokens;       /* 0: not in the answer */
    int64_t upstream_us;    /* time spent waiting for the provider; with parallel batches the longest sequence */
    int64_t retry_after_ms; /* the provider's requested delay, also on failure; 0: none */
};

/* The part of a call that is one request. */
struct embed_batch {
    const struct slice *texts;
    size_t n;
    int64_t waited_us;
};

/* The elements of an answer's vectors, in the order of the batch. */
struct embed_reply {
    struct json_value *vectors;
    size_t n;
    const char *model;
    int64_t n_tokens;
};

struct embed_service;

struct embed_protocol {
    const char *path; /* appended to the base URL */
    /* Writes the members of a request other than `model` and `input`, which all services take. */
    void (*write)(struct json_writer *w, const struct embed_service *service, const struct embed_request *request);
    /* -EBADMSG UPSTREAM_INVALID; -E2BIG when the provider used only the first of several texts: then the texts are sent
     * one by one. */
    int (*read)(struct json_value root, const struct embed_batch *batch, struct arena *a, struct embed_reply *ret,
                struct err *e);
    /* Answers inside this process, in the arena; NULL: over HTTP. */
    struct http_inside *(*answer)(const struct embed_request *request, const struct embed_batch *batch,
                                  struct arena *a);
};

extern const struct embed_protocol embed_openai, embed_ollama, embed_stand_in;

/* One vector of an answer: an array of numbers, or base64 of their bytes (little endian). embed_vector_read(): false
 * unless the vector has n finite numbers. */
size_t embed_vector_length(struct json_value vector);
bool embed_vector_read(struct json_value vector, float *ret, size_t n) MUST_CHECK;

struct embed_service {
    const char *id; /* of the provider */
    const struct embed_protocol *protocol;
    size_t max_batch;  /* texts in one request */
    size_t max_tokens; /* of one text; 0: unknown. A text with more than six times as many characters is refused here */
    unsigned n_parallel;        /* concurrent requests */
    const char *dimensions;     /* the request's member for the requested number of dimensions; NULL: "dimensions" */
    bool has_base64;            /* accepts a request for base64 instead of numbers: half the bytes */
    bool has_input_type;        /* takes the input type "query" or "document" */
    bool truncates;             /* cuts long texts silently unless the request has `truncation: false` */
    const char *deployment_key; /* header of the key at addresses for which embed_is_deployment() is true; NULL: no such
                                   addresses */
};

extern const struct embed_service embed_services[]; /* ended by id NULL */
/* Never NULL: providers without a row get the generic one. */
const struct embed_service *embed_service_of(const char *provider_id);
/* Azure's older API: `.../openai/deployments` or `.../openai/deployments/<name>`, the key in a separate header,
 * `api-version` in the query. */
bool embed_is_deployment(const struct embed_service *service, const char *base_url);

struct embed_account {
    const char *name; /* for messages */
    const struct embed_service *service;
    const char *base_url;
    const struct http_call_header *headers;
    size_t n_headers; /* including credentials */
    unsigned n_retries;
    int64_t connect_ms, first_byte_ms, idle_ms, total_ms; /* as in struct http_call_request */
    int64_t retry_after_max_ms;
    /* Translates an answer whose status is not 2xx: a negative with e filled, -EAGAIN or -EBUSY when a retry may help.
     */
    int (*refuse)(const void *arg, int status, struct slice body, struct err *e);
    int64_t (*retry_after_ms)(const struct http_answer *answer); /* 0: none */
    const void *arg;
};

/* -EINVAL INPUT_TOO_LONG; errors of http_call(); errors of refuse(); -EBADMSG UPSTREAM_INVALID. Texts of the last begin
 * with "it ...": the caller prepends the provider's name. */
int embed_remote(const struct embed_account *acc, const struct embed_request *request, struct arena *a,
                 struct embed_vectors *ret, struct err *e) MUST_CHECK;
