/* A hosted project that answers by a script, and a backend on it.
 *
 *     open_project(&p, bodies, statuses, n);  ...  assert_true(heard(&p.script, "apikey=..."));  close_project(&p);
 */
#pragma once

#include "../net/upstream.h"
#include "backend/hosted/hosted.h"

#include <stdlib.h>

#define ID "6f9619ff-8b86-4d01-b42d-00c04fc964ff"
#define OTHER "7f9619ff-8b86-4d01-b42d-00c04fc964ff"
#define ROW(id)                                                                                                        \
    "{\"id\":\"" id "\",\"raw_data\":{\"a\":1},\"status\":\"pending\",\"attempted_by\":[],\"retry_count\":0,"          \
    "\"created_at\":\"2026-11-20 09:30:18.112761+00\"}"

#define HELD(attempt)                                                                                                  \
    "[{\"id\":\"" ID "\",\"raw_data\":{},\"status\":\"claimed\",\"attempted_by\":[],\"retry_count\":0,"                \
    "\"created_at\":\"2026-11-20T09:30:18Z\",\"locked_by\":\"lin-a\",\"locked_at\":\"2026-11-20T09:30:18Z\","          \
    "\"attempt\":" attempt "}]"

/* Answers in turn; the last one again and again. */
struct script {
    const char *const *bodies;
    const int *statuses;
    int n_answers;
    const char *retry_after; /* of refusals; NULL: none */
    atomic_int n;
    pthread_mutex_t lock; /* guards heard */
    char heard[4096];     /* of the last request: its target, the headers that matter and its body */
};

static inline const char *header(struct http_exchange *x, const char *name)
{
    const char *value = http_header(&x->request, name);

    return value ? value : "-";
}

static inline void answer(void *arg, struct http_exchange *x)
{
    struct script *s = arg;
    int i = atomic_fetch_add(&s->n, 1);

    while (i > 0 && (i >= s->n_answers || !s->bodies[i]))
        i--;
    pthread_mutex_lock(&s->lock);
    snprintf(s->heard, sizeof(s->heard), "%s?%s apikey=%s authorization=%s accept-profile=%s content-profile=%s %.*s",
             x->request.path, x->request.query, header(x, "apikey"), header(x, "authorization"),
             header(x, "accept-profile"), header(x, "content-profile"), (int)x->request.body.n,
             x->request.body.p ? x->request.body.p : "");
    pthread_mutex_unlock(&s->lock);
    if (s->retry_after && s->statuses[i] >= 400)
        http_response_header(x, "retry-after", s->retry_after);
    x->response.status = s->statuses[i];
    buf_add_str(&x->response.body, s->bodies[i]);
    http_exchange_send(x);
}

static inline bool heard(struct script *s, const char *text)
{
    bool has;

    pthread_mutex_lock(&s->lock);
    has = strstr(s->heard, text) != NULL;
    pthread_mutex_unlock(&s->lock);
    return has;
}

struct project {
    struct rig rig;
    struct script script;
    struct backend *backend;
    struct arena *arena;
};

#define TABLE_THERE "[]"

/* call_ms: the deadline of one call, with all its attempts */
static inline void open_project_within(struct project *p, const char *const *bodies, const int *statuses, int n_answers,
                                       int call_ms)
{
    struct backend_hosted_config config = {
        .key = "sb_secret_1", .user_key = "sb_publishable_1", .abbr = "svc", .has_no_realtime = true, .call_ms = call_ms
    };
    struct err e = { 0 };

    *p = (struct project){ .script = { bodies, statuses, n_answers, .lock = PTHREAD_MUTEX_INITIALIZER } };
    rig_open(&p->rig, answer, &p->script);
    p->arena = arena_new();
    config.url = rig_url(&p->rig, "");
    if (backend_hosted_open(&config, &p->backend, &e) < 0)
        fail_msg("%s %s", e.code, e.text);
}

static inline void open_project(struct project *p, const char *const *bodies, const int *statuses, int n_answers)
{
    open_project_within(p, bodies, statuses, n_answers, 1500);
}

/* On a machine with much to do, too, no answer is too late. */
static inline void open_patient_project(struct project *p, const char *const *bodies, const int *statuses,
                                        int n_answers)
{
    open_project_within(p, bodies, statuses, n_answers, 60000);
}

static inline void close_project(struct project *p)
{
    backend_close(p->backend);
    arena_free(p->arena);
    rig_close(&p->rig);
}
