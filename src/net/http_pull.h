/* A response that a worker reads as it arrives: http_pull_open() sends the request and returns with the head,
 * http_pull_read() returns the body piece by piece. For answers of unknown length (event streams), and for answers
 * whose handling depends on the head.
 *
 * One thread uses a stream at a time; only http_pull_cancel() may be called by another one. Address guard, TLS, proxy
 * and limits of the head are those of http_call(); redirects are not followed. The connection serves later requests
 * when the answer was read to its end.
 *
 *     struct http_pull *s = http_pull_new();
 *     r = http_pull_open(s, &request, &wait, e);
 *     while (r == 0 && (r = http_pull_read(s, &wait, &bytes, e)) == 0 && bytes.n > 0)
 *         ... bytes ...
 *     s = http_pull_free(s);
 */
#pragma once

#include "base/buf.h"
#include "net/http_client.h"
#include "net/wait.h"

struct http_pull;

struct http_pull *http_pull_new(void) MUST_CHECK;
struct http_pull *http_pull_free(struct http_pull *s); /* closes the connection of an incomplete answer */

/* Once a stream. Of the request these count: method, url, headers, body (borrowed until http_pull_free()), the time
 * limits, guard, and max_reply (bytes of the whole body; 0: no limit). The wait's deadline and flags end every wait, in
 * addition to the request's time limits; its deadline is read anew at each step, so the waiting thread's own callbacks
 * may move it. Errors of http_call(). */
int http_pull_open(struct http_pull *s, const struct http_call_request *request, const struct net_wait *wait,
                   struct err *e) MUST_CHECK;
/* Status and headers; valid until http_pull_free(). */
const struct http_answer *http_pull_head(const struct http_pull *s);
/* Waits for more of the body; the bytes are valid until the next call. No bytes: the answer is complete. After an error
 * the stream is only to be freed. */
int http_pull_read(struct http_pull *s, const struct net_wait *wait, struct slice *ret, struct err *e) MUST_CHECK;
/* The whole rest of the body, in out; -EMSGSIZE UPSTREAM_TOO_LARGE above out's maximum. */
int http_pull_read_all(struct http_pull *s, const struct net_wait *wait, struct buf *out, struct err *e) MUST_CHECK;
/* Any thread, at any time: the current and every later wait ends with -ECANCELED. */
void http_pull_cancel(struct http_pull *s);
