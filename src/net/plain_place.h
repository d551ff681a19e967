/* Where a request over plain HTTP on this machine goes: the addresses to connect to, and the part of the request that
 * is the same for all requests to one URL. Private to src/net.
 *
 * Only http URLs of a loopback address or of "localhost" have a place; everything else is a matter of libcurl. The
 * places that a thread used last are kept: the result is valid until the thread's next call.
 *
 *     place = plain_place_of("http://127.0.0.1:11434/api/chat");      NULL: use libcurl
 */
#pragma once

#include "base/util.h"

#include <netinet/in.h>

enum { PLAIN_ADDRESSES = 2, PLAIN_URL_CHARS = 256, PLAIN_HEAD_CHARS = 512, PLAIN_PEER_CHARS = 64 };

struct plain_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
    socklen_t n;
};

struct plain_place {
    char url[PLAIN_URL_CHARS];
    char peer[PLAIN_PEER_CHARS]; /* "127.0.0.1:11434", for error texts */
    char head[PLAIN_HEAD_CHARS]; /* " /api/chat HTTP/1.1\r\nHost: 127.0.0.1:11434\r\n": follows the method */
    struct plain_address addresses[PLAIN_ADDRESSES]; /* tried in this order */
    size_t n_addresses;                              /* 0: no place */
};

const struct plain_place *plain_place_of(const char *url);
