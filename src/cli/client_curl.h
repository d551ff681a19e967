/* The part of client.c that speaks HTTP over a Unix socket, with libcurl. */
#pragma once

#include "cli/client.h"

#include <stdatomic.h>
#include <sys/types.h>

/* Does a program accept connections on the socket? */
bool curl_can_connect(const char *socket_path);
/* The process that made the socket listen, as the kernel names it (SO_PEERCRED); 0 when nothing accepts connections or
 * that process is in another PID namespace. */
pid_t curl_listener(const char *socket_path);
int curl_send(const char *socket_path, struct arena *a, const struct client_request *request, struct client_reply *ret,
              struct err *e) MUST_CHECK;
/* ret_refusal: status and text of an answer that is no stream; its status stays 0 when a stream came. */
int curl_listen(const char *socket_path, struct arena *a, const struct client_request *request,
                int (*on_event)(void *arg, const struct client_event *event), void *arg,
                struct client_reply *ret_refusal, struct err *e) MUST_CHECK;

/* The frames of an answer as they come: the data of each event, or the whole body of an answer that is no stream. */
struct curl_frames {
    const char *const *headers; /* "name: value", sent in addition */
    size_t n_headers;
    void (*on_frame)(void *arg, struct slice frame); /* valid during the call */
    void *arg;
    const atomic_bool *is_canceled;
    int status;          /* of the answer */
    char session_id[64]; /* the answer's Mcp-Session-Id; "": none */
};
/* Any thread, each with its own frames. -EIO NOT_RUNNING, -ECANCELED; any status is a success. */
int curl_read_frames(const char *socket_path, const struct client_request *request, struct curl_frames *frames,
                     struct err *e) MUST_CHECK;
