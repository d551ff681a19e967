/* Looks for the servers of llm/local/probe.h on this machine: all in parallel, at most every llm.find_local_s, never
 * longer than llm.find_local_wait_s.
 *
 * Blocks a worker for that long at most; concurrent callers wait for the same search. Any thread but the loop's.
 *
 * A server is probed only when its socket belongs to this user or root: any user of the machine may listen at a usual
 * port.
 *
 *     llm_finder_look(finder, &found);      if (found.ports[i]) ... llm_probes[i].preset
 */
#pragma once

#include "llm/local/probe.h"
#include "settings/settings.h"

struct llm_finder;
struct llm_found {
    uint16_t ports[LLM_N_PROBES];   /* the port of the server at that place of llm_probes; 0: none */
    uint16_t foreign[LLM_N_PROBES]; /* the port where another user's program listens instead; nothing is sent to it; 0:
                                       none */
};

int llm_finder_new(struct settings *settings, struct llm_finder **ret, struct err *e) MUST_CHECK;
struct llm_finder *llm_finder_free(struct llm_finder *f); /* waits for a running search */
/* Does the listening socket still belong to this user or root? Else -EAGAIN PROVIDER_UNAVAILABLE. */
int llm_finder_check(struct llm_finder *f, uint16_t port, struct err *e) MUST_CHECK;
/* Nothing is found while the setting llm.find_local is off. */
void llm_finder_look(struct llm_finder *f, struct llm_found *ret);
bool llm_finder_waits(struct llm_finder *f); /* would llm_finder_look() wait now? */
