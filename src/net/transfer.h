/* One request on a libcurl easy handle: the common part of http_call() and http_fetch_start(). Private to src/net.
 * Requests without libcurl (net/plain.h) have no handle; the head's limits, time limits and errors are the same.
 *
 * Embedded in its owner, which keeps the request's body alive until transfer_clear(). One thread at a time.
 */
#pragma once

#include "net/http_client.h"

#include <curl/curl.h>

/* A handle that has made a request and is set up for the next one to the same address: no callback, rule or part of the
 * address is set anew. It holds neither a key nor a body. */
struct transfer_kit {
    CURL *easy;     /* owned, as all members; NULL: none */
    CURLU *address; /* url, parsed; NULL before the first reuse */
    char *url;      /* NULL: no other request can use the handle */
    char *peer;
    long buffer_bytes;
};

struct transfer {
    CURL *easy;                 /* owned; NULL: a request without libcurl */
    struct transfer_kit kit;    /* owned; without easy and peer, which are here */
    struct curl_slist *headers; /* owned */
    struct arena *arena;        /* owned; of the head; NULL before the first header and after on_head */
    struct http_answer head;
    size_t n_head_bytes, cap_headers;
    char *peer;                     /* owned; "api.example.org:443", for error texts */
    const struct guard *guard;      /* borrowed; NULL: every address but the service's own is allowed */
    struct err *refusal;            /* owned; of the last refused address; NULL: none */
    int64_t first_byte_ms, idle_ms; /* 0: none */
    int64_t began_ms, heard_ms;     /* clock_mono_ms() */
    int64_t until_ms;               /* the end of the total, for an answer made inside; 0: none, or libcurl counts */
    bool is_answered;               /* the head is complete */
    bool is_connected;              /* without easy: the peer has accepted a connection */
    bool is_paused;                 /* the reader of the bytes wants no more for now */
    int stop;                       /* negative: why a callback ended it */
    struct err *why;                /* owned; set with stop; NULL: the code that set stop has the error */
    char detail[CURL_ERROR_SIZE];

    void (*on_head)(struct transfer *t);
    /* Returns how many bytes were taken: all, or CURL_WRITEFUNC_PAUSE, or fewer with t->stop set. */
    size_t (*on_bytes)(struct transfer *t, struct slice bytes);
};

/* Takes ownership of easy. buffer_bytes: libcurl's receive buffer. */
int transfer_init(struct transfer *t, CURL *easy, const struct http_call_request *request, long buffer_bytes,
                  struct err *e) MUST_CHECK;
/* For an answer made inside this process: easy stays NULL, the owner delivers the pieces. */
void transfer_init_inside(struct transfer *t, const struct http_call_request *request);
void transfer_clear(struct transfer *t);
bool transfer_kit_fits(const struct transfer_kit *kit, const struct http_call_request *request, long buffer_bytes);
int transfer_init_again(struct transfer *t, struct transfer_kit *kit /* taken over */,
                        const struct http_call_request *request, struct err *e) MUST_CHECK;
/* After a request without an error, when no multi handle has easy any more: takes out of t what the next request can
 * use; false when it can use nothing. */
bool transfer_keep(struct transfer *t, struct transfer_kit *ret);
void transfer_kit_clear(struct transfer_kit *kit);

/* The parts for requests without libcurl. transfer_begin() needs t->peer; the other functions return 0 or t->stop. */
void transfer_begin(struct transfer *t, const struct http_call_request *request);
int64_t transfer_connect_ms(const struct http_call_request *request);
int transfer_check_header(const struct http_call_header *h, struct err *e) MUST_CHECK; /* -EINVAL BAD_HEADER */
int transfer_begin_head(struct transfer *t, int status /* 0: not one of HTTP */) MUST_CHECK;
int transfer_add_header(struct transfer *t, struct slice name, struct slice value, size_t line_bytes) MUST_CHECK;
int transfer_refuse_head(struct transfer *t); /* -EMSGSIZE UPSTREAM_TOO_LARGE */
void transfer_end_head(struct transfer *t);

/* The clock_mono_ms() at which transfer_expire() is due; 0: never. */
int64_t transfer_due_ms(const struct transfer *t);
int transfer_expire(struct transfer *t, struct err *e); /* -ETIMEDOUT with the expired limit in the text */
/* How the one request of this handle ended. */
CURLcode transfer_code_of(CURLM *multi);
int transfer_result(struct transfer *t, CURLcode code, struct err *e) MUST_CHECK;
/* Call before the first handle; runs once for each process. Any thread. */
void transfer_setup(void);
