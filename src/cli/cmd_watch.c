/* hearth permission watch: the person answers in the terminal whenever an app asks. */
#include "cli/out.h"
#include "cli/permission.h"
#include "cli/request.h"
#include "cli/special.h"

#include <unistd.h>

enum { WATCH_LATER_MAX = 256 };

struct watch {
    struct cli *cli;
    char *later[WATCH_LATER_MAX]; /* questions put off; not shown again here */
    size_t n_later;
    struct err *e;
};

static const struct watch_answer {
    char key;
    const char *scope;
    bool is_allowed;
    const char *said;
} answers[] = {
    { 'o', "once", true, "allowed once" },
    { 's', "until_stop", true, "allowed until the app stops" },
    { 'a', "always", true, "allowed always" },
    { 'd', "always", false, "denied" },
};

static const struct watch_answer *find_answer(const char *line)
{
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
        if (line[0] == answers[i].key && (line[1] == '\n' || line[1] == '\0'))
            return &answers[i];
    return NULL;
}

/* NULL: later, or the terminal has ended. Mistyped input decides nothing. */
static const struct watch_answer *read_answer(bool *ret_is_end)
{
    const struct watch_answer *answer = NULL;
    char line[64];

    for (;;) {
        *ret_is_end = !fgets(line, sizeof(line), stdin);
        if (*ret_is_end || line[0] == '\n' || (answer = find_answer(line)))
            return answer;
        out_print("  please answer o, s, a or d, or only return for later: ");
        fflush(stdout);
    }
}

static bool is_put_off(const struct watch *w, const char *question)
{
    for (size_t i = 0; i < w->n_later; i++)
        if (strcmp(w->later[i], question) == 0)
            return true;
    return false;
}

static void put_off(struct watch *w, char *question)
{
    if (w->n_later < WATCH_LATER_MAX)
        w->later[w->n_later++] = question;
    out_print("  put off; `hearth permission list` shows it\n");
}

static void print_question(struct json_value q)
{
    struct slice app = json_string(json_get(q, "app_name")), requests = json_string(json_get(q, "asks")),
                 permission = json_string(json_get(q, "permission"));
    struct slice sandbox = json_string(json_get(q, "sandbox")), change = json_string(json_get(q, "change"));

    out_print("%.*s wants to %.*s (%.*s)%s\n", (int)app.n, app.p, (int)requests.n, requests.p, (int)permission.n,
              permission.p, json_bool(json_get(q, "dangerous")) ? ". This can run any program on this machine" : "");
    if (change.n)
        out_print("  It was allowed before another program was started for it: %.*s\n", (int)change.n, change.p);
    if (sandbox.n)
        out_print("  It %.*s\n", (int)sandbox.n, sandbox.p);
    out_print("  [o]nce, until it [s]tops, [a]lways, [d]eny, or return for later: ");
    fflush(stdout);
}

/* Shows one question and sends the person's answer. 1: the terminal has ended. */
static int request_one(struct watch *w, struct json_value q)
{
    const struct watch_answer *answer;
    struct permission_choice choice = {
        .app_id = json_cstr(json_get(q, "app_id")),
        .permission = json_cstr(json_get(q, "permission")),
    };
    char *question =
        arena_printf(w->cli->arena, "%s %s %s", choice.app_id, choice.permission, json_cstr(json_get(q, "id")));
    bool is_end;
    int r;

    if (is_put_off(w, question))
        return 0;
    print_question(q);
    answer = read_answer(&is_end);
    if (is_end)
        return 1;
    if (!answer) {
        put_off(w, question);
        return 0;
    }
    choice.scope = answer->scope;
    choice.is_allowed = answer->is_allowed;
    r = permission_send(w->cli, "/api/permissions/decide", &choice, w->e);
    if (r == 0)
        out_print("  %s\n", answer->said);
    return r;
}

static int request_pending(struct watch *w)
{
    struct client_reply reply;
    struct json_value question;
    int r = cli_get(w->cli, "/api/permissions/pending", &reply, w->e);

    if (r < 0)
        return r;
    for (struct json_iter it = json_iter(json_get(reply.json, "pending")); r == 0 && json_next(&it, NULL, &question);)
        r = request_one(w, question);
    return r;
}

static int print_contact(struct json_value contact)
{
    struct slice program = json_string(json_get(contact, "program")), app = json_string(json_get(contact, "app_name"));

    out_print("A program that Hearth did not start, %.*s, uses the id of %.*s.\n", (int)program.n, program.p,
              (int)app.n, app.p);
    fflush(stdout);
    return 0;
}

/* The list is fetched after the stream's hello, so no question is missed in between. */
static int on_event(void *arg, const struct client_event *event)
{
    static const char *const mine[] = { "hello", "permission", "resync" };

    for (size_t i = 0; i < ARRAY_SIZE(mine); i++)
        if (strcmp(event->name, mine[i]) == 0)
            return request_pending(arg);
    return strcmp(event->name, "contact") == 0 ? print_contact(event->data) : 0;
}

int run_permission_watch(struct cli *cli, struct err *e)
{
    struct watch w = { .cli = cli, .e = e };
    struct client *client;
    int r;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(e, -ENOTTY, "NO_TERMINAL",
                       "permission watch asks in a terminal and this is none; use permission list, grant and deny");
    r = cli_client(cli, &client, e);
    if (r < 0)
        return r;
    out_print("Watching for permission requests; Ctrl-C ends.\n");
    fflush(stdout);
    r = client_listen(client, &(struct client_request){ .method = HTTP_GET, .path = "/api/events" }, on_event, &w, e);
    return r < 0 ? r : 0;
}
