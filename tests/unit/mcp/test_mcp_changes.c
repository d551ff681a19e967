/* Changes that a server could not tell: before its stream of changes was open, between two streams, in a gap of the
 * link. */
#include "fake_op.h"

#define CHANGING                                                                                                       \
    "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{"                \
    "\"tools\":{\"listChanged\":true},\"prompts\":{\"listChanged\":true},\"resources\":{\"subscribe\":true}}}"
#define ACKNOWLEDGED "\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{"

/* What the client reported, and what the server does with the stream of changes. */
static struct told {
    pthread_mutex_t lock;
    int n_lists[3];
    char updated[64];
    _Atomic int64_t request; /* id of the newest subscriptions/listen */
    atomic_bool is_silent;   /* it is not acknowledged */
    atomic_bool *cancel;     /* set when it comes; NULL: none */
} told = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void note_changed(void *arg, enum mcp_list what)
{
    pthread_mutex_lock(&told.lock);
    told.n_lists[what]++;
    pthread_mutex_unlock(&told.lock);
}

static void note_updated(void *arg, const char *uri)
{
    size_t n;

    pthread_mutex_lock(&told.lock);
    n = strlen(told.updated);
    snprintf(told.updated + n, sizeof(told.updated) - n, "%s ", uri);
    pthread_mutex_unlock(&told.lock);
}

static int times_of(enum mcp_list what)
{
    int n;

    pthread_mutex_lock(&told.lock);
    n = told.n_lists[what];
    pthread_mutex_unlock(&told.lock);
    return n;
}

static bool are_tools_told(void *arg)
{
    return times_of(MCP_LIST_TOOLS) > 0;
}

static bool is_update_told(void *arg)
{
    bool is_told;

    pthread_mutex_lock(&told.lock);
    is_told = *told.updated;
    pthread_mutex_unlock(&told.lock);
    return is_told;
}

static void acknowledge(struct fake *f, int64_t request)
{
    fake_sayf(f, "{\"jsonrpc\":\"2.0\"," ACKNOWLEDGED "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%lld}}}",
              (long long)request);
}

static void serve(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (frame->method && strcmp(frame->method, "server/discover") == 0)
        fake_answer(f, frame, CHANGING);
    else if (!fake_begin(f, frame) && strcmp(frame->method, "subscriptions/listen") != 0)
        fake_answer(f, frame, "\"result\":{}");
    if (!frame->method || strcmp(frame->method, "subscriptions/listen") != 0)
        return;
    atomic_store(&told.request, frame->id.number);
    if (told.cancel)
        atomic_store(told.cancel, true);
    if (!atomic_load(&told.is_silent))
        acknowledge(f, frame->id.number);
}

static int set_up(void **state)
{
    int r = fake_set_up(state);
    struct fake *f = *state;

    f->serve = serve;
    f->handlers = (struct mcp_handlers){ .changed = note_changed, .updated = note_updated, .arg = f };
    memset(told.n_lists, 0, sizeof(told.n_lists));
    told.updated[0] = '\0';
    told.cancel = NULL;
    atomic_store(&told.request, 0);
    atomic_store(&told.is_silent, false);
    return r;
}

static bool is_asked(void *arg)
{
    return atomic_load(&told.request) > 0;
}

static atomic_bool was_acknowledged;

static void *acknowledge_later(void *arg)
{
    assert_true(wait_until(is_asked, NULL));
    atomic_store(&was_acknowledged, true);
    acknowledge(arg, atomic_load(&told.request));
    return NULL;
}

