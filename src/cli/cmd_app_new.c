/* hearth app new: the folder of a first app. No service and no data folder is used. */
#include "base/limits.h"
#include "cli/out.h"
#include "cli/skeletons.h"
#include "cli/special.h"
#include "os/files.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* The app's name in the files of examples/skeletons. */
static const char name_in_skeletons[] = "my-app";

struct language {
    const char *name, *test; /* test: the command that runs the tests, in the folder */
};

static const struct language languages[] = {
    { "node", "node --test" },
    { "python", "python3 -m unittest" },
    { "bash", "./test.sh" },
};

struct new_app {
    struct cli *cli;
    const char *name, *folder;
    const struct language *language;
    bool is_folder_made; /* by this command */
};

/* --- what is asked for --- */

static bool is_name(const char *name)
{
    size_t n = strspn(name, LETTERS_AND_DIGITS "-_");

    return n > 0 && n <= LIMIT_APP_NEW_NAME_CHARS && name[n] == '\0' && strchr(LETTERS_AND_DIGITS, name[0]);
}

static int read_language(struct new_app *app, struct err *e)
{
    const char *word = cli_value(app->cli, "--lang");

    for (size_t i = 0; word && i < ARRAY_SIZE(languages); i++) {
        app->language = &languages[i];
        if (strcmp(word, app->language->name) == 0)
            return 0;
    }
    return err_set(e, -EINVAL, "BAD_USE", "--lang must be node, python or bash");
}

static int read_arguments(struct new_app *app, struct err *e)
{
    const char *folder = cli_value(app->cli, "--dir");

    app->name = app->cli->args[0];
    app->folder = folder ? folder : app->name;
    if (!is_name(app->name))
        return err_set(e, -EINVAL, "BAD_USE",
                       "NAME must be 1 to %d ASCII letters, digits, - and _, and begin with a letter or a digit",
                       LIMIT_APP_NEW_NAME_CHARS);
    if (app->folder[0] == '\0')
        return err_set(e, -EINVAL, "BAD_USE", "--dir must name a folder, it is empty");
    return read_language(app, e);
}

/* --- the folder --- */

static int check_is_empty(const char *folder, struct err *e)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    bool is_empty = true;

    if (!dir && errno == ENOTDIR)
        return err_set(e, -ENOTDIR, "NOT_A_FOLDER", "%.300s exists and is not a folder; --dir names another one",
                       folder);
    if (!dir)
        return err_errno(e, errno, "The folder %.300s cannot be used", folder);
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            is_empty = false;
    closedir(dir);
    return is_empty ? 0
                    : err_set(e, -ENOTEMPTY, "FOLDER_NOT_EMPTY",
                              "The folder %.300s exists and is not empty; --dir names another one", folder);
}

static int make_folder(struct new_app *app, struct err *e)
{
    if (mkdir(app->folder, 0777) < 0)
        return errno == EEXIST ? check_is_empty(app->folder, e)
                               : err_errno(e, errno, "The folder %.300s cannot be made", app->folder);
    app->is_folder_made = true;
    return 0;
}

/* --- the files --- */

/* The name of the file in the folder; NULL: a file of another language. */
static const char *own_file(const struct new_app *app, const struct http_embedded_file *file)
{
    size_t n = strlen(app->language->name);

    return strncmp(file->name, app->language->name, n) == 0 && file->name[n] == '/' ? file->name + n + 1 : NULL;
}

static char *path_of(const struct new_app *app, const char *file)
{
    return arena_printf(app->cli->arena, "%s/%s", app->folder, file);
}

static void add_renamed(struct buf *out, struct slice text, const char *name)
{
    const char *at = text.p, *end = text.p + text.n, *found;
    size_t n = strlen(name_in_skeletons);

    while ((found = memmem(at, (size_t)(end - at), name_in_skeletons, n))) {
        buf_add(out, at, (size_t)(found - at));
        buf_add_str(out, name);
        at = found + n;
    }
    buf_add(out, at, (size_t)(end - at));
}

