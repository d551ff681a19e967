#include "os/child_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/types.h>
#include <unistd.h>

enum { TREE_MOST = 32768 };

struct tree_process {
    pid_t pid, parent;
    bool is_ours;
};

struct tree {
    struct tree_process all[TREE_MOST];
    size_t n;
};

static struct tree tree;

/* 0: the process has ended. The name in proc(5) may contain any character, even parentheses. */
static pid_t tree_parent_of(pid_t pid)
{
    char text[512];
    const char *after_name;
    int fd, parent = 0;
    ssize_t n;

    snprintf(text, sizeof(text), "/proc/%d/stat", (int)pid);
    fd = open(text, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    after_name = strrchr(text, ')');
    return after_name && sscanf(after_name + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static void tree_read(void)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;

    tree.n = 0;
    while (proc && tree.n < TREE_MOST && (entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 0)
            tree.all[tree.n++] = (struct tree_process){ pid, tree_parent_of(pid), false };
    }
    if (proc)
        closedir(proc);
}

static bool tree_has(pid_t pid)
{
    for (size_t i = 0; i < tree.n; i++)
        if (tree.all[i].pid == pid)
            return tree.all[i].is_ours;
    return false;
}

/* Adds one more generation of descendants; false: there was none. */
static bool tree_grow(pid_t root)
{
    bool has_grown = false;

    for (size_t i = 0; i < tree.n; i++) {
        struct tree_process *p = &tree.all[i];

        if (!p->is_ours && p->parent > 0 && (p->parent == root || tree_has(p->parent)))
            p->is_ours = has_grown = true;
    }
    return has_grown;
}

/* The pidfd refers to one process; if that process still has the same parent, it is the one that was found. */
static void tree_signal(const struct tree_process *p, int signum)
{
    int pidfd = pidfd_open(p->pid, 0);

    if (pidfd < 0)
        return;
    if (tree_parent_of(p->pid) == p->parent)
        pidfd_send_signal(pidfd, signum, NULL, 0);
    close(pidfd);
}

void child_tree_signal(int signum)
{
    const pid_t root = getpid();

    tree_read();
    while (tree_grow(root))
        ;
    for (size_t i = 0; i < tree.n; i++)
        if (tree.all[i].is_ours)
            tree_signal(&tree.all[i], signum);
}
