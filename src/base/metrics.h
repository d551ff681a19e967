/* Counters, gauges and histograms for /metrics (Prometheus text exposition 0.0.4). Process-wide registry.
 *
 * A metric is made once (under a mutex), then changed only by atomic operations, and never freed. The same name and
 * labels return the same metric. `labels` is Prometheus label text without braces ("pool=\"short\"") or "".
 */
#pragma once

#include "base/buf.h"

struct metric;

struct metric *metric_counter(const char *name, const char *help, const char *labels);
struct metric *metric_gauge(const char *name, const char *help, const char *labels);
/* Buckets in seconds: 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 60. */
struct metric *metric_histogram(const char *name, const char *help, const char *labels);
/* A histogram with its own bounds (ascending, n of them): group sizes and the like. */
struct metric *metric_histogram_of(const char *name, const char *help, const char *labels, const double *bounds,
                                   size_t n);
/* A gauge whose value fn computes when the page is printed. fn may take locks and make metrics, but may not print or
 * forget gauges. */
void metric_gauge_fn(const char *name, const char *help, const char *labels, double (*fn)(void *arg), void *arg);
/* Forgets the gauges with this arg; call before their object is freed. */
void metric_gauge_fn_forget(void *arg);

void metric_add(struct metric *m, int64_t n);
void metric_set(struct metric *m, double value);
void metric_observe(struct metric *m, double value);

void metrics_print(struct buf *out);
