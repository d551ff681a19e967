#include "cli/unit_text.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/unit_template.h"

#define UNIT_MARK "# hearth-service "
#define UNIT_FOLDER "# data folder: "
#define UNIT_NOTE                                                                                                      \
    "# Written by `hearth service install`; `hearth service uninstall` removes it as long as nobody changes it.\n"

/* --- quoting --- */

/* systemd.syntax(7): C escapes within double quotes, %% for a percent sign. The command has the prefix ":", so that $
 * is not special. */
static void add_unit_word(struct buf *out, const char *word)
{
    buf_add_char(out, '"');
    for (; *word; word++) {
        if (*word == '"' || *word == '\\')
            buf_add_char(out, '\\');
        else if (*word == '%')
            buf_add_char(out, '%');
        buf_add_char(out, *word);
    }
    buf_add_char(out, '"');
}

/* Desktop Entry Specification, "The Exec key": within double quotes a backslash before `"`, "`", `$` and `\`, %% for a
 * percent sign; then each backslash once more, because the value is a string. */
static void add_desktop_word(struct buf *out, const char *word)
{
    buf_add_char(out, '"');
    for (; *word; word++) {
        if (*word == '\\')
            buf_add_str(out, "\\\\\\");
        else if (strchr("\"`$", *word))
            buf_add_str(out, "\\\\");
        else if (*word == '%')
            buf_add_char(out, '%');
        buf_add_char(out, *word);
    }
    buf_add_char(out, '"');
}

static bool is_plain(const char *path)
{
    for (const char *at = path; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return false;
    return utf8_is_valid(slice_of(path));
}

int unit_command_check(const struct unit_command *c, struct err *e)
{
    const char *const paths[] = { c->program, c->data_dir };

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        if (!is_plain(paths[i]))
            return err_set(
                e, -EINVAL, "BAD_PATH",
                "The path %.300s has control characters or is no UTF-8: no file that starts a service can name it.",
                paths[i]);
    return 0;
}

/* --- texts --- */

/* Puts the mark before the rest, of which it holds the hash. */
static char *add_mark(struct arena *a, const struct unit_command *c, struct buf *body)
{
    char *rest = arena_printf(a, UNIT_FOLDER "%s\n" UNIT_NOTE "%s", c->data_dir, buf_str(body));
    char hex[HASH_HEX_SIZE];

    hash_text_hex(slice_of(rest), hex);
    buf_clear(body);
    return arena_printf(a, UNIT_MARK "%s\n%s", hex, rest);
}

/* systemd refuses quotes and backslashes in the name of a program, a desktop entry `=`: a shell then becomes the
 * program.
 */
static void add_program(struct buf *out, const char *program, void (*add_word)(struct buf *out, const char *word))
{
    if (strpbrk(program, "\"'\\=")) {
        buf_add_str(out, "/bin/sh -c ");
        add_word(out, "exec \"$0\" \"$@\"");
        buf_add_char(out, ' ');
    }
    add_word(out, program);
}

static void add_command(struct buf *out, const struct unit_command *c, const char *words,
                        void (*add_word)(struct buf *out, const char *word))
{
    add_program(out, c->program, add_word);
    buf_add_str(out, words);
    if (!c->names_data)
        return;
    buf_add_str(out, " --data ");
    add_word(out, c->data_dir);
}

/* The comment before [Unit] is for readers of the template. */
char *unit_text(struct arena *a, const struct unit_command *c)
{
    const char *text = arena_slicedup(a, unit_template[0].bytes);
    const char *body = strstr(text, "[Unit]"), *at = strstr(body, "@COMMAND@");
    struct buf out;

    buf_init(&out, LIMIT_UNIT_BYTES);
    buf_add(&out, body, (size_t)(at - body));
    buf_add_char(&out, ':');
    add_command(&out, c, " serve", add_unit_word);
    buf_add_str(&out, at + strlen("@COMMAND@"));
    return add_mark(a, c, &out);
}

/* The desktop starts `hearth service start`, which starts the service in the background with its own log. */
char *desktop_text(struct arena *a, const struct unit_command *c)
{
    struct buf out;

    buf_init(&out, LIMIT_UNIT_BYTES);
    buf_add_str(&out, "[Desktop Entry]\nType=Application\nName=Hearth\nComment=Local AI application service\nExec=");
    add_command(&out, c, " service start", add_desktop_word);
    buf_add_str(&out, "\nTerminal=false\nNoDisplay=true\nX-GNOME-Autostart-enabled=true\n");
    return add_mark(a, c, &out);
}

/* --- marks --- */

/* What follows the line of the mark; p NULL when the text has none. */
static struct slice rest_of(struct slice text)
{
    const size_t n = strlen(UNIT_MARK) + HASH_HEX_SIZE; /* the NUL's place is the line feed's */

    if (text.n < n || memcmp(text.p, UNIT_MARK, strlen(UNIT_MARK)) != 0 || text.p[n - 1] != '\n')
        return (struct slice){ NULL, 0 };
    return (struct slice){ text.p + n, text.n - n };
}

enum unit_text_kind unit_text_kind(struct slice text)
{
    struct slice rest = rest_of(text);
    char hex[HASH_HEX_SIZE];

    if (!rest.p)
        return UNIT_TEXT_FOREIGN;
    hash_text_hex(rest, hex);
    return memcmp(text.p + strlen(UNIT_MARK), hex, HASH_HEX_SIZE - 1) == 0 ? UNIT_TEXT_OURS : UNIT_TEXT_CHANGED;
}

char *unit_text_data_dir(struct arena *a, struct slice text)
{
    struct slice rest = rest_of(text);
    const size_t n = strlen(UNIT_FOLDER);
    const char *end;

    if (!rest.p || rest.n < n || memcmp(rest.p, UNIT_FOLDER, n) != 0)
        return NULL;
    end = memchr(rest.p, '\n', rest.n);
    return end ? arena_strndup(a, rest.p + n, (size_t)(end - rest.p) - n) : NULL;
}

bool unit_text_runs(struct slice text, const char *program)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *line = arena_printf(a, "\nExecStart=%s serve\n", program);

    return text.p && memmem(text.p, text.n, line, strlen(line)) != NULL;
}
