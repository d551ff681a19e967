/* Apps that really run: /bin/sh scripts under a supervisor, on the test's own loop. */
#include "app_config.h"
#include "../os/place.h"

#include "apps/apps.h"
#include "apps/ports.h"
#include "base/hash.h"
#include "identity/consent.h"
#include "store/tables/grants.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct fixture {
    struct place *place;
    struct pool *pool;
    struct store *store;
    struct settings *settings;
    struct identity *identity;
    struct apps *apps;
    atomic_int n_changes;
    struct err e;
};

static void note_change(void *arg, const char *app_id)
{
    struct fixture *f = arg;

    atomic_fetch_add(&f->n_changes, 1);
}

static void end_thread(void *store)
{
    store_thread_end(store);
}

static void open_apps(struct fixture *f)
{
    const struct apps_config c = {
        .loop = f->place->loop,
        .pool = f->pool,
        .store = f->store,
        .settings = f->settings,
        .identity = f->identity,
        .supervisor = f->place->supervisor,
        .data_dir = f->place->dir,
        .base_url = "http://127.0.0.1:3001",
        .on_change = note_change,
        .arg = f,
    };

    assert_int_equal(apps_open(&c, &f->apps, NULL), 0);
}

/* Short pauses between restarts, and at most two restarts. */
static int set_up(void **state)
{
    static const char *const flags[] = { "apps.restart_backoff_ms=10", "apps.restart_limit=2" };
    const struct settings_sources from = { .flags = flags, .n_flags = ARRAY_SIZE(flags) };
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct pool_config pool = {
        .name = "short", .n_min = 2, .n_max = 2, .max_waiting = 100, .on_thread_end = end_thread
    };

    place_set_up((void **)&f->place);
    assert_int_equal(hash_init(NULL), 0);
    if (settings_load(&from, &f->settings, &f->e) < 0)
        fail_msg("%s", f->e.text);
    assert_int_equal(store_open(f->place->dir, &f->store, NULL), 0);
    pool.arg = f->store;
    assert_int_equal(pool_start(&pool, &f->pool, NULL), 0);
    assert_int_equal(identity_open(f->store, f->settings, f->place->dir, &f->identity, NULL), 0);
    open_apps(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    apps_stop(f->apps);
    place_close_supervisor(f->place);
    f->pool = pool_stop(f->pool);
    apps_close(f->apps);
    identity_close(f->identity);
    settings_free(f->settings);
    store_close(f->store);
    place_tear_down((void **)&f->place);
    free(f);
    return 0;
}

/* --- helpers --- */

static int put_json(struct fixture *f, const char *json, char app_id[UUID_SIZE])
{
    struct app_config c;

    f->e = (struct err){ 0 };
    if (parse_app_config(f->place->arena, slice_of(json), &c, &f->e) < 0)
        fail_msg("%s", f->e.text);
    return app_put(f->apps, &c, slice_of(json), "test", app_id, &f->e);
}

/* A script app; `more` are further members of the configuration: ,"enabled":true */
static void put(struct fixture *f, const char *name, const char *script, const char *more, char app_id[UUID_SIZE])
{
    struct buf quoted;
    char *json;

    buf_init(&quoted, 65536);
    json_quote(&quoted, slice_of(script));
    json =
        arena_printf(f->place->arena, "{\"name\":\"%s\",\"config\":{\"command\":\"/bin/sh\",\"args\":[\"-c\",%s]}%s}",
                     name, buf_str(&quoted), more);
    buf_clear(&quoted);
    if (put_json(f, json, app_id) < 0)
        fail_msg("%s", f->e.text);
}

static struct app_state state_of(struct fixture *f, const char *app_id)
{
    struct app_state s;

    assert_int_equal(app_state(f->apps, app_id, f->place->arena, &s, NULL), 0);
    return s;
}

struct waiting {
    struct fixture *f;
    const char *app_id;
    enum app_status status;
    int64_t n_restarts;
    const char *text;
};

static bool has_status(void *arg)
{
    struct waiting *w = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct app_state s;

    return app_state(w->f->apps, w->app_id, a, &s, NULL) == 0 && s.status == w->status && s.n_restarts >= w->n_restarts;
}

static void wait_for(struct fixture *f, const char *app_id, enum app_status status, int64_t n_restarts)
{
    struct waiting w = { f, app_id, status, n_restarts, NULL };

    if (!wait_until(has_status, &w))
        fail_msg("it is %s, %s", app_status_name(state_of(f, app_id).status), state_of(f, app_id).message);
}

static bool has_written(void *arg)
{
    struct waiting *w = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct child_log *log = app_log(w->f->apps, w->app_id);
    bool has = log && strstr(child_log_text(log, a), w->text) != NULL;

    child_log_unref(log);
    return has;
}

static void wait_for_text(struct fixture *f, const char *app_id, const char *text)
{
    struct waiting w = { f, app_id, 0, 0, text };

    if (!wait_until(has_written, &w))
        fail_msg("it never wrote %s", text);
}

static void start(struct fixture *f, const char *app_id)
{
    f->e = (struct err){ 0 };
    if (app_start(f->apps, app_id, &f->e) < 0)
        fail_msg("%s", f->e.text);
}

/* --- registering --- */

static void one_that_is_registered_is_found_by_id_and_by_name(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];
    struct app_config c;

    put(f, "demo", "exit 0", ",\"display_name\":\"Demo\"", id);
    assert_true(uuid_is_valid(slice_of(id)));
    assert_int_equal(app_find(f->apps, id, f->place->arena, &c, NULL), 0);
    assert_string_equal(c.name, "demo");
    assert_int_equal(app_find(f->apps, "demo", f->place->arena, &c, NULL), 0);
    assert_string_equal(c.app_id, id);
    assert_string_equal(c.display_name, "Demo");
    assert_int_equal(app_find(f->apps, "nobody", f->place->arena, &c, &f->e), -ENOENT);
    assert_string_equal(f->e.code, "APP_NOT_FOUND");
    assert_true(atomic_load(&f->n_changes) > 0);
}

