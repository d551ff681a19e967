/* A free TCP port of this machine, found by binding it on 127.0.0.1. Any thread. */
#pragma once

#include "base/err.h"

/* Is no program listening on the port on 127.0.0.1 or on all addresses? */
bool port_is_free(uint16_t port);
/* The first free port of min..max for which is_taken(arg, port) is false; the search starts at `from` and continues at
 * min. -EADDRINUSE NO_FREE_PORT. Another program may take the port between the check and its use: the app then reports
 * that in its log. */
int port_find(int64_t min, int64_t max, int64_t from, bool (*is_taken)(void *arg, uint16_t port), void *arg,
              uint16_t *ret, struct err *e) MUST_CHECK;
