#include "os/child_jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- capabilities and /proc ---- */

/* The machine's root owns these even without capabilities. An ordinary user, whose namespaces bubblewrap nests, never
 * owns them. */
static const char *const proc_read_only[] = {
    "/proc/sys",  "/proc/sysrq-trigger", "/proc/irq",  "/proc/bus",    "/proc/fs",
    "/proc/acpi", "/proc/scsi",          "/proc/mtrr", "/proc/driver",
};

/* Kernels before 6.14 have one pid_max for all namespaces and refuse this write; RLIMIT_NPROC still applies. */
static void child_bound_tasks(uint32_t max_tasks)
{
    int fd = open("/proc/sys/kernel/pid_max", O_WRONLY | O_CLOEXEC);
    char text[16];

    if (fd < 0)
        return;
    snprintf(text, sizeof(text), "%u", max_tasks);
    if (write(fd, text, strlen(text)) < 0)
        errno = 0;
    close(fd);
}

static int child_protect_proc(void)
{
    for (size_t i = 0; i < sizeof(proc_read_only) / sizeof(*proc_read_only); i++) {
        const char *path = proc_read_only[i];

        if (access(path, F_OK) < 0)
            continue;
        if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0 ||
            mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
            return -errno;
    }
    return 0;
}

static int child_drop_capabilities(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { 0 };

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        if (prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1 && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
            return -errno;
    return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

int child_jail_namespace(uint32_t max_tasks)
{
    int r;

    if (max_tasks > 0)
        child_bound_tasks(max_tasks);
    r = getuid() == 0 ? child_protect_proc() : 0;
    return r < 0 ? r : child_drop_capabilities();
}

/* ---- Landlock; Debian 12's header is older than its kernel's features ---- */

enum {
    LL_EXECUTE = 1 << 0,
    LL_WRITE_FILE = 1 << 1,
    LL_READ_FILE = 1 << 2,
    LL_READ_DIR = 1 << 3,
    LL_MAKE_CHAR = 1 << 6,
    LL_MAKE_BLOCK = 1 << 11,
    LL_REFER = 1 << 13,
    LL_TRUNCATE = 1 << 14,
    LL_IOCTL_DEV = 1 << 15,
    LL_ALL_ABI1 = (1 << 13) - 1,
    LL_READ = LL_EXECUTE | LL_READ_FILE | LL_READ_DIR,
    LL_OF_FILES = LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE | LL_IOCTL_DEV,
    LL_CONNECT_TCP = 1 << 1,
    LL_ABSTRACT_SOCKET = 1 << 0,
    LL_SIGNAL = 1 << 1,
    LL_RULE_PATH = 1,
    LL_RULE_PORT = 2,
};

struct ll_ruleset {
    uint64_t fs, net, scoped;
};
struct ll_path {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));
struct ll_port {
    uint64_t allowed, port;
};

static uint64_t ll_known_rights(uint32_t abi)
{
    uint64_t known = LL_ALL_ABI1;

    known |= abi >= 2 ? LL_REFER : 0;
    known |= abi >= 3 ? LL_TRUNCATE : 0;
    return known | (abi >= 5 ? LL_IOCTL_DEV : 0);
}

/* A missing path allows nothing, so it is not a failure. */
static int ll_allow_path(int ruleset, const char *rule, uint64_t known)
{
    struct ll_path path = { .fd = open(rule + 1, O_PATH | O_CLOEXEC) };
    struct stat st;
    int r;

    if (path.fd < 0)
        return 0;
    path.allowed = rule[0] == 'w' ? known & ~(uint64_t)(LL_MAKE_CHAR | LL_MAKE_BLOCK) : LL_READ;
    if (fstat(path.fd, &st) == 0 && !S_ISDIR(st.st_mode))
        path.allowed &= LL_OF_FILES & known;
    r = syscall(SYS_landlock_add_rule, ruleset, LL_RULE_PATH, &path, 0) < 0 ? -errno : 0;
    close(path.fd);
    return r;
}

static int ll_fill(int ruleset, const struct child_plan *plan, const char *const *rules, uint64_t known)
{
    const struct ll_port service = { LL_CONNECT_TCP, plan->port };
    int r = 0;

    for (uint32_t i = 0; r == 0 && plan->has_file_rules && i < plan->n_rules; i++)
        r = ll_allow_path(ruleset, rules[i], known);
    if (r == 0 && plan->is_offline && syscall(SYS_landlock_add_rule, ruleset, LL_RULE_PORT, &service, 0) < 0)
        r = -errno;
    return r;
}

int child_jail_landlock(const struct child_plan *plan, const char *const *rules)
{
    const uint64_t known = ll_known_rights(plan->landlock_abi);
    const struct ll_ruleset wanted = {
        .fs = plan->has_file_rules ? known : 0,
        .net = plan->is_offline ? LL_CONNECT_TCP : 0,
        .scoped = plan->landlock_abi >= 6 ? LL_ABSTRACT_SOCKET | LL_SIGNAL : 0,
    };
    size_t size = plan->landlock_abi >= 6   ? sizeof(wanted)
                  : plan->landlock_abi >= 4 ? 2 * sizeof(uint64_t)
                                            : sizeof(uint64_t);
    int ruleset, r;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    if (plan->landlock_abi == 0 || !(wanted.fs | wanted.net | wanted.scoped))
        return 0;
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &wanted, size, 0);
    r = ruleset < 0 ? -errno : ll_fill(ruleset, plan, rules, known);
    if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        r = -errno;
    if (ruleset >= 0)
        close(ruleset);
    return r;
}

/* ---- seccomp ---- */

int child_jail_filter(const struct sock_filter *filter, size_t n)
{
    const struct sock_fprog program = { .len = (unsigned short)n, .filter = (struct sock_filter *)filter };

    if (n == 0)
        return 0;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0 ? -errno : 0;
}
