/* Starting and stopping one app. */
#include "apps/private.h"

#include "apps/launch.h"
#include "apps/ports.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/log.h"
#include "identity/consent.h"
#include "identity/hook_secret.h"
#include "identity/launches.h"
#include "os/files.h"
#include "os/program.h"

#include <unistd.h>

/* --- launching --- */

struct port_choice {
    struct apps *apps;
    unsigned char fixed[65536 / 8]; /* one bit per port, set when an app's configuration fixes that port */
};

static int note_fixed(void *arg, const struct app_config *c, struct err *e)
{
    struct port_choice *choice = arg;

    choice->fixed[c->port / 8] |= (unsigned char)(1 << c->port % 8);
    return 0;
}

/* Called with the mutex held. The running app that has this port; NULL: none. */
static const struct app_slot *holder_of(const struct apps *apps, uint16_t port)
{
    const struct app_slot *slot = apps->slots;

    while (slot && (slot->port != port || slot_is_idle(slot)))
        slot = slot->next;
    return slot;
}

static bool is_port_taken(void *arg, uint16_t port)
{
    const struct port_choice *choice = arg;

    return (choice->fixed[port / 8] & 1 << port % 8) || holder_of(choice->apps, port);
}

/* Each start searches from the port after the last one, so that a port just freed is not immediately reused. */
static int choose_port(struct app_slot *slot, struct arena *a, uint16_t *ret, struct err *e)
{
    struct apps *apps = slot->apps;
    struct port_choice *choice = ARENA_NEW(a, struct port_choice);
    int64_t min = settings_int(apps->config.settings, SETTING_APPS_PORT_MIN);
    int64_t max = settings_int(apps->config.settings, SETTING_APPS_PORT_MAX);
    int r;

    choice->apps = apps;
    (void)!app_each(apps, a, note_fixed, choice, NULL); /* a configuration that cannot be read fixes nothing */
    pthread_mutex_lock(&apps->mutex);
    slot->port = 0;
    r = port_find(min, max, apps->next_port, is_port_taken, choice, ret, e);
    if (r == 0) {
        slot->port = *ret;
        apps->next_port = *ret + 1;
    }
    pthread_mutex_unlock(&apps->mutex);
    return r;
}

/* The port that the configuration fixes, or an error that names the program or app that uses the port. */
static int take_fixed_port(struct app_slot *slot, const struct app_config *c, struct arena *a, uint16_t *ret,
                           struct err *e)
{
    struct apps *apps = slot->apps;
    uint16_t port = (uint16_t)c->port;
    const struct app_slot *holder;
    char other[UUID_SIZE] = "";
    struct app_config owner;

    pthread_mutex_lock(&apps->mutex);
    slot->port = 0;
    holder = holder_of(apps, port);
    if (holder)
        memcpy(other, holder->app_id, sizeof(other));
    else
        slot->port = *ret = port;
    pthread_mutex_unlock(&apps->mutex);
    if (*other)
        return err_set(
            e, -EADDRINUSE, "PORT_IN_USE",
            "The port %u, which config.port fixes, is used by the app %s, which runs: stop it, or change the port of one.",
            port, app_find(apps, other, a, &owner, NULL) == 0 ? owner.name : other);
    if (!port_is_free(port))
        return err_set(
            e, -EADDRINUSE, "PORT_IN_USE",
            "The port %u, which config.port fixes, is used by another program: end it, or change config.port.", port);
    return 0;
}

static struct launch_place place_of(struct apps *apps, struct arena *a, const char *app_id)
{
    return (struct launch_place){
        .abbr = settings_string(apps->config.settings, a, SETTING_IDENTITY_ABBR),
        .base_url = apps->config.base_url,
        .data_dir = arena_printf(a, "%s/local-apps/%s", apps->config.data_dir, app_id),
    };
}

int app_check(struct apps *apps, const char *app_id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct launch_place place = place_of(apps, a, app_id);
    struct launch_plan plan;
    struct app_config c;
    char *path;
    int r = app_find(apps, app_id, a, &c, e);

    if (r < 0 || !app_config_is_launchable(&c))
        return r;
    r = launch_plan_make(a, &c, &place, &plan, e);
    if (r < 0)
        return r;
    if (c.working_dir && *c.working_dir && access(plan.working_dir, X_OK) < 0)
        return err_set(e, -errno, "BAD_WORKING_DIR", "The working folder %.300s cannot be entered: %s.",
                       plan.working_dir, strerror(errno));
    return program_find(a, plan.command, plan.working_dir, launch_search_path(&plan), &path, e);
}

