/* The end of a request: its answer or its error in the route's form, the metrics, one log line. For dispatch only; any
 * thread. */
#pragma once

#include "api/route.h"
#include "api/tally.h"

/* What the log line and the metrics need after the exchange is gone. */
struct trace {
    char request_id[sizeof(((struct http_request *)0)->id)];
    const char *method, *path; /* from the route table, never from the request */
    int64_t arrived_us;
    enum caller_kind caller;
    bool is_quiet; /* successful answers of the loop are logged at debug level */
    const struct error_form *error_form;
    struct tally *tally;
};

/* Counts and logs a request that is already answered. */
void trace_end(const struct trace *t, int status, const struct err *e);
/* Counts first, so that a client that has the answer finds it in the metrics. Logs after sending, so that the client
 * does not wait for that; the exchange may be gone then. */
void answer_send(struct http_exchange *x, const struct trace *t, int status, const struct err *e);
/* Before and after the handler: the row's status and the envelope. -EFBIG REPLY_TOO_LARGE. */
void answer_begin(const struct route *route, struct response *res);
int answer_end(struct response *res, struct err *e) MUST_CHECK;
/* Writes the error in the route's form and returns the status of that form. Internal causes go to the log only. Sends
 * nothing. */
int answer_write_error(struct http_exchange *x, const struct trace *t, int r, const struct err *e);
void answer_add_safety_headers(struct http_exchange *x, const struct trace *t);
/* Writes the error, adds the safety headers, sends, counts and logs. */
void answer_send_error(struct http_exchange *x, const struct trace *t, int r, const struct err *e);
