/* A free TCP port of this machine, found by binding it on 127.0.0.1. Any thread. */
#pragma once

#include "base/err.h"

/* The first free one of min..max, looked for from `from` on and then from min, for which is_taken(arg, port) is false.
 * -EADDRINUSE NO_FREE_PORT. Between the check and its use another program may take it: the app then says so in its log. */
int port_find(int64_t min, int64_t max, int64_t from, bool (*is_taken)(void *arg, uint16_t port), void *arg, uint16_t *ret,
              struct err *e) MUST_CHECK;
