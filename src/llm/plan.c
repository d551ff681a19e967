#include "llm/plan.h"

#include "llm/answer.h"
#include "llm/format.h"
#include "llm/stops.h"
#include "net/url.h"

#include <string.h>

static void set_limits(struct settings *settings, struct http_ask *http)
{
    http->connect_ms = settings_ms(settings, SETTING_LLM_CONNECT_S);
    http->first_byte_ms = settings_ms(settings, SETTING_LLM_FIRST_BYTE_S);
    http->idle_ms = settings_ms(settings, SETTING_LLM_IDLE_S);
    http->total_ms = settings_ms(settings, SETTING_LLM_TOTAL_S);
    http->max_reply = LIMIT_LLM_ANSWER;
}

struct planning { struct settings *settings; const struct llm_ask *ask; struct arena *arena, *asks; const atomic_bool *is_gone; };

static int plan_one(const struct planning *p, struct llm_seat *seat, bool is_first, struct llm_planned *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    const struct llm_ask *ask = p->ask;
    struct llm_ask own = llm_format_plan(&seat->account, ask, scratch, &ret->must_check);
    struct llamacpp_wish wish = { .may_wait = is_first, .ready_by_ms = ask->ready_by_ms, .is_gone = p->is_gone };   /* a model to fall back on is not loaded for each request */
    const struct llm_account *acc = NULL;
    int r = 0;

    own.model = is_first ? ask->model : NULL;
    own.is_streamed = ask->is_streamed && !seat->may_not_stream;
    if (!own.model)
        r = llm_seat_model(seat, p->settings, scratch, p->is_gone, &own.model, e);
    ret->must_stop = r == 0 && own.stop.n > 0 && !llm_takes_stops(&seat->account, own.model);
    if (ret->must_stop)
        own.stop.n = 0;
    wish.model = own.model;
    if (r == 0)
        r = llm_seat_ready(seat, &wish, p->arena, &acc, e);
    if (r == 0)
        r = acc->preset->protocol->request(acc, &own, p->asks, &ret->http, e);
    if (r < 0)
        return r;
    ret->model = arena_strdup(p->arena, own.model);
    ret->is_whole = !own.is_streamed;
    ret->http.is_body_lent = true;      /* it ends with the plan's asks */
    set_limits(p->settings, &ret->http);
    return 0;
}

static void free_asks(void *asks)
{
    arena_freep(asks);
}

static struct arena **make_asks(struct arena *a)
{
    struct arena **asks = ARENA_NEW(a, struct arena *);

    *asks = arena_new();
    arena_defer(a, free_asks, asks);
    return asks;
}

static struct field_strings copy_strings(struct arena *a, const struct field_strings *from)
{
    const char **items = arena_array(a, from->n, sizeof(*items));

    for (size_t i = 0; i < from->n; i++)
        items[i] = arena_strdup(a, from->items[i]);
    return (struct field_strings){ items, from->n };
}

void llm_plan_forget_asks(const struct llm_plan *plan)
{
    arena_freep(plan->asks);
}

static bool must_check(const struct llm_plan *plan)
{
    for (size_t i = 0; i < plan->picks.n; i++)
        if (plan->of[i].must_check)
            return true;
    return false;
}

int llm_plan_make(struct llm_accounts *accounts, const char *provider, const struct llm_ask *ask, struct arena *a, const atomic_bool *is_gone,
                  struct llm_plan *ret, struct err *e)
{
    struct settings *settings = llm_accounts_settings(accounts);
    struct llm_plan plan = { .asks = make_asks(a), .stop = copy_strings(a, &ask->stop), .prompt_tokens = llm_prompt_tokens(ask),
                             .total_ms = settings_ms(settings, SETTING_LLM_TOTAL_S) };
    const struct planning planning = { settings, ask, a, *plan.asks, is_gone };
    struct llm_picks found = { .n = 0 };
    int r = llm_accounts_pick(accounts, a, provider, &found, e);

    for (size_t i = 0; r == 0 && i < found.n && (i == 0 || arena_bytes(planning.asks) < LIMIT_LLM_PLAN_BYTES); i++) {
        struct llm_seat *seat = found.seats[i];
        int r_one = plan_one(&planning, seat, i == 0, &plan.of[plan.picks.n], i == 0 ? e : NULL);

        if (r_one == 0)
            plan.picks.seats[plan.picks.n++] = seat;
        else if (i == 0 && r_one != -EAGAIN)    /* one to fall back on is left out, and the first when it cannot be asked just now */
            r = llm_blame(&seat->account, r_one, e);
    }
    if (r == 0 && plan.picks.n == 0)
        r = llm_blame(&found.seats[0]->account, -EAGAIN, e);
    if (r == 0 && must_check(&plan))
        r = llm_format_rule_copy(a, ask, &plan.rule, e);
    if (r == 0)
        *ret = plan;
    return r;
}

struct llm_reader *llm_plan_reader(const struct llm_plan *plan, size_t at, struct arena *a, const struct llm_sink *sink)
{
    const struct llm_protocol *p = plan->picks.seats[at]->account.preset->protocol;
    struct llm_sink *before = ARENA_NEW(a, struct llm_sink);

    *before = plan->of[at].must_stop ? llm_stops_sink(a, &plan->stop, !plan->of[at].is_whole, sink) : *sink;
    return p->reader(a, before);
}

static void hide_host(const struct llm_account *acc, bool is_told_of, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct url url = { .host = NULL };

    if (!acc->base_url || url_parse(a, acc->base_url, &url, NULL) < 0)
        return;
    snprintf(e->hidden, sizeof(e->hidden), "%s", url.host);
    e->hidden_as = "its server";
    e->hidden_from = (unsigned)(strlen(acc->name) + (is_told_of ? 0 : strlen(": ")));
}

int llm_blame(const struct llm_account *acc, int r, struct err *e)
{
    static const char *const transport[] = { "DNS_FAILED", "CONNECT_FAILED", "TLS_FAILED", "UPSTREAM_TIMEOUT", "UPSTREAM_CLOSED", "UPSTREAM_INVALID",
                                             "UPSTREAM_TOO_LARGE" };

    static const char somebody[] = "The provider ";
    size_t n = strlen(somebody);
    bool is_told_of = strncmp(e->text, somebody, n) == 0;

    llm_hide_secrets(acc, e);
    if (is_told_of)
        err_set(e, r, e->code, "%s %s", acc->name, e->text + n);
    for (size_t i = 0; i < ARRAY_SIZE(transport); i++)
        if (strcmp(e->code, transport[i]) == 0) {
            err_set(e, r, "LLM_ERROR", "%s%s%s", is_told_of ? "" : acc->name, is_told_of ? "" : ": ", e->text);
            err_add_extra(e, "reason", transport[i]);
            hide_host(acc, is_told_of, e);
            return r;
        }
    return r;
}
