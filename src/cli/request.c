#include "cli/request.h"

#include "backup/backup.h"
#include "base/limits.h"
#include "base/percent.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "cli/definition.h"
#include "cli/out.h"
#include "cli/table.h"
#include "os/files.h"
#include "os/lockfile.h"
#include "store/instance.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- patterns: {0} is an argument, {--name} an option, {member} a member of the answer --- */

static const char *look_up(const struct cli *cli, struct json_value answer, const char *name)
{
    struct json_value member = json_get(answer, name);

    if (name[0] >= '0' && name[0] <= '9')
        return (size_t)(name[0] - '0') < cli->n_args ? cli->args[name[0] - '0'] : NULL;
    if (name[0] == '-')
        return cli_value(cli, name);
    if (json_is_absent(member))
        return NULL;
    return json_type(member) == JSON_STRING ? json_cstr(member) : json_to_str(cli->arena, member);
}

/* The value of the name in braces at *text, which is moved past the braces. */
static const char *look_up_at(const struct cli *cli, struct json_value answer, const char **text)
{
    size_t n = strcspn(*text + 1, "}");
    const char *value = look_up(cli, answer, arena_strndup(cli->arena, *text + 1, n));

    *text += n + 2;
    return value;
}

static char *fill(const struct cli *cli, const char *pattern, struct json_value answer, bool is_encoded)
{
    struct buf out;

    buf_init(&out, MIB(1));
    while (*pattern) {
        const char *value = *pattern == '{' ? look_up_at(cli, answer, &pattern) : NULL;

        if (value && is_encoded)
            percent_encode(&out, slice_of(value));
        else if (value)
            buf_add_str(&out, value);
        else if (*pattern && *pattern != '{')
            buf_add_char(&out, *pattern++);
    }
    return buf_to_arena(&out, cli->arena);
}

char *cli_fill_path(const struct cli *cli, const char *pattern)
{
    return fill(cli, pattern, (struct json_value){ 0 }, true);
}

/* --- sending --- */

/* A command must not make a data folder, and a master key in it, whose name is mistyped. */
static int check_folder(const struct cli *cli, struct err *e)
{
    const char *store = arena_printf(cli->arena, "%s/hearth.db", cli->data_dir);
    const char *instance = arena_printf(cli->arena, "%s/" INSTANCE_FILE, cli->data_dir);

    if (cli->command->makes_folder || access(store, F_OK) == 0 || access(instance, F_OK) == 0 ||
        lockfile_owner(cli->data_dir) != 0 || backup_is_restoring(cli->data_dir))
        return 0;
    return err_set(e, -ENOENT, "NO_DATA_DIR",
                   "No service runs on the data folder %.400s and none ever ran there; start one with `hearth serve`",
                   cli->data_dir);
}

int cli_client(struct cli *cli, struct client **ret, struct err *e)
{
    int r = cli->client ? 0 : check_folder(cli, e);

    if (r == 0 && !cli->client)
        r = client_open(cli->data_dir, cli->command->is_repair, &cli->client, e);
    if (r < 0)
        return r;
    if (cli->command->needs_service && !client_is_online(cli->client))
        return err_set(e, -ENOTCONN, "NOT_RUNNING", "No service runs on %s; start one with `hearth serve`",
                       cli->data_dir);
    *ret = cli->client;
    return 0;
}

int cli_send(struct cli *cli, const struct client_request *request, struct client_reply *ret, struct err *e)
{
    struct client *client = NULL;
    int r = cli_client(cli, &client, e);

    return r < 0 ? r : client_send(client, cli->arena, request, ret, e);
}

int cli_get(struct cli *cli, const char *path, struct client_reply *ret, struct err *e)
{
    return cli_send(cli, &(struct client_request){ .method = HTTP_GET, .path = path }, ret, e);
}

