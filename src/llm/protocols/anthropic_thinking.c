#include "llm/protocols/anthropic_thinking.h"

#include "llm/protocols/wire.h"

#include <string.h>

enum {
    LEAST_MAX_TOKENS = 4096,     /* every request must have a limit; every model accepts this limit */
    THINKING_MAX_TOKENS = 16384, /* thoughts count towards the limit; every thinking model accepts this limit */
    LEAST_BUDGET = 1024,
    MOST_BUDGET = 32000, /* LEAST_BUDGET: the service's minimum; MOST_BUDGET: for larger budgets the service advises
                            against waiting for the answer */
};

static bool is_signed(const struct llm_message *m)
{
    for (size_t i = 0; i < m->n_thoughts; i++)
        if (*m->thoughts[i].signature && !wire_is_responses_signature(m->thoughts[i].signature))
            return true;
    return false;
}

/* Does a call of the current turn lack its signed thoughts? Thoughts of earlier turns are not required. */
static bool has_lost_thoughts(const struct llm_request *request)
{
    for (size_t i = request->n_messages; i-- > 0 && request->messages[i].role != LLM_USER;)
        if (request->messages[i].n_tool_calls > 0 && !is_signed(&request->messages[i]))
            return true;
    return false;
}

static bool is_tool_forced(struct json_value choice)
{
    return json_type(choice) == JSON_OBJECT || slice_eq_str(json_string(choice), "required");
}

/* The budget is a share of max_tokens, as OpenAI's limit includes thoughts. */
static int64_t budget_of(const char *effort, int64_t max_tokens)
{
    static const struct {
        const char *effort;
        int64_t percent;
    } shares[] = {
        { "minimal", 10 }, { "low", 20 }, { "medium", 50 }, { "high", 80 }, { "xhigh", 90 }, { "max", 90 },
    };
    int64_t percent = 50;

    for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
        if (strcmp(shares[i].effort, effort) == 0)
            percent = shares[i].percent;
    return MAX(MIN(max_tokens / 100 * percent, (int64_t)MOST_BUDGET), (int64_t)LEAST_BUDGET);
}

enum llm_thinking anthropic_thinking(const struct llm_request *request)
{
    if (!request->effort || strcmp(request->effort, "none") == 0 || is_tool_forced(request->tool_choice) ||
        has_lost_thoughts(request))
        return LLM_THINKS_NOT;
    return request->max_tokens > 0 && request->max_tokens <= LEAST_BUDGET ? LLM_THINKS_NOT
                                                                          : llm_model_thinking(request->model);
}

int64_t anthropic_max_tokens(const struct llm_request *request)
{
    return request->max_tokens > 0                         ? request->max_tokens
           : anthropic_thinking(request) == LLM_THINKS_NOT ? LEAST_MAX_TOKENS
                                                           : THINKING_MAX_TOKENS;
}

static void add_effort(struct json_writer *w, const char *effort)
{
    json_begin_object_as(w, "output_config");
    json_add_string(w, "effort", strcmp(effort, "minimal") == 0 ? "low" : effort);
    json_end(w);
}

void anthropic_add_thinking(struct json_writer *w, const struct llm_request *request)
{
    enum llm_thinking how = anthropic_thinking(request);

    if (!json_is_absent(request->thinking))
        json_add_value(w, "thinking", request->thinking);
    if (request->output_effort)
        add_effort(w, request->output_effort);
    if (how == LLM_THINKS_NOT)
        return;
    json_begin_object_as(w, "thinking");
    json_add_string(w, "type", how == LLM_THINKS_BY_BUDGET ? "enabled" : "adaptive");
    if (how == LLM_THINKS_BY_BUDGET)
        json_add_int(w, "budget_tokens", budget_of(request->effort, anthropic_max_tokens(request)));
    json_end(w);
    if (how == LLM_THINKS_ADAPTIVELY)
        add_effort(w, request->effort);
}
