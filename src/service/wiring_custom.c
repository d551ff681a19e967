/* Custom Mode: which tables apps own, and where the apps answer. */
#include "service/private.h"

#include "backend/backend_providers.h"
#include "backend/custom/custom.h"
#include "base/limits.h"
#include "base/log.h"
#include "identity/hook_secret.h"

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
        .calls = { .place = find_place },
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
