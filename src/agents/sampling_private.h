/* What the files of sampling share; no other file includes this. */
#pragma once

#include "agents/sampling.h"
#include "llm/llm.h"

struct sample {
    struct llm_request request; /* model NULL; max_tokens is capped */
    const char *hints[LIMIT_MCP_SAMPLE_HINTS];
    size_t n_hints;
};

/* The params of the server's request. -EINVAL VALIDATION_ERROR names the member and the rule. */
int sample_read(struct arena *a, struct json_value params, struct sample *ret, struct err *e) MUST_CHECK;
/* The first model of the caller whose name contains a hint, hints in their order; both NULL when there is none. Blocks
 * while lists of models are read. */
int sample_choose(const struct models_call *call, const struct sample *sample, const char **ret_provider,
                  const char **ret_model, struct err *e) MUST_CHECK;
