#include "cli/definition.h"

#include "base/limits.h"
#include "cli/request.h"

#include <libgen.h>
#include <limits.h>

/* The file's folder; for standard input the current folder. */
static char *folder_of(struct cli *cli, const char *path)
{
    char resolved[PATH_MAX];
    const char *folder = strcmp(path, "-") == 0 ? "." : dirname(arena_strdup(cli->arena, path));

    return realpath(folder, resolved) ? arena_strdup(cli->arena, resolved) : NULL;
}

static bool is_relative(struct json_value dir)
{
    return json_type(dir) == JSON_STRING && json_string(dir).n > 0 && json_string(dir).p[0] != '/';
}

static char *absolute(struct cli *cli, const char *folder, struct json_value dir)
{
    const char *relative = json_string(dir).p;

    return strcmp(relative, ".") == 0 ? arena_strdup(cli->arena, folder)
                                      : arena_printf(cli->arena, "%s/%s", folder, relative);
}

/* `working_dir` is at the top of an agent, and in `config` of an app. */
static void copy_object(struct cli *cli, struct json_writer *w, const char *name, struct json_value object,
                        const char *folder)
{
    struct json_iter it = json_iter(object);
    struct json_value value;
    struct slice key;

    json_begin_object_as(w, name);
    while (json_next(&it, &key, &value)) {
        if (slice_eq_str(key, "working_dir") && is_relative(value))
            json_add_string(w, key.p, absolute(cli, folder, value));
        else if (!name && slice_eq_str(key, "config") && json_type(value) == JSON_OBJECT)
            copy_object(cli, w, key.p, value, folder);
        else
            json_add_value(w, key.p, value);
    }
    json_end(w);
}

int definition_read(struct cli *cli, const char *path, struct slice *ret, struct err *e)
{
    struct json_value definition = { 0 };
    char *folder = folder_of(cli, path);
    struct json_writer w;
    struct buf out;
    int r = cli_read_file(cli, path, LIMIT_BODY_DEFAULT, ret, e);

    if (r < 0 || !folder || json_parse(cli->arena, *ret, &definition, NULL) < 0 || json_type(definition) != JSON_OBJECT)
        return r;
    buf_init(&out, LIMIT_BODY_DEFAULT);
    json_write_init(&w, &out);
    copy_object(cli, &w, NULL, definition, folder);
    r = buf_check(&out, e);
    *ret = slice_of(buf_to_arena(&out, cli->arena));
    return r;
}

int definition_refused(const char *path, int r, struct err *e)
{
    return e->n_fields > 0 ? r : err_prefix(e, r, "%.200s", strcmp(path, "-") == 0 ? "standard input" : path);
}
