#include "llm/breaker.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { REST_MS = 15000, PROBE_MS = 5000 };

enum llm_fault llm_fault_of(int r)
{
    switch (r) {
    case -ECONNREFUSED:
    case -EHOSTUNREACH:
    case -EPROTO:
        return LLM_FAULT_OF_ACCOUNT;
    case -ECONNRESET:
    case -ETIMEDOUT:
    case -EAGAIN:
        return LLM_FAULT_OF_MODEL;
    default:
        return LLM_NO_FAULT;
    }
}

void breaker_clear(struct breaker *b)
{
    for (size_t i = 0; i < b->n_models; i++)
        free(b->models[i].name);
    free(b->models);
    *b = (struct breaker){ 0 };
}

static struct breaker_model *find_model(const struct breaker *b, const char *name)
{
    for (size_t i = 0; name && i < b->n_models; i++)
        if (strcmp(b->models[i].name, name) == 0)
            return &b->models[i];
    return NULL;
}

static void remove_model(struct breaker *b, struct breaker_model *m)
{
    free(m->name);
    *m = b->models[--b->n_models];
}

/* When the table is full, the model with the oldest failure is dropped. */
static struct breaker_model *add_model(struct breaker *b, const char *name)
{
    struct breaker_model *oldest;

    if (!b->models)
        b->models = xcalloc(LIMIT_LLM_BROKEN_MODELS, sizeof(*b->models));
    if (b->n_models == LIMIT_LLM_BROKEN_MODELS) {
        oldest = b->models;
        for (size_t i = 1; i < b->n_models; i++)
            if (b->models[i].failed_ms < oldest->failed_ms)
                oldest = &b->models[i];
        remove_model(b, oldest);
    }
    b->models[b->n_models] = (struct breaker_model){ .name = xstrdup(name) };
    return &b->models[b->n_models++];
}

static void begin_probe(struct breaker_state *state, int64_t now_ms)
{
    if (state->open_until_ms)
        state->open_until_ms = now_ms + PROBE_MS;
}

bool breaker_may_try(struct breaker *b, const char *model)
{
    struct breaker_model *m = find_model(b, model);
    int64_t now_ms = clock_mono_ms();

    if (now_ms < b->account.open_until_ms || (m && now_ms < m->state.open_until_ms))
        return false;
    begin_probe(&b->account, now_ms);
    if (m)
        begin_probe(&m->state, now_ms);
    return true;
}

int64_t breaker_rest_ms(const struct breaker *b, const char *model, enum llm_fault *ret_of)
{
    const struct breaker_model *m = find_model(b, model);
    int64_t now_ms = clock_mono_ms(), of_account_ms = b->account.open_until_ms - now_ms,
            of_model_ms = m ? m->state.open_until_ms - now_ms : 0;

    *ret_of = of_account_ms > 0 ? LLM_FAULT_OF_ACCOUNT : of_model_ms > 0 ? LLM_FAULT_OF_MODEL : LLM_NO_FAULT;
    return MAX(of_account_ms > 0 ? of_account_ms : of_model_ms, (int64_t)0);
}

void breaker_succeeded(struct breaker *b, const char *model)
{
    struct breaker_model *m = find_model(b, model);

    b->account = (struct breaker_state){ 0 };
    if (m)
        remove_model(b, m);
}

static void count_failure(struct breaker_state *state, unsigned rest_after, int64_t now_ms)
{
    if (++state->n_failures >= rest_after && rest_after > 0)
        state->open_until_ms = now_ms + REST_MS;
}

void breaker_failed(struct breaker *b, const char *model, enum llm_fault fault, unsigned rest_after)
{
    int64_t now_ms = clock_mono_ms();
    struct breaker_model *m;

    if (fault == LLM_FAULT_OF_ACCOUNT || (fault == LLM_FAULT_OF_MODEL && !model)) {
        count_failure(&b->account, rest_after, now_ms);
        return;
    }
    if (fault == LLM_NO_FAULT)
        return;
    b->account = (struct breaker_state){ 0 }; /* the account accepted a connection */
    m = find_model(b, model);
    if (!m)
        m = add_model(b, model);
    m->failed_ms = now_ms;
    count_failure(&m->state, rest_after, now_ms);
}
