/* Looks for the servers of llm/probe.h on this machine: all at once, at most every llm.find_local_s, never longer than
 * llm.find_local_wait_s.
 *
 * Blocks a worker for that long at most; many that ask at once wait for the same look. Any thread but the loop's.
 *
 * A server is asked only when its socket belongs to this user or root: any user of the machine may listen at a usual port.
 *
 *     llm_finder_look(finder, &found);      if (found.ports[i]) ... llm_probes[i].preset
 */
#pragma once

#include "llm/probe.h"
#include "settings/settings.h"

struct llm_finder;
struct llm_found {
    uint16_t ports[LLM_N_PROBES];       /* where the server of that place listens; 0: nowhere */
    uint16_t foreign[LLM_N_PROBES];     /* where another user's program listens instead, which is sent nothing; 0: none does */
};

int llm_finder_new(struct settings *settings, struct llm_finder **ret, struct err *e) MUST_CHECK;
struct llm_finder *llm_finder_free(struct llm_finder *f);       /* waits for what runs */
/* Is what listens there still this user's or root's: -EAGAIN PROVIDER_UNAVAILABLE. */
int llm_finder_check(struct llm_finder *f, uint16_t port, struct err *e) MUST_CHECK;
/* Nothing is found while the setting llm.find_local is off. */
void llm_finder_look(struct llm_finder *f, struct llm_found *ret);
