/* A command is a row of a const table (cli/commands*.c, one table for each area). Matching, options, help, the man
 * page, shell completion and, for nearly all commands, the work itself follow from the row: one management request,
 * whose answer is shown as a table, a sentence or JSON.
 *
 * One thread. `struct cli` and all its strings live in its arena until cli_main() returns.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/json_write.h"
#include "http/http.h"

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_WRONG_USE = 2, CLI_MAX_ARGS = 32, CLI_MAX_OPTIONS = 32 };

struct cli_option {
    const char *name;   /* "--data" */
    const char *letter; /* "-f", or NULL */
    const char *value;  /* "DIR": the option takes a value; NULL: a switch */
    bool is_many;       /* may be given more than once */
    const char *help;
    const char *field; /* of the request, unless it is the name with _ for - */
};

enum cli_format {
    CLI_TEXT,
    CLI_TIME,
    CLI_YES_NO,
    CLI_COUNT /* length of an array */,
    CLI_JOINED /* strings of an array */,
    CLI_ID /* a UUID; in a terminal its first characters, which the commands accept */
};

/* A column of a table: title, and the member of each object that the column shows; "a.b" is b within a. */
struct cli_column {
    const char *title, *member;
    enum cli_format format;
    int drop; /* a narrow terminal loses the columns with the highest number first; 0: never */
};

struct cli;

struct command {
    const char *words; /* "key new" */
    const char *args;  /* in the form of the usage line: "FILE.json", "[APP]" */
    int n_args_min, n_args_max;
    const struct cli_option *options; /* ended by name NULL; --data and, with is_json, --json are added */
    const char *summary;              /* one line */
    const char *details;              /* for help and the man page; may be NULL */
    bool is_json;
    bool has_table; /* prints one although `columns` is NULL */
    struct {
        const char *path, *list, *member;
    } ids;              /* where the beginning of the id of argument 0 is looked up; path NULL: nowhere */
    bool is_repair;     /* runs also with unusable stored settings, which are reported */
    bool makes_folder;  /* may be the first command on a data folder; any other is refused where no service ever ran */
    bool needs_service; /* requires a running service */
    bool is_hidden;     /* for programs: neither in help, manual page and docs/cli.md nor completed */
    /* Does the work; NULL: the request below. 0, or an exit code after the error was printed, or a negative errno with
     * e filled. */
    int (*run)(struct cli *cli, struct err *e);

    enum http_method method;
    const char *path;  /* "/api/keys/{0}": {n} is argument n */
    const char *query; /* the same for the query; an argument that was not given is left out with its name */
    void (*body)(struct cli *cli, struct json_writer *w); /* members of the body object */
    bool is_body_file;                /* argument 0 names the file with the body; - is standard input */
    const char *list;                 /* member of the answer that has the list to show ... */
    const struct cli_column *columns; /* ... as a table with these columns, ended by title NULL */
    const char *empty;                /* sentence for an empty list */
    const char *const *made;          /* members that --json prints; NULL: all except success */
    const char *done;                 /* sentence: {n} is an argument, {member} a member of the answer */
    const struct command *more;       /* of the last row, whose words are NULL: the next table; NULL: none */
};

extern const struct command commands[], commands_mcp[], commands_backend[];
/* The first command, and the one after c, of whatever table; NULL after the last. */
const struct command *command_first(void);
const struct command *command_next(const struct command *c);

struct cli_values {
    const char *items[64];
    size_t n;
};

struct cli {
    struct arena *arena;
    const struct command *command;
    const char *group; /* `hearth GROUP --help`, without a command */
    const char *args[CLI_MAX_ARGS];
    size_t n_args;
    struct {
        const struct cli_option *option;
        const char *value;
    } given[64];
    size_t n_given;
    bool is_json, is_help, is_version;
    const char *data_dir;  /* absolute */
    struct client *client; /* owned; opened by the first request */
};

/* Value of the last --name (of a switch: "true"); NULL when it was not given. */
const char *cli_value(const struct cli *cli, const char *name);
bool cli_has(const struct cli *cli, const char *name);
/* All values of a repeated option; NULL-ended, in the arena. */
const char *const *cli_values(const struct cli *cli, const char *name, size_t *ret_n);
