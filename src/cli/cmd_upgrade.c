/* hearth upgrade */
#include "base/build_id.h"
#include "base/limits.h"
#include "cli/client.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "os/lockfile.h"
#include "os/paths.h"
#include "service/service.h"

enum { RUNNING_MS = 10000 };

/* --- the running service --- */

struct running {
    pid_t pid; /* 0: none */
    const char *version, *build;
    bool is_other; /* another program than this one */
};

/* A service that does not say which program it is comes from a version before this question. */
static struct running find_running(struct cli *cli, const char *own_build)
{
    const struct client_request request = { .method = HTTP_GET, .path = "/healthz", .timeout_ms = RUNNING_MS };
    struct running now = { .pid = lockfile_owner(cli->data_dir) };
    struct client_reply reply = { 0 };
    struct err why = { 0 };

    if (now.pid == 0 || client_send_running(cli->data_dir, cli->arena, &request, &reply, &why) < 0)
        return now;
    now.version = json_cstr(json_get(reply.json, "version"));
    now.build = json_cstr(json_get(reply.json, "build"));
    now.is_other =
        !now.version || strcmp(now.version, HEARTH_VERSION) != 0 || !now.build || strcmp(now.build, own_build) != 0;
    return now;
}

static void write_running(const struct running *now, struct json_writer *w)
{
    json_begin_object_as(w, "service");
    json_add_bool(w, "running", now->pid != 0);
    if (now->pid)
        json_add_int(w, "pid", now->pid);
    else
        json_add_null(w, "pid");
    json_add_string(w, "version", now->version);
    json_add_string(w, "build", now->build);
    json_add_bool(w, "restart", now->is_other);
    json_end(w);
}

/* --- for a person --- */

static void print_database(struct json_value db)
{
    const char *name = json_cstr(json_get(db, "name")), *state = json_cstr(json_get(db, "state"));
    long long version = (long long)json_int(json_get(db, "version")),
              known = (long long)json_int(json_get(db, "known"));

    if (strcmp(state, "unreadable") == 0)
        out_print("%-11s cannot be read: %s\n", name, json_cstr(json_get(db, "error")));
    else if (strcmp(state, "missing") == 0)
        out_print("%-11s is not there yet\n", name);
    else if (strcmp(state, "migrates") == 0)
        out_print("%-11s has schema %lld: the next start changes it to %lld, after a copy\n", name, version, known);
    else if (strcmp(state, "newer") == 0)
        out_print(
            "%-11s has schema %lld, newer than this program's %lld: use the newer program, or the copy from before\n",
            name, version, known);
    else
        out_print("%-11s has schema %lld, as this program\n", name, version);
}

static void print_space(struct json_value space)
{
    double needed = (double)json_int(json_get(space, "needed")), n_free = (double)json_int(json_get(space, "free"));

    if (needed > 0)
        out_print("%-11s the copies need %.1f MiB, %.1f MiB are free%s\n", "space", needed / (double)MIB(1),
                  n_free / (double)MIB(1),
                  json_bool(json_get(space, "enough")) ? "" : ": too little, the start would be refused");
}

static void print_service(struct json_value service)
{
    const char *version = json_cstr(json_get(service, "version"));

    if (!json_bool(json_get(service, "running")))
        out_print("%-11s does not run\n", "service");
    else if (!version)
        out_print("%-11s does not answer (pid %lld)\n", "service", (long long)json_int(json_get(service, "pid")));
    else if (json_bool(json_get(service, "restart")))
        out_print("%-11s runs another program (version %s) than this one (%s): start it again\n", "service", version,
                  HEARTH_VERSION);
    else
        out_print("%-11s runs this program (version %s)\n", "service", version);
}

static void print_report(struct json_value report)
{
    const char *elsewhere = json_cstr(json_get(report, "rows_elsewhere"));
    struct json_value item = { 0 };

    print_service(json_get(report, "service"));
    for (struct json_iter it = json_iter(json_get(report, "databases")); json_next(&it, NULL, &item);)
        print_database(item);
    if (elsewhere)
        out_print("%-11s are %s, which is not examined here: `hearth backend check` says what its schema lacks\n",
                  "rows", elsewhere);
    for (struct json_iter it = json_iter(json_get(report, "settings")); json_next(&it, NULL, &item);)
        out_print("%-11s %s\n", "setting", json_cstr(item));
    print_space(json_get(report, "space"));
    for (struct json_iter it = json_iter(json_get(report, "copies")); json_next(&it, NULL, &item);)
        out_print("%-11s %s (%.1f MiB) is from before an upgrade: remove it when you trust this version\n", "copy",
                  json_cstr(json_get(item, "path")), (double)json_int(json_get(item, "bytes")) / (double)MIB(1));
    if (!json_bool(json_get(report, "due")))
        out_print("Nothing is to be done.\n");
}

/* --- the command --- */

static int check(struct cli *cli, struct json_value *ret, struct err *e)
{
    const struct service_config config = { .data_dir = cli->data_dir };
    char own[BUILD_ID_SIZE];
    struct running now;
    struct json_writer w;
    bool is_due = false;
    struct buf out;
    int r;

    build_id(own);
    now = find_running(cli, own);
    buf_init(&out, MIB(1));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "version", HEARTH_VERSION);
    json_add_string(&w, "build", own);
    json_add_string(&w, "data_dir", cli->data_dir);
    write_running(&now, &w);
    r = service_examine(&config, now.pid != 0, &w, &is_due, e);
    json_add_bool(&w, "due", is_due || now.is_other);
    json_end(&w);
    if (r == 0)
        r = json_parse(cli->arena, buf_slice(&out), ret, e);
    buf_clear(&out);
    return r;
}

/* How this very program file came here. */
static const char *how_to_upgrade(const char *program)
{
    static const char clone[] = "/build/release/hearth";
    size_t n = strlen(program);

    if (strncmp(program, "/usr/bin/", strlen("/usr/bin/")) == 0)
        return "install the newer package (`sudo apt install ./hearth_VERSION_ARCH.deb`)";
    if (n > strlen(clone) && strcmp(program + n - strlen(clone), clone) == 0)
        return "in the clone that it was built in, `git pull && script/server`";
    return "put the newer program in its place";
}

static int print_steps(struct cli *cli, struct err *e)
{
    char *program;
    int r = paths_program(cli->arena, &program, e);

    if (r < 0)
        return r;
    out_print("This program does not replace itself. To upgrade %s (version %s):\n", program, HEARTH_VERSION);
    out_print("  1. hearth backup FILE\n");
    out_print("  2. stop the service: `hearth service stop`, or Ctrl-C in its terminal\n");
    out_print("  3. %s\n", how_to_upgrade(program));
    out_print("  4. hearth upgrade --check    says what the new program will change in %s\n", cli->data_dir);
    out_print("  5. hearth service start\n");
    return 0;
}

int run_upgrade(struct cli *cli, struct err *e)
{
    struct json_value report = { 0 };
    int r;

    if (!cli_has(cli, "--check") && !cli->is_json)
        return print_steps(cli, e);
    r = check(cli, &report, e);
    if (r < 0)
        return r;
    if (cli->is_json)
        cli_print_json(report);
    else
        print_report(report);
    return json_bool(json_get(report, "due")) ? CLI_FAILED : CLI_DONE;
}
