/* The half of client.c that speaks HTTP over a Unix socket, by libcurl. */
#pragma once

#include "cli/client.h"

/* Does anybody accept connections there? */
bool curl_can_connect(const char *socket_path);
int curl_ask(const char *socket_path, struct arena *a, const struct client_request *ask, struct client_reply *ret, struct err *e) MUST_CHECK;
int curl_listen(const char *socket_path, const char *path, int (*on_event)(void *arg, const struct client_event *event), void *arg,
                struct err *e) MUST_CHECK;
