/* A name whose look-up takes long: this program's getaddrinfo() replaces the C library's, and blocks for that name
 * until released. */
#include "net/http_client.h"

#include "upstream.h"

#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>

enum {
    RELEASE_S = 20
}; /* the look-up ends by itself, so that a loop that waits for it fails the test instead of hanging */

static sem_t released;
static atomic_bool is_looking_up, is_over;

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    struct timespec until;

    if (name && strcmp(name, "slow.example") == 0) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += RELEASE_S;
        atomic_store(&is_looking_up, true);
        sem_timedwait(&released, &until);
        atomic_store(&is_over, true);
        return EAI_NONAME;
    }
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(name, service, hints, ret);
}

static void on_head(void *arg, const struct http_answer *head)
{
}

static int on_bytes(void *arg, struct slice bytes)
{
    return 0;
}

static void on_end(void *arg, int r, const struct err *e)
{
    atomic_store((atomic_int *)arg, r);
}

static const struct http_fetch_events events = { on_head, on_bytes, on_end };

static bool is_set(void *arg)
{
    return atomic_load((atomic_bool *)arg);
}

static bool has_result(void *arg)
{
    return atomic_load((atomic_int *)arg) != 0;
}

static void serve(void *arg, struct http_exchange *x)
{
    http_exchange_send(x);
}

struct making {
    struct loop *loop;
    struct http_client *client;
};

static void make_client(void *arg)
{
    struct making *making = arg;

    assert_int_equal(http_client_new(making->loop, &making->client, NULL), 0);
}

static void free_client(void *arg)
{
    struct making *making = arg;

    making->client = http_client_free(making->client);
}

/* libcurl joins the thread of a look-up unless it is told not to (CURLOPT_QUICK_EXIT). */
static void a_fetch_is_cancelled_while_its_name_is_looked_up(void **state)
{
    AUTO(rig_close) struct rig rig = { 0 };
    struct http_fetch *fetch = NULL;
    struct making making;
    atomic_int result = 0;

    rig_open(&rig, serve, NULL);
    making = (struct making){ .loop = rig.loop };
    loop_call(rig.loop, make_client, &making);
    assert_int_equal(http_fetch_start(making.client,
                                      &(struct http_call_request){ .method = "GET", .url = "http://slow.example/" },
                                      &events, &result, &fetch, NULL),
                     0);
    assert_true(wait_until(is_set, &is_looking_up));
    http_fetch_cancel(fetch);
    assert_true(wait_until(has_result, &result));
    loop_call(rig.loop, free_client, &making);
    http_fetch_unref(fetch);
    assert_int_equal(atomic_load(&result), -ECANCELED);
    assert_false(atomic_load(&is_over));
    sem_post(&released);
    assert_true(wait_until(is_set, &is_over));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fetch_is_cancelled_while_its_name_is_looked_up),
    };

    sem_init(&released, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