static int read_stdin(struct cli *cli, size_t max, struct slice *ret, struct err *e)
{
    struct buf in;
    char piece[4096];
    ssize_t n;
    int r;

    buf_init(&in, max);
    while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0)
        buf_add(&in, piece, (size_t)n);
    r = n < 0 ? err_errno(e, errno, "Standard input") : buf_check(&in, e);
    *ret = (struct slice){ arena_slicedup(cli->arena, buf_slice(&in)), in.n };
    buf_clear(&in);
    return r;
}

int cli_read_file(struct cli *cli, const char *path, size_t max, struct slice *ret, struct err *e)
{
    return strcmp(path, "-") == 0 ? read_stdin(cli, max, ret, e) : file_read(cli->arena, path, max, ret, e);
}

/* /dev/null and terminals are character devices. */
static bool has_piped_input(void)
{
    struct stat st;

    return fstat(STDIN_FILENO, &st) == 0 && !S_ISCHR(st.st_mode);
}

int cli_read_text(struct cli *cli, size_t max, const char **ret, struct err *e)
{
    struct slice piped = { 0 };
    const char *text = NULL;
    int r = has_piped_input() ? read_stdin(cli, max, &piped, e) : 0;

    if (r < 0)
        return r;
    for (size_t i = 0; i < cli->n_args; i++)
        text = text ? arena_printf(cli->arena, "%s %s", text, cli->args[i]) : cli->args[i];
    if (piped.n > 0)
        text = text ? arena_printf(cli->arena, "%s\n\n%s", text, piped.p) : piped.p;
    if (text && (!utf8_is_valid(slice_of(text)) || memchr(piped.p ? piped.p : "", '\0', piped.n)))
        return err_set(e, -EINVAL, "BAD_USE", "The text must be UTF-8");
    *ret = text;
    return 0;
}

enum { LEAST_ID_CHARS = 4 };

static bool may_begin_uuid(const char *text)
{
    size_t n = strspn(text, "0123456789abcdefABCDEF-");

    return n >= LEAST_ID_CHARS && n < UUID_LEN && text[n] == '\0';
}

int cli_complete_id(struct cli *cli, struct err *e)
{
    const struct command *c = cli->command;
    struct client_request request = { .method = HTTP_GET, .path = c->ids.path, .query = "limit=500" };
    const char *typed = cli->args[0], *found = NULL;
    struct client_reply reply = { 0 };
    struct json_value item;
    int r;

    if (!c->ids.path || cli->n_args == 0 || !may_begin_uuid(typed))
        return 0;
    r = cli_send(cli, &request, &reply, e);
    for (struct json_iter it = json_iter(json_get(reply.json, c->ids.list)); r == 0 && json_next(&it, NULL, &item);) {
        const char *id = json_cstr(json_get(item, c->ids.member));

        if (!id || strncasecmp(id, typed, strlen(typed)) != 0)
            continue;
        if (found)
            return err_set(e, -EINVAL, "BAD_USE", "%s is the beginning of several ids; type more of it", typed);
        found = id;
    }
    if (found)
        cli->args[0] = found;
    return r;
}

int cli_app_id(struct cli *cli, const char *id_or_name, const char **ret, struct err *e)
{
    struct client_reply reply;
    struct buf path;
    const char *id = NULL;
    int r;

    buf_init(&path, LIMIT_TARGET_BYTES);
    buf_add_str(&path, "/api/apps/");
    percent_encode(&path, slice_of(id_or_name));
    r = cli_get(cli, buf_to_arena(&path, cli->arena), &reply, e);
    if (r < 0)
        return r;
    id = json_cstr(json_get(json_get(reply.json, "app"), "app_id"));
    if (!id)
        return err_set(e, -EPROTO, "INTERNAL_ERROR", "The answer about the app %s has no app_id", id_or_name);
    *ret = id;
    return 0;
}

/* --- output --- */

void cli_print_json(struct json_value value)
{
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_print(&out, value);
    buf_add_char(&out, '\n');
    out_json(buf_slice(&out));
    buf_clear(&out);
}