static void the_same_name_replaces_and_keeps_the_id(void **state)
{
    struct fixture *f = *state;
    char first[UUID_SIZE], second[UUID_SIZE];
    struct app_config c;

    put(f, "demo", "exit 0", "", first);
    put(f, "demo", "exit 1", ",\"description\":\"second\"", second);
    assert_string_equal(first, second);
    assert_int_equal(app_find(f->apps, first, f->place->arena, &c, NULL), 0);
    assert_string_equal(c.description, "second");
}

static void a_given_id_is_kept_and_may_be_renamed(void **state)
{
    static const char given[] = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
    struct fixture *f = *state;
    char id[UUID_SIZE];
    struct app_config c;

    assert_int_equal(put_json(f, "{\"name\":\"one\",\"app_id\":\"6fa459ea-ee8a-4ca4-894e-db77e160355e\"}", id), 0);
    assert_string_equal(id, given);
    assert_int_equal(put_json(f, "{\"name\":\"two\",\"app_id\":\"6fa459ea-ee8a-4ca4-894e-db77e160355e\"}", id), 0);
    assert_int_equal(app_find(f->apps, given, f->place->arena, &c, NULL), 0);
    assert_string_equal(c.name, "two");
}

static void another_id_with_a_taken_name_is_refused(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];

    put(f, "demo", "exit 0", "", id);
    assert_int_equal(put_json(f, "{\"name\":\"demo\",\"app_id\":\"6fa459ea-ee8a-4ca4-894e-db77e160355e\"}", id),
                     -EEXIST);
    assert_string_equal(f->e.code, "APP_EXISTS");
}

static size_t n_pending(struct fixture *f)
{
    struct consent_questions pending;

    assert_int_equal(consent_pending(f->identity, f->place->arena, &pending, NULL), 0);
    return pending.n;
}

