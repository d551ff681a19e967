#include "speech/worker_limits.h"

#include "base/limits.h"

#include <errno.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static bool limit(int resource, rlim_t most)
{
    const struct rlimit both = { most, most };

    return setrlimit(resource, &both) == 0;
}

bool worker_limit_device(void)
{
    return limit(RLIMIT_AS, (rlim_t)LIMIT_SPEECH_WORKER_MB << 20) && limit(RLIMIT_CORE, 0) &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

bool worker_limit(void)
{
    return limit(RLIMIT_FSIZE, 0) && worker_limit_device();
}

/* What turns text into samples, or samples into text, needs none of these. */
static const int refused[] = {
    SCMP_SYS(execve),         SCMP_SYS(execveat),
    SCMP_SYS(fork),           SCMP_SYS(vfork),
    SCMP_SYS(clone),          SCMP_SYS(clone3),
    SCMP_SYS(socket),         SCMP_SYS(connect),
    SCMP_SYS(bind),           SCMP_SYS(ptrace),
    SCMP_SYS(kill),           SCMP_SYS(tkill),
    SCMP_SYS(unlink),         SCMP_SYS(unlinkat),
    SCMP_SYS(rename),         SCMP_SYS(renameat),
    SCMP_SYS(mkdir),          SCMP_SYS(mkdirat),
    SCMP_SYS(rmdir),          SCMP_SYS(link),
    SCMP_SYS(linkat),         SCMP_SYS(symlink),
    SCMP_SYS(truncate),       SCMP_SYS(chmod),
    SCMP_SYS(fchmodat),       SCMP_SYS(chown),
    SCMP_SYS(fchownat),       SCMP_SYS(mount),
    SCMP_SYS(unshare),        SCMP_SYS(setns),
    SCMP_SYS(renameat2),      SCMP_SYS(symlinkat),
    SCMP_SYS(io_uring_setup), SCMP_SYS(process_vm_writev),
};

static const int refused_files[] = { SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(openat2), SCMP_SYS(creat) };

static bool refuse(scmp_filter_ctx filter, const int *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0) != 0)
            return false;
    return true;
}

bool worker_refuse_calls(bool is_complete)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    bool is_made = filter && seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) == 0 &&
                   refuse(filter, refused, sizeof(refused) / sizeof(refused[0]));

    if (is_made && is_complete)
        is_made = refuse(filter, refused_files, sizeof(refused_files) / sizeof(refused_files[0]));
    is_made = is_made && seccomp_load(filter) == 0;
    seccomp_release(filter);
    return is_made;
}
