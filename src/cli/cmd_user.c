/* hearth user: those whose password is read. */
#include "cli/key_input.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

static int read_password(struct cli *cli, const char **ret, struct err *e)
{
    return cli_read_secret(cli, "Password", "The password is read from standard input, and nothing came", ret, e);
}

static struct slice write_body(struct cli *cli, const char *email, const char *password)
{
    struct json_writer w;
    struct buf out;
    char *text;

    buf_init(&out, 64 << 10);
    json_write_init(&w, &out);
    json_begin_object(&w);
    if (email)
        json_add_string(&w, "email", email);
    json_add_string(&w, "password", password);
    json_end(&w);
    text = buf_to_arena(&out, cli->arena);
    return slice_of(text);
}

int run_user_add(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/api/backend/users" };
    struct client_reply reply = { 0 };
    const char *password = NULL;
    int r = read_password(cli, &password, e);

    if (r < 0)
        return r;
    request.body = write_body(cli, cli->args[0], password);
    r = cli_send(cli, &request, &reply, e);
    if (r < 0)
        return r;
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        out_print("%s can sign in now.\n", json_cstr(json_get(json_get(reply.json, "user"), "email")));
    return 0;
}

int run_user_password(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_PUT,
                                      .path = cli_fill_path(cli, "/api/backend/users/{0}/password") };
    struct client_reply reply = { 0 };
    const char *password = NULL;
    int r = read_password(cli, &password, e);

    if (r < 0)
        return r;
    request.body = write_body(cli, NULL, password);
    r = cli_send(cli, &request, &reply, e);
    if (r == 0)
        out_print("The user signs in with the new password; every session of the user has ended.\n");
    return r;
}
