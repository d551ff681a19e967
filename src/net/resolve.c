#include "net/resolve.h"

#include "base/limits.h"
#include "base/thread.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Shared by the caller and the thread; the last of the two frees it. */
struct lookup {
    atomic_int n_refs;
    int done_fd; /* eventfd, readable once there is a result */
    char *host, service[8];
    atomic_int result; /* of getaddrinfo(); written after the answer */
    struct addrinfo *answer;
};

static atomic_int n_lookups;

static void lookup_unref(struct lookup *l)
{
    if (atomic_fetch_sub(&l->n_refs, 1) > 1)
        return;
    if (l->answer)
        freeaddrinfo(l->answer);
    if (l->done_fd >= 0)
        close(l->done_fd);
    free(l->host);
    free(l);
}

static int get_addresses(const char *host, const char *service, int flags, struct addrinfo **ret)
{
    const struct addrinfo wanted = { .ai_family = AF_UNSPEC,
                                     .ai_socktype = SOCK_STREAM,
                                     .ai_flags = AI_NUMERICSERV | flags };

    return getaddrinfo(host, service, &wanted, ret);
}

static void *look_up(void *arg)
{
    struct lookup *l = arg;

    atomic_store(&l->result, get_addresses(l->host, l->service, 0, &l->answer));
    (void)!eventfd_write(l->done_fd, 1);
    lookup_unref(l);
    atomic_fetch_sub(&n_lookups, 1);
    return NULL;
}

static struct lookup *lookup_new(const char *host, uint16_t port)
{
    struct lookup *l = xcalloc(1, sizeof(*l));

    atomic_init(&l->n_refs, 1);
    l->done_fd = eventfd(0, EFD_CLOEXEC);
    l->host = xstrdup(host);
    snprintf(l->service, sizeof(l->service), "%u", port);
    return l;
}

static int start(struct lookup *l, struct err *e)
{
    pthread_t thread;
    int r;

    if (l->done_fd < 0)
        return err_errno(e, EMFILE, "A name cannot be looked up");
    if (atomic_fetch_add(&n_lookups, 1) >= LIMIT_LOOKUPS) {
        atomic_fetch_sub(&n_lookups, 1);
        return err_set(e, -EAGAIN, "OVERLOADED", "Too many names are being looked up already; try again in a moment.");
    }
    atomic_fetch_add(&l->n_refs, 1);
    r = thread_start(&thread, "look-up", look_up, l);
    if (r == 0) {
        pthread_detach(thread);
        return 0;
    }
    atomic_fetch_sub(&n_lookups, 1);
    lookup_unref(l);
    return err_errno(e, -r, "A name cannot be looked up");
}

static int wait_for(struct lookup *l, const struct net_wait *w, struct addrinfo **ret, struct err *e)
{
    int r = start(l, e);

    if (r == 0)
        r = net_wait_fd(w, l->done_fd, POLLIN, e);
    if (r == 0 && atomic_load(&l->result) != 0)
        r = err_set(e, -EHOSTUNREACH, "DNS_FAILED",
                    "The name %.100s is not known here: check the address and this machine's network.", l->host);
    if (r == 0)
        *ret = TAKE(l->answer);
    return r;
}

int net_resolve(const char *host, uint16_t port, const struct net_wait *w, struct addrinfo **ret, struct err *e)
{
    struct lookup *l = lookup_new(host, port);
    int r = 0;

    /* A numeric address needs no look-up and no thread. */
    if (get_addresses(host, l->service, AI_NUMERICHOST, ret) != 0)
        r = wait_for(l, w, ret, e);
    lookup_unref(l);
    return r;
}
