/* hearth backup, hearth restore */
#include "backup/backup.h"
#include "backend/backend_providers.h"
#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "os/files.h"
#include "os/lockfile.h"
#include "service/service.h"

#include <unistd.h>

static char *absolute_path(struct arena *a, const char *path)
{
    AUTO(freep) char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);

    return here ? arena_printf(a, "%s/%s", here, path) : arena_strdup(a, path);
}

static void print_backup(struct cli *cli, struct json_value reply)
{
    const char *elsewhere = json_cstr(json_get(reply, "rows_elsewhere"));

    out_print("%zu files are in %s.\n", json_length(json_get(reply, "files")), cli->args[0]);
    if (elsewhere)
        out_print("The rows of activities and apps are not: they are %s. Back that database up with its own means.\n",
                  elsewhere);
}

int run_backup(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/api/backup" };
    struct client_reply reply;
    struct json_writer w;
    struct buf out;
    int r;

    buf_init(&out, KIB(64));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "path", absolute_path(cli->arena, cli->args[0]));
    json_end(&w);
    request.body = buf_slice(&out);
    r = cli_send(cli, &request, &reply, e);
    buf_clear(&out);
    if (r < 0)
        return r;
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        print_backup(cli, reply.json);
    return 0;
}

static int read_max(const struct cli *cli, int64_t *ret, struct err *e)
{
    const char *text = cli_value(cli, "--max-mb");
    char *end = NULL;
    long long n = text ? strtoll(text, &end, 10) : 0;

    if (text && (end == text || *end || n < 1 || n > INT64_MAX / (long long)MIB(1)))
        return err_set(e, -EINVAL, "BAD_USE", "--max-mb must be a number of megabytes from 1");
    *ret = n * (long long)MIB(1);
    return 0;
}

static int print_rows(void *arg, struct settings *settings, struct err *e)
{
    const struct backend_provider *p = backend_provider_of(settings);

    if (p && p->elsewhere)
        out_print(
            "The rows of activities and apps are %s: they are as they were before this restore, and tasks follow them"
            " at the next start.\n",
            p->elsewhere);
    return 0;
}

/* By the restored settings; when they cannot be read, the next start says why. */
static void print_rows_elsewhere(struct cli *cli)
{
    const struct service_config config = { .data_dir = cli->data_dir };

    (void)!service_with_settings(&config, false, print_rows, NULL, NULL);
}

int run_restore(struct cli *cli, struct err *e)
{
    struct backup_options options = { .is_forced = cli_has(cli, "--force") };
    struct backup_restored done = { 0 };
    struct lockfile *lock = NULL;
    int r;

    r = read_max(cli, &options.max_bytes, e);
    if (r == 0)
        r = dir_make(cli->data_dir, e);
    if (r == 0)
        r = lockfile_open(cli->data_dir, &lock, e);
    if (r < 0)
        return r;
    r = backup_restore(cli->arena, cli->args[0], cli->data_dir, &options, &done, e);
    lockfile_close(lock);
    if (r == 0)
        out_print("%zu files of %s are restored into %s.\n", done.files.n, cli->args[0], cli->data_dir);
    if (r == 0)
        print_rows_elsewhere(cli);
    if (r == 0 && done.is_unproven)
        out_complain(
            "hearth: %s was made by an earlier version and has no digests: a damage that the databases do not show was not noticed\n",
            cli->args[0]);
    return r;
}
