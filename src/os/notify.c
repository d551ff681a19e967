#include "os/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* An abstract name has a NUL for its '@', and its length is part of it (unix(7)). */
static int notify_address(const char *name, struct sockaddr_un *ret, socklen_t *ret_n)
{
    size_t n = strlen(name);

    if ((name[0] != '/' && name[0] != '@') || n < 2)
        return -EAFNOSUPPORT;
    if (n >= sizeof(ret->sun_path))
        return -ENAMETOOLONG;
    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    memcpy(ret->sun_path, name, n);
    if (name[0] == '@')
        ret->sun_path[0] = '\0';
    *ret_n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    return 0;
}

int notify_send(const char *state, int wait_ms)
{
    const char *name = getenv("NOTIFY_SOCKET");
    const struct timeval patience = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000 };
    int flags = MSG_NOSIGNAL | (wait_ms == 0 ? MSG_DONTWAIT : 0), fd, r;
    struct sockaddr_un to;
    socklen_t n_to = 0;

    if (!name || !*name)
        return 0;
    r = notify_address(name, &to, &n_to);
    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
        sendto(fd, state, strlen(state), flags, (const struct sockaddr *)&to, n_to) < 0)
        r = -errno;
    close(fd);
    return r;
}
