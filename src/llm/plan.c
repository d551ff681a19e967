#include "llm/plan.h"

#include "llm/answer.h"
#include "llm/fetch.h"
#include "llm/format.h"
#include "llm/protocols/stops.h"
#include "net/url.h"

#include <string.h>

enum { WHOLE_BUFFER_BYTES = 8 << 10 };

static void set_limits(struct settings *settings, struct http_call_request *http)
{
    http->connect_ms = settings_ms(settings, SETTING_LLM_CONNECT_S);
    http->first_byte_ms = settings_ms(settings, SETTING_LLM_FIRST_BYTE_S);
    http->idle_ms = settings_ms(settings, SETTING_LLM_IDLE_S);
    http->total_ms = settings_ms(settings, SETTING_LLM_TOTAL_S);
    http->max_reply = LIMIT_LLM_ANSWER;
}

struct planning {
    struct settings *settings;
    const struct llm_request *request;
    struct arena *arena, *requests;
    const atomic_bool *is_gone;
};

static int plan_one(const struct planning *p, struct llm_account_state *state, bool is_first, struct llm_planned *ret,
                    struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    const struct llm_request *request = p->request;
    struct llm_request own = llm_format_plan(&state->account, request, scratch, &ret->must_check);
    struct llamacpp_start_request start_request = {
        .may_wait = is_first, .ready_by_ms = request->ready_by_ms, .is_gone = p->is_gone
    }; /* a local model to fall back on is not loaded for a request */
    const struct llm_account *acc = NULL;
    int r = 0;

    if (llm_has_addresses(request) && llm_is_server_near(&state->account))
        return err_set(e, -EINVAL, "UNSUPPORTED_CONTENT",
                       "A model server on this machine gets no addresses, and these were not fetched.");
    own.model = is_first ? request->model : NULL;
    own.is_streamed = request->is_streamed && !state->may_not_stream;
    if (!own.model)
        r = llm_account_state_model(state, p->settings, scratch, p->is_gone, &own.model, e);
    ret->must_stop = r == 0 && own.stop.n > 0 && !llm_takes_stops(&state->account, own.model);
    if (ret->must_stop)
        own.stop.n = 0;
    start_request.model = own.model;
    if (r == 0)
        r = llm_account_state_ready(state, &start_request, p->arena, &acc, e);
    if (r == 0)
        r = acc->preset->protocol->request(acc, &own, p->requests, &ret->http, e);
    if (r < 0)
        return r;
    ret->model = arena_strdup(p->arena, own.model);
    ret->is_whole = !own.is_streamed;
    ret->http.is_body_lent = true; /* the body lives until the plan's requests are freed */
    ret->http.buffer_bytes = ret->is_whole ? WHOLE_BUFFER_BYTES : 0;
    set_limits(p->settings, &ret->http);
    return 0;
}

static void free_requests(void *requests)
{
    arena_freep(requests);
}

static struct arena **make_requests(struct arena *a)
{
    struct arena **requests = ARENA_NEW(a, struct arena *);

    *requests = arena_new();
    arena_defer(a, free_requests, requests);
    return requests;
}

static struct field_strings copy_strings(struct arena *a, const struct field_strings *from)
{
    const char **items = arena_array(a, from->n, sizeof(*items));

    for (size_t i = 0; i < from->n; i++)
        items[i] = arena_strdup(a, from->items[i]);
    return (struct field_strings){ items, from->n };
}

void llm_plan_free_requests(const struct llm_plan *plan)
{
    arena_freep(plan->requests);
}

static bool must_check(const struct llm_plan *plan)
{
    for (size_t i = 0; i < plan->picks.n; i++)
        if (plan->of[i].must_check)
            return true;
    return false;
}

static bool needs_worker(struct llm_account_state *s, const char *model)
{
    const struct llm_account *acc = &s->account;

    return acc->runner || acc->local || !http_call_is_prepared(acc->base_url) ||
           (!model && !acc->model && llm_account_state_models_wait(s));
}

/* The loop may only make plans from memory. */
static int check_loop(struct llm_accounts *accounts, const char *provider, const struct llm_request *request,
                      const struct llm_picks *picks)
{
    bool must_wait = llm_accounts_must_look(accounts, provider);

    for (size_t i = 0; i < picks->n; i++)
        must_wait = must_wait || needs_worker(picks->states[i], i == 0 ? request->model : NULL);
    return must_wait ? -ENEEDSWORKER : 0;
}

