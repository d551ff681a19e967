/* The configured providers that speak and hear, as speech/ takes them (speech/account.h): addresses, keys, limits, and
 * the state that rests a provider after failures are those of llm/accounts.h. Any thread but the loop's.
 *
 *     struct speech_accounts accounts = { speech_accounts_list, models };
 */
#pragma once

#include "models/models.h"
#include "speech/account.h"

/* arg: struct models. In the arena, which holds the accounts; looks for servers on this machine. */
size_t speech_accounts_list(void *arg, struct arena *a, const struct speech_account **ret);
