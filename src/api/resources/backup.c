/* A backup while the service runs, for the local administrator. Restoring needs a stopped service: `hearth restore`. */
#include "backup/backup.h"

#include "api/api.h"
#include "api/routes.h"
#include "backend/backend_providers.h"
#include "base/limits.h"
#include "identity/audit.h"

struct backup_body {
    const char *path;
};

static const struct field backup_fields[] = {
    FIELD_STRING(struct backup_body, path, "path", FIELD_REQUIRED, .min = 1, .max = 4096,
                 .help = "absolute; must not exist yet"),
    FIELD_END,
};

static const struct field backup_answer[] = {
    SHAPE_STRING("path"),
    SHAPE_STRINGS("files", .help = "what is in it"),
    SHAPE_STRING("rows_elsewhere", .flags = FIELD_NULLABLE, .help = "where the rows are, when they are not in it"),
    FIELD_END,
};

static int make_backup(struct request *req, struct response *res, struct err *e)
{
    const struct backup_body *body = req->body;
    const struct api *api = req->api;
    const struct backup_source from = {
        .data_dir = api->data_dir,
        .backend_file = backend_provider_file(api->settings, api->data_dir, req->arena).path,
    };
    struct backup_files files = { 0 };
    int r;

    r = audit_append_values(api->identity, req->caller->actor, "backup", NULL, req->body_json, e);
    if (r == 0)
        r = backup_create(req->arena, &from, body->path, &files, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "path", body->path);
    json_add_strings(&res->json, "files", files.items, files.n);
    json_add_string(&res->json, "rows_elsewhere", backend_provider_of(api->settings)->elsewhere);
    return 0;
}

const struct route backup_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/backup",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      ROUTE_BODY(backup_fields, struct backup_body),
      .answer = backup_answer,
      .defines = true,
      .handler = make_backup,
      .summary = "Copy databases, settings file and keys into one archive",
      .tag = "System" },
    ROUTE_END,
};
