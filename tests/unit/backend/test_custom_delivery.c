/* Ends of tasks on their way to apps in Custom Mode: kept, sent with the same content, given up. */
#include "../net/upstream.h"
#include "../store/fixture.h"
#include "backend/custom/custom_delivery.h"
#include "base/hash.h"

enum { MOST_HEARD = 32, OVERTAKE_MS = 200 };

/* Answers the webhook with the statuses in turn, the last one again and again. */
struct app {
    struct rig rig;
    const int *statuses;
    int n_statuses;
    pthread_mutex_t lock; /* guards the members below */
    int n;
    char bodies[MOST_HEARD][200], ids[MOST_HEARD][64];
};

static void serve(void *arg, struct http_exchange *x)
{
    struct app *app = arg;
    const char *id = http_header(&x->request, "x-svc-event-id");

    pthread_mutex_lock(&app->lock);
    if (app->n < MOST_HEARD) {
        snprintf(app->bodies[app->n], sizeof(app->bodies[0]), "%.*s", (int)MIN(x->request.body.n, (size_t)199),
                 x->request.body.p);
        snprintf(app->ids[app->n], sizeof(app->ids[0]), "%s", id ? id : "");
    }
    x->response.status = app->statuses[MIN(app->n, app->n_statuses - 1)];
    app->n++;
    pthread_mutex_unlock(&app->lock);
    buf_add_str(&x->response.body, "{\"success\":true}");
    http_exchange_send(x);
}

static int n_heard(struct app *app)
{
    int n;

    pthread_mutex_lock(&app->lock);
    n = app->n;
    pthread_mutex_unlock(&app->lock);
    return n;
}

/* The backend that the deliveries see. */
struct world {
    struct fixture store;
    struct app app;
    struct custom_deliveries *d;
    const char *base_url; /* NULL: the app does not run */
    atomic_bool is_gone;  /* the app is not registered */
    atomic_int hold;      /* enum custom_hold, or an error */
    atomic_int n_beats, n_releases;
    atomic_int last_state;            /* of on_change */
    atomic_bool is_dropped_when_dead; /* by a person, before the dead letter has been reported */
    pthread_t person;
};

static int place(void *arg, const char *app_id, const char *table, struct arena *a, struct custom_place *ret,
                 struct err *e)
{
    struct world *w = arg;

    if (atomic_load(&w->is_gone))
        return err_set(e, -ENOENT, "APP_NOT_FOUND", "There is no such app.");
    *ret = (struct custom_place){ .app_id = app_id, .base_url = strcmp(app_id, "away") == 0 ? NULL : w->base_url };
    return 0;
}

static int holds(void *arg, const struct backend_lease *l, struct err *e)
{
    int hold = atomic_load(&((struct world *)arg)->hold);

    return hold < 0 ? err_set(e, hold, "STORE_UNAVAILABLE", "The database is away.") : hold;
}

static int beat(void *arg, const struct backend_lease *l, struct err *e)
{
    atomic_fetch_add(&((struct world *)arg)->n_beats, 1);
    return 0;
}

static int release(void *arg, const struct backend_lease *l, struct err *e)
{
    atomic_fetch_add(&((struct world *)arg)->n_releases, 1);
    return 0;
}

