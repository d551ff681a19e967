/* Checks of apps in Custom Mode: their tables, their addresses, and the ends of tasks that they have not accepted. */
#include "api/resources/doctor.h"

#include "apps/apps.h"

#include "api/api.h"
#include "backend/backend_providers.h"
#include "backend/custom/custom.h"
#include "base/limits.h"

static bool report_lacks(struct checkup *c, const struct app_config *app, const char *table)
{
    struct backend_lacks lacks = { 0 };
    struct err why = { 0 };

    if (custom_check(c->api->backend, table, c->arena, &lacks, &why) < 0) {
        doctor_add(c, "custom mode", false,
                   arena_printf(c->arena, "%s: %s was not checked: %s", app->name, table, why.text), "see backend");
        return false;
    }
    for (size_t i = 0; i < lacks.n; i++)
        doctor_add(c, "custom mode", false, arena_printf(c->arena, "%s lacks %s", app->name, lacks.items[i].what),
                   "`hearth backend check` prints the SQL that mends it");
    return lacks.n == 0;
}

/* An app that Hearth starts gets a port then. */
static bool report_address(struct checkup *c, const struct app_config *app)
{
    bool has_address = app_config_is_launchable(app) || app->port || (app->home_url && *app->home_url);

    if (!has_address)
        doctor_add(c, "custom mode", false,
                   arena_printf(c->arena,
                                "%s has neither config.home_url nor config.port nor a command, so its lock "
                                "cannot be asked for",
                                app->name),
                   "add config.home_url and register the app again with `hearth app add FILE.json`");
    return has_address;
}

static bool report_ends(struct checkup *c, const struct app_config *app)
{
    struct custom_delivery_list dead = { 0 };
    struct err why = { 0 };
    int r = custom_delivery_all(custom_backend_deliveries(c->api->backend), app->app_id, CUSTOM_DEAD, LIMIT_LIST,
                                c->arena, &dead, &why);

    if (r == 0 && dead.n == 0)
        return true;
    doctor_add(c, "custom mode", false,
               r < 0 ? why.text
                     : arena_printf(c->arena, "%s has not accepted %zu end%s of tasks, last: %s", app->name, dead.n,
                                    dead.n == 1 ? "" : "s", dead.items[0].error ? dead.items[0].error : "no answer"),
               "`hearth backend deliveries` lists them, sends them again or drops them");
    return false;
}

static int check_app(void *arg, const struct app_config *app, struct err *e)
{
    struct checkup *c = arg;
    bool is_ok;

    if (!app_config_is_custom(app))
        return 0;
    is_ok = report_address(c, app);
    is_ok = report_ends(c, app) && is_ok;
    for (size_t i = 0; i < app->backend.tables.n; i++)
        is_ok = report_lacks(c, app, app->backend.tables.items[i]) && is_ok;
    if (is_ok)
        doctor_add(c, "custom mode", true,
                   arena_printf(c->arena, "%s: its tables have what they need, and no end of a task waits for a person",
                                app->name),
                   NULL);
    return 0;
}

void doctor_check_custom(struct checkup *c)
{
    struct err why = { 0 };

    if (app_each(c->api->apps, c->arena, check_app, c, &why) < 0)
        doctor_add(c, "custom mode", false, why.text, "see apps");
}
