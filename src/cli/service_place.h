/* Where `hearth service install` writes: the user's systemd unit and the autostart entry. Looks at what is there, and
 * replaces or removes it only while it is what this command wrote, unless forced. One thread.
 *
 *     r = service_place_look(arena, &place, e);
 *     r = service_file_write(&place.unit, text, false, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct service_file {
    const char *path;
    bool exists, is_ours; /* is_ours: unchanged since this command wrote the file */
    const char *what;     /* for a person, of an existing file: "was changed", "is a symbolic link", ... */
    const char *data_dir; /* in its mark; NULL: it has none */
    struct slice text;
};

struct service_place {
    struct service_file unit, autostart;
    struct service_file package; /* unit of the Debian package, for all users; never written */
    const char *wants;           /* the link that enables the unit */
};

int service_place_look(struct arena *a, struct service_place *ret, struct err *e) MUST_CHECK;
/* 0: the file may be replaced or removed on behalf of this data folder. -EEXIST FOREIGN_FILE, FILE_CHANGED or
 * OTHER_FOLDER says why not, and how. */
int service_file_admit(const struct service_file *f, const char *data_dir, bool is_forced, struct err *e) MUST_CHECK;
/* Makes the folders that are missing. *ret_changed: false when the file had this text already. */
int service_file_write(const struct service_file *f, const char *text, bool *ret_changed, struct err *e) MUST_CHECK;
int service_file_remove(const struct service_file *f, struct err *e) MUST_CHECK;
