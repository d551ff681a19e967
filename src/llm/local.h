/* What this machine offers without being told, put among the accounts: models of the models folder that llama-server is run for (LLM_RUN, under
 * the name llamacpp), and servers that listen (LLM_FOUND, under the names of their presets; llm/finder.h).
 *
 * The registry calls these before it is read; what has gone is taken out again. Any thread but the loop's. llm_local_find() blocks for
 * llm.find_local_wait_s.
 *
 *     llm_local_run(local, accounts, NULL);   llm_local_find(local, accounts);
 */
#pragma once

#include "llm/accounts.h"
#include "llm/finder.h"

struct llm_local;

int llm_local_new(struct settings *settings, struct llamacpp *llamacpp /* borrowed */, struct llm_local **ret, struct err *e) MUST_CHECK;
struct llm_local *llm_local_free(struct llm_local *l);
void llm_local_find(struct llm_local *l, struct llm_accounts *accounts);
/* missing: a name that is wanted and no account's (or NULL): then the folder is looked at anew. */
void llm_local_run(struct llm_local *l, struct llm_accounts *accounts, const char *missing);
/* Servers that were found at the last look and are not used: they wait for the person (setting llm.local_accepted), or are another user's. */
struct llm_waiting { const char *name, *label; uint16_t port; bool is_foreign; };
size_t llm_local_waiting(struct llm_local *l, struct llm_waiting ret[LLM_N_PROBES]);
/* Called on any thread when a server was found that waits. Before the first look. */
void llm_local_on_waiting(struct llm_local *l, void (*fn)(void *arg), void *arg);
/* Right before it is used: does what is offered under that name still belong to this user or root? -EAGAIN PROVIDER_UNAVAILABLE. */
int llm_local_check(struct llm_local *l, const char *name, struct err *e) MUST_CHECK;
bool llm_local_knows(const char *name);                 /* a server of that name could be found */
/* What to do so that an account of that name is there; false, and e as it is, when nothing is known of it. */
bool llm_local_explain(struct llm_local *l, const char *name, struct err *e);
