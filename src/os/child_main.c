/* hearth-child: see child_plan.h. Statically linked, uses nothing of base/; all input comes through its descriptors. */
#include "os/child_jail.h"
#include "os/child_plan.h"
#include "os/child_tree.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SOCKETS = 2, CHILD_BACKLOG = 128, CHILD_FAILED_CODE = 127, CHILD_KILL_ROUND_MS = 20 };

/* What an ordinary agent needs at least: node starts with ten threads. */
enum { CHILD_SPARE_TASKS = 16 };

struct child_start {
    struct child_plan plan;
    const struct sock_filter *filter;
    const char *path, *working_dir, *home;
    char **args, **env;
    const char **rules;
};

struct child_life {
    pid_t program; /* 0: it has ended and was reaped */
    int signals;
    bool is_killing, has_failed;
};

/* ---- messages ---- */

static void child_report(enum child_note_kind kind, int value, int error)
{
    const struct child_note note = { kind, value, error };

    if (send(CHILD_CONTROL_FD, &note, sizeof(note), MSG_NOSIGNAL) < 0)
        errno = 0; /* the service has ended: child_obey() notices */
}

static _Noreturn void child_fail(enum child_step step, int error)
{
    child_report(CHILD_NOTE_FAILED, step, error);
    _exit(CHILD_FAILED_CODE);
}

/* ---- the plan ---- */

/* The next string; each is complete, because the service wrote them. */
static char *child_next(char **at)
{
    char *text = *at;

    *at += strlen(text) + 1;
    return text;
}

static char **child_strings(char **at, uint32_t n)
{
    char **list = calloc((size_t)n + 1, sizeof(*list));

    for (uint32_t i = 0; list && i < n; i++)
        list[i] = child_next(at);
    return list;
}

static int child_read_plan(struct child_start *s)
{
    struct stat st;
    char *bytes, *at;

    if (fstat(CHILD_PLAN_FD, &st) < 0 || (size_t)st.st_size < sizeof(s->plan))
        return -EINVAL;
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, CHILD_PLAN_FD, 0);
    if (bytes == MAP_FAILED)
        return -errno;
    memcpy(&s->plan, bytes, sizeof(s->plan));
    s->filter = (const struct sock_filter *)(void *)(bytes + sizeof(s->plan));
    at = bytes + sizeof(s->plan) + s->plan.n_filter * sizeof(*s->filter);
    s->path = child_next(&at);
    s->working_dir = child_next(&at);
    s->home = child_next(&at);
    s->args = child_strings(&at, s->plan.n_args);
    s->env = child_strings(&at, s->plan.n_env);
    s->rules = (const char **)child_strings(&at, s->plan.n_rules);
    return s->args && s->env && s->rules ? 0 : -ENOMEM;
}

/* ---- the service's port inside ---- */

static int child_listen(int family, uint16_t port)
{
    const struct sockaddr_in in = { .sin_family = AF_INET,
                                    .sin_port = htons(port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
                                      .sin6_port = htons(port),
                                      .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    const bool is_v6 = family == AF_INET6;
    const int on = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if ((is_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
        bind(fd, is_v6 ? (const void *)&in6 : (const void *)&in, is_v6 ? sizeof(in6) : sizeof(in)) < 0 ||
        listen(fd, CHILD_BACKLOG) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void child_send_sockets(const int *fds, size_t n)
{
    const struct child_note note = { CHILD_NOTE_SOCKETS, (int32_t)n, 0 };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int) * CHILD_SOCKETS)];
    } control = { 0 };
    struct iovec iov = { .iov_base = (void *)&note, .iov_len = sizeof(note) };
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(n * sizeof(int))
    };

    control.head =
        (struct cmsghdr){ .cmsg_len = CMSG_LEN(n * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
    if (sendmsg(CHILD_CONTROL_FD, &message, MSG_NOSIGNAL) < 0)
        child_fail(CHILD_STEP_PORT, errno);
}

/* On a machine without IPv6 only the IPv4 socket is opened. */
static void child_open_port(uint16_t port)
{
    int fds[CHILD_SOCKETS] = { child_listen(AF_INET, port), -1 };
    size_t n = 1;

    if (fds[0] < 0)
        child_fail(CHILD_STEP_PORT, errno);
    fds[n] = child_listen(AF_INET6, port);
    n += fds[n] >= 0;
    child_send_sockets(fds, n);
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
}

/* ---- the process that becomes the program ---- */

static void child_limit(int resource, rlim_t most)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) < 0)
        child_fail(CHILD_STEP_LIMITS, errno);
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > most)
        limit = (struct rlimit){ most, most };
    if (setrlimit(resource, &limit) < 0)
        child_fail(CHILD_STEP_LIMITS, errno);
}

