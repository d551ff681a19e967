#include "backend/backend_providers.h"
#include "backend/embedded/embedded_open.h"
#include "backend/embedded/embedded_schema.h"
#include "backend/hosted/hosted_place.h"
#include "backend/hosted/hosted_setup.h"
#include "backend/postgres/postgres_place.h"

static struct backend_file file_of(struct settings *settings, enum setting_id where, const char *data_dir,
                                   const char *name, struct arena *a)
{
    const char *named = settings_string(settings, a, where);

    return *named ? (struct backend_file){ named, true }
                  : (struct backend_file){ arena_printf(a, "%s/%s", data_dir, name), false };
}

#define EMBEDDED_FILE "backend.db"

/* Also where the settings name another provider (service/open_backend.c). */
static int open_embedded(const struct backend_place *place, struct arena *a, struct backend **ret, struct err *e)
{
    const struct backend_embedded_config c = {
        .path = file_of(place->settings, SETTING_BACKEND_FILE, place->data_dir, EMBEDDED_FILE, a).path,
        .abbr = settings_string(place->settings, a, SETTING_IDENTITY_ABBR),
        .instance = place->instance,
        .poll_ms = (int)settings_int(place->settings, SETTING_BACKEND_POLL_MS),
    };

    int r = backend_embedded_check_own(c.path, place->data_dir, e);

    return r < 0 ? r : backend_embedded_open(&c, ret, e);
}

/* The names stand in settings/rules.c too, which may not know this folder; a test compares them. */
const struct backend_provider backend_providers[] = {
    { .name = "embedded",
      .where = SETTING_BACKEND_FILE,
      .file = EMBEDDED_FILE,
      .schema_version = EMBEDDED_SCHEMA_VERSION,
      .open = open_embedded,
      .check = backend_embedded_check },
    { .name = "postgres",
      .where = SETTING_BACKEND_URL,
      .events_where = SETTING_BACKEND_EVENTS_URL,
      .elsewhere = "in the PostgreSQL database that backend.url names",
      .is_remote = true,
      .open = postgres_place_open,
      .check = backend_postgres_check,
      .setup_text = postgres_place_setup_text,
      .setup = postgres_place_setup,
      .lacks = postgres_place_lacks },
    { .name = "hosted",
      .where = SETTING_BACKEND_PROJECT,
      .elsewhere = "in the project of the hosted service that backend.project names",
      .is_remote = true,
      .may_lose_events = true,
      .open = hosted_place_open,
      .check = backend_hosted_check,
      .setup_text = hosted_setup_text,
      .setup = hosted_setup_run,
      .lacks = hosted_setup_lacks },
    { .name = NULL },
};

const struct backend_provider *backend_provider_find(const char *name)
{
    for (const struct backend_provider *p = backend_providers; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

const struct backend_provider *backend_provider_of(struct settings *settings)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return backend_provider_find(settings_string(settings, a, SETTING_BACKEND_KIND));
}

const struct backend_provider *backend_provider_to_set_up(struct settings *settings)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct backend_provider *p = backend_provider_of(settings);

    if (p && p->setup)
        return p;
    return *settings_show(settings, a, SETTING_BACKEND_PROJECT) ? &hosted_setup_provider : NULL;
}

int backend_provider_open(const struct backend_place *place, struct arena *a, struct backend **ret, struct err *e)
{
    const struct backend_provider *p = backend_provider_of(place->settings);

    return p ? p->open(place, a, ret, e) : err_set(e, -EINVAL, "BAD_SETTING", "backend.kind names no provider");
}

int backend_provider_check(enum setting_id setting, const char *value, const char *data_dir, struct err *e)
{
    for (const struct backend_provider *p = backend_providers; *value && p->name; p++)
        if ((p->where == setting || (p->events_where && p->events_where == setting)) && p->check)
            return p->check(value, data_dir, e);
    return 0;
}

struct backend_file backend_provider_file(struct settings *settings, const char *data_dir, struct arena *a)
{
    const struct backend_provider *p = backend_provider_of(settings);

    return p && p->file ? file_of(settings, p->where, data_dir, p->file, a) : (struct backend_file){ NULL, false };
}