/* On a machine without time the opening goes on before the acknowledgement, which is reported then. */
static void the_lists_are_read_when_their_changes_are_told(void **state)
{
    struct fake *f = *state;
    pthread_t thread;

    atomic_store(&was_acknowledged, false);
    atomic_store(&told.is_silent, true);
    assert_int_equal(pthread_create(&thread, NULL, acknowledge_later, f), 0);
    fake_open(f, MCP_ERA_STATELESS);
    if (!atomic_load(&was_acknowledged))
        assert_true(wait_until(are_tools_told, NULL));
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void lists_count_as_changed_when_the_stream_comes_late(void **state)
{
    struct fake *f = *state;

    atomic_store(&told.is_silent, true);
    fake_open(f, MCP_ERA_STATELESS);
    assert_true(wait_until(is_asked, NULL));
    acknowledge(f, atomic_load(&told.request) + 1); /* of another request */
    assert_int_equal(times_of(MCP_LIST_TOOLS), 0);
    acknowledge(f, atomic_load(&told.request));
    acknowledge(f, atomic_load(&told.request)); /* once a request */
    assert_int_equal(times_of(MCP_LIST_TOOLS), 1);
    assert_int_equal(times_of(MCP_LIST_PROMPTS), 1);
    assert_int_equal(times_of(MCP_LIST_RESOURCES), 0); /* its list never changes */
}

static void lists_count_as_changed_after_the_stream_had_ended(void **state)
{
    struct fake *f = *state;

    fake_open(f, MCP_ERA_STATELESS);
    fake_sayf(f, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"resultType\":\"complete\"}}",
              (long long)atomic_load(&told.request));
    assert_true(wait_until(are_tools_told, NULL));
    assert_int_equal(fake_count(f, "\"method\":\"subscriptions/listen\""), 2);
}

static void resources_count_as_updated_after_the_filter_had_changed(void **state)
{
    struct fake *f = *state;
    struct op op;

    op_init(&op);
    fake_open(f, MCP_ERA_STATELESS);
    assert_int_equal(mcp_client_subscribe(f->client, &op.call, "a:1", &op.e), 0);
    assert_int_equal(mcp_client_subscribe(f->client, &op.call, "a:2", &op.e), 0);
    assert_true(wait_until(is_update_told, NULL));
    mcp_client_close(f->client);
    assert_string_equal(told.updated, "a:1 "); /* the other one is read after it is followed */
    op_clear(&op);
}

static void an_opening_is_cancelled_while_it_waits_for_the_stream(void **state)
{
    struct fake *f = *state;
    atomic_bool is_gone = false;
    const struct net_wait wait = net_wait_of(WAIT_MS, &is_gone, NULL);
    const struct mcp_client_config config = { .handlers = &f->handlers, .pool = f->pool, .probe_ms = WAIT_MS };
    struct err e = { 0 };

    told.cancel = &is_gone;
    atomic_store(&told.is_silent, true);
    assert_int_equal(mcp_client_open(&f->link, &config, &wait, &f->client, &f->era, &e), -ECANCELED);
    assert_string_equal(e.code, "SHUTTING_DOWN");
}

static void a_gap_of_the_link_counts_as_a_change_in_the_handshake_era(void **state)
{
    struct fake *f = *state;
    struct op op;

    op_init(&op);
    fake_open(f, MCP_ERA_HANDSHAKE);
    assert_int_equal(mcp_client_subscribe(f->client, &op.call, "a:1", &op.e), 0);
    assert_int_equal(mcp_client_subscribe(f->client, &op.call, "a:2", &op.e), 0);
    assert_int_equal(mcp_client_unsubscribe(f->client, &op.call, "a:1", &op.e), 0);
    f->on.on_gap(f->on.arg);
    assert_int_equal(times_of(MCP_LIST_TOOLS), 1);
    assert_int_equal(times_of(MCP_LIST_PROMPTS), 0);
    assert_string_equal(told.updated, "a:2 ");
    op_clear(&op);
}

int main(void)
{
#define WITH_FAKE(test) cmocka_unit_test_setup_teardown(test, set_up, fake_tear_down)
    const struct CMUnitTest tests[] = {
        WITH_FAKE(the_lists_are_read_when_their_changes_are_told),
        WITH_FAKE(lists_count_as_changed_when_the_stream_comes_late),
        WITH_FAKE(lists_count_as_changed_after_the_stream_had_ended),
        WITH_FAKE(resources_count_as_updated_after_the_filter_had_changed),
        WITH_FAKE(an_opening_is_cancelled_while_it_waits_for_the_stream),
        WITH_FAKE(a_gap_of_the_link_counts_as_a_change_in_the_handshake_era),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
