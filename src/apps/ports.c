#include "apps/ports.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections of an earlier server that are still closing do not count: only a listening program occupies the port. */
bool port_is_free(uint16_t port)
{
    const int on = 1;
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_free = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
                   bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;

    if (fd >= 0)
        close(fd);
    return is_free;
}

int port_find(int64_t min, int64_t max, int64_t from, bool (*is_taken)(void *arg, uint16_t port), void *arg,
              uint16_t *ret, struct err *e)
{
    int64_t n = max - min + 1;
    int64_t start = from >= min && from <= max ? from - min : 0;

    for (int64_t i = 0; i < n; i++) {
        uint16_t port = (uint16_t)(min + (start + i) % n);

        if (!is_taken(arg, port) && port_is_free(port)) {
            *ret = port;
            return 0;
        }
    }
    return err_set(
        e, -EADDRINUSE, "NO_FREE_PORT",
        "No port from %lld to %lld is free; widen the range of the settings apps.port_min and apps.port_max.",
        (long long)min, (long long)max);
}
