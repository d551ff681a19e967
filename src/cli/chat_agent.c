#include "cli/chat_agent.h"

#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"

#include <unistd.h>

static int write_session(const struct cli *cli, struct buf *out, struct err *e)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "agent_name", cli_value(cli, "--agent"));
    if (cli_has(cli, "--workspace"))
        json_add_string(&w, "workspace_slug", cli_value(cli, "--workspace"));
    if (cli_has(cli, "--thread"))
        json_add_string(&w, "thread_slug", cli_value(cli, "--thread"));
    json_end(&w);
    return buf_check(out, e);
}

int chat_agent_begin(struct cli *cli, struct chat_agent *ret, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/sdk/agent/session" };
    struct client_reply reply = { 0 };
    struct buf body;
    int r;

    buf_init(&body, LIMIT_BODY_CHAT);
    r = write_session(cli, &body, e);
    request.body = buf_slice(&body);
    if (r == 0)
        r = cli_send(cli, &request, &reply, e);
    buf_clear(&body);
    if (r == 0)
        *ret = (struct chat_agent){ .cli = cli,
                                    .approvals = { .cli = cli },
                                    .session_id = json_cstr(json_get(json_get(reply.json, "session"), "session_id")) };
    return r;
}

const char *chat_agent_path(struct chat_agent *agent, bool is_streamed)
{
    agent->has_text = false;
    return arena_printf(agent->cli->arena, "/sdk/agent/session/%s/chat%s", agent->session_id,
                        is_streamed ? "/stream" : "");
}

int chat_agent_write(const char *message, struct buf *out, struct err *e)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "message", message);
    json_end(&w);
    return buf_check(out, e);
}

/* ---- events ---- */

/* The turn waits: whoever is at the terminal decides, otherwise somebody elsewhere. */
static int decide_approvals(struct chat_agent *agent, struct err *e)
{
    int r;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return 0;
    agent->approvals.session_id = agent->session_id;
    r = approval_decide_pending(&agent->approvals, e);
    return r > 0 ? err_set(e, -ECANCELED, "CANCELED", "Canceled") : r;
}

static int show_text(struct chat_agent *agent, struct json_value data, struct buf *answer)
{
    struct slice text = json_string(json_get(data, "textResponse"));

    if (!json_is_absent(json_get(data, "dataType"))) /* a rich block; the thoughts name its tool */
        return 0;
    out_lines(stdout, text);
    fflush(stdout);
    buf_add(answer, text.p, text.n);
    agent->has_text = agent->has_text || text.n > 0;
    return 0;
}

/* The whole text, once; it was shown already when it came in parts. */
static int show_whole(struct chat_agent *agent, struct json_value data, struct buf *answer)
{
    return agent->has_text ? 0 : show_text(agent, data, answer);
}

static void show_thought(struct chat_agent *agent, struct json_value data, struct buf *answer)
{
    struct slice thought = json_string(json_get(data, "thought"));

    if (answer->n > 0 && answer->p[answer->n - 1] != '\n') {
        out_print("\n");
        buf_add_char(answer, '\n');
        fflush(stdout);
    }
    out_complain("  * %.*s\n", (int)thought.n, thought.p);
}

static int fail(struct json_value data, struct err *e)
{
    const char *code = json_cstr(json_get(data, "code")), *error = json_cstr(json_get(data, "error"));

    return err_set(e, -EREMOTEIO, code ? code : "AGENT_FAILED", "%s", error ? error : "The turn broke off");
}

int chat_agent_event(struct chat_agent *agent, const struct client_event *event, struct buf *answer, struct err *e)
{
    struct slice type = json_string(json_get(event->data, "type"));

    if (slice_eq_str(type, "error"))
        return fail(event->data, e);
    if (slice_eq_str(type, "textResponseChunk"))
        return show_text(agent, event->data, answer);
    if (slice_eq_str(type, "textResponse"))
        return show_whole(agent, event->data, answer);
    if (!slice_eq_str(type, "agentThought"))
        return 0;
    show_thought(agent, event->data, answer);
    return decide_approvals(agent, e);
}

void chat_agent_end(struct chat_agent *agent)
{
    struct client_request request = { .method = HTTP_DELETE };
    struct client_reply reply;
    struct err e = { 0 };

    if (!agent->session_id)
        return;
    request.path = arena_printf(agent->cli->arena, "/sdk/agent/session/%s", agent->session_id);
    (void)!cli_send(agent->cli, &request, &reply, &e); /* it also ends when it is idle */
}
