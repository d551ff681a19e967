/* hearth approval list, allow, deny, watch: the questions of agents, with arguments in full. */
#include "base/limits.h"
#include "cli/approval.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

#include <stdlib.h>
#include <unistd.h>

#define PENDING "/api/approvals"

const struct cli_option approval_allow_options[] = {
    { "--session", .help = "for this session" },
    { "--always", .help = "for all later calls of this tool by this agent" },
    { "--reply", .value = "TEXT", .help = "the answer to a question; of a form, a JSON object" },
    { .name = NULL },
};
const struct cli_option approval_deny_options[] = {
    { "--session", .help = "for this session" },
    { "--never", .help = "for all later calls of this tool by this agent" },
    { .name = NULL },
};

const struct cli_column approval_rule_columns[] = {
    { "AGENT", "agent" },
    { "SERVER", "server" },
    { "TOOL", "tool" },
    { "DECISION", "decision" },
    { "SINCE", "decided_at", CLI_TIME, 1 },
    { .title = NULL },
};

/* ---- one question ---- */

static struct slice member(struct json_value question, const char *name)
{
    return json_string(json_get(question, name));
}

static bool is_kind(struct json_value question, const char *kind)
{
    return slice_eq_str(member(question, "kind"), kind);
}

static void print_call(struct json_value q)
{
    struct slice agent = member(q, "agent"), server = member(q, "server"), tool = member(q, "tool");

    out_print("%.*s wants to call %.*s%s%.*s%s\n", (int)agent.n, agent.p, (int)tool.n, tool.p,
              server.n ? " of the server " : "", (int)server.n, server.p,
              json_bool(json_get(q, "destructive")) ? ". It may destroy something" : "");
}

/* Who puts it: the agent, else the server. */
static struct slice source_of(struct json_value q)
{
    struct slice agent = member(q, "agent");

    return agent.n ? agent : member(q, "server");
}

static void print_other(struct json_value q)
{
    static const struct {
        const char *kind, *words;
    } rows[] = {
        { "question", "has a question" },
        { "sampling", "wants an answer of a model" },
        { "elicitation", "wants a form to be filled in" },
        { "trust", "wants to be started" },
    };
    struct slice from = source_of(q);
    size_t i = 0;

    while (i + 1 < ARRAY_SIZE(rows) && !is_kind(q, rows[i].kind))
        i++;
    out_print("%.*s %s\n", (int)from.n, from.p, rows[i].words);
}

static void print_part(struct json_value q, const char *name, const char *title)
{
    struct json_value value = json_get(q, name);

    if (json_is_absent(value))
        return;
    out_print("  %s:\n", title);
    cli_print_json(value);
}

static void print_choices(struct json_value q)
{
    struct json_value choice;
    int n = 0;

    for (struct json_iter it = json_iter(json_get(q, "choices")); json_next(&it, NULL, &choice);)
        out_print("  %d. %.*s\n", ++n, (int)json_string(choice).n, json_string(choice).p);
}

static void print_question(struct json_value q)
{
    struct slice id = member(q, "id"), text = member(q, "text"), session = member(q, "session_id"),
                 task = member(q, "task_uuid");

    if (is_kind(q, "tool"))
        print_call(q);
    else
        print_other(q);
    if (text.n)
        out_lines(stdout, text);
    if (text.n)
        out_print("\n");
    print_part(q, "arguments", "arguments");
    print_part(q, "schema", "the answer must fit");
    print_choices(q);
    out_print("  id %.*s", (int)id.n, id.p);
    if (session.n)
        out_print(", session %.*s", (int)session.n, session.p);
    if (task.n)
        out_print(", task %.*s", (int)task.n, task.p);
    out_print("\n");
}

int run_approval_list(struct cli *cli, struct err *e)
{
    struct client_reply reply = { 0 };
    struct json_value q;
    size_t n = 0;
    int r = cli_get(cli, PENDING, &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json) {
        cli_print_json(json_get(reply.json, "approvals"));
        return 0;
    }
    for (struct json_iter it = json_iter(json_get(reply.json, "approvals")); json_next(&it, NULL, &q); n++) {
        if (n > 0)
            out_print("\n");
        print_question(q);
    }
    if (n == 0)
        out_print("No question of an agent waits for an answer.\n");
    return 0;
}

/* ---- decisions ---- */

