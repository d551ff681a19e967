/* Custom Mode: which tables apps own, and where the apps answer. */
#include "service/private.h"

#include "backend/backend_providers.h"
#include "backend/custom/custom.h"
#include "base/limits.h"
#include "base/log.h"
#include "identity/hook_secret.h"
#include "store/tables/calendar.h"

#include <stdlib.h>

/* An app without a home_url answers on the port that Hearth gave it. */
static const char *address_of(struct arena *a, const struct app_config *config, const struct app_state *state)
{
    const char *home = config->home_url;
    bool has_home = home && *home;

    if (app_config_is_launchable(config) && state->status != APP_RUNNING)
        return NULL;
    if (has_home)
        return app_home_url(a, config, state->port);
    return state->port ? arena_printf(a, "http://127.0.0.1:%u", state->port) : NULL;
}

static int find_place(void *service, const char *app_id, struct arena *a, struct custom_place *ret, struct err *e)
{
    struct service *s = service;
    char *secret = arena_alloc(a, HOOK_SECRET_SIZE);
    struct app_config config = { 0 };
    struct app_state state = { 0 };
    int r = app_find(s->apps, app_id, a, &config, e);

    if (r == 0)
        r = app_state(s->apps, app_id, a, &state, e);
    if (r < 0)
        return r;
    identity_hook_secret(s->identity, app_id, secret);
    *ret =
        (struct custom_place){ .app_id = config.app_id, .base_url = address_of(a, &config, &state), .secret = secret };
    return 0;
}

/* The calendar shows ends that their app has not accepted. Called on threads of the deliveries. */
static void note_delivery(void *service, const struct backend_lease *l, enum custom_delivery_state state,
                          const char *error)
{
    struct service *s = service;
    bool is_over = state == CUSTOM_DELIVERED && !error;
    const struct calendar_delivery d = { .table = l->table,
                                         .row_id = l->row_id,
                                         .status = is_over ? NULL : custom_delivery_state_name(state),
                                         .error = error };
    struct err e = { 0 };

    if (store_calendar_note_delivery(s->store, &d, &e) < 0)
        log_warn("service", NULL, "the calendar does not show the delivery of %s: %s", LOG_Q(l->row_id), LOG_Q(e.text));
}

int wire_custom(struct service *s, struct err *e)
{
    const struct custom_config c = {
        .inner = s->backend,
        .store = s->store,
        .settings = s->settings,
        .net = { .guard = s->guard,
                 .abbr = s->backend->abbr,
                 .is_leaving = &s->api.is_leaving,
                 .lock_ms = settings_ms(s->settings, SETTING_BACKEND_LOCK_S),
                 .webhook_ms = settings_ms(s->settings, SETTING_BACKEND_WEBHOOK_S) },
        .calls = { .place = find_place, .on_delivery = note_delivery },
        .arg = s,
    };
    struct backend *b = NULL;
    int r = custom_open(&c, &b, e);

    if (r < 0)
        return r;
    s->backend = s->custom = b;
    return 0;
}

/* The listeners of apps in Custom Mode name their tables and no others. */
void wire_custom_tables(struct service *s, const struct custom_table *tables, size_t n)
{
    custom_set_tables(s->custom, tables, n);
    atomic_store(&s->api.has_remote_rows, backend_provider_of(s->settings)->is_remote || n > 0);
}

static void log_lacks(struct service *s, const char *table)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_lacks lacks = { 0 };
    struct err e = { 0 };

    if (custom_check(s->custom, table, a, &lacks, &e) < 0)
        log_warn("service", NULL, "table %s of Custom Mode was not checked: %s", LOG_Q(table), LOG_Q(e.text));
    for (size_t i = 0; i < lacks.n; i++)
        log_warn("service", NULL, "missing for Custom Mode: %s; `hearth backend check` tells how to mend it",
                 LOG_Q(lacks.items[i].what));
}

static int check_app(void *service, const struct app_config *config, struct err *e)
{
    for (size_t i = 0; app_config_is_custom(config) && i < config->backend.tables.n; i++)
        log_lacks(service, config->backend.tables.items[i]);
    return 0;
}

struct back_job {
    struct service *service;
    char app_id[UUID_SIZE];
};

/* Of a worker: an app in Custom Mode that answers again is told at once what waits for it. */
static void send_waiting_ends(void *job)
{
    struct back_job *back = job;
    struct service *s = back->service;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct app_config config = { 0 };
    struct app_state state = { 0 };
    bool is_known = app_find(s->apps, back->app_id, a, &config, NULL) == 0 &&
                    app_state(s->apps, back->app_id, a, &state, NULL) == 0;

    if (is_known && app_config_is_custom(&config) &&
        (!app_config_is_launchable(&config) || state.status == APP_RUNNING))
        custom_deliveries_hasten(custom_backend_deliveries(s->custom), back->app_id);
    free(back);
}

void wire_custom_app_changed(struct service *s, const char *app_id)
{
    struct back_job *job;

    if (!s->custom || !s->short_pool || !custom_has_tables(s->custom))
        return;
    job = xcalloc(1, sizeof(*job));
    job->service = s;
    snprintf(job->app_id, sizeof(job->app_id), "%s", app_id);
    if (pool_submit(s->short_pool, send_waiting_ends, job) < 0)
        free(job); /* full or stopping: the ends are sent when their pause is over */
}

void wire_custom_start(struct service *s)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct err e = { 0 };

    if (custom_start(s->custom, &e) < 0)
        log_error("service", NULL, "ends of tasks do not reach apps in Custom Mode: %s", e.text);
    e = (struct err){ 0 };
    if (app_each(s->apps, a, check_app, s, &e) < 0)
        log_warn("service", NULL, "tables of Custom Mode were not checked: %s", e.text);
}
