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

struct llm_local;

int llm_local_new(struct settings *settings, struct llamacpp *llamacpp /* borrowed */, struct llm_local **ret, struct err *e) MUST_CHECK;
struct llm_local *llm_local_free(struct llm_local *l);
void llm_local_find(struct llm_local *l, struct llm_accounts *accounts);
/* missing: a name that is wanted and no account's (or NULL): then the folder is looked at anew. */
void llm_local_run(struct llm_local *l, struct llm_accounts *accounts, const char *missing);
bool llm_local_knows(const char *name);                 /* a server of that name could be found */
/* What to do so that an account of that name is there; false, and e as it is, when nothing is known of it. */
bool llm_local_explain(struct llm_local *l, const char *name, struct err *e);
