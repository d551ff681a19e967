/* The user's systemd manager, called through systemctl with a deadline. One thread.
 *
 *     r = systemd_open(arena, &manager, e);          -ENOTCONN NO_USER_MANAGER says why none answers, and what to do
 *     r = systemd_do(&manager, "start", SYSTEMD_START_MS, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <sys/types.h>

#define SYSTEMD_UNIT "hearth.service"

enum {
    SYSTEMD_CALL_MS = 20000,
    SYSTEMD_START_MS = 240000, /* the unit itself waits longer: a start that takes so long goes on */
    SYSTEMD_STOP_MS = 670000,  /* above the unit's TimeoutStopSec */
};

struct systemd {
    struct arena *arena;
    const char *program;
    const char *const *env; /* the person's; with XDG_RUNTIME_DIR when only that was missing */
};

struct systemd_unit {
    const char *fragment; /* the file that the manager has loaded; "": none */
    bool is_enabled, is_active;
    const char *state; /* "active", "inactive", "failed", ... */
    pid_t main_pid;    /* 0: none */
};

int systemd_open(struct arena *a, struct systemd *ret, struct err *e) MUST_CHECK;
/* systemctl --user VERB hearth.service; daemon-reload has no unit. -EREMOTEIO SYSTEMCTL_FAILED with its words. */
int systemd_do(const struct systemd *s, const char *verb, int64_t deadline_ms, struct err *e) MUST_CHECK;
int systemd_show(const struct systemd *s, struct systemd_unit *ret, struct err *e) MUST_CHECK;
/* Whether user managers start at boot, without a session of this user (loginctl enable-linger). */
bool systemd_has_linger(struct arena *a);
/* Name of the user, for the person; "" when there is none. */
const char *systemd_user_name(struct arena *a);
