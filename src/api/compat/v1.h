/* Shared by the routes in the forms of OpenAI and Anthropic: which provider a model's name means, and the form of an
 * error (docs/compatible-api.md).
 *
 * "provider/model" names both. A name that does not begin with a configured provider is a model alone
 * (models/provider_choice.h); "default" is the default model. For handlers, on their worker.
 *
 *     r = v1_find_model(req, PROVIDER_CHAT, body->model, &whom, e);
 */
#pragma once

#include "api/resources/metered.h"
#include "models/provider_choice.h"

/* Members of ret are NULL where models/provider_choice.h decides. */
int v1_find_model(const struct request *req, enum provider_capability what, const char *name,
                  struct provider_choice *ret, struct err *e) MUST_CHECK;
/* The same for names in Ollama's form: `name` and `name:latest` are the same model, whichever of the two its provider
 * lists. */
int v1_find_tagged_model(const struct request *req, enum provider_capability what, const char *name,
                         struct provider_choice *ret, struct err *e) MUST_CHECK;
bool v1_tagged_waits(const struct request *req, enum provider_capability what, const char *name);
/* `name` without `:latest`, or with `:latest` when it has no tag; NULL when it has another tag. */
const char *v1_other_tag(struct arena *a, const char *name);
/* Would finding the model, or preparing the chat, wait for a provider? The request then belongs in the long pool. */
bool v1_waits(const struct request *req, enum provider_capability what, const char *name);
/* For "provider/rest" with a configured provider: the place of the slash, else NULL. */
const char *v1_provider_end(const struct request *req, const char *name);

/* Status and text of an error as clients of these forms expect them: a missing model or provider is 404, and the text
 * for a missing permission names it. */
int v1_error_status(int status, const struct err *e);
const char *v1_error_text(const struct http_exchange *x /* NULL: in a stream */, const struct err *e);
/* The form of errors for paths below /v1 without a route, Anthropic's for its clients; NULL for other paths. */
const struct error_form *v1_error_form(const struct http_request *req);
/* Writes this service's additional members of an error: its own code, the missing permission, every violated rule. */
void v1_write_error_details(struct json_writer *w, const struct err *e);
#define V1_ERROR_DETAILS                                                                                               \
    SHAPE_STRING("hearth_code", .help = "the code of docs/errors.md"),                                                 \
        SHAPE_STRING("permission", .flags = FIELD_OPTIONAL), SHAPE_STRING("reason", .flags = FIELD_OPTIONAL),          \
        METERED_ERROR_SHAPE, SHAPE_LIST("errors", v1_violation_shape, .flags = FIELD_OPTIONAL)
extern const struct field v1_violation_shape[];
