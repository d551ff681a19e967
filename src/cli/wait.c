#include "cli/wait.h"

#include "cli/out.h"
#include "cli/request.h"

#include <stdlib.h>

enum { MOST_WAIT_S = 7 * 24 * 3600 };

struct wait {
    const char *uuid; /* NULL: any task */
    int (*look)(void *arg);
    void *arg;
};

static bool is_change(const struct wait *w, const struct client_event *event)
{
    if (strcmp(event->name, "task") == 0)
        return !w->uuid || slice_eq_str(json_string(json_get(event->data, "uuid")), w->uuid);
    return strcmp(event->name, "hello") == 0 || strcmp(event->name, "resync") == 0;
}

/* The work is read after the stream's hello, so no change is missed in between. */
static int on_event(void *arg, const struct client_event *event)
{
    const struct wait *w = arg;

    return is_change(w, event) ? w->look(w->arg) : 0;
}

int cli_read_timeout(const struct cli *cli, int64_t *ret_ms, struct err *e)
{
    const char *text = cli_value(cli, "--timeout");
    char *end = NULL;
    double seconds = text ? strtod(text, &end) : 0;

    if (text && (end == text || *end || !(seconds > 0) || seconds > MOST_WAIT_S))
        return err_set(e, -EINVAL, "BAD_USE", "--timeout must be a number of seconds above 0, at most %d", MOST_WAIT_S);
    *ret_ms = (int64_t)(seconds * 1000);
    return 0;
}

int cli_wait(struct cli *cli, const char *what, const char *uuid, int (*look)(void *arg), void *arg, struct err *e)
{
    struct client_request request = { .method = HTTP_GET, .path = "/api/events" };
    struct wait w = { .uuid = uuid, .look = look, .arg = arg };
    struct client *client = NULL;
    int r = cli_read_timeout(cli, &request.timeout_ms, e);

    if (r == 0)
        r = cli_client(cli, &client, e);
    if (r < 0)
        return r;
    r = client_listen(client, &request, on_event, &w, e);
    if (r == -ETIMEDOUT)
        return err_set(e, r, "TIMED_OUT", "%s has not ended within %s seconds", what, cli_value(cli, "--timeout"));
    if (r == 0)
        return err_set(e, -EIO, "NOT_RUNNING", "%s has not ended: the service ended first", what);
    return MIN(r, 0);
}

int cli_wait_failed(const char *what, const char *status, struct json_value reason, struct err *e)
{
    struct slice text = json_string(reason);

    if (text.n == 0)
        return err_set(e, -EREMOTEIO, "TASK_FAILED", "%s is %s", what, status);
    if (!memchr(text.p, '\n', text.n))
        return err_set(e, -EREMOTEIO, "TASK_FAILED", "%s is %s: %s", what, status, json_cstr(reason));
    out_lines(stderr, text);
    out_complain("\n");
    return err_set(e, -EREMOTEIO, "TASK_FAILED", "%s is %s: the reason is above", what, status);
}