static int make_plan(struct app_slot *slot, struct arena *a, const struct app_config *c, struct launch_plan *plan,
                     struct err *e)
{
    struct launch_place place = place_of(slot->apps, a, slot->app_id);
    char *secret = arena_alloc(a, LAUNCH_SECRET_SIZE), *hook_secret = arena_alloc(a, HOOK_SECRET_SIZE);
    int r = c->port ? take_fixed_port(slot, c, a, &place.port, e) : choose_port(slot, a, &place.port, e);

    launches_begin(slot->apps->config.identity, &(struct launch_what){ .app_id = slot->app_id }, secret, &slot->launch);
    place.secret = secret;
    identity_hook_secret(slot->apps->config.identity, slot->app_id, hook_secret);
    place.hook_secret = hook_secret;
    if (r == 0)
        r = dir_make(place.data_dir, e);
    return r < 0 ? r : launch_plan_make(a, c, &place, plan, e);
}

static int charge(const char *app_id, struct err *e)
{
    struct budget_holder *payer = budget_holder_get(HOLDER_APP, app_id);
    int r = budget_take(payer, BUDGET_CHILDREN, 1, e);

    budget_holder_unref(payer);
    return r;
}

static void discharge(const char *app_id)
{
    struct budget_holder *payer = budget_holder_get(HOLDER_APP, app_id);

    budget_give(payer, BUDGET_CHILDREN, 1);
    budget_holder_unref(payer);
}

/* Loop thread. May be called before child_start() has returned; then launch_ended() handles the end. */
static void app_exited(struct child *c, const struct child_exit *how, void *arg)
{
    struct app_slot *slot = arg;
    struct apps *apps = slot->apps;
    char app_id[UUID_SIZE];

    discharge(slot->app_id);
    pthread_mutex_lock(&apps->mutex);
    if (!slot->child) {
        slot->has_ended_early = true;
        slot->early = *how;
        pthread_mutex_unlock(&apps->mutex);
        return;
    }
    memcpy(app_id, slot->app_id, sizeof(app_id));
    slot_end(slot, how);
    pthread_mutex_unlock(&apps->mutex);
    chores_schedule(apps);
    apps_notify(apps, app_id);
}

static int spawn(struct app_slot *slot, struct child **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct apps_config *config = &slot->apps->config;
    struct launch_plan plan;
    struct app_config c;
    struct err requested = { 0 };
    int r = app_find(slot->apps, slot->app_id, a, &c, e);

    if (r == 0)
        r = make_plan(slot, a, &c, &plan, e);
    if (r < 0)
        return r;
    if (consent_app_declares(config->identity, slot->app_id, c.permissions.items, c.permissions.n, &requested) < 0)
        log_debug("apps", NULL, "the permissions of %s are not asked for: %s", LOG_Q(c.name), requested.text);
    r = charge(slot->app_id, e);
    if (r < 0)
        return r;
    r = child_start(config->supervisor,
                    &(struct child_spec){
                        .label = arena_printf(a, "app %s", c.name),
                        .command = plan.command,
                        .args = plan.args,
                        .env = plan.env,
                        .working_dir = plan.working_dir,
                        .sandbox = &c.sandbox,
                        .own_dir = place_of(slot->apps, a, slot->app_id).data_dir,
                        .tag = slot->launch,
                        .log = slot->log,
                        .on_exit = app_exited,
                        .arg = slot,
                    },
                    ret, e);
    if (r < 0)
        discharge(slot->app_id);
    return r;
}

/* Called with the mutex held: sets the slot to the result of the launch. */
static void launch_ended(struct app_slot *slot, struct child *child, const char *failure)
{
    if (!child) {
        launches_end(slot->apps->config.identity, slot->launch);
        slot->launch = 0;
        child_log_note(slot->log, "%s", failure);
        slot->is_wanted = false;
        slot_set(slot, APP_ERROR, failure);
        return;
    }
    slot->child = child;
    launches_started(slot->apps->config.identity, slot->launch, child_pid(child));
    slot->started_at_ms = clock_wall_ms();
    if (slot->has_ended_early) {
        slot_end(slot, &slot->early);
    } else if (!slot->is_wanted) {
        slot_set(slot, APP_STOPPING, NULL);
        child_stop(child);
    } else {
        slot_set(slot, APP_RUNNING, NULL);
    }
}

int app_launch(struct app_slot *slot, struct err *e)
{
    struct apps *apps = slot->apps;
    struct child *child = NULL;
    char app_id[UUID_SIZE];
    struct err why = { 0 };
    int r;

    memcpy(app_id, slot->app_id, sizeof(app_id));
    slot->has_ended_early = false;
    r = spawn(slot, &child, &why);
    pthread_mutex_lock(&apps->mutex);
    launch_ended(slot, child, why.text);
    pthread_mutex_unlock(&apps->mutex);
    chores_schedule(apps);
    apps_notify(apps, app_id);
    if (r < 0 && e)
        *e = why;
    return r;
}

