/* Programs of this machine that can send no credentials, on routes that accept them (struct route, takes_anonymous):
 * programs that speak Ollama's interface only. The setting llm.ollama_open admits them; it is off unless the person
 * turns it on.
 *
 * A caller is admitted when it sends no credential at all, runs as the service's own user, is no page of a browser, and
 * was not started by Hearth: an app or agent uses its id and its grants. Such a caller may use language models
 * (CALLER_LOCAL), and its use is charged and counted as one developer key, "local".
 *
 *     if (r == -EACCES && route->takes_anonymous && identity_takes_anonymous(id, &given))
 *         r = identity_local_program(id, &given, caller, e);
 */
#pragma once

#include "identity/claim.h"

#define LOCAL_PROGRAM "local"

/* Memory only. */
bool identity_takes_anonymous(struct identity *id, const struct credentials *c);
/* On the loop: asks the kernel which user owns the connection. -EPERM PEER_NOT_ALLOWED. */
int identity_claim_local(struct identity *id, const struct credentials *c, struct claim *ret, struct err *e) MUST_CHECK;
/* On a worker: may read /proc. -EPERM PEER_NOT_ALLOWED. */
int identity_local_program(struct identity *id, const struct credentials *c, struct caller *ret,
                           struct err *e) MUST_CHECK;
