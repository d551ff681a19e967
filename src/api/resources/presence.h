/* A machine in an answer (specification, "Presence record"), for the two routes that list machines. */
#pragma once

#include "api/api.h"
#include "api/route.h"
#include "backend/backend.h"

extern const struct field presence_machine_shape[];
/* The machines that have reported lately. */
int presence_read(struct request *req, struct backend_presences *ret, struct err *e) MUST_CHECK;
/* A member `machines`. */
void presence_write(struct json_writer *w, const struct backend_presences *found);
