#include "api/resources/backend_lacks.h"

#include "apps/apps.h"
#include "backend/custom/custom.h"

const struct field backend_lack_shape[] = {
    SHAPE_STRING("what"),
    SHAPE_STRING("sql", .help = "makes it"),
    FIELD_END,
};

void backend_lacks_write(struct json_writer *w, const struct backend_lacks *lacks)
{
    for (size_t i = 0; i < lacks->n; i++) {
        json_begin_object(w);
        json_add_string(w, "what", lacks->items[i].what);
        json_add_string(w, "sql", lacks->items[i].remedy);
        json_end(w);
    }
}

int backend_lacks_of_table(struct request *req, struct json_writer *w, const char *table, struct err *e)
{
    struct backend_lacks lacks = { 0 };
    int r = custom_check(req->api->backend, table, req->arena, &lacks, e);

    if (r == 0)
        backend_lacks_write(w, &lacks);
    return r;
}

struct walk {
    struct request *req;
    struct json_writer *w;
};

static int take_app(void *arg, const struct app_config *config, struct err *e)
{
    const struct walk *walk = arg;
    int r = 0;

    for (size_t i = 0; r == 0 && app_config_is_custom(config) && i < config->backend.tables.n; i++)
        r = backend_lacks_of_table(walk->req, walk->w, config->backend.tables.items[i], e);
    return r;
}

int backend_lacks_of_apps(struct request *req, struct json_writer *w, struct err *e)
{
    struct walk walk = { req, w };

    return app_each(req->api->apps, req->arena, take_app, &walk, e);
}

/* --- tables with work --- */

struct gathering {
    const struct request *req;
    struct backend_setup *setup;
    const char **names;
    const char *activities; /* always looked at */
};

static bool is_noted(const struct gathering *g, const char *name)
{
    const struct backend_setup *setup = g->setup;

    if (strcmp(name, g->activities) == 0)
        return true;
    for (size_t i = 0; i < setup->n_tables; i++)
        if (strcmp(setup->tables[i], name) == 0)
            return true;
    return false;
}

static int note_tables(void *arg, const struct app_config *config, struct err *e)
{
    const struct gathering *g = arg;
    int r = 0;

    if (!config->backend.is_enabled || app_config_is_custom(config))
        return 0;
    for (size_t i = 0; r == 0 && i < config->backend.tables.n; i++) {
        char *name = NULL;

        r = backend_table_name(g->req->arena, config->backend.tables.items[i], &name, e);
        if (r == 0 && g->setup->n_tables < LIMIT_LIST && !is_noted(g, name))
            g->names[g->setup->n_tables++] = name;
    }
    return r;
}

int backend_tables_of_apps(const struct request *req, struct backend_setup *setup, struct err *e)
{
    struct gathering g = { req, setup, arena_array(req->arena, LIMIT_LIST, sizeof(*g.names)),
                           arena_printf(req->arena, "%s_activities", req->api->backend->abbr) };

    setup->tables = g.names;
    return app_each(req->api->apps, req->arena, note_tables, &g, e);
}
