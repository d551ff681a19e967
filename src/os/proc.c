#include "os/proc.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PROC_ENVIRON_BYTES = 8 << 20, /* more than the kernel allows for an environment */
    PROC_READ_STEP = 16384,
    PROC_HELD = 1024,              /* marked processes ended in one round */
    PROC_KILL_ROUNDS = 10,         /* processes may fork during the search */
    PROC_KILL_WAIT_MS = 1000,      /* for each round */
    PROC_EXEC_WAITS = 50,          /* for the environments of programs that begin */
    PROC_KERNEL_THREAD = 0x200000, /* PF_KTHREAD of the kernel's sched.h */
    PROC_END_WAIT_MS = 1000,       /* to wait for a service that is ending */
    PROC_SOCKETS = 1024,           /* examined for one group */
    PROC_TCP_LISTEN = 10,          /* state in /proc/net/tcp: TCP_LISTEN of the kernel's tcp_states.h */
};

/* Selects processes by their mark. */
struct proc_mark {
    const char *text;
    bool is_prefix; /* the mark is followed by the pid of the service that started the process; that service must have
                       ended */
    pid_t living;   /* a service that did not end within the wait */
    int n_waits;    /* left for processes in execve(2), of 1 ms each */
};

struct proc_round {
    struct pollfd pidfds[PROC_HELD]; /* owned */
    size_t n;
};

/* The next entry of /proc that is a process; 0 at the end. */
static pid_t proc_next(DIR *proc)
{
    struct dirent *entry;

    while ((entry = readdir(proc))) {
        long pid = strtol(entry->d_name, NULL, 10);

        if (pid > 0)
            return (pid_t)pid;
    }
    return 0;
}

static int proc_open(pid_t pid, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

struct proc_stat {
    char state;
    int parent, group;
    unsigned flags;
    unsigned long long started;
};

/* False: the process has ended. */
static bool proc_read_stat(pid_t pid, struct proc_stat *ret)
{
    char text[512];
    int fd = proc_open(pid, "stat");
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    const char *after_name;

    if (fd >= 0)
        close(fd);
    text[MAX(n, 0)] = '\0';
    after_name = strrchr(text, ')'); /* proc(5): the name may hold anything, also parentheses */
    return after_name &&
           sscanf(after_name + 1, " %c %d %d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &ret->state, &ret->parent, &ret->group, &ret->flags, &ret->started) == 5;
}

static bool proc_read_stat_of_living(pid_t pid, struct proc_stat *ret)
{
    return proc_read_stat(pid, ret) && ret->state != 'Z' && ret->state != 'X';
}

static bool proc_is_in_group(pid_t pid, pid_t pgid)
{
    struct proc_stat stat;

    return proc_read_stat_of_living(pid, &stat) && stat.group == pgid;
}

pid_t proc_parent(pid_t pid)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) ? stat.parent : 0;
}

bool proc_group_lives(pid_t pgid)
{
    DIR *proc = opendir("/proc");
    bool lives = false;
    pid_t pid;

    if (!proc)
        return true; /* unknown: assume that it lives */
    while (!lives && (pid = proc_next(proc)) > 0)
        lives = proc_is_in_group(pid, pgid);
    closedir(proc);
    return lives;
}

/* ---- listening sockets ---- */

struct proc_sockets {
    unsigned long inodes[PROC_SOCKETS];
    size_t n;
};

static void proc_add_sockets(struct proc_sockets *sockets, pid_t pid)
{
    char path[64], target[64];
    struct dirent *entry;
    DIR *fds;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    fds = opendir(path);
    while (fds && sockets->n < PROC_SOCKETS && (entry = readdir(fds))) {
        ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);

        target[MAX(n, 0)] = '\0';
        if (sscanf(target, "socket:[%lu]", &sockets->inodes[sockets->n]) == 1)
            sockets->n++;
    }
    if (fds)
        closedir(fds);
}

