/* The receivers of a backend's events and broadcasts, independent of how the backend learns of them.
 *
 * Owned by the backend. One thread delivers, between receivers_begin() and receivers_end(); any thread adds and removes
 * receivers, a callback too. receivers_unsubscribe() and receivers_unlisten() wait for a running callback, unless a
 * callback calls them: afterwards the receiver is not used any more.
 *
 *     receivers_begin(receivers);
 *     receivers_event(receivers, &event);
 *     receivers_end(receivers);
 */
#pragma once

#include "backend/backend.h"
#include "backend/monitor.h"

struct receivers;

struct receivers *receivers_new(void) MUST_CHECK;
struct receivers *receivers_free(struct receivers *rs);

/* Nobody else delivers, adds or removes until receivers_end(). May be nested. */
void receivers_begin(struct receivers *rs);
void receivers_end(struct receivers *rs);

/* Between begin and end. */
bool receivers_has_subscriber(const struct receivers *rs);
void receivers_event(struct receivers *rs, const struct backend_event *event);
void receivers_gap(struct receivers *rs);
void receivers_broadcast(struct receivers *rs, const char *channel, const char *event, const char *payload_json);

/* What went wrong while changes were followed; any thread. */
void receivers_fault(struct receivers *rs, const char *text);
/* Tables whose changes were reported, at most LIMIT_LIST, and the last fault; any thread. Of the lag only that of
 * inserts is known, by created_at. state, way and n_connects are the caller's. */
void receivers_monitor(struct receivers *rs, struct arena *a, struct backend_monitor *ret);

/* The functions of struct backend_ops. */
int receivers_subscribe(struct receivers *rs, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg,
                        struct err *e) MUST_CHECK;
void receivers_unsubscribe(struct receivers *rs, void *arg);
void receivers_listen(struct receivers *rs, const char *channel, backend_broadcast_fn *fn, void *arg);
void receivers_unlisten(struct receivers *rs, void *arg); /* leaves every channel */
