#include "models/embed_texts.h"

#include "base/clock.h"
#include "base/limits.h"
#include "embed/lexical.h"
#include "identity/permissions.h"
#include "llm/attempts.h"
#include "llm/plan.h"
#include "models/provider_choice.h"

enum { BYTES_A_TOKEN = 4 };

/* ---- the built-in provider ---- */

static int embed_builtin(struct models_call *call, const struct embed_job *job, const char *model,
                         struct embed_made *ret, struct err *e)
{
    float *items;

    if (model && strcmp(model, LEXICAL_MODEL) != 0)
        return err_set(e, -EINVAL, "INVALID_MODEL",
                       "The provider " LEXICAL_PROVIDER " has one model, " LEXICAL_MODEL ".");
    if (job->n_dimensions && job->n_dimensions != LEXICAL_DIMENSIONS)
        return err_add_field(e, "dimensions", "must be %d or absent: the model " LEXICAL_MODEL " has no others",
                             LEXICAL_DIMENSIONS);
    items = arena_array(call->arena, job->n * LEXICAL_DIMENSIONS, sizeof(*items));
    for (size_t i = 0; i < job->n; i++)
        lexical_embed(job->texts[i], items + i * LEXICAL_DIMENSIONS);
    *ret = (struct embed_made){ .items = items,
                                .n = job->n,
                                .n_dimensions = LEXICAL_DIMENSIONS,
                                .provider = LEXICAL_PROVIDER,
                                .model = LEXICAL_MODEL };
    return 0;
}

/* ---- providers over HTTP ---- */

static int refuse(const void *arg, int status, struct slice body, struct err *e)
{
    return llm_refusal(arg, status, body, e);
}

const char *embed_own_model(const struct llm_account *acc)
{
    return acc->embed_model && *acc->embed_model ? acc->embed_model : acc->preset->default_embed_model;
}

static void make_headers(struct arena *a, const struct llm_account *acc, struct embed_account *ret)
{
    struct http_call_header *headers = arena_array(a, acc->n_headers + 2, sizeof(*headers));
    const struct llm_preset *preset = acc->preset;
    size_t n = 0;

    headers[n++] = (struct http_call_header){ "content-type", "application/json" };
    if (acc->api_key && embed_is_deployment(ret->service, ret->base_url))
        headers[n++] = (struct http_call_header){ ret->service->deployment_key, acc->api_key };
    else if (acc->api_key && preset->auth_header)
        headers[n++] = (struct http_call_header){
            preset->auth_header, arena_printf(a, "%s%s", preset->auth_prefix ? preset->auth_prefix : "", acc->api_key)
        };
    for (size_t i = 0; i < acc->n_headers; i++)
        headers[n++] = acc->headers[i];
    ret->headers = headers;
    ret->n_headers = n;
}

static void make_account(struct models_call *call, const struct llm_account *acc, struct embed_account *ret)
{
    struct settings *s = call->models->settings;

    *ret = (struct embed_account){
        .name = acc->name,
        .service = embed_service_of(acc->preset->id),
        .base_url = acc->base_url,
        .n_retries = (unsigned)settings_int(s, SETTING_LLM_RETRIES),
        .connect_ms = settings_ms(s, SETTING_LLM_CONNECT_S),
        .first_byte_ms = settings_ms(s, SETTING_LLM_FIRST_BYTE_S),
        .idle_ms = settings_ms(s, SETTING_LLM_IDLE_S),
        .total_ms = settings_ms(s, SETTING_LLM_TOTAL_S),
        .retry_after_max_ms = settings_ms(s, SETTING_LLM_RETRY_AFTER_MAX_S),
        .refuse = refuse,
        .retry_after_ms = llm_retry_after_ms,
        .arg = acc,
    };
    make_headers(call->arena, acc, ret);
}

/* Invalid vectors count as a fault, like a missing answer. */
static enum llm_fault fault_of(int r)
{
    return r == -EBADMSG ? LLM_FAULT_OF_MODEL : llm_fault_of(r);
}

static void note_outcome(struct models_call *call, struct llm_account_state *state, const char *model, int r)
{
    if (fault_of(r) != LLM_NO_FAULT)
        llm_account_state_failed(state, model, fault_of(r),
                                 (unsigned)settings_int(call->models->settings, SETTING_LLM_REST_AFTER));
    else if (r != -ECANCELED) /* a provider that refuses has answered */
        llm_account_state_succeeded(state, model);
}

