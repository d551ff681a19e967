/* Commands that show one thing in a special form: settings, audit verify, openapi, doctor, open. */
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "os/files.h"

#include <spawn.h>
#include <unistd.h>

/* --- settings --- */

int run_settings(struct cli *cli, struct err *e)
{
    static const struct cli_column columns[] = {
        { "KEY", "key" }, { "VALUE", "value" }, { "FROM", "origin" }, { "HELP", "help", .drop = 1 }, { .title = NULL },
    };
    struct client_reply reply;
    struct json_value setting;
    struct slice value;
    int r = cli_get(cli, cli->n_args ? cli_fill_path(cli, "/api/settings/{0}") : "/api/settings", &reply, e);

    if (r < 0)
        return r;
    setting = json_get(reply.json, cli->n_args ? "setting" : "settings");
    value = json_string(json_get(setting, "value"));
    if (value.n == 0)
        value = slice_of("empty");
    if (cli->is_json)
        cli_print_json(setting);
    else if (!cli->n_args)
        cli_print_table(cli, setting, columns, "");
    else
        out_print("%.*s (%s)\n", (int)value.n, value.p, json_cstr(json_get(setting, "origin")));
    return 0;
}

static const char *or_empty(const char *value, const char *empty)
{
    return value && *value ? value : empty;
}

/* The stored value is not always the value in force. */
int run_settings_set(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_PUT,
                                      .path = cli_fill_path(cli, "/api/settings/{0}"),
                                      .body = cli_write_body(cli) };
    struct client_reply reply;
    struct json_value setting;
    int r = cli_send(cli, &request, &reply, e);

    if (r < 0)
        return r;
    setting = json_get(reply.json, "setting");
    out_print("%s is %s.", cli->args[0], or_empty(cli->args[1], "empty"));
    if (!slice_eq_str(json_string(json_get(setting, "origin")), "database"))
        out_print(" A %s outranks it: %s counts.", json_cstr(json_get(setting, "origin")),
                  or_empty(json_cstr(json_get(setting, "value")), "the empty value"));
    else if (json_bool(json_get(setting, "needs_restart")))
        out_print(" A service that runs takes it up when it starts again.");
    out_print("\n");
    return 0;
}

/* --- audit verify --- */

int run_audit_verify(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    const char *reason;
    int r = cli_get(cli, "/api/audit/verify", &reply, e);
    bool is_whole = r == 0 && json_bool(json_get(reply.json, "whole"));

    if (r < 0)
        return r;
    if (cli->is_json) {
        cli_show(cli, reply.json);
        return is_whole ? CLI_DONE : CLI_FAILED;
    }
    if (is_whole) {
        out_print("The audit log is whole: %lld entries", (long long)json_int(json_get(reply.json, "entries")));
        if (json_int(json_get(reply.json, "trimmed")) > 0)
            out_print(", and %lld before them were removed for their age",
                      (long long)json_int(json_get(reply.json, "trimmed")));
        out_print(".\n");
        return CLI_DONE;
    }
    reason = json_cstr(json_get(reply.json, "reason"));
    return err_set(e, -EUCLEAN, "AUDIT_BROKEN", "The audit log was changed or damaged at entry %lld: %s",
                   (long long)json_int(json_get(reply.json, "bad_seq")), reason ? reason : "unknown");
}

/* --- openapi --- */

int run_openapi(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    int r = cli_get(cli, "/openapi.json", &reply, e);

    if (r < 0)
        return r;
    out_json(reply.text);
    out_print("\n");
    return 0;
}

/* --- doctor --- */

static bool print_check(struct json_value check)
{
    bool is_ok = json_bool(json_get(check, "ok"));
    const char *advice = json_cstr(json_get(check, "advice"));

    out_print("%s  %-12s %s\n", is_ok ? "ok  " : "FAIL", json_cstr(json_get(check, "name")),
              json_cstr(json_get(check, "text")));
    if (advice && *advice)
        out_print("      %-12s -> %s\n", "", advice);
    return is_ok;
}

int run_doctor(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    struct json_value check;
    size_t n_bad = 0;
    int r = cli_get(cli, "/api/doctor", &reply, e);

    if (r < 0)
        return r;
    for (struct json_iter it = json_iter(json_get(reply.json, "checks")); json_next(&it, NULL, &check);)
        n_bad += cli->is_json ? !json_bool(json_get(check, "ok")) : !print_check(check);
    if (cli->is_json)
        cli_print_json(json_get(reply.json, "checks"));
    else if (n_bad == 0)
        out_print("Everything is in order.\n");
    return n_bad ? CLI_FAILED : CLI_DONE;
}

/* --- open --- */

/* Writes a page with mode 0600 that redirects to the link: as an argument, every user of the machine could read the
 * link in `ps`. */
static char *write_door(struct cli *cli, const char *url)
{
    char *path = arena_printf(cli->arena, "%s/open.html", cli->data_dir);
    char *page = arena_printf(cli->arena, "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=%s\">\n", url);

    return file_write(path, slice_of(page), 0600, NULL) < 0 ? NULL : path;
}

static bool has_display(void)
{
    return getenv("DISPLAY") || getenv("WAYLAND_DISPLAY");
}

/* Best effort: without a display, or without xdg-open, the person uses the printed link. */
void open_in_browser(const char *target)
{
    extern char **environ;
    char *argv[] = { (char[]){ "xdg-open" }, (char *)(uintptr_t)target, NULL };
    posix_spawn_file_actions_t quiet;
    pid_t pid;

    if (!target || !has_display())
        return;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
    posix_spawn_file_actions_adddup2(&quiet, STDOUT_FILENO, STDERR_FILENO);
    if (posix_spawnp(&pid, argv[0], &quiet, NULL, argv, environ) != 0)
        pid = 0;
    posix_spawn_file_actions_destroy(&quiet);
}

int run_open(struct cli *cli, struct err *e)
{
    const struct client_request request = { .method = HTTP_POST, .path = "/api/session/link" };
    struct client_reply reply;
    const char *url;
    int r = cli_send(cli, &request, &reply, e);

    if (r < 0)
        return r;
    url = json_cstr(json_get(reply.json, "url"));
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        out_print("%s\n", url);
    fflush(stdout);
    open_in_browser(has_display() ? write_door(cli, url) : NULL);
    return 0;
}
