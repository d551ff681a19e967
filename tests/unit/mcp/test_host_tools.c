/* The list of a server's tools in the host: when it is kept, and when it is read again. */
#include "fake_link.h"
#include "../store/fixture.h"

#include "base/cond.h"
#include "mcp/host_private.h"
#include "store/tables/mcp_servers.h"

static struct {
    struct mcp_host host;
    struct host_server server;
    struct host_connection connection;
    struct host_definition first, second;
    bool swaps; /* the definition, while the server answers */
} w;

static void swap_definition(void)
{
    pthread_mutex_lock(&w.host.lock);
    w.server.definition = &w.second;
    pthread_mutex_unlock(&w.host.lock);
}

static void serve(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (fake_begin(f, frame))
        return;
    if (w.swaps)
        swap_definition();
    fake_answer(f, frame, "\"result\":{\"tools\":[{\"name\":\"greet\",\"inputSchema\":{\"type\":\"object\"}}]}");
}

static void open_world(struct fake *f, struct fixture *x)
{
    static char name[] = "files";
    const struct host_definition definition = { .server = { .name = name, .timeout_s = 30 } };

    memset(&w, 0, sizeof(w));
    if (store_mcp_servers_put(x->store,
                              &(struct mcp_server_row){ .name = name, .sealed = SLICE_LIT("x"), .is_enabled = true },
                              &x->e) < 0)
        fail_msg("%s", x->e.text);
    f->serve = serve;
    fake_open(f, MCP_ERA_HANDSHAKE);
    w.first = w.second = definition;
    w.host.config.store = x->store;
    pthread_mutex_init(&w.host.lock, NULL);
    cond_init(&w.host.changed);
    w.connection.client = f->client;
    w.server =
        (struct host_server){ .host = &w.host, .name = name, .definition = &w.first, .connection = &w.connection };
}

static void close_world(void)
{
    host_list_unref(w.server.list);
    pthread_cond_destroy(&w.host.changed);
    pthread_mutex_destroy(&w.host.lock);
}

static void list(struct fake *f)
{
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    struct host_use use = { .server = &w.server, .definition = w.server.definition, .client = f->client };
    struct host_list *got = NULL;
    struct err e = { 0 };

    if (host_list(&use, &wait, true, &got, &e) < 0)
        fail_msg("%s", e.text);
    host_list_unref(got);
}

static void a_new_list_is_kept(void **state)
{
    struct fixture x = fixture_open();

    open_world(*state, &x);
    list(*state);
    assert_non_null(w.server.list);
    assert_false(w.server.is_list_old);
    close_world();
    fixture_close(&x);
}

/* The era of a new server is noted a moment after its first list was read: a change of its tools that is read at that
 * moment must not be lost. */
static void a_list_that_is_read_while_the_definition_changes_is_read_again(void **state)
{
    struct fixture x = fixture_open();

    open_world(*state, &x);
    list(*state);
    w.server.is_list_old = true;
    w.swaps = true;
    list(*state);
    assert_true(w.server.is_list_old);
    w.swaps = false;
    list(*state);
    assert_false(w.server.is_list_old);
    assert_int_equal(fake_count(*state, "tools/list"), 3);
    close_world();
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_list_is_kept, fake_set_up, fake_tear_down),
        cmocka_unit_test_setup_teardown(a_list_that_is_read_while_the_definition_changes_is_read_again, fake_set_up,
                                        fake_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
