/* One turn of a model agent: asks the model, runs the tools that it calls, gives it their results, until it answers or
 * a limit ends the turn. Knows no store and no sessions.
 *
 * agent_loop_run() blocks its thread, one of the pool of turns (agents/turn_pool.h), and calls every event on that
 * thread. Tools of one answer run at the same time on other threads; their results are reported in the order of the
 * calls. Everything that events receive lives in call->arena, so until the turn's owner frees it.
 *
 * Each chat keeps the rules of chats (models/chat.h): retries, breakers, fallback, limits and usage of the caller.
 * call->is_gone cancels the turn at every place where it waits.
 *
 *     r = agent_loop_run(&(struct agent_loop){ .call = &call, .agent = &agent, .messages = m, .n_messages = n,
 *                                              .toolbox = &toolbox, .approvals = approvals, .on = &events }, &end, e);
 */
#pragma once

#include "agents/toolbox.h"
#include "llm/llm.h"
#include "models/models.h"

struct agent_definition;
struct approvals;
struct builtin_services;
struct mcp_host;
struct pool;

/* What has ended and is to be stored: an answer of the model, or the result of one tool. Results come as the tools end,
 * which may differ from the order of the calls: `call` is their place. In requests results have the order of the calls.
 */
struct agent_step {
    enum llm_role role; /* LLM_ASSISTANT or LLM_TOOL */
    size_t call;        /* of a result: index of its call in the answer */
    const struct llm_message *message;
    const struct agent_tool *tool; /* of a result; NULL: the model called a tool that does not exist */
    const char *tool_name;         /* as the model called it */
    const char *arguments;         /* of a result: as the model wrote them */
    bool is_error, is_cut;         /* of a result; is_cut: it was longer than LIMIT_TOOL_RESULT_BYTES */
    int64_t took_ms;
    const char *provider, *model; /* of an answer */
    struct llm_usage usage;
    enum llm_finish why;
};

/* The messages of the next request, before it is made (context.h). */
struct agent_fit {
    struct arena *arena;
    const struct llm_message *messages; /* the hook may point them at a shorter list */
    size_t n;
    const struct agent_toolbox *toolbox; /* takes a part of the model's window as well */
    const char *provider, *model;        /* of the last answer or of the definition; NULL: not known */
    const struct err *refusal;           /* the model refused the last request; NULL: it did not */
    bool has_changed;                    /* set by the hook; a refused request is repeated only then */
};

/* Functions may be NULL. */
struct agent_loop_events {
    void (*on_text)(void *arg, struct slice delta);     /* of an answer, as the model writes it */
    void (*on_thought)(void *arg, const char *thought); /* reasoning, or a sentence about a tool */
    /* Stored before the loop goes on; a negative ends the turn with AGENT_FAILED. */
    int (*on_step)(void *arg, const struct agent_step *step, struct err *e);
    /* Rich blocks (specification, "Agent session"): toolUse {toolName, input, content, status}, files, image, json,
     * text. */
    void (*on_block)(void *arg, const char *data_type, struct json_value data);
    void (*on_wait)(void *arg, const char *why); /* waits for a person; NULL: goes on */
    /* A negative ends the turn with AGENT_FAILED. */
    int (*on_fit)(void *arg, struct agent_fit *fit, struct err *e);
    void *arg;
};

enum agent_end_why {
    AGENT_ANSWERED,
    AGENT_MAX_STEPS,     /* after that many answers; text is what the model then said without tools */
    AGENT_REPEATED_CALL, /* the same tool with the same arguments for the LIMIT_SAME_CALLS-th time */
    AGENT_TOKEN_BUDGET,
    AGENT_TIMEOUT, /* time that a person takes to answer does not count */
    AGENT_CANCELLED,
    AGENT_FAILED,
    N_AGENT_ENDS
};
/* "answered", "max_steps", "repeated_call", "token_budget", "timeout", "cancelled", "failed". */
const char *agent_end_name(enum agent_end_why why);

struct agent_loop {
    struct models_call *call; /* caller, arena, is_gone */
    const struct agent_definition *agent;
    const struct llm_message *messages; /* instructions first, the newest user message last */
    size_t n_messages;
    const struct agent_toolbox *toolbox; /* NULL: no tools */
    struct approvals *approvals;
    struct mcp_host *host;                   /* NULL: no tool of the toolbox belongs to a server */
    const struct builtin_services *services; /* of built-in tools */
    struct pool
        *calls; /* runs the calls of one answer beside each other (turn_pool_calls()); NULL: one after the other */
    const char *session_id, *thread_dir, *task_uuid, *app_id; /* NULL: none */
    const struct agent_loop_events *on;
};

struct agent_loop_end {
    enum agent_end_why why;
    const char *text; /* the last answer; never NULL, "" when there is none */
    struct llm_usage usage;
    int n_steps, n_calls;         /* answers of the model; calls of tools */
    const char *provider, *model; /* of the last answer; NULL: none came */
    struct err error;             /* of AGENT_FAILED, AGENT_TIMEOUT and AGENT_CANCELLED */
};

/* Negative only when nothing could be begun: -EINVAL VALIDATION_ERROR for a definition or messages that cannot be used.
 */
int agent_loop_run(const struct agent_loop *l, struct agent_loop_end *ret, struct err *e) MUST_CHECK;
