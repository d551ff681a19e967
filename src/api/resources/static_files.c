/* Static files, for everyone who reaches the service: the parts of its own pages, and a web interface in a folder. */
#include "api/api.h"
#include "api/assets/assets.h"
#include "api/page.h"
#include "api/routes.h"
#include "settings/settings.h"

static int send_large(struct request *req, struct response *res, struct http_file *file, struct err *e)
{
    struct api *api = req->api;
    bool is_head = req->exchange->request.is_head;
    struct http_stream *stream;

    if (!api->short_pool)
        return err_set(e, -ENOTSUP, "NOT_SERVING", "Large files are sent by a running service only.");
    stream = deferred_stream(request_defer(req, res), file->type);
    http_file_stream(file, stream, is_head, api->loop, api->short_pool);
    return 0;
}

static int send_file(struct request *req, struct response *res, const struct http_files *set, const char *policy,
                     struct err *e)
{
    struct http_file file;
    int r = http_files_find(set, req->exchange, req->params[0], &file, e);

    if (r < 0)
        return r;
    (void)!response_start_raw(res, file.type);
    r = http_file_answer(&file, req->exchange, e);
    if (r >= 0)
        page_add_headers(req->exchange, policy);
    if (r > 0)
        r = send_large(req, res, &file, e);
    http_file_clear(&file);
    return r;
}

static int send_asset(struct request *req, struct response *res, struct err *e)
{
    static const struct http_files assets = { .embedded = api_assets };

    return send_file(req, res, &assets, "default-src 'none'; frame-ancestors 'none'", e);
}

/* The folder is read at each request: a new build of the interface shows at once. */
static int send_ui(struct request *req, struct response *res, struct err *e)
{
    static const char policy[] =
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
        "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-src 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'";
    const struct http_files ui = { .folder = settings_string(req->api->settings, req->arena, SETTING_HTTP_UI_FOLDER),
                                   .is_app = true,
                                   .immutable = "assets/" };

    if (!*ui.folder)
        return err_set(e, -ENOENT, "NOT_FOUND",
                       "There is no web interface: the setting http.ui_folder names its folder.");
    return send_file(req, res, &ui, policy, e);
}

const struct route static_file_routes[] = {
    { .method = HTTP_GET,
      .path = "/assets/{path*}",
      .permission = PERM_PUBLIC,
      .answer_type = "*/*",
      .handler = send_asset,
      .summary = "Styles and scripts of the service's own pages",
      .tag = "Static files" },
    { .method = HTTP_GET,
      .path = "/ui/{path*}",
      .permission = PERM_PUBLIC,
      .kind = ROUTE_RELAY,
      .answer_type = "*/*",
      .handler = send_ui,
      .summary = "The web interface in the folder of the setting http.ui_folder; unknown paths give its index.html",
      .tag = "Static files" },
    ROUTE_END,
};