/* A script, which begins with #!, may be executed. The umask decides about others, as in an editor. */
static mode_t mode_of(struct slice text)
{
    mode_t mask = umask(0);

    umask(mask);
    return (text.n > 2 && text.p[0] == '#' && text.p[1] == '!' ? 0777 : 0666) & ~mask;
}

static int write_files(const struct new_app *app, struct err *e)
{
    struct buf text;
    int r = 0;

    buf_init(&text, MIB(1));
    for (const struct http_embedded_file *f = cli_skeletons; r == 0 && f->name; f++) {
        const char *name = own_file(app, f);

        if (!name)
            continue;
        buf_reset(&text);
        add_renamed(&text, f->bytes, app->name);
        r = buf_check(&text, e);
        if (r == 0)
            r = file_write(path_of(app, name), buf_slice(&text), mode_of(f->bytes), e);
    }
    buf_clear(&text);
    return r;
}

/* After an error nothing is left: the folder was new or empty, so every file in it is this command's. */
static void remove_files(const struct new_app *app)
{
    for (const struct http_embedded_file *f = cli_skeletons; f->name; f++)
        if (own_file(app, f))
            unlink(path_of(app, own_file(app, f)));
    if (app->is_folder_made)
        rmdir(app->folder);
}

/* --- what was made --- */

/* The text as one word of a shell; --dir could begin with a hyphen. */
static const char *shell_word(struct arena *a, const char *text)
{
    const char *word = text[0] == '-' ? arena_printf(a, "./%s", text) : text;
    struct buf out;

    if (word[strspn(word, LETTERS_AND_DIGITS "-_./")] == '\0')
        return word;
    buf_init(&out, MIB(1));
    out_add_word(&out, word);
    return buf_to_arena(&out, a);
}

enum { N_STEPS = 4 };

static void next_steps(const struct new_app *app, const char *ret[N_STEPS])
{
    struct arena *a = app->cli->arena;
    const char *folder = shell_word(a, app->folder);

    ret[0] = arena_printf(a, "hearth app add %s", folder);
    ret[1] = arena_printf(a, "hearth permission grant %s --requested", app->name);
    ret[2] = arena_printf(a, "echo '{\"text\":\"Hello from me\"}' | hearth activity add - --app %s --wait", app->name);
    ret[3] = arena_printf(a, "(cd %s && %s)", folder, app->language->test);
}

static void print_json(const struct new_app *app, const char *const steps[N_STEPS])
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, MIB(1));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "name", app->name);
    json_add_string(&w, "lang", app->language->name);
    json_add_string(&w, "folder", app->folder);
    json_begin_array_as(&w, "files");
    for (const struct http_embedded_file *f = cli_skeletons; f->name; f++)
        if (own_file(app, f))
            json_add_string(&w, NULL, own_file(app, f));
    json_end(&w);
    json_add_strings(&w, "next", steps, N_STEPS);
    json_end(&w);
    buf_add_char(&out, '\n');
    out_json(buf_slice(&out));
    buf_clear(&out);
}

static void print_text(const struct new_app *app, const char *const steps[N_STEPS])
{
    static const char *const reasons[N_STEPS] = { "Register the app and its agent:", "Allow what the app asks for:",
                                                  "Insert a row and see its result:", "Run its tests:" };

    out_print("The app %s is in %s:", app->name, app->folder);
    for (const struct http_embedded_file *f = cli_skeletons; f->name; f++)
        if (own_file(app, f))
            out_print(" %s", own_file(app, f));
    out_print("\n");
    for (size_t i = 0; i < N_STEPS; i++)
        out_print("\n%s\n", reasons[i]), out_print("  %s\n", steps[i]);
}

int run_app_new(struct cli *cli, struct err *e)
{
    struct new_app app = { .cli = cli, .language = languages };
    const char *steps[N_STEPS];
    int r = read_arguments(&app, e);

    if (r == 0)
        r = make_folder(&app, e);
    if (r < 0)
        return r;
    r = write_files(&app, e);
    if (r < 0) {
        remove_files(&app);
        return r;
    }
    next_steps(&app, steps);
    cli->is_json ? print_json(&app, steps) : print_text(&app, steps);
    return 0;
}
