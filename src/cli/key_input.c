#include "cli/key_input.h"

#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"

#include <termios.h>
#include <unistd.h>

char *cli_trimmed(struct arena *a, struct slice text)
{
    return arena_slicedup(a, slice_trim(text));
}

enum { CTRL_C = 3, CTRL_D = 4, BACKSPACE = 8, DELETE = 127 };

/* Reads single key presses, so that Ctrl-C is handled here and the terminal's echo is always restored. */
static int read_line(char *line, size_t size, struct err *e)
{
    size_t n = 0;
    char key;

    while (read(STDIN_FILENO, &key, 1) == 1 && key != '\n' && key != '\r' && key != CTRL_D) {
        if (key == CTRL_C)
            return err_set(e, -ECANCELED, "CANCELED", "No key was given; nothing is changed.");
        if (key == BACKSPACE || key == DELETE)
            n -= n > 0;
        else if (n + 1 < size)
            line[n++] = key;
    }
    line[n] = '\0';
    return 0;
}

/* Reads one line without echo. */
static int prompt_key(struct cli *cli, const char *question, const char **ret, struct err *e)
{
    char line[LIMIT_PROVIDER_SECRET + 2] = "";
    struct termios before, silent;
    int r;

    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return err_errno(e, errno, "The terminal");
    silent = before;
    silent.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent); /* before the question: drops earlier input */
    out_complain("%s: ", question);
    r = read_line(line, sizeof(line), e);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    out_complain("\n");
    *ret = cli_trimmed(cli->arena, slice_of(line));
    return r;
}

int cli_read_secret(struct cli *cli, const char *question, const char *nothing, const char **ret, struct err *e)
{
    struct slice text = { 0 };
    int r;

    *ret = NULL;
    r = isatty(STDIN_FILENO) ? prompt_key(cli, question, ret, e)
                             : cli_read_file(cli, "-", LIMIT_PROVIDER_SECRET + 2, &text, e);

    if (r < 0)
        return r;
    if (!*ret)
        *ret = cli_trimmed(cli->arena, text);
    return **ret ? 0 : err_set(e, -EINVAL, "BAD_USE", "%s", nothing);
}

int cli_read_key(struct cli *cli, const char *nothing, const char **ret, struct err *e)
{
    return cli_read_secret(cli, "API key", nothing, ret, e);
}
