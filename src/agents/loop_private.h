/* What the files of the tool loop share; no other file includes this. One struct turn is one agent_loop_run(), used by
 * its thread alone; calls of tools get arenas of their own. */
#pragma once

#include "agents/definition.h"
#include "agents/loop.h"
#include "llm/answer.h"
#include "mcp/client.h"
#include "net/wait.h"

/* ---- loop_habits.c: what was learnt about a model from its provider's refusals, kept in the store ---- */

enum loop_tools_mode {
    LOOP_TOOLS_NATIVE,
    LOOP_TOOLS_BY_SCHEMA,      /* response_format with a schema */
    LOOP_TOOLS_BY_INSTRUCTION, /* a text that describes them */
};
struct loop_habits {
    enum loop_tools_mode tools;
    bool takes_no_images;
};
/* provider and model as chosen (models/provider_choice.h); NULL: the default provider, the provider's own model. Sets
 * the names as far as they are known. */
void loop_habits_read(const struct models_call *call, const char **provider, const char **model,
                      struct loop_habits *ret);
/* Learns from a refusal of a request that had tools or images. False: the refusal says nothing of them. */
bool loop_habits_learn(const struct models_call *call, const char *provider, const char *model, const struct err *why,
                       bool had_tools, bool had_images, struct loop_habits *habits);

/* ---- one turn ---- */

struct loop_seen_call {
    uint64_t hash; /* of name and arguments */
    unsigned count;
};
struct loop_seen { /* calls since the last other one that changed something */
    struct loop_seen_call *items;
    size_t n, cap;
};

/* loop_ids.c: the ids of all calls of a conversation. */
struct loop_ids {
    uint64_t *slots; /* hashes; 0: free */
    size_t n, cap;
};
void loop_ids_note(struct loop_ids *ids, struct arena *a, const char *id);
/* The id itself, or a new one when a call has it already; notes it. */
const char *loop_ids_take(struct loop_ids *ids, struct arena *a, const char *id);

struct turn {
    const struct agent_loop *l;
    struct arena *arena;  /* the call's */
    struct net_wait wait; /* its deadline moves by the time that persons take */
    struct llm_message *messages;
    size_t n_messages, cap;
    struct loop_habits habits;
    const char *provider, *model; /* as far as known; NULL: not known */
    struct loop_seen seen;
    struct loop_ids ids;
    struct agent_loop_end *end;
    atomic_int n_triggers; /* calls of trigger_agent, on several threads */
    int64_t waited_ms;     /* as approvals_waited_ms(), when the deadline was moved last */
};

void turn_push(struct turn *t, const struct llm_message *m);
void turn_think(const struct turn *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Tells the owner, whose refusal to store the step is a failure of the turn: t->end->error. */
int turn_step(struct turn *t, const struct agent_step *step) MUST_CHECK;
/* The time that persons took does not count for the turn's deadline. */
void turn_move_deadline(struct turn *t);

/* ---- loop_chat.c: one chat, waited for ---- */

struct loop_answer {
    struct llm_message message; /* in the turn's arena */
    enum llm_finish why;
    struct llm_usage usage;
    const char *provider, *model;
    int64_t took_ms;
    bool is_broken; /* a call written as text that cannot be read */
};
/* Blocks. On failure too, provider and model name the last attempt, NULL if there was none. Errors as chat_prepare()
 * and chat_client.done; -ETIMEDOUT AGENT_TIMEOUT, -ECANCELED SHUTTING_DOWN of the turn's own wait. on_text: the turn's
 * event, NULL when the answer is no text for people. */
int loop_chat(struct turn *t, struct llm_request *request, void (*on_text)(void *arg, struct slice delta),
              struct loop_answer *ret, struct err *e) MUST_CHECK;
/* loop_answer.c: as the message that is sent back to the model. */
void loop_message_of(struct arena *a, const struct llm_answer *answer, struct llm_message *ret);

/* ---- loop_request.c: the next request, with tools as the model takes them ---- */

struct loop_next {
    bool is_closing;  /* no tools any more */
    const char *note; /* a last word to the model, not kept; NULL: none */
};
/* One answer of the model: fits the history, sends it, learns from refusals and tries again. The answer's calls are
 * tool calls, in whatever form the model wrote them. */
int loop_request(struct turn *t, const struct loop_next *what, struct loop_answer *ret, struct err *e) MUST_CHECK;

/* ---- loop_spoken.c: tools for models without native ones ---- */

/* The messages with tools described, and calls and results as texts. */
void loop_spoken_messages(struct arena *a, const struct turn *t, bool has_tools, struct llm_request *request);
/* The object that an answer must be (LOOP_TOOLS_BY_SCHEMA). */
struct json_value loop_spoken_schema(struct arena *a, const struct agent_toolbox *toolbox);
/* Turns calls written as text into tool calls. Returns false when the text is an unfinished or broken call. */
bool loop_spoken_read(struct arena *a, struct llm_message *m);

/* ---- loop_calls.c: the calls of one answer ---- */

/* Runs them, adds their results to the messages in the order of the calls and reports each as it ends. refusal: none is
 * run, and this is why; NULL: they are run. Negative only when a step could not be stored, with t->end->error set. */
int loop_calls(struct turn *t, const struct loop_answer *answer, const char *refusal) MUST_CHECK;
/* Counts the calls of an answer. Was one made LIMIT_SAME_CALLS times, with nothing changed by other calls since? */
bool loop_calls_repeat(struct turn *t, const struct llm_message *answer);

/* ---- loop_arguments.c: arguments that are read in two ways ---- */

/* A name that an object of the value has twice, in the arena; NULL: none has. Readers differ in which of the two
 * members they take, so a person might be shown another one than the tool uses. */
const char *loop_repeated_name(struct arena *a, struct json_value v);

/* ---- toolbox_servers.c: the tools of MCP servers ---- */

int loop_server_call(const struct agent_loop *l, const struct agent_tool *tool, struct json_value arguments,
                     const struct net_wait *wait, struct arena *a, struct mcp_result *ret, struct err *e) MUST_CHECK;

/* ---- loop_result.c: what a tool gave, for the model and for people ---- */

struct loop_result {
    const struct llm_block *blocks; /* a text, then images */
    size_t n_blocks;
    bool is_error, is_cut;
};
void loop_result_of(struct arena *a, const struct mcp_result *from, struct loop_result *ret);
void loop_result_text(struct arena *a, const char *text, struct loop_result *ret); /* an error */
/* The rich blocks of a result (specification, "Agent session"). */
void loop_result_show(const struct turn *t, const struct agent_step *step, const struct mcp_result *from);