int llm_plan_make(struct llm_accounts *accounts, const char *provider, const struct llm_request *request,
                  struct arena *a, const atomic_bool *is_gone, struct llm_plan *ret, struct err *e)
{
    struct settings *settings = llm_accounts_settings(accounts);
    struct llm_plan plan = { .requests = make_requests(a),
                             .stop = copy_strings(a, &request->stop),
                             .prompt_tokens = llm_prompt_tokens(request),
                             .total_ms = settings_ms(settings, SETTING_LLM_TOTAL_S) };
    const struct planning planning = { settings, request, a, *plan.requests, is_gone };
    struct llm_picks found = { .n = 0 };
    int r = llm_accounts_pick(accounts, a, provider, &found, e);

    if (r == 0 && loop_is_here())
        r = check_loop(accounts, provider, request, &found);
    for (size_t i = 0; r == 0 && i < found.n && (i == 0 || arena_bytes(planning.requests) < LIMIT_LLM_PLAN_BYTES);
         i++) {
        struct llm_account_state *state = found.states[i];
        int r_one = plan_one(&planning, state, i == 0, &plan.of[plan.picks.n], i == 0 ? e : NULL);

        if (r_one == 0) {
            http_call_prepare(&plan.of[plan.picks.n].http);
            plan.picks.states[plan.picks.n++] = state;
        } else if (r_one == -ENEEDSWORKER)
            r = r_one;
        else if (i == 0 && r_one != -EAGAIN) /* an account to fall back on is skipped after any error, the first only
                                                  after -EAGAIN */
            r = llm_blame(&state->account, r_one, e);
    }
    if (r == 0 && plan.picks.n == 0)
        r = llm_blame(&found.states[0]->account, -EAGAIN, e);
    if (r == 0 && must_check(&plan))
        r = request->format == LLM_FORMAT_SCHEMA && loop_is_here() ? -ENEEDSWORKER /* reading a schema may take long */
                                                                   : llm_format_rule_copy(a, request, &plan.rule, e);
    if (r == 0)
        *ret = plan;
    return r;
}

/* A local model to fall back on is not loaded for a request, so nothing waits for it. */
static bool account_waits(struct llm_account_state *s, const char *model, bool is_first)
{
    if (!model)
        model = s->account.model;
    if (s->account.runner)
        return is_first && !(model && llamacpp_is_loaded(s->account.runner, model));
    return !model && llm_account_state_models_wait(s);
}

bool llm_plan_waits(struct llm_accounts *accounts, const char *provider, const char *model)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_picks found = { .n = 0 };
    bool waits = llm_accounts_wait(accounts, provider);

    if (waits || llm_accounts_pick(accounts, a, provider, &found, NULL) < 0)
        return waits;
    for (size_t i = 0; i < found.n && !waits; i++)
        waits = account_waits(found.states[i], i == 0 ? model : NULL, i == 0);
    return waits;
}

struct llm_reader *llm_plan_reader(const struct llm_plan *plan, size_t at, struct arena *a, const struct llm_sink *sink)
{
    const struct llm_protocol *p = plan->picks.states[at]->account.preset->protocol;
    struct llm_sink *before = ARENA_NEW(a, struct llm_sink);

    *before = plan->of[at].must_stop ? llm_stops_sink(a, &plan->stop, !plan->of[at].is_whole, sink) : *sink;
    return p->reader(a, before);
}

static void hide_host(const struct llm_account *acc, bool is_reported_of, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct url url = { .host = NULL };

    if (!acc->base_url || url_parse(a, acc->base_url, &url, NULL) < 0)
        return;
    snprintf(e->hidden, sizeof(e->hidden), "%s", url.host);
    e->hidden_as = "its server";
    e->hidden_from = (unsigned)(strlen(acc->name) + (is_reported_of ? 0 : strlen(": ")));
}

int llm_blame(const struct llm_account *acc, int r, struct err *e)
{
    static const char *const transport[] = { "DNS_FAILED",        "CONNECT_FAILED",  "TLS_FAILED",
                                             "UPSTREAM_TIMEOUT",  "UPSTREAM_CLOSED", "UPSTREAM_INVALID",
                                             "UPSTREAM_TOO_LARGE" };

    static const char somebody[] = "The provider ";
    size_t n = strlen(somebody);
    bool is_reported_of = strncmp(e->text, somebody, n) == 0;

    llm_hide_secrets(acc, e);
    if (is_reported_of)
        err_set(e, r, e->code, "%s %s", acc->name, e->text + n);
    for (size_t i = 0; i < ARRAY_SIZE(transport); i++)
        if (strcmp(e->code, transport[i]) == 0) {
            err_set(e, r, "LLM_ERROR", "%s%s%s", is_reported_of ? "" : acc->name, is_reported_of ? "" : ": ", e->text);
            err_add_extra(e, "reason", transport[i]);
            hide_host(acc, is_reported_of, e);
            return r;
        }
    return r;
}