/* Prepares the account; starts the model if this service runs it itself. */
static int ready_account(struct models_call *call, struct llm_account_state *state, const struct embed_request *request,
                         int64_t ready_by_ms, struct embed_account *ret, struct err *e)
{
    const struct llamacpp_start_request job = { .model = request->model,
                                                .is_for_vectors = true,
                                                .may_wait = true,
                                                .ready_by_ms = ready_by_ms,
                                                .is_gone = request->is_gone };
    const struct llm_account *acc = NULL;
    int r = llm_account_state_ready(state, &job, call->arena, &acc, e);

    if (r == 0)
        make_account(call, acc, ret);
    return r;
}

/* made: receives provider and model, also on failure. */
static int request_account(struct models_call *call, struct llm_account_state *state,
                           const struct embed_request *request, struct embed_made *made, struct embed_vectors *ret,
                           struct err *e)
{
    struct embed_account account = { 0 };
    int r;

    if (!llm_account_state_may_try(state, request->model))
        return llm_account_state_err_rest(state, request->model, llm_account_state_rest_ms(state, request->model), e);
    r = ready_account(call, state, request, 0, &account, e);
    if (r < 0)
        return r;
    made->provider = state->account.name;
    made->model = request->model;
    r = embed_remote(&account, request, call->arena, ret, e);
    note_outcome(call, state, request->model, r);
    if (r < 0)
        call->retry_after_ms = ret->retry_after_ms;
    if (r < 0)
        r = llm_blame(&state->account, r, e);
    if (r < 0 && fault_of(r) != LLM_NO_FAULT)
        llm_account_state_keep_failure(state, e->text);
    return r;
}

static int64_t at_most(int64_t ms, int64_t most_ms)
{
    most_ms = MAX(most_ms, (int64_t)1);
    return ms > 0 ? MIN(ms, most_ms) : most_ms;
}

int embed_try(struct models_call *call, struct llm_account_state *state, const char *model,
              const struct embed_limits *most, struct embed_vectors *ret, struct err *e)
{
    const struct slice text = slice_of("OK");
    const struct embed_request request = { .texts = &text, .n = 1, .model = model, .is_gone = call->is_gone };
    int64_t began_ms = clock_mono_ms(), left_ms;
    struct embed_account account = { 0 };
    int r = ready_account(call, state, &request, began_ms + most->load_ms, &account, e);

    if (r < 0)
        return r;
    left_ms = began_ms + most->total_ms - clock_mono_ms();
    account.n_retries = 0;
    account.connect_ms = at_most(account.connect_ms, most->connect_ms);
    account.first_byte_ms = at_most(account.first_byte_ms, left_ms);
    account.total_ms = at_most(account.total_ms, left_ms);
    r = embed_remote(&account, &request, call->arena, ret, e);
    return r < 0 ? llm_blame(&state->account, r, e) : 0;
}

static int find_account_state(struct models_call *call, const char *provider, struct llm_account_state **ret,
                              struct err *e)
{
    struct llm_accounts *accounts = call->models->llm_accounts;
    struct llm_account_state *state = llm_accounts_find(accounts, call->arena, provider), **states;
    const char *names = LEXICAL_PROVIDER;
    size_t n;

    if (state && state->account.preset->can_embed) {
        *ret = state;
        return 0;
    }
    states = llm_accounts_list(accounts, call->arena, &n);
    for (size_t i = 0; i < n; i++)
        if (states[i]->account.preset->can_embed)
            names = arena_printf(call->arena, "%s, %s", names, states[i]->account.name);
    if (state) {
        err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE",
                "%.80s has chats but no embeddings; embedding providers are: %.300s.", provider, names);
        return -EINVAL;
    }
    err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "There is no embedding provider %.80s; there are: %.300s.", provider,
            names);
    (void)llm_accounts_explain(accounts, provider, e);
    return -EINVAL;
}

static struct slice join(struct arena *a, struct slice prefix, struct slice text)
{
    char *joined = arena_alloc(a, prefix.n + text.n);

    memcpy(joined, prefix.p, prefix.n);
    memcpy(joined + prefix.n, text.p, text.n);
    return (struct slice){ joined, prefix.n + text.n };
}

/* Adds the prefix by which some models distinguish queries from documents, unless the provider's API has a member for
 * the purpose. */
