/* Adds what this machine offers to the accounts without configuration: models of the models folder, run with
 * llama-server (LLM_RUN, under the name llamacpp), and listening servers (LLM_FOUND, under the names of their presets;
 * llm/local/finder.h).
 *
 * The registry calls these functions before it is read; what no longer exists is removed. Any thread but the loop's.
 * llm_local_find() blocks for llm.find_local_wait_s.
 *
 *     llm_local_run(local, accounts, NULL);   llm_local_find(local, accounts);
 */
#pragma once

#include "llm/accounts.h"
#include "llm/local/finder.h"

struct llm_local;

int llm_local_new(struct settings *settings, struct llamacpp *llamacpp /* borrowed */, struct llm_local **ret,
                  struct err *e) MUST_CHECK;
struct llm_local *llm_local_free(struct llm_local *l);
void llm_local_find(struct llm_local *l, struct llm_accounts *accounts);
bool llm_local_find_waits(struct llm_local *l); /* would llm_local_find() block now? */
bool llm_local_run_waits(struct llm_local *l);  /* would llm_local_run() read the folder now? */
/* missing: a requested name without an account, which makes the folder be read again; NULL: none. */
void llm_local_run(struct llm_local *l, struct llm_accounts *accounts, const char *missing);
/* Servers that the last search found and that are not used: they wait for the person's consent (setting
 * llm.local_accepted), or belong to another user. */
struct llm_waiting {
    const char *name, *label;
    uint16_t port;
    bool is_foreign;
};
size_t llm_local_waiting(struct llm_local *l, struct llm_waiting ret[LLM_N_PROBES]);
/* fn is called on any thread when a new waiting server was found. Set it before the first search. */
void llm_local_on_waiting(struct llm_local *l, void (*fn)(void *arg), void *arg);
/* Called right before use: does the server offered under that name still belong to this user or root? -EAGAIN
 * PROVIDER_UNAVAILABLE. */
int llm_local_check(struct llm_local *l, const char *name, struct err *e) MUST_CHECK;
bool llm_local_knows(const char *name); /* a server of that name could be found */
/* Writes into e how to get an account of that name; false, and e unchanged, when the name is unknown. */
bool llm_local_explain(struct llm_local *l, const char *name, struct err *e);
