/* What tables of Custom Mode lack, as members of an answer. For handlers of routes that may wait for the database. */
#pragma once

#include "api/api.h"
#include "api/routes.h"
#include "backend/backend_providers.h"

extern const struct field backend_lack_shape[];
void backend_lacks_write(struct json_writer *w, const struct backend_lacks *lacks);
/* Into an open array: the lacks of one table, or of all tables of apps in Custom Mode. */
int backend_lacks_of_table(struct request *req, struct json_writer *w, const char *table, struct err *e) MUST_CHECK;
int backend_lacks_of_apps(struct request *req, struct json_writer *w, struct err *e) MUST_CHECK;
/* Sets the tables with work that apps list, each once, at most LIMIT_LIST. */
int backend_tables_of_apps(const struct request *req, struct backend_setup *setup, struct err *e) MUST_CHECK;
