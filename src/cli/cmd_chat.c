/* hearth chat: one question, or a conversation in the terminal, with a model or an agent. hearth embed, hearth search.
 */
#include "base/limits.h"
#include "cli/chat_agent.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

#include <stdlib.h>
#include <unistd.h>

struct said {
    const char *role, *text;
};

struct chat {
    struct cli *cli;
    struct said *said; /* in the arena of cli */
    size_t n, cap;
    struct buf answer;        /* the part of the running answer that has come */
    struct err *e;            /* of the running answer */
    struct chat_agent *agent; /* NULL: a model is asked, and is told the conversation each time */
};

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int signum)
{
    is_interrupted = 1;
}

/* The first Ctrl-C cancels the answer; the second one, and one at the prompt, ends the program. */
static void watch_interrupt(bool is_answering)
{
    const struct sigaction action = { .sa_handler = is_answering ? on_interrupt : SIG_DFL,
                                      .sa_flags = (int)SA_RESETHAND };

    is_interrupted = 0;
    sigaction(SIGINT, &action, NULL);
}

static void add_said(struct chat *c, const char *role, const char *text)
{
    struct said *wider;

    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 16;
        wider = arena_array(c->cli->arena, c->cap, sizeof(*wider));
        if (c->n)
            memcpy(wider, c->said, c->n * sizeof(*wider));
        c->said = wider;
    }
    c->said[c->n++] = (struct said){ role, arena_strdup(c->cli->arena, text) };
}

static int write_question(const struct chat *c, struct buf *out, struct err *e)
{
    struct json_writer w;

    if (c->agent)
        return chat_agent_write(c->said[c->n - 1].text, out, e);
    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "model", cli_value(c->cli, "--model"));
    json_add_string(&w, "provider", cli_value(c->cli, "--provider"));
    json_begin_array_as(&w, "messages");
    for (size_t i = 0; i < c->n; i++) {
        json_begin_object(&w);
        json_add_string(&w, "role", c->said[i].role);
        json_add_string(&w, "content", c->said[i].text);
        json_end(&w);
    }
    json_end(&w);
    json_end(&w);
    return buf_check(out, e);
}

/* --- one answer --- */

static int on_piece(void *arg, const struct client_event *event)
{
    struct slice text = json_string(json_get(event->data, "textResponse"));
    const char *code = json_cstr(json_get(event->data, "code")), *error = json_cstr(json_get(event->data, "error"));
    struct chat *c = arg;

    if (c->agent)
        return chat_agent_event(c->agent, event, &c->answer, c->e);
    if (strcmp(event->name, "error") == 0)
        return err_set(c->e, -EREMOTEIO, code ? code : "LLM_STREAM_ERROR", "%s",
                       error ? error : "The answer broke off");
    out_lines(stdout, text);
    fflush(stdout);
    buf_add(&c->answer, text.p, text.n);
    if (slice_eq_str(json_string(json_get(event->data, "finish_reason")), "length"))
        out_complain("\nhearth: The answer is cut off: it reached the most tokens that the model gives.");
    return ferror(stdout) ? err_set(c->e, -EPIPE, "OUTPUT_CLOSED", "Standard output is closed") : 0;
}

static int stream_answer(struct chat *c, struct err *e)
{
    struct client_request request = { .method = HTTP_POST,
                                      .path = "/sdk/llm/chat/stream",
                                      .is_canceled = &is_interrupted };
    struct client *client = NULL;
    struct buf body;
    int r = cli_client(c->cli, &client, e);

    c->e = e;
    buf_init(&body, LIMIT_BODY_CHAT);
    if (r == 0)
        r = write_question(c, &body, e);
    if (c->agent)
        request.path = chat_agent_path(c->agent, true);
    request.body = buf_slice(&body);
    if (r == 0) {
        watch_interrupt(true);
        r = client_listen(client, &request, on_piece, c, e);
        watch_interrupt(false);
    }
    buf_clear(&body);
    return r;
}

/* The answer, or the part of it that came, belongs to the conversation; a question without one is forgotten. */
static int answer_question(struct chat *c, struct err *e)
{
    int r;

    buf_init(&c->answer, LIMIT_REPLY);
    r = stream_answer(c, e);
    if (c->answer.n > 0 && c->answer.p[c->answer.n - 1] != '\n')
        out_print("\n");
    if (c->answer.n > 0)
        add_said(c, "assistant", buf_str(&c->answer));
    else
        c->n--;
    buf_clear(&c->answer);
    return r;
}

static int answer_as_json(struct chat *c, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/sdk/llm/chat" };
    struct client_reply reply = { 0 };
    struct buf body;
    int r;

    buf_init(&body, LIMIT_BODY_CHAT);
    r = write_question(c, &body, e);
    if (c->agent)
        request.path = chat_agent_path(c->agent, false);
    request.body = buf_slice(&body);
    if (r == 0)
        r = cli_send(c->cli, &request, &reply, e);
    buf_clear(&body);
    if (r == 0)
        cli_print_json(json_get(reply.json, "response"));
    return r;
}

