/* A fetch and what it reports. Written on the loop, read by the test once is_ended.
 *
 *     record_open(&record, &rig);  start(&record, &request);  wait_until(has_ended, &record)  ... record_close(&record,
 * &rig);
 */
#pragma once

#include "net/http_client.h"
#include "upstream.h"

enum { IDLE_MS = 50 }; /* a limit that tests let pass */

struct record {
    struct http_client *client;
    struct http_fetch *fetch;
    struct buf bytes;
    int status, r;
    char type[64], code[40], text[200];
    size_t pause_at; /* pause once this many bytes arrived; 0: never */
    int stop_with;
    atomic_bool is_paused, is_ended;
    atomic_size_t n_bytes;
};

/* Since the time that arg points to, and once more. */
static inline bool has_the_limit_passed(void *arg)
{
    return clock_mono_ms() > *(const int64_t *)arg + 2 * IDLE_MS;
}

static inline void on_head(void *arg, const struct http_answer *head)
{
    struct record *record = arg;
    const char *type = http_answer_header(head, "content-type");

    record->status = head->status;
    snprintf(record->type, sizeof(record->type), "%s", type ? type : "");
}

static inline int on_bytes(void *arg, struct slice bytes)
{
    struct record *record = arg;

    buf_add_slice(&record->bytes, bytes);
    atomic_fetch_add(&record->n_bytes, bytes.n);
    if (record->stop_with)
        return record->stop_with;
    if (!record->pause_at || record->bytes.n < record->pause_at)
        return 0;
    record->pause_at = 0;
    atomic_store(&record->is_paused, true);
    return -EAGAIN;
}

static inline void on_end(void *arg, int r, const struct err *e)
{
    struct record *record = arg;

    record->r = r;
    snprintf(record->code, sizeof(record->code), "%s", e->code);
    snprintf(record->text, sizeof(record->text), "%s", e->text);
    atomic_store(&record->is_ended, true);
}

static const struct http_fetch_events events = { on_head, on_bytes, on_end };

struct making {
    struct loop *loop;
    struct http_client **ret;
};

static inline void make_client(void *arg)
{
    struct making *making = arg;

    assert_int_equal(http_client_new(making->loop, making->ret, NULL), 0);
}

static inline void free_client(void *arg)
{
    struct record *record = arg;

    record->client = http_client_free(record->client);
}

static inline void record_open(struct record *record, struct rig *rig)
{
    *record = (struct record){ 0 };
    buf_init(&record->bytes, LIMIT_REPLY);
    loop_call(rig->loop, make_client, &(struct making){ rig->loop, &record->client });
}

static inline void record_close(struct record *record, struct rig *rig)
{
    loop_call(rig->loop, free_client, record);
    http_fetch_unref(record->fetch);
    buf_clear(&record->bytes);
}

static inline bool has_ended(void *arg)
{
    return atomic_load(&((struct record *)arg)->is_ended);
}

static inline bool has_paused(void *arg)
{
    return atomic_load(&((struct record *)arg)->is_paused);
}

static inline bool has_bytes(void *arg)
{
    return atomic_load(&((struct record *)arg)->n_bytes) > 0;
}

static inline void start(struct record *record, const struct http_call_request *request)
{
    assert_int_equal(http_fetch_start(record->client, request, &events, record, &record->fetch, NULL), 0);
}

static inline void resume(void *arg)
{
    http_fetch_resume(((struct record *)arg)->fetch);
}
