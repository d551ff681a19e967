#include "backend/postgres/postgres_place.h"
#include "backend/backend_password.h"
#include "backend/postgres/postgres_session.h"

static enum postgres_events_mode events_of(const struct backend_place *place, struct arena *a)
{
    return postgres_events_mode_of(settings_string(place->settings, a, SETTING_BACKEND_EVENTS));
}

/* *ret lives in the arena. */
static int find(const struct backend_place *place, struct arena *a, struct postgres_place *ret, struct err *e)
{
    const char *password = NULL;
    const char *events_url = settings_string(place->settings, a, SETTING_BACKEND_EVENTS_URL);
    int r = backend_password_read(place->data_dir, a, &password, e);

    *ret = (struct postgres_place){ .url = settings_string(place->settings, a, SETTING_BACKEND_URL),
                                    .events_url = *events_url ? events_url : NULL,
                                    .password = password,
                                    .n_connections = settings_int(place->settings, SETTING_BACKEND_CONNECTIONS) };
    if (r == 0)
        r = backend_postgres_check(ret->url, place->data_dir, e);
    return r < 0 || !ret->events_url ? r : backend_postgres_check(ret->events_url, place->data_dir, e);
}

static struct postgres_schema schema_of(const struct backend_place *place, const struct backend_setup *setup,
                                        struct arena *a)
{
    return (struct postgres_schema){ .abbr = settings_string(place->settings, a, SETTING_IDENTITY_ABBR),
                                     .tables = setup->tables,
                                     .n_tables = setup->n_tables,
                                     .events = events_of(place, a),
                                     .role = setup->role };
}

int postgres_place_open(const struct backend_place *place, struct arena *a, struct backend **ret, struct err *e)
{
    struct postgres_place found;
    struct backend_postgres_config c;
    int r = find(place, a, &found, e);

    if (r < 0)
        return r;
    c = (struct backend_postgres_config){ .url = found.url,
                                          .events_url = found.events_url,
                                          .password = found.password,
                                          .abbr = settings_string(place->settings, a, SETTING_IDENTITY_ABBR),
                                          .events = events_of(place, a),
                                          .n_connections = found.n_connections,
                                          .call_ms = settings_ms(place->settings, SETTING_BACKEND_CALL_S) };
    return backend_postgres_open(&c, ret, e);
}

char *postgres_place_setup_text(const struct backend_place *place, const struct backend_setup *setup, struct arena *a)
{
    const struct postgres_schema s = schema_of(place, setup, a);

    return postgres_schema_sql(a, &s);
}

int postgres_place_setup(const struct backend_place *place, const struct backend_setup *setup, struct arena *a,
                         struct err *e)
{
    const struct postgres_schema s = schema_of(place, setup, a);
    struct postgres_place found;
    int r = find(place, a, &found, e);

    return r < 0 ? r : postgres_schema_apply(&found, &s, e);
}

int postgres_place_lacks(const struct backend_place *place, const struct backend_setup *setup, struct arena *a,
                         struct backend_lacks *ret, struct err *e)
{
    const struct postgres_schema s = schema_of(place, setup, a);
    struct postgres_missings missings = { 0 };
    struct postgres_place found;
    int r = find(place, a, &found, e);

    if (r == 0)
        r = postgres_schema_check(&found, &s, a, &missings, e);
    if (r == 0)
        r = postgres_session_lacks(&found, a, &missings, e);
    if (r < 0)
        return r;
    *ret = (struct backend_lacks){ arena_array(a, missings.n + 1, sizeof(struct backend_lack)), missings.n };
    for (size_t i = 0; i < missings.n; i++)
        ret->items[i] = (struct backend_lack){ missings.items[i].what, missings.items[i].sql };
    return 0;
}
