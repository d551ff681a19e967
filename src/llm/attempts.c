#include "llm/attempts.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_WAIT_MS = 200, MOST_RETRY_AFTER_S = 86400 };

void llm_attempts_init(struct llm_attempts *t, const struct llm_picks *picks, struct settings *settings, int64_t deadline_ms)
{
    *t = (struct llm_attempts){
        .picks = *picks,
        .most_retries = (unsigned)settings_int(settings, SETTING_LLM_RETRIES),
        .rest_after = (unsigned)settings_int(settings, SETTING_LLM_REST_AFTER),
        .retry_after_max_ms = settings_ms(settings, SETTING_LLM_RETRY_AFTER_MAX_S),
        .deadline_ms = deadline_ms,
    };
}

/* How long it is until one of them may be asked. */
static int64_t least_rest_ms(const struct llm_attempts *t)
{
    int64_t least_ms = INT64_MAX;

    for (size_t i = 0; i < t->picks.n; i++)
        least_ms = MIN(least_ms, llm_seat_rest_ms(t->picks.seats[i]));
    return least_ms;
}

int llm_attempts_next(struct llm_attempts *t, struct err *e)
{
    for (; t->at < t->picks.n; t->at++, t->n_tries = 0)
        if (t->n_tries > 0 || llm_seat_may_ask(t->picks.seats[t->at])) {
            t->n_tries++;
            return (int)t->at;
        }
    return llm_seat_tell_rest(t->picks.seats[0], least_rest_ms(t), e);
}

/* Is it the account's failure, for which others may not be at fault? */
static bool is_of_account(int r)
{
    return r != -EINVAL && r != -ECANCELED && r != -EMSGSIZE;
}

static bool is_outage(int r)
{
    return r == -ECONNREFUSED || r == -EHOSTUNREACH || r == -ECONNRESET || r == -ETIMEDOUT || r == -EAGAIN || r == -EPROTO;
}

static bool may_help_to_retry(int r)
{
    return r == -ECONNREFUSED || r == -ECONNRESET || r == -EAGAIN || r == -EBUSY;
}

/* -1: not with this account. */
static int64_t wait_of(const struct llm_attempts *t, int r, int64_t retry_after_ms)
{
    int64_t wait_ms = retry_after_ms ? retry_after_ms : (int64_t)FIRST_WAIT_MS << (t->n_tries - 1);

    if (!may_help_to_retry(r) || t->n_tries > t->most_retries || wait_ms > t->retry_after_max_ms)
        return -1;
    return clock_mono_ms() + wait_ms < t->deadline_ms ? wait_ms : -1;
}

int64_t llm_attempts_failed(struct llm_attempts *t, int r, int64_t retry_after_ms)
{
    int64_t wait_ms = wait_of(t, r, retry_after_ms);

    if (wait_ms >= 0)
        return wait_ms;
    if (is_outage(r))
        llm_seat_failed(t->picks.seats[t->at], t->rest_after);
    else if (is_of_account(r))          /* it answers, if only with a refusal */
        llm_seat_succeeded(t->picks.seats[t->at]);
    if (!is_of_account(r) || t->at + 1 >= t->picks.n || clock_mono_ms() >= t->deadline_ms)
        return -1;
    t->at++;
    t->n_tries = 0;
    return 0;
}

void llm_attempts_succeeded(struct llm_attempts *t)
{
    llm_seat_succeeded(t->picks.seats[t->at]);
}

int64_t llm_retry_after_ms(const struct http_answer *answer)
{
    const char *text = http_answer_header(answer, "retry-after");
    struct tm date = { 0 };
    char *end;
    double seconds;

    if (!text)
        return 0;
    seconds = strtod(text, &end);
    if (end == text && strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date))
        seconds = (double)timegm(&date) - (double)clock_wall_ms() / 1e3;
    if (!(seconds > 0))
        return 0;
    return (int64_t)(MIN(seconds, (double)MOST_RETRY_AFTER_S) * 1e3);
}
