/* Server-Sent Events (WHATWG HTML, section 9.2) over an http_stream.
 *
 * sse_start() answers 200 text/event-stream with no-store and x-accel-buffering: no. Newlines in data are split into several data lines, CR and LF
 * are taken out of event names and ids. An idle stream gets a `:` comment every 15 s (decision D8) from the server's timer.
 */
#pragma once

#include "http/http.h"

struct http_stream *sse_start(struct http_exchange *x) MUST_CHECK;
/* event and id may be NULL. Returns as http_stream_push(). */
int sse_push(struct http_stream *s, const char *event, const char *id, struct slice data) MUST_CHECK;
