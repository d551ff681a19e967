/* Texts generated from the table of commands: help, the manual page. All print to a buffer; pure. */
#pragma once

#include "cli/command.h"

void help_print_usage(struct buf *out, const struct command *c); /* one line */
void help_print_command(struct buf *out, const struct command *c);
/* Every command whose words begin with the group's words (NULL: all). */
void help_print_list(struct buf *out, const char *group);
void help_print_man(struct buf *out); /* roff(7) with the man(7) macros */