static void a_wider_manifest_asks_for_what_is_new(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];
    struct consent_decision allow = {
        .permission = "llm.chat", .is_allowed = true, .scope = CONSENT_ALWAYS, .actor = "test"
    };

    put(f, "demo", "exit 0", ",\"permissions\":[\"llm.chat\"]", id);
    assert_int_equal(n_pending(f), 1);
    allow.app_id = id;
    assert_int_equal(consent_decide(f->identity, &allow, NULL), 0);
    assert_int_equal(n_pending(f), 0);
    put(f, "demo", "exit 0", ",\"permissions\":[\"llm.chat\",\"mcp.tools\"]", id);
    assert_int_equal(n_pending(f), 1);
}

/* --- running --- */

static void it_runs_with_its_identity_in_its_own_folder(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];
    struct app_state s;
    struct stat st;

    put(f, "demo", "echo \"I am $SVC_APP_NAME $SVC_APP_ID on $SVC_PORT at $SERVER_URL in $PWD\"; exec sleep 100", "",
        id);
    start(f, id);
    s = state_of(f, id);
    assert_int_equal(s.status, APP_RUNNING);
    assert_true(s.pid > 1);
    assert_non_null(s.started_at);
    assert_in_range(s.port, settings_int(f->settings, SETTING_APPS_PORT_MIN),
                    settings_int(f->settings, SETTING_APPS_PORT_MAX));
    wait_for_text(f, id,
                  arena_printf(f->place->arena, "I am demo %s on %u at http://127.0.0.1:3001 in %s/local-apps/%s", id,
                               s.port, f->place->dir, id));
    assert_int_equal(stat(arena_printf(f->place->arena, "%s/local-apps/%s", f->place->dir, id), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

static void a_second_start_changes_nothing(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];
    pid_t pid;

    put(f, "demo", "exec sleep 100", "", id);
    start(f, id);
    pid = state_of(f, id).pid;
    start(f, id);
    assert_int_equal(state_of(f, id).pid, pid);
}

static void a_stop_waits_for_the_end(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];
    int held;

    put(f, "demo", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done", "", id);
    start(f, id);
    wait_for_text(f, id, "ready");
    held = process_hold(state_of(f, id).pid);
    assert_int_equal(app_stop(f->apps, id, NULL), 0);
    assert_false(process_lives(held));
    close(held);
    assert_int_equal(state_of(f, id).status, APP_STOPPED);
    assert_int_equal(state_of(f, id).pid, 0);
    assert_null(state_of(f, id).message);
    assert_int_equal(app_stop(f->apps, id, NULL), 0);
}

static void the_log_goes_on_after_a_restart(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];
    pid_t first;

    put(f, "demo", "echo I am $$; exec sleep 100", "", id);
    start(f, id);
    first = state_of(f, id).pid;
    wait_for_text(f, id, arena_printf(f->place->arena, "I am %d", (int)first));
    assert_int_equal(app_restart(f->apps, id, NULL), 0);
    assert_true(state_of(f, id).pid != first);
    wait_for_text(f, id, arena_printf(f->place->arena, "I am %d", (int)state_of(f, id).pid));
    wait_for_text(f, id, arena_printf(f->place->arena, "I am %d", (int)first));
}

static void one_that_ends_well_is_stopped_not_restarted(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];

    put(f, "demo", "echo done", "", id);
    start(f, id);
    wait_for(f, id, APP_STOPPED, 0);
    assert_int_equal(state_of(f, id).n_restarts, 0);
}

static void a_crash_starts_it_again(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];

    put(f, "demo", "[ -e here ] && exec sleep 100; touch here; exit 3", "", id);
    start(f, id);
    wait_for(f, id, APP_RUNNING, 1);
    assert_int_equal(state_of(f, id).n_restarts, 1);
    assert_int_equal(app_stop(f->apps, id, NULL), 0);
}

static void too_many_crashes_are_an_error_that_says_why(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];
    struct app_state s;

    put(f, "demo", "echo 'no database' >&2; exit 3", "", id);
    start(f, id);
    wait_for(f, id, APP_ERROR, 0);
    s = state_of(f, id);
    assert_int_equal(s.n_restarts, 2);
    assert_non_null(strstr(s.message, "exit code 3"));
    assert_non_null(strstr(s.message, "no database"));
    assert_non_null(strstr(s.message, "3 times"));
}