struct choice {
    bool is_allowed;
    const char *scope;
    const char *reply;      /* a text; NULL: none */
    struct json_value form; /* an object; absent: none */
};

static int send_choice(struct cli *cli, const char *id, const struct choice *c, struct err *e)
{
    struct client_request request = { .method = HTTP_POST };
    struct client_reply reply;
    struct json_writer w;
    struct buf out;
    int r;

    request.path = arena_printf(cli->arena, PENDING "/%s", id);
    buf_init(&out, 2 * LIMIT_APPROVAL_BYTES);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_bool(&w, "allow", c->is_allowed);
    json_add_string(&w, "scope", c->scope);
    if (!json_is_absent(c->form))
        json_add_value(&w, "reply", c->form);
    else if (c->reply)
        json_add_string(&w, "reply", c->reply);
    json_end(&w);
    request.body = buf_slice(&out);
    r = cli_send(cli, &request, &reply, e);
    buf_clear(&out);
    return r;
}

/* What --reply gives: an object when it is one, else a text. */
static void read_reply(struct cli *cli, const char *text, struct choice *c)
{
    struct json_value value = { 0 };

    if (text && json_parse(cli->arena, slice_of(text), &value, NULL) == 0 && json_type(value) == JSON_OBJECT)
        c->form = value;
    else
        c->reply = text;
}

int run_approval_decide(struct cli *cli, struct err *e)
{
    struct choice c = { .is_allowed = strcmp(cli->command->words, "approval allow") == 0 };
    bool is_for_good = cli_has(cli, "--always") || cli_has(cli, "--never");
    int r;

    if (is_for_good && cli_has(cli, "--session"))
        return err_set(e, -EINVAL, "BAD_USE", "Only one of --session and %s may be given",
                       c.is_allowed ? "--always" : "--never");
    c.scope = is_for_good ? "always" : cli_has(cli, "--session") ? "session" : "once";
    read_reply(cli, cli_value(cli, "--reply"), &c);
    r = send_choice(cli, cli->args[0], &c, e);
    if (r == 0)
        cli_show(cli, (struct json_value){ 0 });
    return r;
}

void body_approval_rule(struct cli *cli, struct json_writer *w)
{
    const char *slash = strchr(cli->args[1], '/');
    const char *server = slash ? arena_strndup(cli->arena, cli->args[1], (size_t)(slash - cli->args[1])) : "";

    json_add_string(w, "agent", cli->args[0]);
    json_add_string(w, "server", strcmp(server, "builtin") == 0 ? "" : server);
    json_add_string(w, "tool", slash ? slash + 1 : cli->args[1]);
    if (cli->n_args > 2)
        json_add_string(w, "decision", cli->args[2]);
}

/* ---- in the terminal ---- */

enum { LINE_BYTES = 4096 };

static const struct watch_key {
    char key;
    bool is_for_calls; /* only calls of tools can be decided for later */
    struct choice choice;
    const char *said;
} keys[] = {
    { 'o', false, { .is_allowed = true, .scope = "once" }, "allowed once" },
    { 's', true, { .is_allowed = true, .scope = "session" }, "allowed for this session" },
    { 'a', true, { .is_allowed = true, .scope = "always" }, "allowed always" },
    { 'd', false, { .is_allowed = false, .scope = "once" }, "denied" },
    { 'n', true, { .is_allowed = false, .scope = "always" }, "denied for good" },
};

static const struct watch_key *find_key(const char *line, bool is_call)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (line[0] == keys[i].key && line[1] == '\0' && (is_call || !keys[i].is_for_calls))
            return &keys[i];
    return NULL;
}