/* --- a conversation --- */

/* Without any provider each further question fails in the same way. */
static int continue_conversation(struct chat *c, struct err *e)
{
    struct err why = { 0 };
    int r = answer_question(c, &why);

    if (r == -ECANCELED)
        out_print("(canceled)\n");
    else if (r < 0 && (strcmp(why.code, "PROVIDER_UNAVAILABLE") == 0 || strcmp(why.code, "NOT_RUNNING") == 0))
        return err_set(e, r, why.code, "%s", why.text);
    else if (r < 0)
        out_complain("hearth: %s\n", why.text);
    return 0;
}

static int converse(struct chat *c, struct err *e)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    int r = 0;

    out_print("Ctrl-C cancels an answer, Ctrl-D ends.\n");
    while (r == 0) {
        out_print("> ");
        fflush(stdout);
        n = getline(&line, &size, stdin);
        if (n < 0)
            break;
        line[n - (n > 0 && line[n - 1] == '\n')] = '\0';
        if (line[strspn(line, " \t\r")] == '\0')
            continue;
        add_said(c, "user", line);
        r = continue_conversation(c, e);
    }
    free(line);
    out_print("\n");
    return r;
}

static int chat_or_converse(struct chat *c, struct err *e)
{
    const char *text = NULL;
    int r = cli_read_text(c->cli, c->agent ? LIMIT_AGENT_MESSAGE : LIMIT_BODY_CHAT, &text, e);

    if (r < 0)
        return r;
    if (text) {
        add_said(c, "user", text);
        return c->cli->is_json ? answer_as_json(c, e) : answer_question(c, e);
    }
    if (c->cli->is_json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(e, -EINVAL, "BAD_USE", "What is the question? TEXT, or a text on standard input");
    return converse(c, e);
}

static int chat_with_agent(struct chat *c, struct err *e)
{
    struct chat_agent *agent = ARENA_NEW(c->cli->arena, struct chat_agent);
    int r;

    if (cli_has(c->cli, "--model") || cli_has(c->cli, "--provider") || cli_has(c->cli, "--system"))
        return err_set(e, -EINVAL, "BAD_USE", "--model, --provider and --system are the agent's own; leave them out");
    r = chat_agent_begin(c->cli, agent, e);
    if (r < 0)
        return r;
    c->agent = agent;
    r = chat_or_converse(c, e);
    chat_agent_end(agent);
    return r;
}

int run_chat(struct cli *cli, struct err *e)
{
    struct chat c = { .cli = cli };
    struct client *client = NULL;
    int r = cli_client(cli, &client, e);

    if (r < 0)
        return r;
    if (cli_has(cli, "--agent"))
        return chat_with_agent(&c, e);
    if (cli_has(cli, "--workspace") || cli_has(cli, "--thread"))
        return err_set(e, -EINVAL, "BAD_USE", "--workspace and --thread are of a conversation with an --agent");
    if (cli_has(cli, "--system"))
        add_said(&c, "system", cli_value(cli, "--system"));
    return chat_or_converse(&c, e);
}

/* --- hearth embed --- */

static int write_texts(struct cli *cli, struct buf *out, struct err *e)
{
    const char *piped = NULL;
    struct json_writer w;
    int r = cli->n_args ? 0 : cli_read_text(cli, LIMIT_BODY_CHAT, &piped, e);

    if (r == 0 && !cli->n_args && !piped)
        r = err_set(e, -EINVAL, "BAD_USE", "What is to be embedded? TEXT, or a text on standard input");
    if (r < 0)
        return r;
    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "model", cli_value(cli, "--model"));
    json_add_string(&w, "provider", cli_value(cli, "--provider"));
    json_add_strings(&w, "input", cli->n_args ? cli->args : &piped, MAX(cli->n_args, (size_t)1));
    json_end(&w);
    return buf_check(out, e);
}

int run_embed(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/sdk/llm/embed" };
    struct client_reply reply = { 0 };
    struct json_value vector;
    struct buf body;
    int r;

    buf_init(&body, LIMIT_BODY_CHAT);
    r = write_texts(cli, &body, e);
    request.body = buf_slice(&body);
    if (r == 0)
        r = cli_send(cli, &request, &reply, e);
    buf_clear(&body);
    if (r == 0 && cli->is_json)
        cli_show(cli, reply.json);
    for (struct json_iter it = json_iter(json_get(reply.json, "embeddings"));
         r == 0 && !cli->is_json && json_next(&it, NULL, &vector);)
        cli_print_json(vector);
    return r;
}

/* The administrator has no vectors: without a name the answer would always be empty. */
int run_search(struct cli *cli, struct err *e)
{
    if (!cli_has(cli, "--app") && !cli_has(cli, "--key"))
        return err_set(e, -EINVAL, "BAD_USE", "Whose vectors? --app APP, or --key KEY for those of a developer key");
    return cli_run_request(cli, e);
}
