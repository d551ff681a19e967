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
