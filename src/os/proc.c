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
    PROC_ENVIRON_BYTES = 8 << 20,       /* more than the kernel lets a program be started with */
    PROC_READ_STEP = 16384,
    PROC_HELD = 1024,                   /* marked processes ended in one round */
    PROC_KILL_ROUNDS = 10,              /* a process may fork while it is being looked for */
    PROC_KILL_WAIT_MS = 1000,           /* a round */
    PROC_SOCKETS = 1024,                /* of one group that are looked at */
    PROC_TCP_LISTEN = 10,               /* state in /proc/net/tcp: TCP_LISTEN of the kernel's tcp_states.h */
};

struct proc_round {
    struct pollfd pidfds[PROC_HELD];    /* owned */
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

struct proc_stat { char state; int parent, group; };

/* False: it is gone. */
static bool proc_read_stat(pid_t pid, struct proc_stat *ret)
{
    char text[512];
    int fd = proc_open(pid, "stat");
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    const char *after_name;

    if (fd >= 0)
        close(fd);
    text[MAX(n, 0)] = '\0';
    after_name = strrchr(text, ')');    /* proc(5): the name may hold anything, also parentheses */
    return after_name && sscanf(after_name + 1, " %c %d %d", &ret->state, &ret->parent, &ret->group) == 3;
}

static bool proc_is_in_group(pid_t pid, pid_t pgid)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) && stat.group == pgid && stat.state != 'Z' && stat.state != 'X';
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
        return true;                    /* not known, so not denied */
    while (!lives && (pid = proc_next(proc)) > 0)
        lives = proc_is_in_group(pid, pgid);
    closedir(proc);
    return lives;
}

/* ---- who listens ---- */

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

/* Of one line of /proc/net/tcp (proc(5)): the port if it is one of these sockets and listens on 127.0.0.1, else 0. */
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

static bool proc_has_string(struct slice strings, const char *wanted)
{
    while (strings.n > 0) {
        size_t n = strnlen(strings.p, strings.n);

        if (slice_eq_str((struct slice){ strings.p, n }, wanted))
            return true;
        n = MIN(n + 1, strings.n);
        strings = (struct slice){ strings.p + n, strings.n - n };
    }
    return false;
}

static bool proc_is_marked(pid_t pid, const char *mark)
{
    int fd = pid == getpid() ? -1 : proc_open(pid, "environ");
    struct stat st;
    struct buf text;
    bool is_marked;

    if (fd < 0)
        return false;
    buf_init(&text, PROC_ENVIRON_BYTES);
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid())
        proc_read_environ(fd, &text);
    close(fd);
    is_marked = proc_has_string(buf_slice(&text), mark);
    buf_clear(&text);
    return is_marked;
}

/* Signals the process if it is still the marked one; returns its pidfd, -1 when it is not or is gone. */
static int proc_signal_marked(pid_t pid, const char *mark, int signum)
{
    int pidfd = pidfd_open(pid, 0);

    /* The pidfd holds a process, maybe not the one seen before: look again. What is read then is the held one's own, or
     * that one is gone already and the signal goes nowhere. */
    if (pidfd >= 0 && proc_is_marked(pid, mark) && pidfd_send_signal(pidfd, signum, NULL, 0) == 0)
        return pidfd;
    if (pidfd >= 0)
        close(pidfd);
    return -1;
}

static void proc_round_signal(struct proc_round *round, const char *mark, int signum)
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

/* Until all of the round have ended, or the time is over. */
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

static size_t proc_end_round(const char *mark, int signum, int64_t wait_ms)
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

size_t proc_end_marked(const char *mark, int64_t grace_ms)
{
    size_t n_found = proc_end_round(mark, SIGTERM, grace_ms);

    for (int i = 0; n_found > 0 && i < PROC_KILL_ROUNDS; i++)
        if (proc_end_round(mark, SIGKILL, PROC_KILL_WAIT_MS) == 0)
            break;
    return n_found;
}