static bool read_line(char line[LINE_BYTES])
{
    fflush(stdout);
    if (!fgets(line, LINE_BYTES, stdin))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

/* The number of a choice stands for its text. */
static const char *chosen(struct json_value q, const char *line)
{
    char *end = NULL;
    long n = strtol(line, &end, 10);
    struct json_value choice;

    if (*end != '\0' || end == line)
        return line;
    for (struct json_iter it = json_iter(json_get(q, "choices")); json_next(&it, NULL, &choice); n--)
        if (n == 1)
            return json_cstr(choice);
    return line;
}

static bool takes_text(struct json_value q)
{
    return is_kind(q, "question") || is_kind(q, "elicitation");
}

static void prompt(struct json_value q)
{
    if (is_kind(q, "question"))
        out_print("  your answer%s, d to decline, or return for later: ",
                  json_is_absent(json_get(q, "choices")) ? "" : " (its number)");
    else if (is_kind(q, "elicitation"))
        out_print("  your answer, a JSON object in one line, d to decline, or return for later: ");
    else if (is_kind(q, "tool"))
        out_print("  [o]nce, for this [s]ession, [a]lways, [d]eny, [n]ever, or return for later: ");
    else
        out_print("  [o]nce, [d]eny, or return for later: ");
}

/* False: the line decides nothing. */
static bool read_choice(struct approval_terminal *w, struct json_value q, const char *line, struct choice *ret,
                        const char **said)
{
    const struct watch_key *key = find_key(line, is_kind(q, "tool"));

    if (takes_text(q) && strcmp(line, "d") != 0) {
        *ret = (struct choice){ .is_allowed = true, .scope = "once" };
        read_reply(w->cli, chosen(q, line), ret);
        *said = "answered";
        return true;
    }
    if (!key)
        return false;
    *ret = key->choice;
    *said = key->said;
    return true;
}

static bool is_put_off(const struct approval_terminal *w, const char *id)
{
    for (size_t i = 0; i < w->n_later; i++)
        if (strcmp(w->later[i], id) == 0)
            return true;
    return false;
}

static void put_off(struct approval_terminal *w, const char *id)
{
    if (w->n_later < APPROVALS_LATER_MAX)
        w->later[w->n_later++] = arena_strdup(w->cli->arena, id);
    out_print("  put off; `hearth approval list` shows it\n");
}

/* A question that was answered elsewhere in the meantime ends nothing here. */
static int decide(struct approval_terminal *w, const char *id, const struct choice *c, const char *said)
{
    struct err why = { 0 };
    int r = send_choice(w->cli, id, c, &why);

    if (r == 0)
        out_print("  %s\n", said);
    else if (strcmp(why.code, "APPROVAL_NOT_FOUND") == 0 || strcmp(why.code, "VALIDATION_ERROR") == 0)
        out_print("  %s\n", why.text);
    else
        return err_set(w->e, r, why.code, "%s", why.text);
    return 0;
}

/* 1: the terminal has ended. */
static int show_one(struct approval_terminal *w, struct json_value q)
{
    const char *id = json_cstr(json_get(q, "id")), *said = "";
    char line[LINE_BYTES];
    struct choice c;

    if (!id || is_put_off(w, id))
        return 0;
    print_question(q);
    for (;;) {
        prompt(q);
        if (!read_line(line))
            return 1;
        if (line[0] == '\0') {
            put_off(w, id);
            return 0;
        }
        if (read_choice(w, q, line, &c, &said))
            return decide(w, id, &c, said);
    }
}

static int decide_pending(struct approval_terminal *w)
{
    struct client_reply reply;
    struct json_value q;
    int r = cli_get(w->cli, PENDING, &reply, w->e);

    if (r < 0)
        return r;
    for (struct json_iter it = json_iter(json_get(reply.json, "approvals")); r == 0 && json_next(&it, NULL, &q);)
        if (!w->session_id || slice_eq_str(member(q, "session_id"), w->session_id))
            r = show_one(w, q);
    return r;
}

int approval_decide_pending(struct approval_terminal *t, struct err *e)
{
    t->e = e;
    return decide_pending(t);
}

/* The list is fetched after the stream's hello, so no question is missed in between. */
static int on_event(void *arg, const struct client_event *event)
{
    static const char *const mine[] = { "hello", "approval", "resync" };

    for (size_t i = 0; i < ARRAY_SIZE(mine); i++)
        if (strcmp(event->name, mine[i]) == 0)
            return decide_pending(arg);
    return 0;
}

int run_approval_watch(struct cli *cli, struct err *e)
{
    struct approval_terminal w = { .cli = cli, .e = e };
    struct client *client;
    int r;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(
            e, -ENOTTY, "NO_TERMINAL",
            "approval watch asks in a terminal and this is none; use `hearth approval list`, `allow` and `deny`");
    r = cli_client(cli, &client, e);
    if (r < 0)
        return r;
    out_print("Watching for questions of agents; Ctrl-C ends.\n");
    fflush(stdout);
    r = client_listen(client, &(struct client_request){ .method = HTTP_GET, .path = "/api/events" }, on_event, &w, e);
    return r < 0 ? r : 0;
}
