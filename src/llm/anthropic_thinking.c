#include "llm/anthropic_thinking.h"

#include "llm/wire.h"

#include <string.h>

enum {
    LEAST_MAX_TOKENS = 4096,            /* a request must say one; every model takes this */
    THINKING_MAX_TOKENS = 16384,        /* thoughts count; every model that thinks takes this */
    LEAST_BUDGET = 1024, MOST_BUDGET = 32000,   /* the service's least; above the most it advises against waiting */
};

static bool is_signed(const struct llm_message *m)
{
    for (size_t i = 0; i < m->n_thoughts; i++)
        if (*m->thoughts[i].seal && !wire_is_responses_seal(m->thoughts[i].seal))
            return true;
    return false;
}

/* Of the turn that goes on: before it nothing is asked for. */
static bool has_lost_thoughts(const struct llm_ask *ask)
{
    for (size_t i = ask->n_messages; i-- > 0 && ask->messages[i].role != LLM_USER;)
        if (ask->messages[i].n_tool_calls > 0 && !is_signed(&ask->messages[i]))
            return true;
    return false;
}

static bool is_tool_forced(struct json_value choice)
{
    return json_type(choice) == JSON_OBJECT || slice_eq_str(json_string(choice), "required");
}

/* As a share of the answer: OpenAI's limit counts thoughts too. */
static int64_t budget_of(const char *effort, int64_t max_tokens)
{
    static const struct { const char *effort; int64_t percent; } shares[] = {
        { "minimal", 10 }, { "low", 20 }, { "medium", 50 }, { "high", 80 }, { "xhigh", 90 }, { "max", 90 },
    };
    int64_t percent = 50;

    for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
        if (strcmp(shares[i].effort, effort) == 0)
            percent = shares[i].percent;
    return MAX(MIN(max_tokens / 100 * percent, (int64_t)MOST_BUDGET), (int64_t)LEAST_BUDGET);
}

enum llm_thinking anthropic_thinking(const struct llm_ask *ask)
{
    if (!ask->effort || strcmp(ask->effort, "none") == 0 || is_tool_forced(ask->tool_choice) || has_lost_thoughts(ask))
        return LLM_THINKS_NOT;
    return ask->max_tokens > 0 && ask->max_tokens <= LEAST_BUDGET ? LLM_THINKS_NOT : llm_model_thinking(ask->model);
}

int64_t anthropic_max_tokens(const struct llm_ask *ask)
{
    return ask->max_tokens > 0 ? ask->max_tokens : anthropic_thinking(ask) == LLM_THINKS_NOT ? LEAST_MAX_TOKENS : THINKING_MAX_TOKENS;
}

static void add_effort(struct json_writer *w, const char *effort)
{
    json_begin_object_as(w, "output_config");
    json_add_string(w, "effort", strcmp(effort, "minimal") == 0 ? "low" : effort);
    json_end(w);
}

void anthropic_add_thinking(struct json_writer *w, const struct llm_ask *ask)
{
    enum llm_thinking how = anthropic_thinking(ask);

    if (!json_is_absent(ask->thinking))
        json_add_value(w, "thinking", ask->thinking);
    if (ask->output_effort)
        add_effort(w, ask->output_effort);
    if (how == LLM_THINKS_NOT)
        return;
    json_begin_object_as(w, "thinking");
    json_add_string(w, "type", how == LLM_THINKS_BY_BUDGET ? "enabled" : "adaptive");
    if (how == LLM_THINKS_BY_BUDGET)
        json_add_int(w, "budget_tokens", budget_of(ask->effort, anthropic_max_tokens(ask)));
    json_end(w);
    if (how == LLM_THINKS_ADAPTIVELY)
        add_effort(w, ask->effort);
}
