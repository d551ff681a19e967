/* What the routes in OpenAI's and Anthropic's form have in common: whom a model's name means, what an error is there (docs/compatible-api.md).
 *
 * "provider/model" names both. A name without a configured provider in front belongs to the caller's default provider when that lists it, else
 * to the first that does, else again to the default one; "default" is the default model. For handlers, on their worker.
 *
 *     r = v1_find_model(req, PROVIDER_CHAT, body->model, &whom, e);
 */
#pragma once

#include "api/metered.h"
#include "api/provider_choice.h"

/* ret's members are NULL where what is set counts (api/provider_choice.h). */
int v1_find_model(struct request *req, enum provider_capability what, const char *name, struct provider_choice *ret, struct err *e) MUST_CHECK;
/* Finding it may wait for lists of providers: the request belongs to the long pool. */
bool v1_waits(const struct request *req, enum provider_capability what, const char *name);
/* "provider/rest" of a provider that is configured: the place of the slash, else NULL. */
const char *v1_provider_end(const struct request *req, const char *name);

/* Status and sentence of an error as clients of these forms expect them: a model or a provider that is not there is 404, and who lacks a key
 * is told which one. */
int v1_error_status(int status, const struct err *e);
const char *v1_error_text(const struct http_exchange *x /* NULL: in a stream */, const struct err *e);
/* What only this service tells, as further members of the error: its own code, the permission that lacks, every violated rule. */
void v1_write_error_details(struct json_writer *w, const struct err *e);
#define V1_ERROR_DETAILS                                                                                                                        \
    SHAPE_STRING("hearth_code", .help = "the code of docs/errors.md"), SHAPE_STRING("permission", .flags = FIELD_OPTIONAL),                       \
        SHAPE_STRING("reason", .flags = FIELD_OPTIONAL), METERED_ERROR_SHAPE, SHAPE_LIST("errors", v1_violation_shape, .flags = FIELD_OPTIONAL)
extern const struct field v1_violation_shape[];
