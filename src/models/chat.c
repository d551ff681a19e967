#include "models/chat.h"

#include "base/clock.h"
#include "identity/permissions.h"
#include "llm/fetch.h"
#include "models/provider_choice.h"

enum { USUAL_TOKENS = 1000 /* expected of an answer without a limit */ };

/* ---- before the request to an upstream ---- */

/* A fallback account that does not accept the addresses that the first one does is skipped. */
static int fetch_files(const struct models_call *call, const char *provider, const struct chat_job *job, struct err *e)
{
    struct net_wait wait = net_wait_of(LIMIT_FETCH_MS, call->is_gone, call->models->is_leaving);
    struct llm_picks picks = { .n = 0 };
    int r;

    if (!llm_has_addresses(job->request))
        return 0;
    if (loop_is_here())
        return -ENEEDSWORKER;
    wait.holder = call->holder;
    r = llm_accounts_pick(call->models->llm_accounts, call->arena, provider, &picks, e);
    return r < 0 ? r : llm_fetch_files(&picks, call->models->file_guard, &wait, job->arena, job->request, e);
}

/* A model without a provider is looked up in lists of models. */
static bool model_waits(const struct models_call *call, const char *provider, const char *model)
{
    return model && *model && !(provider && *provider) && provider_model_waits(call, PROVIDER_CHAT, model, false);
}

/* Chooses provider and model for this caller and chat. */
static int make_plan(const struct models_call *call, const struct chat_job *job, struct arena *a, struct llm_plan *ret,
                     struct err *e)
{
    struct provider_choice choice = { 0 };
    int r;

    if (loop_is_here() && model_waits(call, job->provider, job->request->model))
        return -ENEEDSWORKER;
    r = provider_choose(call, PROVIDER_CHAT, job->provider, job->request->model, &choice, e);
    if (r < 0)
        return r;
    job->request->model = choice.model;
    r = fetch_files(call, choice.provider, job, e);
    return r < 0 ? r
                 : llm_plan_make(call->models->llm_accounts, choice.provider, job->request, a, call->is_gone, ret, e);
}

bool chat_waits(const struct models_call *call, const char *provider, const char *model)
{
    struct llm_accounts *accounts = call->models->llm_accounts;
    struct provider_choice choice = { 0 };

    if (llm_accounts_wait(accounts, provider) || model_waits(call, provider, model))
        return true;
    return provider_choose(call, PROVIDER_CHAT, provider, model, &choice, NULL) == 0 &&
           llm_plan_waits(accounts, choice.provider, choice.model);
}

/* Reserves tokens for the longest possible answer; unused tokens are returned when the chat is counted. */
static int admit(struct models_call *call, const struct llm_request *request, struct meter_ticket *ret, struct err *e)
{
    int64_t most = request->max_tokens > 0 ? request->max_tokens : USUAL_TOKENS;

    return models_admit(call, llm_prompt_tokens(request) + most, ret, e);
}

int chat_need_service(const struct models *models, struct err *e)
{
    if (models->llm_turns)
        return 0;
    return err_set(e, -ENOTSUP, "NOT_SERVING",
                   "Chats are answered only while the service runs; start it with `hearth serve`");
}

int chat_prepare(struct models_call *call, const struct chat_job *job, struct chat **ret, struct err *e)
{
    int64_t handled_us = clock_mono_us();
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_plan *plan = ARENA_NEW(a, struct llm_plan);
    struct meter_ticket ticket = { 0 };
    struct chat *chat;
    int r = chat_need_service(call->models, e);

    if (r == 0)
        r = models_permit(call, PERM_LLM_CHAT, e);
    if (r == 0)
        r = admit(call, job->request, &ticket, e);
    if (r < 0)
        return r;
    r = make_plan(call, job, a, plan, e);
    if (r < 0) {
        meter_give_back(call->models->meter, &ticket);
        return r;
    }
    chat = ARENA_NEW(a, struct chat);
    *chat = (struct chat){ .models = call->models,
                           .plan = plan,
                           .is_gone = call->is_gone,
                           .holder = call->holder,
                           .handled_us = handled_us,
                           .ticket = ticket };
    chat->arena = TAKE(a);
    *ret = chat;
    return 0;
}

/* ---- the answer, on the loop ---- */

void chat_count(struct chat *chat, const char *provider, const char *model, const struct llm_usage *used, bool is_whole)
{
    struct meter *meter = chat->models->meter;

    if (!provider) {
        meter_give_back(meter, &chat->ticket);
        return;
    }
    meter_count(meter, &chat->ticket,
                &(struct meter_use){ .work = METER_CHAT,
                                     .provider = provider,
                                     .model = model,
                                     .is_failed = !is_whole,
                                     .prompt_tokens = used->prompt_tokens,
                                     .is_estimated = used->is_estimated,
                                     .completion_tokens = used->completion_tokens });
}

static bool is_cancelled(const struct chat *chat)
{
    return chat->is_gone && atomic_load(chat->is_gone);
}

static void look(void *arg)
{
    struct chat *chat = arg;

    if (is_cancelled(chat))
        chat_cancel(chat);
}

static void watch(struct chat *chat)
{
    if (chat->client.watch)
        chat->client.watch(chat->client.arg, chat);
    else if (chat->is_gone) {
        chat->look = loop_timer_new(chat->models->loop, look, chat);
        loop_timer_every(chat->look, CHAT_LOOK_MS);
    }
}

static void unwatch(struct chat *chat)
{
    chat->look = loop_timer_free(chat->look);
    if (chat->client.watch)
        chat->client.watch(chat->client.arg, NULL);
}

static void done(void *arg, struct llm_whole *whole, int r, const struct err *e)
{
    struct llm_usage used = llm_whole_usage(whole);
    struct chat *chat = arg;

    unwatch(chat);
    chat_count(chat, whole->progress.provider, whole->progress.model, &used, r == 0);
    chat->client.done(chat->client.arg, whole, r, e);
}

/* Cancelled before the request was sent to a provider. */
static void give_up(struct chat *chat)
{
    struct arena *a = chat->arena;
    struct err e;
    int r;

    err_init(&e);
    chat_count(chat, NULL, NULL, NULL, false);
    r = err_set(&e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping.");
    chat->client.done(chat->client.arg, NULL, r, &e);
    arena_free(a);
}

static void begin(void *arg)
{
    struct chat *chat = arg;
    const struct llm_whole_start start = { .arena = chat->arena,
                                           .plan = chat->plan,
                                           .done = done,
                                           .arg = chat,
                                           .state = chat->client.state,
                                           .tap = chat->client.sink,
                                           .holder = chat->holder };

    if (is_cancelled(chat)) {
        give_up(chat);
        return;
    }
    watch(chat);
    llm_whole_start(chat->models->llm_turns, &start, &chat->whole);
}

void chat_start(struct chat *chat, const struct chat_client *client)
{
    chat->client = *client;
    loop_run_here(chat->models->loop, begin, chat);
}

void chat_cancel(struct chat *chat)
{
    llm_whole_cancel(chat->whole);
}
