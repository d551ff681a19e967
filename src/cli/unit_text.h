/* The text of the two files by which a desktop or systemd starts Hearth: the user unit (systemd.service(5)) and the
 * autostart entry (Desktop Entry Specification 1.5). Each begins with a mark: a hash of all that follows, and the data
 * folder. So a file that a person changed, or that somebody else made, is known. Pure; any thread.
 *
 *     const struct unit_command c = { "/usr/bin/hearth", NULL };
 *     text = unit_text(arena, &c);
 *     unit_text_kind(slice_of(text)) == UNIT_TEXT_OURS
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct unit_command {
    const char *program;  /* absolute */
    const char *data_dir; /* absolute */
    bool names_data;      /* --data is written: the folder is not the one that any environment gives */
};

/* -EINVAL BAD_PATH when a path cannot be written into such a file: control characters, or bytes that are no UTF-8. */
int unit_command_check(const struct unit_command *c, struct err *e) MUST_CHECK;
char *unit_text(struct arena *a, const struct unit_command *c);
char *desktop_text(struct arena *a, const struct unit_command *c);

enum unit_text_kind { UNIT_TEXT_FOREIGN, UNIT_TEXT_CHANGED, UNIT_TEXT_OURS };
enum unit_text_kind unit_text_kind(struct slice text);
/* The data folder in the mark; NULL for a foreign text. */
char *unit_text_data_dir(struct arena *a, struct slice text);
/* Whether a unit without a mark, such as that of a package, runs exactly `program serve`. */
bool unit_text_runs(struct slice text, const char *program);
