/* The internals that the files of the context share; no other file includes this but their tests. */
#pragma once

#include "agents/context.h"

/* A list of messages: the system's (at most one), then the turns of the history, oldest first, each of which begins
 * with its one message of the user, then the newest turn. */
struct context_list {
    struct llm_message *items;
    size_t n;
    size_t n_turns; /* of the history */
};

/* ---- context_cut.c: pure ---- */

enum { CONTEXT_RESULT_BYTES = 1500, CONTEXT_RESULT_BYTES_LEAST = 300 };

int64_t context_tokens(const struct llm_message *messages, size_t n); /* estimated */
/* The index of the first message of the history's turn `turn`; turn n_turns: of the newest. */
size_t context_turn_at(const struct context_list *list, size_t turn);
struct context_cuts {
    size_t n_shortened, n_left; /* results of tools; turns of the history */
    int64_t n_bytes;
};
/* Shortens results in [from, to), oldest first, until all messages have at most `budget` tokens. */
void context_shorten(struct arena *a, struct context_list *list, size_t from, size_t to, size_t most_bytes,
                     int64_t budget, struct context_cuts *cuts);
/* How many of the oldest turns must leave so that the rest has at most `budget` tokens; all, if that does not suffice.
 */
size_t context_count_leaving(const struct context_list *list, int64_t budget);
void context_drop(struct context_list *list, size_t n_turns);
/* At most max bytes of the text's beginning and end, with a note between them. */
const char *context_shortened(struct arena *a, const char *text, size_t max);

/* ---- context_window.c ---- */

/* The model's window in tokens: the setting, what was learnt, what is known of the name, else agents.window_tokens. */
int64_t context_window(const struct models_call *call, const char *provider, const char *model);
/* A refusal that says that the request was too long: the window that the next request is to have; 0: it says something
 * else. n_sent: tokens of the refused request, as estimated. Pure. */
int64_t context_window_of_refusal(const struct err *refusal, int64_t n_sent);
void context_window_learn(const struct models_call *call, const char *provider, const char *model, int64_t tokens);

/* ---- context_summary.c ---- */

/* Has the model write a summary of the earlier summary and these messages. max_tokens: what it may have to read. */
int context_summarise(struct context *c, const struct llm_message *messages, size_t n, int64_t max_tokens,
                      const char **ret, struct err *e) MUST_CHECK;
