/* Tells the manager that started this process how it is: the protocol of sd_notify(3), one datagram to the socket that
 * the environment variable NOTIFY_SOCKET names. Any thread.
 *
 *     r = notify_send("READY=1", 1000);       0 also when nobody asked
 */
#pragma once

#include "base/util.h"

/* Waits at most wait_ms (0: not at all) while the queue of the socket is full. -EAFNOSUPPORT for a name that is neither
 * an absolute path nor abstract ('@' first), -ENAMETOOLONG, -EAGAIN, or why the datagram was not sent. */
int notify_send(const char *state, int wait_ms) MUST_CHECK;