/* For one line of /proc/net/tcp (proc(5)): the port if the socket is one of these and listens on 127.0.0.1, else 0. */
static uint16_t proc_port_of_line(const char *line, const struct proc_sockets *sockets)
{
    unsigned address, port, state;
    unsigned long inode;

    if (sscanf(line, " %*u: %8X:%4X %*8X:%*4X %2X %*s %*s %*s %*s %*s %lu", &address, &port, &state, &inode) != 4)
        return 0;
    if (state != PROC_TCP_LISTEN || address != htonl(INADDR_LOOPBACK))
        return 0;
    for (size_t i = 0; i < sockets->n; i++)
        if (sockets->inodes[i] == inode)
            return (uint16_t)port;
    return 0;
}

static uint16_t proc_port_of(pid_t pgid, const struct proc_sockets *sockets)
{
    char line[512];
    uint16_t port = 0;
    FILE *tcp;

    snprintf(line, sizeof(line), "/proc/%d/net/tcp", (int)pgid);
    tcp = fopen(line, "re");
    while (tcp && port == 0 && fgets(line, sizeof(line), tcp))
        port = proc_port_of_line(line, sockets);
    if (tcp)
        fclose(tcp);
    return port;
}

uint16_t proc_listening_port(pid_t pgid)
{
    struct proc_sockets *sockets = xcalloc(1, sizeof(*sockets));
    DIR *proc = opendir("/proc");
    uint16_t port;
    pid_t pid;

    while (proc && (pid = proc_next(proc)) > 0)
        if (proc_is_in_group(pid, pgid))
            proc_add_sockets(sockets, pid);
    if (proc)
        closedir(proc);
    port = proc_port_of(pgid, sockets);
    free(sockets);
    return port;
}

/* ---- ends ---- */

static void proc_read_environ(int fd, struct buf *into)
{
    char *to;
    ssize_t n = 1;

    while (n > 0 && (to = buf_reserve(into, PROC_READ_STEP))) {
        n = read(fd, to, PROC_READ_STEP);
        into->n += n > 0 ? (size_t)n : 0;
    }
}

/* A killed service releases its lock a moment before its process has ended. */
static bool proc_has_ended(pid_t service, struct proc_mark *mark)
{
    struct pollfd end = { .fd = mark->living == service ? -1 : pidfd_open(service, 0), .events = POLLIN };
    bool has_ended = mark->living != service && (end.fd < 0 || poll(&end, 1, PROC_END_WAIT_MS) > 0);

    if (end.fd >= 0)
        close(end.fd);
    mark->living = has_ended ? mark->living : service;
    return has_ended;
}

/* True when the service has ended, or when a newer process than this one has reused its pid. */
static bool proc_is_orphan(pid_t pid, pid_t service, struct proc_mark *mark)
{
    struct proc_stat own, of_service;

    if (!proc_read_stat(service, &of_service) || (proc_read_stat(pid, &own) && of_service.started > own.started))
        return true;
    return service != getpid() && proc_has_ended(service, mark);
}

static bool proc_string_is_mark(pid_t pid, struct slice string, struct proc_mark *mark)
{
    size_t n = strlen(mark->text);
    char number[16];

    if (!mark->is_prefix)
        return slice_eq_str(string, mark->text);
    if (string.n <= n || memcmp(string.p, mark->text, n) != 0)
        return false;
    snprintf(number, sizeof(number), "%.*s", (int)MIN(string.n - n, sizeof(number) - 1), string.p + n);
    return strspn(number, "0123456789") == string.n - n && proc_is_orphan(pid, (pid_t)strtol(number, NULL, 10), mark);
}

static bool proc_has_mark(pid_t pid, struct slice strings, struct proc_mark *mark)
{
    while (strings.n > 0) {
        size_t n = strnlen(strings.p, strings.n);

        if (proc_string_is_mark(pid, (struct slice){ strings.p, n }, mark))
            return true;
        n = MIN(n + 1, strings.n);
        strings = (struct slice){ strings.p + n, strings.n - n };
    }
    return false;
}

/* For a moment of execve(2) a process has no environment; kernel threads and zombies never have one. */
static bool proc_may_get_environ(pid_t pid)
{
    struct proc_stat stat;

    return proc_read_stat_of_living(pid, &stat) && !(stat.flags & PROC_KERNEL_THREAD);
}