/* --- starting --- */

/* Called with the mutex held. 1: the caller must launch the app; 0: it runs or is being started. */
static int begin_start(struct apps *apps, struct app_slot *slot, struct err *e)
{
    int64_t deadline_ms = clock_mono_ms() + APP_WAIT_MS;

    while (slot->status == APP_STOPPING)
        if (slots_wait(apps, deadline_ms) == -ETIMEDOUT)
            return err_set(e, -ETIMEDOUT, "APP_BUSY", "The app is still stopping; try again later.");
    if (apps->is_closing)
        return err_set(e, -EPIPE, "SHUTTING_DOWN", "The service is ending and starts no more programs.");
    if (slot->is_removing)
        return err_set(e, -ENOENT, "APP_NOT_FOUND", "The app is being removed.");
    if (slot->status == APP_RUNNING || (slot->status == APP_STARTING && !slot->restart_at_ms))
        return 0;
    slot->is_wanted = true;
    slot->restart_at_ms = 0;
    slot->n_crashes = 0;
    slot->n_restarts = 0;
    slot_set(slot, APP_STARTING, NULL);
    apps->n_launching++;
    return 1;
}

static int check_launchable(struct apps *apps, const char *app_id, struct arena *a, struct app_config *ret,
                            struct err *e)
{
    int r = app_find(apps, app_id, a, ret, e);

    if (r < 0)
        return r;
    if (!apps->config.pool)
        return err_set(e, -EAGAIN, "NOT_READY",
                       "No service runs that could start apps; start one with `hearth serve`.");
    if (!app_config_is_launchable(ret))
        return err_set(e, -EINVAL, "NOT_LAUNCHABLE",
                       "%s has neither app_type nor config.command: it is started by somebody else, not by Hearth.",
                       ret->display_name);
    return 0;
}

int app_start(struct apps *apps, const char *app_id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct app_slot *slot;
    struct app_config c;
    int r = check_launchable(apps, app_id, a, &c, e);

    if (r < 0)
        return r;
    pthread_mutex_lock(&apps->mutex);
    slot = slot_take(apps, c.app_id);
    slot->n_users++;
    r = begin_start(apps, slot, e);
    slot->n_users--;
    pthread_cond_broadcast(&apps->changed);
    pthread_mutex_unlock(&apps->mutex);
    if (r <= 0)
        return r;
    apps_notify(apps, c.app_id);
    r = app_launch(slot, e);
    pthread_mutex_lock(&apps->mutex);
    apps->n_launching--;
    pthread_cond_broadcast(&apps->changed);
    pthread_mutex_unlock(&apps->mutex);
    return r;
}

/* --- stopping --- */

/* Called with the mutex held. */
static int stop_slot(struct apps *apps, struct app_slot *slot, struct err *e)
{
    int64_t deadline_ms = clock_mono_ms() + APP_WAIT_MS;

    slot->is_wanted = false;
    if (slot->restart_at_ms || slot->status == APP_ERROR) {
        slot->restart_at_ms = 0;
        slot_set(slot, APP_STOPPED, NULL);
    } else if (slot->status == APP_RUNNING) {
        slot_set(slot, APP_STOPPING, NULL);
        child_stop(slot->child);
    }
    while (!slot_is_idle(slot))
        if (slots_wait(apps, deadline_ms) == -ETIMEDOUT)
            return err_set(e, -ETIMEDOUT, "APP_BUSY", "The app has not ended within %d s.", APP_WAIT_MS / 1000);
    return 0;
}

/* When it returns, the grants `until the app stops` have ended too. */
int app_stop(struct apps *apps, const char *app_id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct app_slot *slot;
    struct app_config c;
    int r = app_find(apps, app_id, a, &c, e);

    if (r < 0)
        return r;
    pthread_mutex_lock(&apps->mutex);
    slot = slot_find(apps, c.app_id);
    if (slot) {
        slot->n_users++;
        r = stop_slot(apps, slot, e);
        slot->n_users--;
        pthread_cond_broadcast(&apps->changed);
    }
    pthread_mutex_unlock(&apps->mutex);
    if (r < 0)
        return r;
    apps_notify(apps, c.app_id);
    return consent_app_stopped(apps->config.identity, c.app_id, e);
}

int app_restart(struct apps *apps, const char *app_id, struct err *e)
{
    int r = app_stop(apps, app_id, e);

    return r < 0 ? r : app_start(apps, app_id, e);
}
