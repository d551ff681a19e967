/* What the realtime part keeps of the backend's machines and tables, at its limits. No thread runs. */
#include "base/hash.h"
#include "face/realtime_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static char topic_name[] = "realtime:svc_presence";
static size_t n_shapes_read;

static int shape(struct backend *b, const char *table, struct arena *a, struct table_shape *ret, struct err *e)
{
    n_shapes_read++;
    *ret = (struct table_shape){ .table = arena_strdup(a, table), .has_own_columns = true };
    return 0;
}

static const struct backend_ops ops = { .shape = shape };

struct world {
    struct backend b;
    struct realtime *rt;
    struct rt_topic topic;
    struct rt_channel channel; /* of a client of the service role */
    struct arena *arena;
};

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));

    w->arena = arena_new();
    w->b = (struct backend){ .ops = &ops, .abbr = "svc" };
    w->rt = xcalloc(1, sizeof(*w->rt));
    w->rt->config = (struct realtime_config){ .backend = &w->b, .presence_ms = 60000 };
    rt_queue_init(&w->rt->rows);
    w->topic.name = topic_name;
    TAILQ_INIT(&w->topic.members);
    TAILQ_INIT(&w->topic.present);
    LIST_INSERT_HEAD(&w->rt->topics[hash_fast(slice_of(topic_name)) % RT_BUCKETS], &w->topic, links);
    w->channel = (struct rt_channel){ .topic = &w->topic, .caller.role = FACE_SERVICE };
    n_shapes_read = 0;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    rt_presence_clear(&w->topic);
    rt_queue_clear(&w->rt->rows);
    rt_shapes_clear(w->rt);
    arena_free(w->arena);
    free(w->rt);
    free(w);
    return 0;
}

static size_t n_present(const struct world *w)
{
    const struct rt_meta *m;
    size_t n = 0;

    TAILQ_FOREACH(m, &w->topic.present, links)
    n++;
    return n;
}

static void list(struct world *w, size_t n)
{
    struct rt_item item = { .presences = { arena_array(w->arena, n, sizeof(*item.presences.items)), n } };

    for (size_t i = 0; i < n; i++)
        item.presences.items[i] = (struct backend_presence){ .machine_id = arena_printf(w->arena, "m%zu", i) };
    rt_machines_known(w->rt, &item);
}

static void as_many_machines_of_the_backend_are_shown_as_the_limit_says(void **state)
{
    struct world *w = *state;

    list(w, LIMIT_PRESENCE_MACHINES);
    assert_int_equal(n_present(w), LIMIT_PRESENCE_MACHINES);
    list(w, LIMIT_PRESENCE_MACHINES + 1);
    assert_int_equal(n_present(w), LIMIT_PRESENCE_MACHINES);
    list(w, 1);
    assert_int_equal(n_present(w), 1);
}

/* How many machines the thread of the rows is told of, for n that clients track. */
static size_t n_told(struct world *w, size_t n)
{
    struct json_value state;
    struct rt_item *item;
    bool is_closed;
    size_t told;

    for (size_t i = n_present(w); i < n; i++) {
        rt_presence_show(w->rt, &w->topic, arena_printf(w->arena, "c%zu", i), xstrdup("\"app_name\":\"a\""));
        TAILQ_LAST(&w->topic.present, rt_metas)->channel = &w->channel;
    }
    rt_machines_tick(w->rt, true);
    item = rt_queue_pop(&w->rt->rows, 0, &is_closed);
    assert_non_null(item);
    assert_int_equal(json_parse(w->arena, item->bytes, &state, NULL), 0);
    told = json_length(state);
    rt_item_free(item);
    w->rt->is_reading_machines = false;
    return told;
}

static void as_many_machines_of_clients_are_told_as_the_limit_says(void **state)
{
    struct world *w = *state;

    assert_int_equal(n_told(w, LIMIT_PRESENCE_MACHINES), LIMIT_PRESENCE_MACHINES);
    assert_int_equal(n_told(w, LIMIT_PRESENCE_MACHINES + 1), LIMIT_PRESENCE_MACHINES);
}

static void machines_that_others_than_the_service_role_track_are_not_told(void **state)
{
    struct world *w = *state;

    w->channel.caller.role = FACE_AUTHENTICATED;
    assert_int_equal(n_told(w, 2), 0);
}

static void look_up(struct world *w, size_t n)
{
    struct rt_shape *found = NULL;
    char table[32];

    for (size_t i = 0; i < n; i++) {
        snprintf(table, sizeof(table), "t%zu", i);
        assert_int_equal(rt_shape_of(w->rt, table, 0, &found, NULL), 0);
        rt_shape_free(found);
    }
}

static void as_many_tables_are_kept_as_the_limit_says(void **state)
{
    struct rt_shape *found = NULL;
    struct world *w = *state;

    look_up(w, LIMIT_REALTIME_SHAPES);
    assert_int_equal(w->rt->n_shapes, LIMIT_REALTIME_SHAPES);
    assert_int_equal(n_shapes_read, LIMIT_REALTIME_SHAPES);
    assert_int_equal(rt_shape_of(w->rt, "one more", 0, &found, NULL), 0);
    assert_int_equal(w->rt->n_shapes, 1);
    rt_shape_free(found);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(as_many_machines_of_the_backend_are_shown_as_the_limit_says),
        TEST(as_many_machines_of_clients_are_told_as_the_limit_says),
        TEST(machines_that_others_than_the_service_role_track_are_not_told),
        TEST(as_many_tables_are_kept_as_the_limit_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
