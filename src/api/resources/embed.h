/* Shared by the routes that embed, in every form: the input, the answer's headers, the list of providers. */
#pragma once

#include "api/route.h"
#include "models/embed_texts.h"

/* `input` is a string or 1 to LIMIT_EMBED_TEXTS strings: embed_check_input() checks it, for route.check_body;
 * embed_read_input() then reads the texts. */
int embed_check_input(struct json_value input, struct err *e) MUST_CHECK;
struct embed_input {
    const struct slice *items;
    size_t n;
};
struct embed_input embed_read_input(struct arena *a, struct json_value input);
/* embed_texts() for a request: sets the headers of its answer, or of its error. */
int embed_for(struct request *req, const struct embed_job *job, struct embed_made *ret, struct err *e) MUST_CHECK;

/* The fields of one provider entry (specification, "LLM objects"). */
extern const struct field embed_provider_shape[];

/* Writes the entries as an array under `name`. */
int embed_write_providers(struct request *req, struct json_writer *w, const char *name, struct err *e) MUST_CHECK;
