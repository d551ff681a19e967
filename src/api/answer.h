/* The end of a request: its answer or the form of its error, the metrics, one log line. Of dispatch alone; any thread. */
#pragma once

#include "api/route.h"
#include "api/tally.h"

/* What the log line and the metrics need after the exchange is gone. */
struct trace {
    char request_id[sizeof(((struct http_request *)0)->id)];
    const char *method, *path;          /* of the table, never of the request */
    int64_t arrived_us;
    enum caller_kind caller;
    bool is_quiet;                      /* answers of the loop are told at debug level when they succeed */
    const struct error_form *error_form;
    struct tally *tally;
};

/* Counts and logs what is answered already. */
void trace_end(const struct trace *t, int status, const struct err *e);
/* Counted first: who has the answer finds it in the metrics. Logged afterwards, when nobody waits; the exchange may be gone then. */
void answer_send(struct http_exchange *x, const struct trace *t, int status, const struct err *e);
/* In the form the route's clients read; gives the status they know. What went wrong inside is for the log only. Sends nothing. */
int answer_write_error(struct http_exchange *x, const struct trace *t, int r, const struct err *e);
void answer_add_safety_headers(struct http_exchange *x, const struct trace *t);
/* All of that. */
void answer_send_error(struct http_exchange *x, const struct trace *t, int r, const struct err *e);
