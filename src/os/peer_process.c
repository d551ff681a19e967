#include "os/peer_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PEER_PROCESSES = 65536, PEER_GENERATIONS = 64 };

struct peer_entry {
    pid_t pid, parent, session, root;
};

struct peer_table {
    struct peer_entry *items;
    size_t n, cap;
    int r; /* -EMFILE: a part of /proc was not read because no descriptor was free */
};

/* After a failed open(): a process that ended, or whose files are hidden, is no error. */
static int want_of(int error)
{
    return error == EMFILE || error == ENFILE ? -EMFILE : 0;
}

/* ---- the processes and their parents ---- */

/* 1: read; 0: the process is not to be read; -EMFILE. */
static int read_stat(pid_t pid, struct peer_entry *ret)
{
    char text[512], path[48];
    const char *after_name;
    int fd, parent, session;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return want_of(errno);
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[MAX(n, 0)] = '\0';
    after_name = strrchr(text, ')'); /* proc(5): the name may hold anything, also parentheses */
    if (!after_name || sscanf(after_name + 1, " %*c %d %*d %d", &parent, &session) != 2)
        return 0;
    *ret = (struct peer_entry){ pid, parent, session, 0 };
    return 1;
}

static void add_entry(struct peer_table *t, pid_t pid)
{
    struct peer_entry entry;

    int r = t->n == PEER_PROCESSES ? 0 : read_stat(pid, &entry);

    if (r < 0)
        t->r = r;
    if (r <= 0)
        return;
    if (t->n == t->cap) {
        t->cap = MAX(2 * t->cap, (size_t)256);
        t->items = xrealloc(t->items, t->cap * sizeof(entry));
    }
    t->items[t->n++] = entry;
}

static int compare_entries(const void *left, const void *right)
{
    pid_t a = ((const struct peer_entry *)left)->pid, b = ((const struct peer_entry *)right)->pid;

    return (a > b) - (a < b);
}

static struct peer_table read_table(void)
{
    struct peer_table t = { 0 };
    DIR *proc = opendir("/proc");
    struct dirent *entry;

    if (!proc)
        t.r = want_of(errno);
    while (proc && (entry = readdir(proc))) {
        long pid = strtol(entry->d_name, NULL, 10);

        if (pid > 0)
            add_entry(&t, (pid_t)pid);
    }
    if (proc)
        closedir(proc);
    if (t.n > 0)
        qsort(t.items, t.n, sizeof(t.items[0]), compare_entries);
    return t;
}

static const struct peer_entry *find_entry(const struct peer_table *t, pid_t pid)
{
    const struct peer_entry wanted = { .pid = pid };

    return bsearch(&wanted, t->items, t->n, sizeof(wanted), compare_entries);
}

static bool is_root(pid_t pid, const pid_t *roots, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (roots[i] == pid && pid > 0)
            return true;
    return false;
}

/* Follows the parents upwards; a process that lost its parent is recognised by its session, which the child began
 * (os/spawn.h). */
static pid_t root_of(const struct peer_table *t, const struct peer_entry *entry, const pid_t *roots, size_t n)
{
    if (is_root(entry->session, roots, n))
        return entry->session;
    for (int i = 0; entry && i < PEER_GENERATIONS; i++) {
        if (is_root(entry->pid, roots, n))
            return entry->pid;
        entry = find_entry(t, entry->parent);
    }
    return 0;
}

/* ---- the socket ---- */

static bool holds_socket(struct peer_table *t, pid_t pid, const char *name)
{
    char path[48], target[64];
    struct dirent *entry;
    bool holds = false;
    DIR *fds;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    fds = opendir(path);
    if (!fds && want_of(errno) < 0)
        t->r = -EMFILE;
    while (fds && !holds && (entry = readdir(fds))) {
        ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);

        target[MAX(n, 0)] = '\0';
        holds = strcmp(target, name) == 0;
    }
    if (fds)
        closedir(fds);
    return holds;
}

static const struct peer_entry *find_holder(struct peer_table *t, uint64_t inode, bool is_of_tree)
{
    char name[64];

    snprintf(name, sizeof(name), "socket:[%llu]", (unsigned long long)inode);
    for (size_t i = t->items ? t->n : 0; i-- > 0;) /* the newest first: they hold the socket more often */
        if ((t->items[i].root > 0) == is_of_tree && holds_socket(t, t->items[i].pid, name))
            return &t->items[i];
    return NULL;
}

static void describe(const struct peer_entry *entry, struct peer_process *ret)
{
    char link[48];
    ssize_t n;

    *ret = (struct peer_process){ .pid = entry->pid, .root = entry->root };
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)entry->pid);
    n = readlink(link, ret->path, sizeof(ret->path) - 1);
    ret->path[MAX(n, 0)] = '\0';
}

int peer_process_find(uint64_t inode, const pid_t *roots, size_t n_roots, struct peer_process *ret)
{
    struct peer_table t = read_table();
    const struct peer_entry *holder;

    for (size_t i = 0; i < t.n; i++)
        t.items[i].root = root_of(&t, &t.items[i], roots, n_roots);
    holder = find_holder(&t, inode, true);
    if (!holder)
        holder = find_holder(&t, inode, false);
    if (holder)
        describe(holder, ret);
    free(t.items);
    return t.r < 0 ? t.r : holder ? 1 : 0;
}
