/* What the routes about providers share. For handlers, on their worker. */
#pragma once

#include "api/provider_choice.h"
#include "llm/stored.h"

struct llm_vault provider_vault(const struct request *req);
/* The seat of that name: -ENOENT PROVIDER_NOT_FOUND naming those there are. */
int provider_find(const struct request *req, const char *name, struct llm_seat **ret, struct err *e) MUST_CHECK;
/* Every name, with commas between; "none" when there is none. */
const char *provider_names(const struct request *req);
/* What a person cannot give a provider because routes or the built-in embeddings have the name; NULL: it may be. */
const char *provider_name_rule(const char *name);

/* One account as an object under `name`, without secrets. row: of a stored one, else NULL. */
extern const struct field provider_shape[];
void provider_write(const struct request *req, struct json_writer *w, const char *name, const struct llm_seat *seat,
                    const struct provider_account_row *row);
