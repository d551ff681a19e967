/* One small real request to a provider, and its outcome as a sentence. */
#include "api/api.h"
#include "api/resources/metered.h"
#include "api/resources/providers.h"
#include "api/routes.h"
#include "base/clock.h"
#include "llm/call.h"
#include "models/embed_texts.h"

struct test_body {
    const char *capability, *model;
};

enum {
    MODEL_CHARS = 256,
    CONNECT_MS = 5000,
    TOTAL_MS = 30000,
    LOAD_MS = 25000 /* of the total, for a model that must be loaded */,
    ANSWER_TOKENS = 16 /* the smallest limit that all providers accept */
};

static const char speech_word[] = "speech";
static const char *const trial_words[] = { "chat", "embed", speech_word, NULL };

static const struct field test_fields[] = {
    FIELD_STRING(struct test_body, capability, "capability", .one_of = trial_words,
                 .help = "absent: chat, unless the provider only embeds or only speaks and hears"),
    FIELD_STRING(struct test_body, model, "model", .min = 1, .max = MODEL_CHARS,
                 .help = "absent: the one a request without a model gets"),
    FIELD_END,
};

static const struct field test_answer[] = {
    SHAPE_BOOL("works"),
    SHAPE_STRING("text", .help = "in a sentence, what came of it"),
    SHAPE_STRING("provider"),
    SHAPE_STRING("capability"),
    SHAPE_STRING("model", .flags = FIELD_NULLABLE, .help = "who answered"),
    SHAPE_INT("ms"),
    SHAPE_INT("prompt_tokens"),
    SHAPE_INT("completion_tokens"),
    SHAPE_STRING("code", .flags = FIELD_NULLABLE, .help = "of what went wrong, as in an error"),
    SHAPE_STRING("reason", .flags = FIELD_NULLABLE, .help = "of a failure on the way"),
    FIELD_END,
};

struct trial {
    enum provider_capability what;
    const char *model; /* the requested model, then the model that answered */
    int64_t ms;
    struct llm_usage usage;
};

static void limit(int64_t *ms, int64_t most_ms)
{
    most_ms = MAX(most_ms, (int64_t)1);
    *ms = *ms > 0 ? MIN(*ms, most_ms) : most_ms;
}

static int try_chat(struct request *req, struct llm_account_state *state, struct trial *t, const char **ret_model,
                    struct err *e)
{
    static const struct llm_block block = { LLM_BLOCK_TEXT, .text = "Say OK." };
    static const struct llm_message message = { .role = LLM_USER, .blocks = &block, .n_blocks = 1 };
    int64_t began_ms = clock_mono_ms(), left_ms;
    const struct llm_request request = { .messages = &message,
                                         .n_messages = 1,
                                         .max_tokens = ANSWER_TOKENS,
                                         .model = t->model,
                                         .ready_by_ms = began_ms + LOAD_MS };
    struct llm_plan *plan = ARENA_NEW(req->arena, struct llm_plan);
    struct llm_outcome out = { 0 };
    int r = llm_plan_make(req->api->llm_accounts, state->account.name, &request, req->arena, &req->exchange->is_gone,
                          plan, e);

    if (r < 0)
        return r;
    left_ms = began_ms + TOTAL_MS - clock_mono_ms();
    limit(&plan->of[0].http.connect_ms, CONNECT_MS);
    limit(&plan->of[0].http.first_byte_ms, left_ms);
    limit(&plan->of[0].http.total_ms, left_ms);
    *ret_model = t->model = plan->of[0].model;
    r = llm_call_once(plan, req->arena, &req->exchange->is_gone, &out, e);
    t->ms = out.answer_us / 1000;
    if (r == 0) {
        t->model = out.model;
        t->usage = out.answer->usage;
    }
    return r;
}

static int try_embed(struct request *req, struct llm_account_state *state, struct trial *t, const char **ret_model,
                     struct err *e)
{
    struct embed_vectors vectors = { 0 };
    int r;

    if (!state->account.preset->can_embed)
        return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "%s has no embeddings.", state->account.name);
    t->model = t->model ? t->model : embed_own_model(&state->account);
    if (!t->model)
        return err_set(e, -EINVAL, "INVALID_MODEL",
                       "%s has no embedding model yet; name one, or add the provider again with --embed-model.",
                       state->account.name);
    *ret_model = t->model;
    r = embed_try(metered_call(req), state, t->model, &(struct embed_limits){ LOAD_MS, CONNECT_MS, TOTAL_MS }, &vectors,
                  e);
    t->ms = vectors.upstream_us / 1000;
    if (r == 0) {
        t->model = vectors.model;
        t->usage.prompt_tokens = vectors.n_tokens;
    }
    return r;
}

static const char *sentence(struct request *req, const struct llm_account_state *state, const struct trial *t)
{
    if (t->what == PROVIDER_EMBED)
        return arena_printf(req->arena, "%s works: %s made a vector in %lld ms.", state->account.name, t->model,
                            (long long)t->ms);
    return arena_printf(req->arena, "%s works: %s answered in %lld ms; %lld tokens were sent and %lld came back%s.",
                        state->account.name, t->model, (long long)t->ms, (long long)t->usage.prompt_tokens,
                        (long long)t->usage.completion_tokens, t->usage.is_estimated ? ", by estimate" : "");
}

