/* What a process of Hearth does to itself before it reads a secret: no core files, memory that no other program of the same user can read, and
 * no new program code.
 *
 * hardening_apply() once in main, before threads; the children a service starts are not bound by it. hardening_now() any thread.
 *
 *     hardening_apply();
 *     struct hardening now = hardening_now();
 */
#pragma once

#include <stdbool.h>

struct hardening {
    bool is_closed;                     /* PR_SET_DUMPABLE 0: no ptrace, /proc/<pid>/mem and environ belong to root */
    bool has_no_core;                   /* RLIMIT_CORE 0 */
    bool refuses_new_code;              /* PR_SET_MDWE: no memory that is or was writable becomes executable; Linux 6.6 */
};

void hardening_apply(void);
struct hardening hardening_now(void);
