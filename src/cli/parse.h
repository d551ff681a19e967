/* Parses a command line by the table of commands. */
#pragma once

#include "cli/command.h"

extern const struct cli_option cli_common_options[]; /* of every command; ended by name NULL */
extern const struct cli_option cli_json_option;

/* Fills command, args, options. -EINVAL BAD_USE with a sentence; ret->command is then the command if it was found. */
int cli_parse(int argc, char *const *argv, struct cli *ret, struct err *e) MUST_CHECK;
/* -EINVAL BAD_USE: there is no command of these words (second may be NULL); names the nearest. */
int parse_refuse_words(struct cli *cli, const char *first, const char *second, struct err *e);
/* The command with exactly these words; NULL when there is none. */
const struct command *command_find(const char *words);
/* Calls fn for each option of the command, the common ones last. */
void command_each_option(const struct command *c, void (*fn)(const struct cli_option *option, void *arg), void *arg);
/* The option that `--name` or `--name=value` means; c NULL: of those that every command has. NULL: there is none. */
const struct cli_option *command_option(const struct command *c, const char *text);
