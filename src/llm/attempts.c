#include "llm/attempts.h"

#include "base/clock.h"
#include "net/http_date.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_WAIT_MS = 200, MOST_RETRY_AFTER_S = 86400 };

void llm_attempts_init(struct llm_attempts *t, const struct llm_plan *plan, struct settings *settings,
                       int64_t deadline_ms)
{
    *t = (struct llm_attempts){
        .plan = plan,
        .most_retries = (unsigned)settings_int(settings, SETTING_LLM_RETRIES),
        .rest_after = (unsigned)settings_int(settings, SETTING_LLM_REST_AFTER),
        .retry_after_max_ms = settings_ms(settings, SETTING_LLM_RETRY_AFTER_MAX_S),
        .deadline_ms = deadline_ms,
    };
}

/* The time until the first rest ends. */
static int64_t least_rest_ms(const struct llm_attempts *t)
{
    int64_t least_ms = INT64_MAX;

    for (size_t i = 0; i < t->plan->picks.n; i++)
        least_ms = MIN(least_ms, llm_account_state_rest_ms(t->plan->picks.states[i], t->plan->of[i].model));
    return least_ms;
}

int llm_attempts_next(struct llm_attempts *t, struct err *e)
{
    const struct llm_plan *plan = t->plan;

    for (; t->at < plan->picks.n; t->at++, t->n_tries = 0)
        if (t->n_tries > 0 || llm_account_state_may_try(plan->picks.states[t->at], plan->of[t->at].model)) {
            t->n_tries++;
            return (int)t->at;
        }
    return llm_account_state_err_rest(plan->picks.states[0], plan->of[0].model, least_rest_ms(t), e);
}

/* Is this a failure of the account, so that another account may succeed? */
static bool is_of_account(int r)
{
    return r != -EINVAL && r != -ECANCELED && r != -EMSGSIZE;
}

static bool may_help_to_retry(int r)
{
    return r == -ECONNREFUSED || r == -ECONNRESET || r == -EAGAIN || r == -EBUSY;
}

/* -1: no retry with this account. */
static int64_t wait_of(const struct llm_attempts *t, int r, int64_t retry_after_ms)
{
    int64_t wait_ms = retry_after_ms ? retry_after_ms : (int64_t)FIRST_WAIT_MS << (t->n_tries - 1);

    if (!may_help_to_retry(r) || t->n_tries > t->most_retries || wait_ms > t->retry_after_max_ms)
        return -1;
    return clock_mono_ms() + wait_ms < t->deadline_ms ? wait_ms : -1;
}

int64_t llm_attempts_failed(struct llm_attempts *t, int r, const char *why, int64_t retry_after_ms)
{
    int64_t wait_ms = wait_of(t, r, retry_after_ms);
    struct llm_account_state *state = t->plan->picks.states[t->at];
    const char *model = t->plan->of[t->at].model;

    if (wait_ms >= 0)
        return wait_ms;
    if (llm_fault_of(r) != LLM_NO_FAULT)
        llm_account_state_failed(state, model, llm_fault_of(r), t->rest_after);
    else if (is_of_account(r)) /* the account answers, even if with a refusal */
        llm_account_state_succeeded(state, model);
    if (is_of_account(r))
        llm_account_state_keep_failure(state, why);
    if (!is_of_account(r) || t->at + 1 >= t->plan->picks.n || clock_mono_ms() >= t->deadline_ms)
        return -1;
    t->at++;
    t->n_tries = 0;
    return 0;
}

void llm_attempts_succeeded(struct llm_attempts *t)
{
    llm_account_state_succeeded(t->plan->picks.states[t->at], t->plan->of[t->at].model);
}

int64_t llm_retry_after_ms(const struct http_answer *answer)
{
    const char *text = http_answer_header(answer, "retry-after");
    int64_t date_ms = 0;
    char *end;
    double seconds;

    if (!text)
        return 0;
    seconds = strtod(text, &end);
    if (end == text && http_date_parse(text, &date_ms) == 0)
        seconds = (double)(date_ms - clock_wall_ms()) / 1e3;
    if (!(seconds > 0))
        return 0;
    return (int64_t)(MIN(seconds, (double)MOST_RETRY_AFTER_S) * 1e3);
}