static void a_stop_during_the_pause_before_a_restart_holds(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];

    assert_int_equal(settings_set(f->settings, "apps.restart_backoff_ms", "10", NULL), 0);
    put(f, "demo", "exit 3", "", id);
    start(f, id);
    assert_int_equal(app_stop(f->apps, id, NULL), 0);
    assert_int_equal(state_of(f, id).status, APP_STOPPED);
    start(f, id);
    wait_for(f, id, APP_ERROR, 0);
    assert_int_equal(app_stop(f->apps, id, NULL), 0);
    assert_int_equal(state_of(f, id).status, APP_STOPPED);
}

static void a_missing_program_is_an_error_that_names_it(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];

    assert_int_equal(put_json(f, "{\"name\":\"demo\",\"config\":{\"command\":\"no-such-program\"}}", id), 0);
    assert_int_equal(app_start(f->apps, id, &f->e), -ENOENT);
    assert_string_equal(f->e.code, "COMMAND_NOT_FOUND");
    assert_int_equal(state_of(f, id).status, APP_ERROR);
    assert_non_null(strstr(state_of(f, id).message, "no-such-program"));
    assert_int_equal(app_check(f->apps, id, NULL), -ENOENT);
}

static void one_that_is_started_elsewhere_cannot_be_started(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];

    assert_int_equal(put_json(f, "{\"name\":\"demo\"}", id), 0);
    assert_int_equal(app_start(f->apps, id, &f->e), -EINVAL);
    assert_string_equal(f->e.code, "NOT_LAUNCHABLE");
    assert_int_equal(state_of(f, id).status, APP_STOPPED);
    assert_int_equal(app_check(f->apps, id, NULL), 0);
}

static void the_enabled_ones_start_with_the_service(void **state)
{
    struct fixture *f = *state;
    char on[UUID_SIZE], off[UUID_SIZE], broken[UUID_SIZE];

    put(f, "on", "exec sleep 100", ",\"enabled\":true", on);
    put(f, "off", "exec sleep 100", "", off);
    assert_int_equal(
        put_json(f, "{\"name\":\"broken\",\"enabled\":true,\"config\":{\"command\":\"no-such-program\"}}", broken), 0);
    assert_int_equal(apps_start_enabled(f->apps, NULL), 0);
    assert_int_equal(state_of(f, on).status, APP_RUNNING);
    assert_int_equal(state_of(f, off).status, APP_STOPPED);
    assert_int_equal(state_of(f, broken).status, APP_ERROR);
}

static void two_apps_have_two_ports(void **state)
{
    struct fixture *f = *state;
    char one[UUID_SIZE], two[UUID_SIZE];

    put(f, "one", "exec sleep 100", "", one);
    put(f, "two", "exec sleep 100", "", two);
    start(f, one);
    start(f, two);
    assert_true(state_of(f, one).port != state_of(f, two).port);
}

/* --- grants and removal --- */

static bool is_granted(struct fixture *f, const char *app_id)
{
    struct grant_row *rows;
    size_t n = 0;

    assert_int_equal(store_grants_list(f->store, f->place->arena, app_id, &rows, &n, NULL), 0);
    return n > 0;
}

struct grant_wait {
    struct fixture *f;
    const char *app_id;
};

static bool grant_is_gone(void *arg)
{
    struct grant_wait *w = arg;

    return !is_granted(w->f, w->app_id);
}

static void grant_until_stop(struct fixture *f, const char *app_id)
{
    const struct consent_decision d = {
        .app_id = app_id,
        .permission = "llm.chat",
        .is_allowed = true,
        .scope = CONSENT_UNTIL_STOP,
        .actor = "test",
    };

    assert_int_equal(consent_decide(f->identity, &d, NULL), 0);
    assert_true(is_granted(f, app_id));
}

static void grants_until_the_app_stops_end_with_it(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];

    put(f, "demo", "exec sleep 100", "", id);
    start(f, id);
    grant_until_stop(f, id);
    assert_int_equal(app_stop(f->apps, id, NULL), 0);
    assert_false(is_granted(f, id));
}

