/* The loop thread, which wraps libevent's event_base in the few calls that the program needs.
 *
 * One loop for each process. Callbacks run on the thread inside loop_run() and must never block. loop_post(),
 * loop_call() and loop_stop() are for any thread; timers and watches are made, changed and freed on the loop thread
 * only (or before loop_run() starts).
 */
#pragma once

#include "base/err.h"

/* Returned by work that the loop may do as long as it need not wait: a worker is to do it instead. */
#define ENEEDSWORKER EDEADLK

struct event_base;
struct loop;
struct loop_timer;
struct loop_watch;

int loop_new(struct loop **ret, struct err *e) MUST_CHECK;
struct loop *loop_free(struct loop *l);
int loop_run(struct loop *l, struct err *e) MUST_CHECK; /* until loop_stop(); pending posts have run when it returns */
void loop_stop(struct loop *l);
bool loop_is_current(const struct loop *l);   /* is this the loop's thread? */
bool loop_is_here(void);                      /* is this the thread of a running loop, which must not wait? */
struct event_base *loop_base(struct loop *l); /* for src/http and src/net only */

/* These two calls measure a callback that libevent calls directly (src/http, src/net); all other callbacks are measured
 * automatically. A callback that held the loop longer than STALL_US is logged and counted
 * (`hearth_loop_stall_seconds`).
 */
struct stall_span;
void loop_measure(const struct stall_span *span, const char *kind, const void *place);

/* Runs fn(arg) on the loop thread, in order of posting. Never blocks, never fails. Posts made after loop_run() has
 * returned run in loop_free() at the latest. */
void loop_post(struct loop *l, void (*fn)(void *arg), void *arg);
/* Runs fn(arg) on the loop thread and waits until fn returns; runs fn directly when called on the loop thread. After
 * loop_run() has returned, the caller's thread runs fn (one call at a time), so that ending workers never wait for a
 * loop that has ended. */
void loop_call(struct loop *l, void (*fn)(void *arg), void *arg);

/* Runs fn(arg) directly on the loop thread, as a post elsewhere. */
void loop_run_here(struct loop *l, void (*fn)(void *arg), void *arg);

struct loop_timer *loop_timer_new(struct loop *l, void (*fn)(void *arg), void *arg) MUST_CHECK;
void loop_timer_set(struct loop_timer *t, int64_t after_ms); /* once; replaces an earlier setting */
void loop_timer_every(struct loop_timer *t, int64_t every_ms);
void loop_timer_cancel(struct loop_timer *t);
struct loop_timer *loop_timer_free(struct loop_timer *t);

/* Calls fn when fd is readable (level-triggered). Does not own fd. NULL when the kernel cannot watch it. */
struct loop_watch *loop_watch_read(struct loop *l, int fd, void (*fn)(int fd, void *arg), void *arg) MUST_CHECK;
struct loop_watch *loop_watch_free(struct loop_watch *w);
/* Calls fn on the loop thread when the signal arrives. */
struct loop_watch *loop_watch_signal(struct loop *l, int signum, void (*fn)(int signum, void *arg),
                                     void *arg) MUST_CHECK;
