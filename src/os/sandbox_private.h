/* What the files sandbox*.c and child_start.c share. Nobody else includes it. */
#pragma once

#include "base/buf.h"
#include "os/child.h"
#include "os/sandbox.h"

#include <linux/filter.h>
#include <pthread.h>

struct sandbox {
    struct arena *arena;                /* owned: the texts below */
    const char *bwrap, *data_dir;       /* data_dir as the kernel names it, links followed */
    const char *const *hidden;          /* NULL-ended, likewise */
    const char *home;                   /* of the service, likewise; "" when there is none */
    enum sandbox_profile profile;
    uint16_t port;
    pthread_mutex_t mutex;              /* guards what follows */
    bool is_probed;
    struct sandbox_means means;
    const char *bwrap_path;             /* absolute; NULL: not found */
};

/* One child's view. Texts live in the arena. */
struct sandbox_view {
    enum sandbox_profile profile;
    enum sandbox_level level;
    bool has_own_network;
    const char *bwrap_path;             /* NULL below SANDBOX_LEVEL_NAMESPACES */
    struct slice bwrap_args;            /* each ended by NUL */
    const char *const *rules;           /* of Landlock: "r/path", "w/path" */
    size_t n_rules;
    const char *working_dir, *home;     /* "": as it is; none */
    const char *const *env;             /* NULL-ended */
    int landlock_abi;
};

struct sandbox_subject {
    const struct child_spec *spec;
    const char *program;                /* what program_find() found */
};

/* -EINVAL SANDBOX_FOLDER: a folder that cannot be shown; -ENOTSUP SANDBOX_UNAVAILABLE: strict on a machine that cannot. */
int sandbox_view_make(struct sandbox *box, const struct sandbox_subject *subject, struct arena *a, struct sandbox_view *ret, struct err *e) MUST_CHECK;

/* The deny list, compiled once. Borrowed, for the life of the process. */
int sandbox_filter(const struct sock_filter **ret, size_t *ret_n, struct err *e) MUST_CHECK;

/* Runs bubblewrap once (sandbox_probe.c). */
void sandbox_probe(struct sandbox *box);

/* Is path equal to or below folder? */
bool sandbox_is_below(const char *path, const char *folder);
/* "standard" and so on; SANDBOX_STANDARD when it is none of them. */
enum sandbox_profile sandbox_profile_named(const char *name);
