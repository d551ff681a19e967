/* hearth backend login, status, use: the account at the hosted service and its project. */
#include "base/limits.h"
#include "cli/key_input.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

#include <unistd.h>

static int post(struct cli *cli, const char *path, const char *name, const char *value, struct client_reply *ret,
                struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = path };
    struct json_writer w;
    struct buf body;

    buf_init(&body, KIB(4));
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_add_string(&w, name, value);
    json_end(&w);
    request.body = slice_of(buf_to_arena(&body, cli->arena));
    return cli_send(cli, &request, ret, e);
}

/* --- login --- */

/* A code is worth nothing without this side's key, so it may be seen. */
static int read_code(struct cli *cli, const char **ret, struct err *e)
{
    char line[LIMIT_NAME_CHARS + 2];

    out_print("Code: ");
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        return err_set(e, -EINVAL, "BAD_USE", "The code is read from standard input, and nothing came");
    if (!isatty(STDIN_FILENO))
        out_print("\n");
    *ret = cli_trimmed(cli->arena, slice_of(line));
    return 0;
}

static bool may_repeat(const struct err *e, int n_given)
{
    return n_given < LIMIT_HOSTED_LOGIN_TRIES &&
           (strcmp(e->code, "HOSTED_CODE_REFUSED") == 0 || strcmp(e->code, "VALIDATION_ERROR") == 0 ||
            strcmp(e->code, "UPSTREAM_TIMEOUT") == 0);
}

/* While the person is at the page, other commands may use the data folder. */
static int take_code(struct cli *cli, struct client_reply *ret, struct err *e)
{
    const char *code = NULL;
    int r = -EAGAIN;

    for (int n = 1; r == -EAGAIN; n++) {
        cli->client = client_close(cli->client);
        r = read_code(cli, &code, e);
        if (r < 0)
            return r;
        r = post(cli, "/api/backend/account/code", "code", code, ret, e);
        if (r < 0 && may_repeat(e, n)) {
            out_complain("hearth: %s\n", e->text);
            *e = (struct err){ 0 };
            r = -EAGAIN;
        }
    }
    return r;
}

static int log_in_by_page(struct cli *cli, struct client_reply *ret, struct err *e)
{
    const struct client_request request = { .method = HTTP_POST, .path = "/api/backend/account/login" };
    const char *url;
    int r = cli_send(cli, &request, ret, e);

    if (r < 0)
        return r;
    url = json_cstr(json_get(ret->json, "url"));
    out_print("Log in here; the page then shows a code of eight characters:\n");
    out_print("%s\n", url);
    if (!cli_has(cli, "--no-browser") && isatty(STDOUT_FILENO))
        open_in_browser(url);
    return take_code(cli, ret, e);
}

static int log_in_by_token(struct cli *cli, struct client_reply *ret, struct err *e)
{
    const char *token = NULL;
    int r =
        cli_read_secret(cli, "Personal token", "The token is read from standard input, and nothing came", &token, e);

    return r < 0 ? r : post(cli, "/api/backend/account/token", "token", token, ret, e);
}

int run_backend_login(struct cli *cli, struct err *e)
{
    struct client_reply reply = { 0 };
    struct json_value account;
    const char *email, *name;
    int r = cli_has(cli, "--token") ? log_in_by_token(cli, &reply, e) : log_in_by_page(cli, &reply, e);

    if (r < 0)
        return r;
    account = json_get(reply.json, "account");
    email = json_cstr(json_get(account, "email"));
    name = email ? email : json_cstr(json_get(account, "username"));
    out_print("Logged in%s%s. `hearth backend projects` lists the projects.\n", name ? " as " : "", name ? name : "");
    return 0;
}

/* --- status --- */

int run_backend_status(struct cli *cli, struct err *e)
{
    struct json_value account, project;
    struct client_reply reply;
    int r = cli_get(cli, "/api/backend/account", &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json) {
        cli_print_json(reply.json);
        return 0;
    }
    account = json_get(reply.json, "account");
    project = json_get(reply.json, "project");
    if (json_bool(json_get(account, "logged_in")))
        out_print("Logged in as %s since %s.\n", out_shown(cli->arena, json_string(json_get(account, "email"))),
                  out_shown(cli->arena, json_string(json_get(account, "since"))));
    else
        out_print("Nobody is logged in at the hosted service%s.\n",
                  json_bool(json_get(account, "waits_for_code")) ? "; a login waits for its code" : "");
    if (json_string(json_get(project, "url")).n == 0)
        out_print("No project is chosen.\n");
    else
        out_print("Project: %s%s\n", out_shown(cli->arena, json_string(json_get(project, "url"))),
                  json_bool(json_get(project, "has_secret")) ? ", with a secret key" : ", without a secret key");
    return 0;
}

/* --- use --- */

static int write_use(struct cli *cli, struct slice *ret, struct err *e)
{
    bool is_by_hand = strncmp(cli->args[0], "https://", 8) == 0 || strncmp(cli->args[0], "http://", 7) == 0;
    const char *secret = NULL;
    struct json_writer w;
    struct buf body;
    int r =
        cli_has(cli, "--secret")
            ? cli_read_secret(cli, "Secret key", "The key is read from standard input, and nothing came", &secret, e)
            : 0;

    if (r < 0)
        return r;
    if (is_by_hand != cli_has(cli, "--key"))
        return err_set(e, -EINVAL, "BAD_USE", "A project's address goes with --key KEY, and its name without");
    buf_init(&body, KIB(8));
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_add_string(&w, is_by_hand ? "url" : "project", cli->args[0]);
    json_add_string(&w, "key", cli_value(cli, "--key"));
    json_add_string(&w, "secret", secret);
    json_add_bool(&w, "publishable_only", cli_has(cli, "--publishable-only"));
    json_end(&w);
    *ret = slice_of(buf_to_arena(&body, cli->arena));
    return 0;
}

int run_backend_use(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_PUT, .path = "/api/backend/project" };
    struct client_reply reply = { 0 };
    int r = write_use(cli, &request.body, e);

    if (r == 0)
        r = cli_send(cli, &request, &reply, e);
    if (r < 0)
        return r;
    if (cli->is_json) {
        cli_show(cli, reply.json);
        return 0;
    }
    out_print("The project is %s, with %s%s.\n", json_cstr(json_get(reply.json, "url")),
              json_bool(json_get(reply.json, "legacy_key")) ? "its legacy key" : "its publishable key",
              json_bool(json_get(reply.json, "has_secret")) ? " and a secret key" : " only");
    out_print(
        "`hearth backend setup` makes its tables; `hearth settings set backend.kind hosted` and a start use it.\n");
    return 0;
}

/* clang-format off */
const struct cli_option backend_login_options[] = {
    { "--token", .help = "with a personal token of the account instead of a browser, read without echo or from standard input" },
    { "--no-browser", .help = "only print the address" },
    { .name = NULL },
};
const struct cli_option backend_use_options[] = {
    { "--key", .value = "KEY", .help = "of a PROJECT that is an address: its publishable or legacy anon key" },
    { "--secret", .help = "with --key: also a key of the service role, read without echo or from standard input" },
    { "--publishable-only", .help = "do not take the project's secret key: the service then sees what its users' tokens show" },
    { .name = NULL },
};
const struct cli_column backend_project_columns[] = {
    { "REF", "ref" }, { "NAME", "name" }, { "STATUS", "status" }, { "REGION", "region", .drop = 2 }, { "MADE", "created_at", CLI_TIME, 1 },
    { "IN USE", "chosen", CLI_YES_NO }, { .title = NULL },
};
