/* Servers of language models and of speech that people run on their own machine: the usual port, the request of the
 * probe, and how its answer is recognised.
 *
 * One GET for each server. Only an answer specific to that server counts, so another web server at its port is not
 * mistaken for it; a server that requires a key is not recognised either. Const; any thread.
 *
 *     is_there = llm_probe_knows(&llm_probes[i], &answer, arena);
 */
#pragma once

#include "base/json.h"
#include "net/http_client.h"

enum { LLM_N_PROBES = 7 };

struct llm_probe {
    const char *preset; /* the preset of this server (llm/llm.h) */
    uint16_t port;      /* the usual one, on 127.0.0.1 */
    const char *path;
    bool (*is_its)(const struct http_answer *answer,
                   struct json_value
                       body); /* does this answer, with status 200 and a JSON object as body, come from that server? */
};

extern const struct llm_probe llm_probes[LLM_N_PROBES]; /* the first is preferred */

bool llm_probe_knows(const struct llm_probe *probe, const struct http_answer *answer, struct arena *a);
/* The port that the element "id=port" of the setting llm.local_ports gives this server, else the usual one. */
uint16_t llm_probe_port(const struct llm_probe *probe, const char *const *local_ports);
