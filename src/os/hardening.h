/* Hardens a process of Hearth before it reads a secret: no core files, memory that no other program of the same user
 * can read, and no new executable code.
 *
 * main calls hardening_apply() once, before threads; it does not restrict the children that a service starts.
 * hardening_now() is for any thread.
 *
 *     hardening_apply();
 *     struct hardening now = hardening_now();
 */
#pragma once

#include <stdbool.h>

struct hardening {
    bool is_closed;        /* PR_SET_DUMPABLE 0: no ptrace, /proc/<pid>/mem and environ belong to root */
    bool has_no_core;      /* RLIMIT_CORE 0 */
    bool refuses_new_code; /* PR_SET_MDWE: no memory that is or was writable becomes executable; Linux 6.6 */
};

void hardening_apply(void);
struct hardening hardening_now(void);