static void child_limit_all(const struct child_plan *plan)
{
    child_limit(RLIMIT_CORE, 0);
    if (plan->max_file_bytes > 0)
        child_limit(RLIMIT_FSIZE, plan->max_file_bytes);
    if (plan->max_tasks > 0 && plan->is_first_process)
        child_limit(RLIMIT_NPROC, plan->max_tasks); /* counted within this user namespace only */
}

static void child_reset_signals(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;

    for (int signum = 1; signum < NSIG; signum++)
        sigaction(signum, &action, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The home is in the child's own folder, where a link could point anywhere, so the home is created from inside the
 * sandbox. */
static void child_enter(const struct child_start *s)
{
    if (*s->home && mkdir(s->home, 0700) < 0 && errno != EEXIST)
        child_fail(CHILD_STEP_DIR, errno);
    if (*s->working_dir && chdir(s->working_dir) < 0)
        child_fail(CHILD_STEP_DIR, errno);
}

static void child_restrict(const struct child_start *s)
{
    int r = child_jail_landlock(&s->plan, s->rules);

    if (r < 0)
        child_fail(CHILD_STEP_LANDLOCK, -r);
    r = child_jail_filter(s->filter, s->plan.n_filter);
    if (r < 0)
        child_fail(CHILD_STEP_FILTER, -r);
}

static _Noreturn void child_become(const struct child_start *s)
{
    if (setsid() < 0)
        child_fail(CHILD_STEP_SESSION, errno);
    if (!s->plan.is_first_process && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        child_fail(CHILD_STEP_PARENT, errno);
    child_report(CHILD_NOTE_PROCESS, 0, 0);
    if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        child_fail(CHILD_STEP_DESCRIPTORS, errno);
    child_limit_all(&s->plan);
    child_enter(s);
    child_reset_signals();
    if (s->plan.is_jailed)
        child_restrict(s);
    execve(s->path, s->args, s->env);
    child_fail(CHILD_STEP_EXEC, errno);
}

/* Returns when the program runs. */
static pid_t child_spawn(const struct child_start *s)
{
    int report[2];
    char byte;
    pid_t pid;

    if (pipe2(report, O_CLOEXEC) < 0)
        child_fail(CHILD_STEP_FORK, errno);
    pid = fork();
    if (pid < 0)
        child_fail(CHILD_STEP_FORK, errno);
    if (pid == 0)
        child_become(s);
    close(report[1]);
    while (read(report[0], &byte, 1) < 0 && errno == EINTR)
        ; /* end of file: the program was executed, or the failure was reported */
    close(report[0]);
    child_report(CHILD_NOTE_RUNNING, 0, 0);
    return pid;
}

/* ---- until nothing is left ---- */

static void child_signal_all(const struct child_start *s, int signum)
{
    if (s->plan.is_first_process)
        kill(-1, signum);
    else
        child_tree_signal(signum);
}

static void child_request_end(const struct child_start *s, struct child_life *life)
{
    if (life->program > 0) {
        kill(-life->program, SIGTERM);
        kill(-life->program, SIGCONT); /* a stopped process cannot handle SIGTERM */
        return;
    }
    child_signal_all(s, SIGTERM);
    child_signal_all(s, SIGCONT);
}

/* The program has ended. Processes it left behind get SIGTERM; the service decides how long they may take to end. */
static void child_program_ended(const struct child_start *s, struct child_life *life, int status)
{
    bool has_left;
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        ;
    has_left = pid == 0;
    life->program = 0;
    life->has_failed = status != 0;
    child_report(CHILD_NOTE_ENDED, status, has_left);
    if (has_left)
        child_request_end(s, life);
}

/* False: no child is left. */
static bool child_reap(const struct child_start *s, struct child_life *life)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == life->program)
            child_program_ended(s, life, status);
    return pid == 0;
}

static void child_obey(const struct child_start *s, struct child_life *life)
{
    char order = CHILD_ORDER_KILL;

    if (recv(CHILD_CONTROL_FD, &order, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (order == CHILD_ORDER_TERMINATE)
        child_request_end(s, life);
    else
        life->is_killing = true;
}

static void child_take_signal(const struct child_start *s, struct child_life *life)
{
    struct signalfd_siginfo info;

    if (read(life->signals, &info, sizeof(info)) == sizeof(info) && info.ssi_signo != SIGCHLD)
        child_request_end(s, life); /* another process signalled hearth-child to end the child */
}

static void child_wait_for_all(const struct child_start *s, struct child_life *life)
{
    struct pollfd fds[] = { { .fd = CHILD_CONTROL_FD, .events = POLLIN }, { .fd = life->signals, .events = POLLIN } };

    while (child_reap(s, life)) {
        fds[0].fd = life->is_killing ? -1 : CHILD_CONTROL_FD;
        if (life->is_killing)
            child_signal_all(s, SIGKILL);
        if (poll(fds, 2, life->is_killing ? CHILD_KILL_ROUND_MS : -1) <= 0)
            continue;
        if (fds[1].revents)
            child_take_signal(s, life);
        if (fds[0].revents)
            child_obey(s, life);
    }
}

/* Could CHILD_SPARE_TASKS processes not be made now? The service's RLIMIT_NPROC and the cgroup's pids.max refuse them,
 * as they refused those of the program; hearth-child has no limit of the child's own. A process counts until it is
 * reaped. */
static bool child_is_crowded(void)
{
    pid_t pids[CHILD_SPARE_TASKS];
    int n = 0, error = 0;

    while (n < CHILD_SPARE_TASKS && error == 0) {
        pids[n] = fork();
        if (pids[n] == 0)
            _exit(0);
        error = pids[n] < 0 ? errno : 0;
        n += error == 0;
    }
    while (n > 0)
        waitpid(pids[--n], NULL, 0);
    return error == EAGAIN;
}

static void child_prepare(const struct child_start *s, struct child_life *life)
{
    static const int taken[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT };
    sigset_t set;
    int r = 0;

    prctl(PR_SET_NAME, "hearth-child");
    prctl(PR_SET_DUMPABLE, 0);
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
        sigaddset(&set, taken[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    life->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->plan.is_first_process)
        r = child_jail_namespace(s->plan.max_tasks);
    else if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || prctl(PR_SET_PDEATHSIG, 0) < 0)
        r = -errno; /* without PDEATHSIG hearth-child lives long enough to end its process tree after the service has
                       ended */
    if (r < 0 || life->signals < 0)
        child_fail(CHILD_STEP_NAMESPACE, r < 0 ? -r : EMFILE);
    if (s->plan.has_own_network)
        child_open_port(s->plan.port);
}

int main(void)
{
    char *none[] = { NULL };
    struct child_start s = { .path = "", .working_dir = "", .home = "", .args = none, .env = none };
    struct child_life life = { 0 };
    int r = child_read_plan(&s);

    if (r < 0)
        child_fail(CHILD_STEP_PLAN, -r);
    child_prepare(&s, &life);
    life.program = child_spawn(&s);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO); /* the pipes end with the processes that write to them */
    child_wait_for_all(&s, &life);
    if (life.has_failed && !life.is_killing && child_is_crowded()) /* no process of the child is left */
        child_report(CHILD_NOTE_CROWDED, 0, 0);
    return 0;
}
