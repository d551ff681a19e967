/* Files and images that a message names by address. A file is fetched when the provider's protocol takes no addresses;
 * everything is fetched when an account of the plan has its server on this machine or in its network, because such a
 * server would fetch the address itself, around the guard.
 *
 * The address comes from a caller, so the guard (net/guard.h) checks it and each redirect. base/limits.h limits the
 * bytes and the time of all files of one request; the memory is charged to the caller (net_wait's holder). Blocks a
 * worker of the long pool.
 *
 *     if (llm_has_addresses(&request))
 *         r = llm_fetch_files(&picks, guard, &wait, arena, &request, e);
 */
#pragma once

#include "llm/accounts.h"
#include "net/wait.h"

bool llm_has_addresses(const struct llm_request *request);
/* Does the account's server get no addresses? True for a server that this service runs, for loopback and every other
 * literal address that is not public, and for names without a dot. Nothing is looked up. */
bool llm_is_server_near(const struct llm_account *acc);

/* Replaces the request's messages by copies in the arena; messages without such a file are shared. Without a near
 * server the first account decides. The memory of the answers stays charged until the arena ends. -EINVAL
 * FILE_NOT_FETCHED with `reason` names the place in the request, VALIDATION_ERROR for an image that is none;
 * -ECANCELED; from the holder -EBUSY BUDGET_EXCEEDED, -EAGAIN OVERLOADED. */
int llm_fetch_files(const struct llm_picks *picks, const struct guard *guard, const struct net_wait *wait,
                    struct arena *a, struct llm_request *request, struct err *e) MUST_CHECK;