static void proc_await_environ(int fd, pid_t pid, struct proc_mark *mark, struct buf *into)
{
    proc_read_environ(fd, into);
    while (into->n == 0 && mark->n_waits > 0 && proc_may_get_environ(pid)) {
        poll(NULL, 0, 1);
        mark->n_waits--;
        proc_read_environ(fd, into);
    }
}

static bool proc_is_marked(pid_t pid, struct proc_mark *mark)
{
    int fd = pid == getpid() ? -1 : proc_open(pid, "environ");
    struct stat st;
    struct buf text;
    bool is_marked;

    if (fd < 0)
        return false;
    buf_init(&text, PROC_ENVIRON_BYTES);
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid())
        proc_await_environ(fd, pid, mark, &text);
    close(fd);
    is_marked = proc_has_mark(pid, buf_slice(&text), mark);
    buf_clear(&text);
    return is_marked;
}

/* Signals the process if it still has the mark; returns its pidfd, or -1 when the process has no mark or has ended. */
static int proc_signal_marked(pid_t pid, struct proc_mark *mark, int signum)
{
    int pidfd = pidfd_open(pid, 0);

    /* The pidfd may refer to another process than the one seen before, so the mark is read again: it then belongs to
     * the process of the pidfd, or that process has ended and the signal has no effect. */
    if (pidfd >= 0 && proc_is_marked(pid, mark) && pidfd_send_signal(pidfd, signum, NULL, 0) == 0)
        return pidfd;
    if (pidfd >= 0)
        close(pidfd);
    return -1;
}

static void proc_round_signal(struct proc_round *round, struct proc_mark *mark, int signum)
{
    DIR *proc = opendir("/proc");
    pid_t pid;

    while (proc && round->n < PROC_HELD && (pid = proc_next(proc)) > 0) {
        int pidfd = proc_is_marked(pid, mark) ? proc_signal_marked(pid, mark, signum) : -1;

        if (pidfd >= 0)
            round->pidfds[round->n++] = (struct pollfd){ .fd = pidfd, .events = POLLIN };
    }
    if (proc)
        closedir(proc);
}

/* Waits until all processes of the round have ended or the time is over. */
static void proc_round_wait(struct proc_round *round, int64_t wait_ms)
{
    int64_t deadline = clock_mono_ms() + wait_ms, left = wait_ms;

    while (round->n > 0 && left >= 0) {
        if (poll(round->pidfds, round->n, (int)left) > 0)
            for (size_t i = round->n; i-- > 0;)
                if (round->pidfds[i].revents) {
                    close(round->pidfds[i].fd);
                    round->pidfds[i] = round->pidfds[--round->n];
                }
        left = deadline - clock_mono_ms();
    }
}

static size_t proc_end_round(struct proc_mark *mark, int signum, int64_t wait_ms)
{
    struct proc_round *round = xcalloc(1, sizeof(*round));
    size_t n_found;

    proc_round_signal(round, mark, signum);
    n_found = round->n;
    proc_round_wait(round, wait_ms);
    for (size_t i = 0; i < round->n; i++)
        close(round->pidfds[i].fd);
    free(round);
    return n_found;
}

static size_t proc_end(struct proc_mark *mark, int64_t grace_ms)
{
    size_t n_found;

    mark->n_waits = PROC_EXEC_WAITS;
    n_found = proc_end_round(mark, SIGTERM, grace_ms);
    for (int i = 0; n_found > 0 && i < PROC_KILL_ROUNDS; i++)
        if (proc_end_round(mark, SIGKILL, PROC_KILL_WAIT_MS) == 0)
            break;
    return n_found;
}

size_t proc_end_marked(const char *mark, int64_t grace_ms)
{
    return proc_end(&(struct proc_mark){ .text = mark }, grace_ms);
}

size_t proc_end_orphans(const char *prefix, int64_t grace_ms)
{
    return proc_end(&(struct proc_mark){ .text = prefix, .is_prefix = true }, grace_ms);
}
