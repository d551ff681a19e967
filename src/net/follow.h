/* Fetches what a caller, a person or a model named by address: GET, redirects followed, each hop checked by the guard.
 *
 * Nothing is decompressed: a body that comes compressed was not asked for and is refused, so that the size on the wire
 * is the size in memory. Blocks a worker within the wait; the memory of the body is charged to the wait's holder.
 *
 *     const struct follow_request request = { .url = url, .guard = guard, .wait = &wait, .max_bytes = MIB(4) };
 *     r = follow_get(&request, arena, &answer, e);
 */
#pragma once

#include "net/http_client.h"
#include "net/wait.h"

struct follow_request {
    const char *url;
    const struct http_call_header *headers; /* sent to every hop: no credentials */
    size_t n_headers;
    size_t max_bytes;          /* of the body */
    int64_t silence_ms;        /* before the first byte, and between bytes */
    const struct guard *guard; /* asked at every hop */
    const struct net_wait *wait;
};

struct follow_answer {
    struct http_answer http; /* its status is 200 and its body is not compressed; the body may be empty */
    const char *url;         /* the last hop's */
};

/* The errors of http_call() and net_wait_left(), and -EBADMSG UPSTREAM_INVALID: more than LIMIT_FETCH_REDIRECTS hops,
 * another status than 200, a compressed body. The sentence says what "it" and "its server" do, for a caller that names
 * the address. */
int follow_get(const struct follow_request *request, struct arena *a, struct follow_answer *ret,
               struct err *e) MUST_CHECK;
