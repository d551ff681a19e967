/* Server-Sent Events (WHATWG HTML, section 9.2) over an http_stream.
 *
 * sse_start() answers 200 text/event-stream with no-store and x-accel-buffering: no. Data with newlines becomes several
 * data lines; CR and LF are removed from event names and ids. An idle stream gets a `:` comment every 15 s (decision
 * D8) from the server's timer.
 */
#pragma once

#include "http/http.h"

struct http_stream *sse_start(struct http_exchange *x) MUST_CHECK;
/* The same for another content type, without comments. content_type: a literal. */
struct http_stream *stream_start_as(struct http_exchange *x, const char *content_type) MUST_CHECK;
/* event and id may be NULL. Returns like http_stream_push(). */
int sse_push(struct http_stream *s, const char *event, const char *id, struct slice data) MUST_CHECK;
