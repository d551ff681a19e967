/* GET /: what a person sees who opens the service's address in a browser. Ollama's command line sends HEAD / first. */
#include "api/page.h"
#include "api/routes.h"

static const struct page home_page = {
    .title = "Running",
    .body =
        "<h1>Hearth is running</h1>\n<p>This is version " HEARTH_VERSION
        ". Programs use this address; a person uses the terminal:</p>\n<ul>\n"
        "<li><code>hearth status</code> shows models, apps and what waits for you.</li>\n"
        "<li><code>hearth provider presets</code> lists the providers of models; <code>hearth provider add ID</code> adds one (<code>stand-in</code>: without a model, it repeats what you say).</li>\n"
        "<li><code>hearth chat</code> asks a model.</li>\n"
        "<li><code>hearth app new NAME --lang python</code> writes an app, <code>hearth app add FILE.json</code> registers one.</li>\n"
        "<li><code>hearth open</code> signs this browser in.</li>\n</ul>\n"
        "<p><a href=\"/openapi.json\">/openapi.json</a> describes every route, <a href=\"/session\">/session</a> says whether this browser is signed in.</p>\n",
};

static int show_home(struct request *req, struct response *res, struct err *e)
{
    page_write(res, &home_page);
    return 0;
}

const struct route home_routes[] = {
    { .method = HTTP_GET,
      .path = "/",
      .permission = PERM_PUBLIC,
      .answer_type = "text/html",
      .handler = show_home,
      .summary = "A page that says what to do next",
      .tag = "System" },
    ROUTE_END,
};