static void *drop_the_dead_letter(void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct custom_delivery_list list = { 0 };
    struct world *w = arg;

    assert_int_equal(custom_delivery_all(w->d, NULL, CUSTOM_DEAD, 0, a, &list, NULL), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(custom_delivery_drop(w->d, list.items[0].id, NULL), 0);
    return NULL;
}

static bool is_dropped_reported(void *arg)
{
    return atomic_load(&((struct world *)arg)->last_state) == CUSTOM_DROPPED;
}

/* Gives the person time to overtake the report. */
static void let_a_person_drop_it(struct world *w)
{
    int64_t until_ms = clock_mono_ms() + OVERTAKE_MS;

    assert_int_equal(pthread_create(&w->person, NULL, drop_the_dead_letter, w), 0);
    while (!is_dropped_reported(w) && clock_mono_ms() < until_ms)
        sched_yield();
}

static void on_change(void *arg, const struct backend_lease *l, enum custom_delivery_state state, const char *error)
{
    struct world *w = arg;

    if (state == CUSTOM_DEAD && atomic_load(&w->is_dropped_when_dead))
        let_a_person_drop_it(w);
    atomic_store(&w->last_state, (int)state);
}

static const struct custom_delivery_calls calls = {
    .place = place, .holds = holds, .beat = beat, .release = release, .on_change = on_change
};

static void open_deliveries(struct world *w, int64_t tries, bool is_started)
{
    const struct custom_deliveries_config config = { .store = w->store.store,
                                                     .net = { .abbr = "svc", .webhook_ms = 5000 },
                                                     .calls = &calls,
                                                     .arg = w,
                                                     .beat_ms = 20,
                                                     .tries = tries,
                                                     .pause_ms = 5 };

    assert_int_equal(custom_deliveries_open(&config, &w->d, NULL), 0);
    if (is_started)
        assert_int_equal(custom_deliveries_start(w->d, NULL), 0);
}

static void open_world(struct world *w, const int *statuses, int n, int64_t tries)
{
    *w = (struct world){ .store = fixture_open(),
                         .app = { .statuses = statuses, .n_statuses = n, .lock = PTHREAD_MUTEX_INITIALIZER },
                         .hold = CUSTOM_HELD };
    rig_open(&w->app.rig, serve, &w->app);
    w->base_url = rig_url(&w->app.rig, "");
    open_deliveries(w, tries, true);
}

static void close_world(struct world *w)
{
    custom_deliveries_close(w->d);
    rig_close(&w->app.rig);
    fixture_close(&w->store);
}

static const struct backend_lease lease = { .table = "orders", .row_id = "7", .machine_id = "m1", .attempt = 1000 };

static void put_of(struct world *w, const char *app_id, const struct backend_lease *l, const char *content)
{
    const struct custom_end end = { .app_id = app_id, .lease = l, .content = content };

    assert_int_equal(custom_delivery_put(w->d, &end, NULL), 0);
}

struct wanted {
    struct world *w;
    const struct backend_lease *lease;
    int state;
};

static bool has_state(void *arg)
{
    struct wanted *wanted = arg;

    return custom_delivery_find(wanted->w->d, wanted->lease, NULL) == wanted->state;
}

static void wait_for(struct world *w, enum custom_delivery_state state)
{
    assert_true(wait_until(has_state, &(struct wanted){ w, &lease, (int)state }));
}

static struct custom_delivery the_delivery(struct world *w, enum custom_delivery_state state)
{
    struct custom_delivery_list list = { 0 };

    assert_int_equal(custom_delivery_all(w->d, NULL, state, 0, w->store.a, &list, NULL), 0);
    assert_int_equal(list.n, 1);
    return list.items[0];
}

/* ---- tests ---- */

static void an_end_is_sent_once_and_a_repeat_of_it_changes_nothing(void **state)
{
    static const int ok[] = { 200 };
    struct world w;

    open_world(&w, ok, 1, 3);
    atomic_store(&w.hold, CUSTOM_HELD);
    put_of(&w, "app", &lease, "{\"n\":1}");
    wait_for(&w, CUSTOM_DELIVERED);
    put_of(&w, "app", &lease, "{\"n\":2}");
    assert_int_equal(custom_delivery_find(w.d, &lease, NULL), CUSTOM_DELIVERED);
    assert_int_equal(n_heard(&w.app), 1);
    assert_string_equal(w.app.bodies[0], "{\"task_id\":\"7\",\"action\":\"complete\",\"machine_id\":\"m1\","
                                         "\"data\":{\"result\":{\"n\":1}}}");
    assert_int_equal(custom_delivery_is_open(w.d, "orders", "7", NULL), 0);
    assert_non_null(strstr(the_delivery(&w, CUSTOM_DELIVERED).error, "left its row claimed"));
    close_world(&w);
}

static void failures_and_results_that_are_no_objects_have_their_forms(void **state)
{
    static const int ok[] = { 200 };
    const struct backend_lease second = { .table = "orders", .row_id = "8", .machine_id = "m1", .attempt = 1 };
    struct world w;

    open_world(&w, ok, 1, 3);
    assert_int_equal(
        custom_delivery_put(
            w.d, &(struct custom_end){ .app_id = "app", .lease = &lease, .is_fail = true, .content = "no \"luck\"" },
            NULL),
        0);
    wait_for(&w, CUSTOM_DELIVERED);
    put_of(&w, "app", &second, "[1,2]");
    assert_true(wait_until(has_state, &(struct wanted){ &w, &second, CUSTOM_DELIVERED }));
    assert_non_null(strstr(w.app.bodies[0], "\"action\":\"fail\""));
    assert_non_null(strstr(w.app.bodies[0], "\"data\":{\"error\":{\"message\":\"no \\\"luck\\\"\"}}"));
    assert_non_null(strstr(w.app.bodies[1], "\"data\":{\"result\":{\"value\":[1,2]}}"));
    close_world(&w);
}

static void every_try_has_the_same_content_and_id(void **state)
{
    static const int statuses[] = { 500, 503, 429, 408, 200 };
    struct world w;

    open_world(&w, statuses, ARRAY_SIZE(statuses), 10);
    put_of(&w, "app", &lease, "{\"n\":1}");
    wait_for(&w, CUSTOM_DELIVERED);
    assert_int_equal(n_heard(&w.app), 5);
    for (int i = 1; i < 5; i++) {
        assert_string_equal(w.app.bodies[i], w.app.bodies[0]);
        assert_string_equal(w.app.ids[i], w.app.ids[0]);
    }
    close_world(&w);
}

static void a_refused_end_is_a_dead_letter_that_keeps_its_lease_and_can_be_tried_again(void **state)
{
    static const int statuses[] = { 422, 200 };
    struct custom_delivery dead;
    struct world w;
    struct err e = { 0 };

    open_world(&w, statuses, ARRAY_SIZE(statuses), 10);
    put_of(&w, "app", &lease, "{\"n\":1}");
    wait_for(&w, CUSTOM_DEAD);
    dead = the_delivery(&w, CUSTOM_NONE);
    assert_int_equal(dead.status, 422);
    assert_int_equal(dead.n_tries, 1);
    assert_non_null(strstr(dead.error, "status 422"));
    assert_int_equal(custom_delivery_is_open(w.d, "orders", "7", NULL), 1);
    assert_int_equal(custom_delivery_retry(w.d, dead.id, NULL), 0);
    wait_for(&w, CUSTOM_DELIVERED);
    assert_int_equal(n_heard(&w.app), 2);
    assert_string_equal(w.app.bodies[0], w.app.bodies[1]);
    assert_string_equal(w.app.ids[0], w.app.ids[1]);
    assert_int_equal(custom_delivery_retry(w.d, dead.id, &e), -EBUSY);
    assert_string_equal(e.code, "DELIVERY_FINISHED");
    assert_int_equal(custom_delivery_retry(w.d, "none", &e), -ENOENT);
    close_world(&w);
}

static void the_bound_of_tries_ends_them(void **state)
{
    static const int statuses[] = { 500 };
    struct world w;

    open_world(&w, statuses, 1, 3);
    put_of(&w, "app", &lease, "{}");
    wait_for(&w, CUSTOM_DEAD);
    assert_int_equal(n_heard(&w.app), 3);
    close_world(&w);
}

/* A state is reported after it is stored. */
static bool is_dead_reported(void *arg)
{
    return atomic_load(&((struct world *)arg)->last_state) == CUSTOM_DEAD;
}

static void a_dropped_end_gives_its_lease_back(void **state)
{
    static const int statuses[] = { 400 };
    struct world w;

    open_world(&w, statuses, 1, 3);
    put_of(&w, "app", &lease, "{}");
    wait_for(&w, CUSTOM_DEAD);
    assert_true(wait_until(is_dead_reported, &w));
    assert_int_equal(custom_delivery_drop(w.d, the_delivery(&w, CUSTOM_DEAD).id, NULL), 0);
    assert_int_equal(atomic_load(&w.n_releases), 1);
    assert_int_equal(custom_delivery_find(w.d, &lease, NULL), CUSTOM_DROPPED);
    assert_int_equal(atomic_load(&w.last_state), CUSTOM_DROPPED);
    close_world(&w);
}

static void states_are_reported_in_the_order_in_which_they_are_stored(void **state)
{
    static const int statuses[] = { 400 };
    struct world w;

    open_world(&w, statuses, 1, 3);
    atomic_store(&w.is_dropped_when_dead, true);
    put_of(&w, "app", &lease, "{}");
    wait_for(&w, CUSTOM_DROPPED);
    pthread_join(w.person, NULL);
    custom_deliveries_close(w.d); /* nothing is reported after it */
    assert_true(is_dropped_reported(&w));
    open_deliveries(&w, 3, false);
    close_world(&w);
}

static void a_lost_lease_ends_the_tries_unsent(void **state)
{
    static const int statuses[] = { 200 };
    struct world w;

    open_world(&w, statuses, 1, 3);
    atomic_store(&w.hold, CUSTOM_LOST);
    put_of(&w, "app", &lease, "{}");
    wait_for(&w, CUSTOM_DROPPED);
    assert_int_equal(n_heard(&w.app), 0);
    assert_non_null(strstr(the_delivery(&w, CUSTOM_DROPPED).error, "lease was lost"));
    close_world(&w);
}

static void nothing_is_sent_while_the_row_cannot_be_read(void **state)
{
    static const int statuses[] = { 200 };
    struct world w;

    open_world(&w, statuses, 1, 3);
    atomic_store(&w.hold, -EAGAIN);
    put_of(&w, "app", &lease, "{}");
    assert_true(wait_until(has_state, &(struct wanted){ &w, &lease, CUSTOM_WAITING }));
    atomic_store(&w.hold, CUSTOM_HELD);
    wait_for(&w, CUSTOM_DELIVERED);
    close_world(&w);
}

static bool was_tried(void *w)
{
    return the_delivery(w, CUSTOM_NONE).n_tries > 0;
}

static void a_row_that_the_try_without_an_answer_has_ended_is_delivered(void **state)
{
    static const int statuses[] = { 200 };
    struct raw_peer peer;
    char url[64];
    struct world w;

    open_world(&w, statuses, 1, 1000);
    raw_open(&peer, "", RAW_CLOSE);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", peer.port);
    w.base_url = url;
    put_of(&w, "app", &lease, "{}");
    assert_true(wait_until(was_tried, &w));
    atomic_store(&w.hold, CUSTOM_ENDED);
    wait_for(&w, CUSTOM_DELIVERED);
    raw_close(&peer);
    close_world(&w);
}

static void an_app_that_is_no_longer_registered_leaves_a_dead_letter(void **state)
{
    static const int statuses[] = { 200 };
    struct world w;

    open_world(&w, statuses, 1, 3);
    atomic_store(&w.is_gone, true);
    put_of(&w, "app", &lease, "{}");
    wait_for(&w, CUSTOM_DEAD);
    close_world(&w);
}

static bool has_beaten(void *arg)
{
    return atomic_load(&((struct world *)arg)->n_beats) >= 3;
}

static void leases_of_open_ends_are_kept_and_others_apps_are_told_meanwhile(void **state)
{
    static const int statuses[] = { 200 };
    const struct backend_lease other = { .table = "orders", .row_id = "8", .machine_id = "m1", .attempt = 1 };
    struct world w;

    open_world(&w, statuses, 1, 1000000);
    put_of(&w, "away", &other, "{}");
    put_of(&w, "app", &lease, "{}");
    wait_for(&w, CUSTOM_DELIVERED);
    assert_true(wait_until(has_beaten, &w));
    assert_int_equal(custom_delivery_find(w.d, &other, NULL), CUSTOM_WAITING);
    close_world(&w);
}

static void a_new_process_goes_on_with_what_the_old_one_stored(void **state)
{
    static const int statuses[] = { 200 };
    struct world w;

    open_world(&w, statuses, 1, 3);
    custom_deliveries_close(w.d);
    open_deliveries(&w, 3, false); /* a command without a service: stored, not sent */
    put_of(&w, "app", &lease, "{\"kept\":true}");
    custom_deliveries_close(w.d);
    assert_int_equal(n_heard(&w.app), 0);
    open_deliveries(&w, 3, true);
    wait_for(&w, CUSTOM_DELIVERED);
    assert_int_equal(n_heard(&w.app), 1);
    assert_non_null(strstr(w.app.bodies[0], "\"kept\":true"));
    close_world(&w);
}

static void a_content_above_its_limit_is_refused(void **state)
{
    static const int statuses[] = { 200 };
    char *text = malloc(LIMIT_DELIVERY_BYTES + 1);
    struct world w;
    struct err e = { 0 };

    memset(text, 'x', LIMIT_DELIVERY_BYTES);
    text[LIMIT_DELIVERY_BYTES] = '\0';
    open_world(&w, statuses, 1, 3);
    assert_int_equal(
        custom_delivery_put(
            w.d, &(struct custom_end){ .app_id = "app", .lease = &lease, .is_fail = true, .content = text }, &e),
        -E2BIG);
    assert_int_equal(custom_delivery_find(w.d, &lease, NULL), CUSTOM_NONE);
    close_world(&w);
    free(text);
}

static void an_app_that_is_far_behind_gets_no_more_tasks(void **state)
{
    static const int statuses[] = { 200 };
    struct world w;
    struct err e = { 0 };

    open_world(&w, statuses, 1, 3);
    custom_deliveries_close(w.d);
    open_deliveries(&w, 3, false);
    for (int i = 0; i < LIMIT_APP_DELIVERIES; i++) {
        assert_int_equal(custom_delivery_check_room(w.d, "app", NULL), 0);
        put_of(&w, "app", &(struct backend_lease){ .table = "t", .row_id = "1", .machine_id = "m", .attempt = i },
               "{}");
    }
    assert_int_equal(custom_delivery_check_room(w.d, "app", &e), -EBUSY);
    assert_string_equal(e.code, "APP_BEHIND");
    assert_int_equal(custom_delivery_check_room(w.d, "other", NULL), 0);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_is_sent_once_and_a_repeat_of_it_changes_nothing),
        cmocka_unit_test(failures_and_results_that_are_no_objects_have_their_forms),
        cmocka_unit_test(every_try_has_the_same_content_and_id),
        cmocka_unit_test(a_refused_end_is_a_dead_letter_that_keeps_its_lease_and_can_be_tried_again),
        cmocka_unit_test(the_bound_of_tries_ends_them),
        cmocka_unit_test(a_dropped_end_gives_its_lease_back),
        cmocka_unit_test(states_are_reported_in_the_order_in_which_they_are_stored),
        cmocka_unit_test(a_lost_lease_ends_the_tries_unsent),
        cmocka_unit_test(nothing_is_sent_while_the_row_cannot_be_read),
        cmocka_unit_test(a_row_that_the_try_without_an_answer_has_ended_is_delivered),
        cmocka_unit_test(an_app_that_is_no_longer_registered_leaves_a_dead_letter),
        cmocka_unit_test(leases_of_open_ends_are_kept_and_others_apps_are_told_meanwhile),
        cmocka_unit_test(a_new_process_goes_on_with_what_the_old_one_stored),
        cmocka_unit_test(a_content_above_its_limit_is_refused),
        cmocka_unit_test(an_app_that_is_far_behind_gets_no_more_tasks),
    };

    if (hash_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