static const struct slice *begin_texts(struct models_call *call, const struct embed_service *service,
                                       const struct embed_job *job)
{
    enum setting_id setting = job->purpose == EMBED_QUERY ? SETTING_EMBED_QUERY_PREFIX : SETTING_EMBED_DOCUMENT_PREFIX;
    const char *prefix = job->purpose == EMBED_ANY || service->has_input_type
                             ? ""
                             : settings_string(call->models->settings, call->arena, setting);
    struct slice *texts;

    if (!*prefix)
        return job->texts;
    texts = arena_array(call->arena, job->n, sizeof(*texts));
    for (size_t i = 0; i < job->n; i++)
        texts[i] = join(call->arena, slice_of(prefix), job->texts[i]);
    return texts;
}

static int embed_remotely(struct models_call *call, const struct embed_job *job, const struct provider_choice *choice,
                          struct embed_made *ret, struct err *e)
{
    struct embed_vectors vectors = { 0 };
    struct llm_account_state *state = NULL;
    struct embed_request request;
    int r = find_account_state(call, choice->provider, &state, e);

    if (r < 0 || !state)
        return r;
    request = (struct embed_request){
        .texts = begin_texts(call, embed_service_of(state->account.preset->id), job),
        .n = job->n,
        .purpose = job->purpose,
        .model = choice->model ? choice->model : embed_own_model(&state->account),
        .n_dimensions = job->n_dimensions,
        .is_gone = call->is_gone,
    };
    if (!request.model)
        return err_set(e, -EINVAL, "INVALID_MODEL",
                       "Say which embedding model of %s: `model`, or the setting embed.model.", state->account.name);
    r = request_account(call, state, &request, ret, &vectors, e);
    if (r == 0)
        *ret = (struct embed_made){ .items = vectors.items,
                                    .n = vectors.n,
                                    .n_dimensions = vectors.n_dimensions,
                                    .provider = state->account.name,
                                    .model = vectors.model,
                                    .n_tokens = vectors.n_tokens,
                                    .upstream_us = vectors.upstream_us };
    return r;
}

/* ---- the choice of the provider ---- */

bool embed_waits(const struct models_call *call, const char *provider, const char *model)
{
    bool is_alone = model && *model && !(provider && *provider);
    struct provider_choice choice = { 0 };

    if (is_alone && provider_model_waits(call, PROVIDER_EMBED, model, false))
        return true;
    return provider_choose(call, PROVIDER_EMBED, provider, model, &choice, NULL) == 0 &&
           strcmp(choice.provider, LEXICAL_PROVIDER) != 0;
}

/* Estimates four bytes per token, as for chats. */
static int64_t tokens_of(const struct embed_job *job)
{
    int64_t n = 0;

    for (size_t i = 0; i < job->n; i++)
        n += (int64_t)(job->texts[i].n + BYTES_A_TOKEN - 1) / BYTES_A_TOKEN;
    return n;
}

static int make(struct models_call *call, const struct embed_job *job, struct embed_made *ret, struct err *e)
{
    struct provider_choice choice = { 0 };
    int r = provider_choose(call, PROVIDER_EMBED, job->provider, job->model, &choice, e);

    if (r < 0)
        return r;
    if (strcmp(choice.provider, LEXICAL_PROVIDER) == 0)
        return embed_builtin(call, job, choice.model, ret, e);
    return embed_remotely(call, job, &choice, ret, e);
}

static void count_use(struct models_call *call, struct meter_ticket *ticket, const struct embed_made *made)
{
    if (!made->provider) {
        meter_give_back(call->models->meter, ticket);
        return;
    }
    meter_count(call->models->meter, ticket,
                &(struct meter_use){ .work = METER_EMBED,
                                     .provider = made->provider,
                                     .model = made->model,
                                     .prompt_tokens = made->n_tokens,
                                     .is_estimated = made->is_estimated,
                                     .is_failed = !made->items });
}

int embed_texts(struct models_call *call, const struct embed_job *job, struct embed_made *ret, struct err *e)
{
    int64_t n_expected = tokens_of(job);
    struct meter_ticket ticket = { 0 };
    struct embed_made made = { 0 };
    int r = models_permit(call, PERM_LLM_EMBED, e);

    if (r == 0)
        r = models_admit(call, n_expected, &ticket, e);
    if (r < 0)
        return r;
    r = make(call, job, &made, e);
    if (r == 0 && made.n_tokens <= 0) {
        made.n_tokens = n_expected;
        made.is_estimated = true;
    }
    count_use(call, &ticket, &made);
    if (r == 0)
        *ret = made;
    return r;
}
