/* Denies system calls that no app or agent needs and that affect the kernel or other processes. */
#include "os/sandbox_private.h"

#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILTER_MOST = 4096 }; /* BPF_MAXINSNS of the kernel */

#define FILTER_TIOCLINUX 0x541c /* asm-generic/ioctls.h */

static const int denied[] = {
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(process_madvise),
    SCMP_SYS(kcmp),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(lookup_dcookie),
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(mount),
    SCMP_SYS(umount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fspick),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(create_module),
    SCMP_SYS(get_kernel_syms),
    SCMP_SYS(query_module),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(quotactl),
    SCMP_SYS(nfsservctl),
    SCMP_SYS(uselib),
    SCMP_SYS(vhangup),
    SCMP_SYS(vm86),
    SCMP_SYS(vm86old),
    SCMP_SYS(modify_ldt),
    SCMP_SYS(ioperm),
    SCMP_SYS(iopl),
    SCMP_SYS(syslog),
    SCMP_SYS(_sysctl),
    SCMP_SYS(sysfs),
    SCMP_SYS(ustat),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(stime),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(name_to_handle_at),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(move_pages),
    SCMP_SYS(migrate_pages),
    SCMP_SYS(personality),
};

static const unsigned long denied_ioctls[] = { TIOCSTI, FILTER_TIOCLINUX, TIOCCONS };

static const unsigned long denied_clones[] = { CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                               CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP };

static pthread_once_t filter_once = PTHREAD_ONCE_INIT;
static struct sock_filter filter_bytes[FILTER_MOST];
static size_t filter_n;
static int filter_r;

static int filter_deny_calls(scmp_filter_ctx filter)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(denied); i++)
        if (denied[i] >= 0) /* below 0: this architecture does not have the call */
            r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), denied[i], 0);
    return r;
}

/* clone3(2) is denied because its flags are in memory, where no filter can read them; libraries fall back to
 * clone(2). */
static int filter_deny_namespaces(scmp_filter_ctx filter)
{
    int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(denied_clones); i++)
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                             SCMP_A0(SCMP_CMP_MASKED_EQ, denied_clones[i], denied_clones[i]));
    return r;
}

/* The kernel evaluates only the lower 32 bits of the request, so the filter does too. */
static int filter_deny_arguments(scmp_filter_ctx filter)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(denied_ioctls); i++)
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                             SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffU, denied_ioctls[i]));
    return r;
}

static int filter_export(scmp_filter_ctx filter)
{
    int fd = memfd_create("filter", MFD_CLOEXEC), r = fd < 0 ? -errno : seccomp_export_bpf(filter, fd);
    ssize_t n = r == 0 ? pread(fd, filter_bytes, sizeof(filter_bytes), 0) : -1;

    if (fd >= 0)
        close(fd);
    if (r == 0 && n <= 0)
        r = -EIO;
    filter_n = n > 0 ? (size_t)n / sizeof(*filter_bytes) : 0;
    return r;
}

static void filter_make(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

    filter_r = filter ? seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)) : -ENOMEM;
    if (filter_r == 0)
        filter_r = filter_deny_calls(filter);
    if (filter_r == 0)
        filter_r = filter_deny_namespaces(filter);
    if (filter_r == 0)
        filter_r = filter_deny_arguments(filter);
    if (filter_r == 0)
        filter_r = filter_export(filter);
    if (filter)
        seccomp_release(filter);
}

int sandbox_filter(const struct sock_filter **ret, size_t *ret_n, struct err *e)
{
    pthread_once(&filter_once, filter_make);
    if (filter_r < 0)
        return err_errno(e, -filter_r, "The filter of system calls cannot be made");
    *ret = filter_bytes;
    *ret_n = filter_n;
    return 0;
}