/* 0: standard output is no terminal. */
static size_t terminal_width(void)
{
    struct winsize size;

    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void cli_print_table(const struct cli *cli, struct json_value list, const struct cli_column *columns, const char *empty)
{
    const struct table_form form = { .width = terminal_width(), .is_wide = cli_has(cli, "--wide") };
    struct buf out;

    if (json_length(list) == 0) {
        out_print("%s\n", empty);
        return;
    }
    buf_init(&out, LIMIT_REPLY);
    table_print(&out, list, columns, &form);
    out_lines(stdout, buf_slice(&out));
    buf_clear(&out);
}

static bool is_shown(const char *const *made, struct slice key)
{
    if (!made)
        return !slice_eq_str(key, "success");
    while (*made && !slice_eq_str(key, *made))
        made++;
    return *made != NULL;
}

static void print_members(struct json_value answer, const char *const *made)
{
    struct json_value value;
    struct json_writer w;
    struct slice key;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    for (struct json_iter it = json_iter(answer); json_next(&it, &key, &value);)
        if (is_shown(made, key))
            json_add_value(&w, key.p, value);
    json_end(&w);
    buf_add_char(&out, '\n');
    out_json(buf_slice(&out));
    buf_clear(&out);
}

void cli_print_object(struct json_value object)
{
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    table_print_object(&out, object);
    out_lines(stdout, buf_slice(&out));
    buf_clear(&out);
}

/* Line by line: a line end in a value is printed as what it is, one in the template ends a line. */
static void print_done(struct cli *cli, const char *done, struct json_value answer)
{
    for (const char *end; done; done = end ? end + 1 : NULL) {
        end = strchr(done, '\n');
        out_print("%s\n", fill(cli, end ? arena_strndup(cli->arena, done, (size_t)(end - done)) : done, answer, false));
    }
}

void cli_show(struct cli *cli, struct json_value answer)
{
    const struct command *c = cli->command;
    struct json_value list = c->list ? json_get(answer, c->list) : (struct json_value){ 0 };

    if (cli->is_json && c->list)
        cli_print_json(list);
    else if (cli->is_json)
        print_members(answer, c->made);
    else if (c->columns)
        cli_print_table(cli, list, c->columns, c->empty);
    else if (c->list)
        cli_print_object(list);
    else
        print_done(cli, c->done, answer);
}

/* --- building the row's request --- */

char *cli_fill_query(struct cli *cli, const char *pattern)
{
    struct buf out;

    buf_init(&out, LIMIT_TARGET_BYTES);
    while (*pattern) {
        size_t n = strcspn(pattern, "&");
        const char *part = arena_strndup(cli->arena, pattern, n), *brace = strchr(part, '{');

        if (!brace || look_up_at(cli, (struct json_value){ 0 }, &brace))
            buf_printf(&out, "%s%s", out.n ? "&" : "", cli_fill_path(cli, part));
        pattern += n + (pattern[n] == '&');
    }
    return buf_to_arena(&out, cli->arena);
}

struct slice cli_write_body(struct cli *cli)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, MIB(4));
    json_write_init(&w, &out);
    json_begin_object(&w);
    cli->command->body(cli, &w);
    json_end(&w);
    return slice_of(buf_to_arena(&out, cli->arena));
}

int cli_run_request(struct cli *cli, struct err *e)
{
    const struct command *c = cli->command;
    struct client_request request = { .method = c->method, .path = cli_fill_path(cli, c->path) };
    struct client_reply reply = { 0 };
    int r = 0;

    if (c->query)
        request.query = cli_fill_query(cli, c->query);
    if (c->is_body_file)
        r = definition_read(cli, cli->args[0], &request.body, e);
    else if (c->body)
        request.body = cli_write_body(cli);
    if (r == 0)
        r = cli_send(cli, &request, &reply, e);
    if (r == 0)
        cli_show(cli, reply.json);
    return r < 0 && reply.status && c->is_body_file ? definition_refused(cli->args[0], r, e) : r;
}
