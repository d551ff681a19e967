/* Servers of language models that people run on their own machine: where each usually listens, what it is asked, how its answer is known.
 *
 * One GET a server. The answer must be what only that server says: another web server at its port is not taken for it, and one that asks for
 * a key is not either. Const; any thread.
 *
 *     is_there = llm_probe_knows(&llm_probes[i], &answer, arena);
 */
#pragma once

#include "base/json.h"
#include "net/http_client.h"

enum { LLM_N_PROBES = 4 };

struct llm_probe {
    const char *preset;                 /* whose server it is (llm/llm.h) */
    uint16_t port;                      /* the usual one, on 127.0.0.1 */
    const char *path;
    bool (*is_its)(const struct http_answer *answer, struct json_value body);   /* of an answer 200 whose body is a JSON object */
};

extern const struct llm_probe llm_probes[LLM_N_PROBES];         /* who comes first is preferred */

bool llm_probe_knows(const struct llm_probe *probe, const struct http_answer *answer, struct arena *a);
/* The port the element "id=port" of the setting llm.local_ports gives this server, else the usual one. */
uint16_t llm_probe_port(const struct llm_probe *probe, const char *const *local_ports);
