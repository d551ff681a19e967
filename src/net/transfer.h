/* One request on a libcurl easy handle: what http_call() and http_fetch_start() have in common. Private to src/net.
 *
 * Embedded in its owner, which keeps the ask's body alive until transfer_clear(). One thread at a time.
 */
#pragma once

#include "net/http_client.h"

#include <curl/curl.h>

struct transfer {
    CURL *easy;                         /* owned */
    struct curl_slist *headers;         /* owned */
    struct arena *arena;                /* owned; of the head; NULL before the first header and once on_head was told */
    struct http_answer head;
    size_t n_head_bytes, cap_headers;
    char *peer;                         /* owned; "api.example.org:443", for sentences */
    const struct guard *guard;          /* borrowed; NULL: every address but the service's own is allowed */
    struct err *refusal;                /* owned; of the last address that was refused; NULL: none was */
    int64_t first_byte_ms, idle_ms;     /* 0: none */
    int64_t began_ms, heard_ms;         /* clock_mono_ms() */
    bool is_answered;                   /* the head is complete */
    int stop;                           /* negative: why a callback ended it */
    struct err *why;                    /* owned; with stop; NULL: whoever stopped it has the words */
    char detail[CURL_ERROR_SIZE];

    void (*on_head)(struct transfer *t);
    /* How many bytes were taken: all, or CURL_WRITEFUNC_PAUSE, or fewer with t->stop set. */
    size_t (*on_bytes)(struct transfer *t, struct slice bytes);
};

/* easy is taken over. buffer_bytes: libcurl's receive buffer. */
int transfer_init(struct transfer *t, CURL *easy, const struct http_ask *ask, long buffer_bytes, struct err *e) MUST_CHECK;
void transfer_clear(struct transfer *t);

/* clock_mono_ms() at which transfer_expire() is due; 0: never. */
int64_t transfer_due_ms(const struct transfer *t);
int transfer_expire(struct transfer *t, struct err *e); /* -ETIMEDOUT in words */
int transfer_result(struct transfer *t, CURLcode code, struct err *e) MUST_CHECK;
/* Once a process, before any handle; any thread. */
void transfer_setup(void);
