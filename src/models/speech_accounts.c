#include "models/speech_accounts.h"

#include "llm/attempts.h"
#include "llm/local/local.h"
#include "llm/plan.h"
#include "speech/ears_services.h"

#include <string.h>

/* What the functions of an account need, in the arena of the list. */
struct origin {
    struct llm_account_state *state; /* held by the arena */
    struct settings *settings;
};

static int check(const void *arg, struct err *e)
{
    const struct origin *origin = arg;
    const struct llm_account *acc = &origin->state->account;

    if (!llm_account_state_may_try(origin->state, NULL))
        return llm_account_state_err_rest(origin->state, NULL, llm_account_state_rest_ms(origin->state, NULL), e);
    return acc->source == LLM_FOUND && acc->local ? llm_local_check(acc->local, acc->name, e) : 0;
}

static void note(const void *arg, int r)
{
    const struct origin *origin = arg;

    if (llm_fault_of(r) != LLM_NO_FAULT)
        llm_account_state_failed(origin->state, NULL, LLM_FAULT_OF_ACCOUNT,
                                 (unsigned)settings_int(origin->settings, SETTING_LLM_REST_AFTER));
    else if (r != -ECANCELED)
        llm_account_state_succeeded(origin->state, NULL);
}

static void blame(const void *arg, int r, struct err *e)
{
    const struct origin *origin = arg;

    if (llm_blame(&origin->state->account, r, e) < 0)
        llm_account_state_keep_failure(origin->state, e->text);
}

/* The sentence is that of language models, the code is not. */
static int refuse(const void *arg, int status, struct slice body, struct err *e)
{
    const struct origin *origin = arg;
    int r = llm_refusal(&origin->state->account, status, body, e);

    if (e && strcmp(e->code, "LLM_ERROR") == 0) {
        memcpy(e->code, "SPEECH_FAILED", sizeof("SPEECH_FAILED"));
        r = -EIO;
    }
    return r;
}

/* The type of a body is added by its request. */
static void make_headers(const struct llm_account *acc, struct arena *a, struct speech_account *ret)
{
    struct http_call_header *headers = arena_array(a, acc->n_headers + 1, sizeof(*headers));
    const struct llm_preset *preset = acc->preset;
    const char *prefix = preset->auth_prefix ? preset->auth_prefix : "";

    if (acc->api_key && preset->auth_header)
        headers[ret->n_headers++] =
            (struct http_call_header){ preset->auth_header, arena_printf(a, "%s%s", prefix, acc->api_key) };
    for (size_t i = 0; i < acc->n_headers; i++)
        headers[ret->n_headers++] = acc->headers[i];
    ret->headers = headers;
}

static void make_account(const struct models *models, struct llm_account_state *state, struct arena *a,
                         struct speech_account *ret)
{
    const struct llm_account *acc = &state->account;
    struct origin *origin = ARENA_NEW(a, struct origin);

    *origin = (struct origin){ state, models->settings };
    *ret = (struct speech_account){
        .name = acc->name,
        .label = acc->preset->label,
        .service = acc->preset->can_speak ? speech_service_of(acc->preset->id) : NULL,
        .ears = acc->preset->can_hear ? ears_service_of(acc->preset->id) : NULL,
        .base_url = acc->base_url,
        .model = acc->use == LLM_USE_ALL ? NULL : acc->model, /* of both uses it is the one of chats */
        .models = acc->models,
        .n_models = acc->use == LLM_USE_ALL ? 0 : acc->n_models,
        .connect_ms = settings_ms(models->settings, SETTING_LLM_CONNECT_S),
        .total_ms = settings_ms(models->settings, SETTING_SPEECH_TIMEOUT_S),
        .list_ms = settings_ms(models->settings, SETTING_LLM_MODELS_TTL_S),
        .check = check,
        .note = note,
        .refuse = refuse,
        .blame = blame,
        .arg = origin,
    };
    make_headers(acc, a, ret);
}

size_t speech_accounts_list(void *arg, struct arena *a, const struct speech_account **ret)
{
    const struct models *models = arg;
    size_t n;
    struct llm_account_state **states = llm_accounts_of_speech(models->llm_accounts, a, &n);
    struct speech_account *accounts = arena_array(a, n + 1, sizeof(*accounts));

    for (size_t i = 0; i < n; i++)
        make_account(models, states[i], a, &accounts[i]);
    *ret = accounts;
    return n;
}
