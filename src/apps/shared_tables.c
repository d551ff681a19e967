/* Tables that two apps list. */
#include "apps/apps.h"

#include "backend/backend.h"

struct sharing {
    const struct app_config *config;
    const char *path; /* of the backend block, in the sender's spelling */
    struct arena *arena;
    struct err *e;
    unsigned n_found;
};

static bool has_table(const struct app_config *c, const char *name, struct arena *a)
{
    char *other = NULL;

    for (size_t i = 0; i < c->backend.tables.n; i++)
        if (backend_table_name(a, c->backend.tables.items[i], &other, NULL) == 0 && strcmp(other, name) == 0)
            return true;
    return false;
}

/* The app that the configuration replaces is found by id or by name. */
static bool is_itself(const struct app_config *c, const struct app_config *other)
{
    return strcmp(c->name, other->name) == 0 || (c->app_id && strcmp(c->app_id, other->app_id) == 0);
}

static int compare(void *arg, const struct app_config *other, struct err *e)
{
    struct sharing *s = arg;
    const struct app_config *c = s->config;
    char *name = NULL;

    if (is_itself(c, other) || !other->backend.is_enabled || !(app_config_is_custom(c) || app_config_is_custom(other)))
        return 0;
    for (size_t i = 0; i < c->backend.tables.n; i++) {
        if (backend_table_name(s->arena, c->backend.tables.items[i], &name, NULL) < 0 ||
            !has_table(other, name, s->arena))
            continue;
        err_add_field(s->e, arena_printf(s->arena, "%s.tables[%zu]", s->path, i),
                      "names the table %.130s of the app %.130s: a table of Custom Mode belongs to one app", name,
                      other->name);
        s->n_found++;
    }
    return 0;
}

int app_check_tables(struct apps *apps, const struct app_config *c, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct sharing s = { .config = c,
                         .path = c->has_supabase && !c->has_backend ? "config.supabase" : "config.backend",
                         .arena = a,
                         .e = e };
    int r;

    if (!c->name || !c->backend.is_enabled)
        return 0;
    r = app_each(apps, a, compare, &s, e);
    return r < 0 ? r : s.n_found ? -EINVAL : 0;
}
