/* The OpenAPI 3.1 text of the running service, made from the route and field tables and the error table. */
#pragma once

#include "api/dispatch.h"

void openapi_write(const struct dispatch *d, struct buf *out);
