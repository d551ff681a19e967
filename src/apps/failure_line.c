#include "apps/failure_line.h"

#include "base/slice.h"

#include <ctype.h>
#include <string.h>

/* npm's prefix of each line of an error, depending on npm's version. */
static const char *const npm_marks[] = { "npm error", "npm ERR!" };

static bool begins(struct slice line, const char *text)
{
    return line.n >= strlen(text) && memcmp(line.p, text, strlen(text)) == 0;
}

static struct slice without_blanks(struct slice line)
{
    while (line.n > 0 && isspace((unsigned char)line.p[0]))
        line = (struct slice){ line.p + 1, line.n - 1 };
    while (line.n > 0 && isspace((unsigned char)line.p[line.n - 1]))
        line.n--;
    return line;
}

/* Codes, places and the path of the whole log say less than the sentence among them. */
static bool is_npm_sentence(struct slice line)
{
    static const char *const others[] = { "code ",
                                          "errno ",
                                          "syscall ",
                                          "path ",
                                          "command ",
                                          "signal ",
                                          "A complete log of this run",
                                          "Log files were not written" };
    struct slice rest = { NULL, 0 };

    for (size_t i = 0; i < ARRAY_SIZE(npm_marks); i++)
        if (begins(line, npm_marks[i]))
            rest = without_blanks((struct slice){ line.p + strlen(npm_marks[i]), line.n - strlen(npm_marks[i]) });
    for (size_t i = 0; rest.n > 0 && i < ARRAY_SIZE(others); i++)
        if (begins(rest, others[i]))
            return false;
    return rest.n > strlen("404"); /* a bare number only separates lines */
}

/* "TypeError: ..." or "Error [ERR_X]: ..." at the beginning of a line. */
static bool is_exception(struct slice line)
{
    size_t n = 0;

    while (n < line.n && isalnum((unsigned char)line.p[n]))
        n++;
    if (n < strlen("Error") || memcmp(line.p + n - strlen("Error"), "Error", strlen("Error")) != 0)
        return false;
    return (n < line.n && line.p[n] == ':') || (n + 1 < line.n && line.p[n] == ' ' && line.p[n + 1] == '[');
}

static struct slice next_line(const char **text)
{
    size_t n = strcspn(*text, "\n");
    struct slice line = { *text, n };

    *text += n + ((*text)[n] == '\n');
    return line;
}

const char *failure_line(const char *lines, struct arena *a)
{
    struct slice exception = { NULL, 0 }, last = { "", 0 };

    while (*lines) {
        struct slice line = without_blanks(next_line(&lines));

        if (is_npm_sentence(line))
            return arena_slicedup(a, line);
        if (is_exception(line))
            exception = line;
        if (line.n > 0)
            last = line;
    }
    return arena_slicedup(a, exception.n > 0 ? exception : last);
}
