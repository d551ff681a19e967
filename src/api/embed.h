/* What other routes use of api/embed.c: the list of embedding providers, for GET /sdk/llm/providers too. */
#pragma once

#include "api/route.h"

/* The rows of one provider entry (specification, "LLM objects"). */
extern const struct field embed_provider_shape[];

/* The entries as an array under `name`. */
int embed_write_providers(struct request *req, struct json_writer *w, const char *name, struct err *e) MUST_CHECK;