static void they_end_too_when_it_ends_by_itself(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];

    put(f, "demo", "while [ ! -e go ]; do sleep 0.01; done", "", id);
    start(f, id);
    grant_until_stop(f, id);
    assert_int_equal(file_write(arena_printf(f->place->arena, "%s/local-apps/%s/go", f->place->dir, id), SLICE_LIT("x"),
                                0600, NULL),
                     0);
    assert_true(wait_until(grant_is_gone, &(struct grant_wait){ f, id }));
}

static void a_removed_one_is_ended_and_forgotten(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];
    struct app_config c;
    int held;

    put(f, "demo", "exec sleep 100", ",\"permissions\":[\"llm.chat\"]", id);
    start(f, id);
    held = process_hold(state_of(f, id).pid);
    assert_int_equal(app_remove(f->apps, id, false, "test", NULL), 0);
    assert_false(process_lives(held));
    close(held);
    assert_int_equal(app_find(f->apps, id, f->place->arena, &c, NULL), -ENOENT);
    assert_int_equal(n_pending(f), 0);
    assert_int_equal(access(arena_printf(f->place->arena, "%s/local-apps/%s", f->place->dir, id), F_OK), 0);
    assert_null(app_log(f->apps, id));
}

static void its_data_goes_only_when_asked(void **state)
{
    struct fixture *f = *state;
    char id[UUID_SIZE];

    put(f, "demo", "exec sleep 100", "", id);
    start(f, id);
    assert_int_equal(app_remove(f->apps, "demo", true, "test", NULL), 0);
    assert_int_equal(access(arena_printf(f->place->arena, "%s/local-apps/%s", f->place->dir, id), F_OK), -1);
}

/* --- ports --- */

static bool none_is_taken(void *arg, uint16_t port)
{
    return false;
}

static bool is_that_port(void *arg, uint16_t port)
{
    return port == *(uint16_t *)arg;
}

static void a_port_that_is_bound_is_not_given(void **state)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    uint16_t bound, given = 0;
    struct err e = { 0 };

    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    bound = ntohs(at.sin_port);
    assert_int_equal(port_find(bound, bound, 0, none_is_taken, NULL, &given, &e), -EADDRINUSE);
    assert_string_equal(e.code, "NO_FREE_PORT");
    close(fd);
    assert_int_equal(port_find(bound, bound, 0, none_is_taken, NULL, &given, &e), 0);
    assert_int_equal(given, bound);
    assert_int_equal(port_find(bound, bound, 0, is_that_port, &bound, &given, &e), -EADDRINUSE);
}

#define LIVE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(one_that_is_registered_is_found_by_id_and_by_name),
        LIVE(the_same_name_replaces_and_keeps_the_id),
        LIVE(a_given_id_is_kept_and_may_be_renamed),
        LIVE(another_id_with_a_taken_name_is_refused),
        LIVE(a_wider_manifest_asks_for_what_is_new),
        LIVE(it_runs_with_its_identity_in_its_own_folder),
        LIVE(a_second_start_changes_nothing),
        LIVE(a_stop_waits_for_the_end),
        LIVE(the_log_goes_on_after_a_restart),
        LIVE(one_that_ends_well_is_stopped_not_restarted),
        LIVE(a_crash_starts_it_again),
        LIVE(too_many_crashes_are_an_error_that_says_why),
        LIVE(a_stop_during_the_pause_before_a_restart_holds),
        LIVE(a_missing_program_is_an_error_that_names_it),
        LIVE(one_that_is_started_elsewhere_cannot_be_started),
        LIVE(the_enabled_ones_start_with_the_service),
        LIVE(two_apps_have_two_ports),
        LIVE(grants_until_the_app_stops_end_with_it),
        LIVE(they_end_too_when_it_ends_by_itself),
        LIVE(a_removed_one_is_ended_and_forgotten),
        LIVE(its_data_goes_only_when_asked),
        cmocka_unit_test(a_port_that_is_bound_is_not_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
