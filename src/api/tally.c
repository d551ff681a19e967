#include "api/tally.h"

#include "base/buf.h"
#include <pthread.h>

enum { LABELS_SIZE = 400 };

static pthread_mutex_t new_status = PTHREAD_MUTEX_INITIALIZER;

void tally_init(struct tally *t, const char *route, const char *method)
{
    char labels[LABELS_SIZE];

    *t = (struct tally){ .route = route, .method = method };
    snprintf(labels, sizeof(labels), "route=\"%s\",method=\"%s\"", route, method);
    t->seconds =
        metric_histogram("hearth_http_request_seconds", "Time from the head of a request to its answer.", labels);
}

static struct metric *count_of(const struct tally *t, int status)
{
    char labels[LABELS_SIZE];

    snprintf(labels, sizeof(labels), "route=\"%s\",method=\"%s\",status=\"%d\"", t->route, t->method, status);
    return metric_counter("hearth_http_requests_total", "Answered requests.", labels);
}

/* Keeps the counter if a place is free. */
static struct metric *learn(struct tally *t, int status)
{
    struct metric *count = count_of(t, status);

    pthread_mutex_lock(&new_status);
    for (size_t i = 0; i < TALLY_STATUSES; i++) {
        if (atomic_load(&t->known[i].count))
            continue;
        t->known[i].status = status;
        atomic_store_explicit(&t->known[i].count, count, memory_order_release);
        break;
    }
    pthread_mutex_unlock(&new_status);
    return count;
}

void tally_add(struct tally *t, int status, int64_t took_us)
{
    struct metric *count = NULL;

    for (size_t i = 0; i < TALLY_STATUSES && !count; i++) {
        count = atomic_load_explicit(&t->known[i].count, memory_order_acquire);
        if (!count)
            break;
        if (t->known[i].status != status)
            count = NULL;
    }
    metric_add(count ? count : learn(t, status), 1);
    metric_observe(t->seconds, (double)took_us / 1e6);
}