/* The text includes the base URL, so that an administrator can check it; only administrators read this. */
static const char *failure(struct request *req, const struct llm_account_state *state, const struct err *why)
{
    const char *url = state->account.base_url;

    if (!url || !strstr(why->text, "its base URL"))
        return why->text;
    return arena_printf(req->arena, "%s (The base URL is %.*s.)", why->text, (int)strcspn(url, "?"),
                        url); /* parameters may be secrets */
}

static const char *reason_of(const struct err *why)
{
    for (unsigned i = 0; i < MIN(why->n_extras, (unsigned)ERR_MAX_EXTRAS); i++)
        if (strcmp(why->extras[i].key, "reason") == 0)
            return why->extras[i].value;
    return NULL;
}

static enum provider_capability capability_of(const struct test_body *body, const struct llm_account *acc)
{
    bool only_embeds = !acc->preset->can_chat || (!acc->model && acc->embed_model);

    if (body->capability)
        return provider_capability_of(body->capability);
    return only_embeds ? PROVIDER_EMBED : PROVIDER_CHAT;
}

static void write_trial(struct json_writer *w, const struct llm_account_state *state, const struct trial *t,
                        const char *text, const struct err *why)
{
    json_add_bool(w, "works", !why);
    json_add_string(w, "text", text);
    json_add_string(w, "provider", state->account.name);
    json_add_string(w, "capability", provider_capabilities[t->what]);
    json_add_string(w, "model", t->model);
    json_add_int(w, "ms", t->ms);
    json_add_int(w, "prompt_tokens", t->usage.prompt_tokens);
    json_add_int(w, "completion_tokens", t->usage.completion_tokens);
    json_add_string(w, "code", why ? why->code : NULL);
    json_add_string(w, "reason", why ? reason_of(why) : NULL);
}

/* The request is counted like any other use. */
static int run_trial(struct request *req, struct response *res, struct llm_account_state *state, struct trial *t,
                     struct err *e)
{
    enum meter_work work = t->what == PROVIDER_EMBED ? METER_EMBED : METER_CHAT;
    struct err *why = ARENA_NEW(req->arena, struct err);
    struct meter_ticket ticket = { 0 };
    const char *requested = NULL;
    struct models_call *call = metered_call(req);
    int r = models_admit(call, ANSWER_TOKENS, &ticket, e);

    if (r < 0) {
        metered_retry_after(req->exchange, e, call->retry_after_ms);
        return r;
    }
    r = t->what == PROVIDER_EMBED ? try_embed(req, state, t, &requested, why)
                                  : try_chat(req, state, t, &requested, why);
    meter_count(req->api->meter, &ticket,
                &(struct meter_use){ .work = work,
                                     .provider = state->account.name,
                                     .model = t->model,
                                     .is_failed = r < 0,
                                     .prompt_tokens = t->usage.prompt_tokens,
                                     .is_estimated = t->usage.is_estimated,
                                     .completion_tokens = t->usage.completion_tokens });
    if (r == -ECANCELED)
        return err_set(e, r, why->code, "%s", why->text);
    if (r == 0)
        llm_account_state_succeeded(state, requested); /* neither account nor model rests any longer */
    else
        llm_account_state_keep_failure(state, why->text);
    write_trial(&res->json, state, t, r == 0 ? sentence(req, state, t) : failure(req, state, why), r == 0 ? NULL : why);
    return 0;
}

static bool is_about_speech(const struct test_body *body, const struct llm_account *acc)
{
    if (body->capability)
        return strcmp(body->capability, speech_word) == 0;
    return llm_preset_is_for_speech(acc->preset);
}

/* Usage counts what callers ask for; this is a word. */
static int test_speech(struct request *req, struct response *res, const struct llm_account_state *state,
                       const char *model, struct err *e)
{
    struct err *why = ARENA_NEW(req->arena, struct err);
    struct provider_speech_trial trial;
    int r = provider_try_speech(req, &state->account, model, &trial, why);

    if (r == -ECANCELED)
        return err_set(e, r, why->code, "%s", why->text);
    json_add_bool(&res->json, "works", r == 0);
    json_add_string(&res->json, "text", r == 0 ? trial.text : failure(req, state, why));
    json_add_string(&res->json, "provider", state->account.name);
    json_add_string(&res->json, "capability", speech_word);
    json_add_string(&res->json, "model", trial.model);
    json_add_int(&res->json, "ms", trial.ms);
    json_add_int(&res->json, "prompt_tokens", 0);
    json_add_int(&res->json, "completion_tokens", 0);
    json_add_string(&res->json, "code", r == 0 ? NULL : why->code);
    json_add_string(&res->json, "reason", r == 0 ? NULL : reason_of(why));
    return 0;
}

static int test_provider(struct request *req, struct response *res, struct err *e)
{
    const struct test_body *body = req->body;
    struct provider_choice choice = { 0 };
    struct llm_account_state *state = NULL;
    struct trial t;
    int r = provider_find(req, req->params[0], &state, e);

    if (r < 0)
        return r;
    if (is_about_speech(body, &state->account))
        return test_speech(req, res, state, body->model, e);
    t = (struct trial){ .what = capability_of(body, &state->account) };
    r = provider_choose(metered_call(req), t.what, state->account.name, body->model, &choice, e);
    if (r < 0)
        return r;
    t.model = choice.model;
    return run_trial(req, res, state, &t, e);
}

const struct route provider_test_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/providers/:name/test",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      ROUTE_BODY(test_fields, struct test_body),
      .is_body_optional = true,
      .answer = test_answer,
      .handler = test_provider,
      .summary = "Make one small real call and say what came of it",
      .tag = "Providers" },
    ROUTE_END,
};
