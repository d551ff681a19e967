/* One service for each data folder: <data>/hearth.lock is locked with flock(2) and contains the owner's pid. */
#pragma once

#include "base/err.h"
#include <sys/types.h>

struct lockfile;

/* -EBUSY ALREADY_RUNNING "Another Hearth (pid 4711) uses this data folder: ...". */
int lockfile_open(const char *data_dir, struct lockfile **ret, struct err *e) MUST_CHECK;
struct lockfile *lockfile_close(struct lockfile *l);
/* Pid of the running service of that folder; 0 when none runs. */
pid_t lockfile_owner(const char *data_dir);
