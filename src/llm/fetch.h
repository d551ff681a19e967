/* Files that a message names by address, fetched when the provider's protocol takes no addresses.
 *
 * The address comes from a caller, so the guard (net/guard.h) checks it and each redirect. base/limits.h limits the
 * bytes and the time of all files of one request; the memory is charged to the caller (net_wait's holder). Blocks a
 * worker of the long pool.
 *
 *     if (llm_has_addresses(&request))
 *         r = llm_fetch_files(account, guard, &wait, arena, &request, e);
 */
#pragma once

#include "llm/llm.h"
#include "net/wait.h"

bool llm_has_addresses(const struct llm_request *request);

/* Replaces the request's messages by copies in the arena; messages without such a file are shared. The memory of the
 * answers stays charged until the arena ends. -EINVAL FILE_NOT_FETCHED with `reason` names the place in the request;
 * -ECANCELED; from the holder -EBUSY BUDGET_EXCEEDED, -EAGAIN OVERLOADED. */
int llm_fetch_files(const struct llm_account *acc, const struct guard *guard, const struct net_wait *wait,
                    struct arena *a, struct llm_request *request, struct err *e) MUST_CHECK;
