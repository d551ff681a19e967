/* hearth activity show, activity add */
#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "cli/wait.h"

/* Reads {raw_data, app} from the file's object. */
static int read_body(struct cli *cli, struct slice *ret, struct err *e)
{
    struct json_value raw_data = { 0 };
    struct slice text;
    struct json_writer w;
    struct buf out;
    int r = cli_read_file(cli, cli->args[0], LIMIT_BODY_ACTIVITY, &text, e);

    if (r == 0)
        r = json_parse(cli->arena, text, &raw_data, e);
    if (r < 0)
        return r;
    buf_init(&out, LIMIT_BODY_ACTIVITY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_value(&w, "raw_data", raw_data);
    json_add_string(&w, "app", cli_value(cli, "--app"));
    json_end(&w);
    r = buf_check(&out, e);
    *ret = slice_of(buf_to_arena(&out, cli->arena));
    return r;
}

/* --- activity add --wait --- */

struct row_wait {
    struct cli *cli;
    struct err *e;
    const char *id;
};

static bool is_at_work(struct slice status)
{
    return slice_eq_str(status, "pending") || slice_eq_str(status, "claimed") || slice_eq_str(status, "processing");
}

/* 1: the row has ended, and its result was printed. */
static int look_at_row(void *arg)
{
    const struct row_wait *w = arg;
    struct client_reply reply = { 0 };
    struct json_value row;
    int r = cli_get(w->cli, arena_printf(w->cli->arena, "/activities/%s", w->id), &reply, w->e);

    if (r < 0)
        return r;
    row = json_get(reply.json, "data");
    if (is_at_work(json_string(json_get(row, "status"))))
        return 0;
    if (w->cli->is_json)
        cli_show(w->cli, reply.json);
    if (slice_eq_str(json_string(json_get(row, "status")), "failed"))
        return cli_wait_failed(arena_printf(w->cli->arena, "The activity %s", w->id), "failed",
                               json_get(row, "error_message"), w->e);
    if (!w->cli->is_json)
        cli_print_json(json_get(row, "result"));
    return 1;
}

/* A row of no app is nobody's work, and without a service nobody works: both would be waited for in vain. */
static int check_wait(struct cli *cli, struct err *e)
{
    struct client *client = NULL;
    int64_t timeout_ms;
    int r;

    if (!cli_has(cli, "--wait") && cli_has(cli, "--timeout"))
        return err_set(e, -EINVAL, "BAD_USE", "--timeout needs --wait");
    if (!cli_has(cli, "--wait"))
        return 0;
    if (!cli_has(cli, "--app"))
        return err_set(e, -EINVAL, "BAD_USE", "--wait needs --app: nobody works on a row of no app");
    r = cli_read_timeout(cli, &timeout_ms, e);
    if (r == 0)
        r = cli_client(cli, &client, e);
    if (r == 0 && !client_is_online(client))
        r = err_set(e, -ENOTCONN, "NOT_RUNNING", "--wait needs a running service: start one with `hearth serve`");
    return r;
}

static int wait_for_row(struct cli *cli, const char *id, struct err *e)
{
    struct row_wait w = { .cli = cli, .e = e, .id = id };

    return cli_wait(cli, arena_printf(cli->arena, "The activity %s", id), NULL, look_at_row, &w, e);
}

int run_activity_add(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/activities" };
    struct client_reply reply = { 0 };
    const char *id;
    int r = check_wait(cli, e);

    if (r == 0)
        r = read_body(cli, &request.body, e);
    if (r == 0)
        r = cli_send(cli, &request, &reply, e);
    if (r < 0)
        return r;
    id = json_cstr(json_get(json_get(reply.json, "data"), "id"));
    if (cli_has(cli, "--wait"))
        return wait_for_row(cli, id, e);
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        out_print("%s\n", id);
    return 0;
}

int run_activity_show(struct cli *cli, struct err *e)
{
    struct client_reply reply = { 0 };
    int r = cli_get(cli, cli_fill_path(cli, "/activities/{0}"), &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        cli_print_object(json_get(reply.json, "data"));
    return 0;
}
