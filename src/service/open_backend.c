/* The backend of the service, and what happens to stored settings that choose one which cannot be opened. */
#include "backend/backend_providers.h"
#include "service/private.h"

static struct backend_place place_of(const struct service *s)
{
    return (struct backend_place){ .settings = s->settings, .data_dir = s->config.data_dir, .instance = s->instance };
}

static int try_backend(struct service *s, struct err *e)
{
    const struct backend_place place = place_of(s);

    return backend_provider_open(&place, s->arena, &s->backend, e);
}

/* A command that repairs touches no rows: where file, environment or flags choose a place of another machine that
 * cannot be opened, this machine's own takes its place. */
static int open_own(struct service *s, const struct err *why, struct err *e)
{
    const struct backend_place place = place_of(s);

    settings_note_fault(s->settings, why->text);
    return backend_providers[0].open(&place, s->arena, &s->backend, e);
}

/* The stored setting by which the backend was chosen; NULL: file, environment or flags did. */
static const char *stored_choice(const struct service *s, const struct backend_provider *provider)
{
    if (provider && settings_origin(s->settings, provider->where) == ORIGIN_DATABASE)
        return settings_rules[provider->where].key;
    return settings_origin(s->settings, SETTING_BACKEND_KIND) == ORIGIN_DATABASE
               ? settings_rules[SETTING_BACKEND_KIND].key
               : NULL;
}

/* Stored settings that choose the backend, and cannot be used, must not prevent changing them. */
int service_open_backend(struct service *s, struct err *e)
{
    const struct backend_provider *provider = backend_provider_of(s->settings);
    const char *key = stored_choice(s, provider);
    struct err why = { 0 };
    int r = try_backend(s, &why);

    if (r == 0)
        return 0;
    if (!key && (!s->config.is_repair || !provider || !provider->is_remote))
        return err_set(e, r, why.code, "%s", why.text);
    if (!key)
        return open_own(s, &why, e);
    if (!s->config.is_repair)
        return err_set(e, r, why.code,
                       "%s; the setting %s is kept in the database: `hearth settings unset %s` removes it", why.text,
                       key, key);
    if (settings_origin(s->settings, SETTING_BACKEND_KIND) == ORIGIN_DATABASE)
        settings_drop_stored(s->settings, SETTING_BACKEND_KIND, why.text);
    if (provider && settings_origin(s->settings, provider->where) == ORIGIN_DATABASE)
        settings_drop_stored(s->settings, provider->where, why.text);
    return try_backend(s, e);
}
