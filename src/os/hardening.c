#include "os/hardening.h"

#include <sys/prctl.h>
#include <sys/resource.h>

/* From linux/prctl.h of Linux 6.3 and 6.6; Debian 12's headers are older than the kernels on which Hearth runs. */
enum {
    HARDENING_SET_MDWE = 65,
    HARDENING_GET_MDWE = 66,
    HARDENING_REFUSE_EXEC_GAIN = 1,
    HARDENING_NO_INHERIT = 2,
};

/* Not by seccomp: a filter survives exec, and programs that Hearth starts generate code at run time (Node). MDWE
 * without NO_INHERIT survives exec too, so on a kernel without NO_INHERIT it is not set. */
void hardening_apply(void)
{
    const struct rlimit no_core = { 0, 0 };
    int r = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);

    if (r == 0)
        r = setrlimit(RLIMIT_CORE, &no_core);
    if (r == 0)
        r = prctl(HARDENING_SET_MDWE, HARDENING_REFUSE_EXEC_GAIN | HARDENING_NO_INHERIT, 0, 0, 0);
    (void)r; /* hardening_now() reports what is in force */
}

struct hardening hardening_now(void)
{
    struct rlimit core = { 1, 1 };
    int mdwe = prctl(HARDENING_GET_MDWE, 0, 0, 0, 0);

    return (struct hardening){
        .is_closed = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0,
        .has_no_core = getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0,
        .refuses_new_code = mdwe > 0 && (mdwe & HARDENING_REFUSE_EXEC_GAIN) != 0,
    };
}
