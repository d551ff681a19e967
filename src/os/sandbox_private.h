/* Shared by sandbox*.c and child_start.c. No other file may include it. */
#pragma once

#include "base/buf.h"
#include "os/child.h"
#include "os/sandbox.h"

#include <linux/filter.h>
#include <pthread.h>

struct sandbox {
    struct arena *arena;          /* owned; holds the texts below */
    const char *bwrap, *data_dir; /* data_dir is the real path, links followed */
    const char *const *hidden;    /* NULL-ended, real paths too */
    const char *home;             /* of the service, a real path too; "" when there is none */
    enum sandbox_profile profile;
    uint16_t port;
    pthread_mutex_t mutex; /* guards what follows */
    bool is_probed;
    struct sandbox_means means;
    const char *bwrap_path; /* absolute; NULL: not found */
};

/* One child's view. Texts live in the arena. */
struct sandbox_view {
    enum sandbox_profile profile;
    enum sandbox_level level;
    bool has_own_network;
    const char *bwrap_path;   /* NULL below SANDBOX_LEVEL_NAMESPACES */
    struct slice bwrap_args;  /* each ended by NUL */
    const char *const *rules; /* of Landlock: "r/path", "w/path" */
    size_t n_rules;
    const char *working_dir, *home; /* "": unchanged; no home */
    const char *const *env;         /* NULL-ended */
    int landlock_abi;
};

struct sandbox_subject {
    const struct child_spec *spec;
    const char *program; /* the result of program_find() */
};

/* -EINVAL SANDBOX_FOLDER: a folder that cannot be shown; -ENOTSUP SANDBOX_UNAVAILABLE: strict on a machine that does
 * not support it.
 */
int sandbox_view_make(struct sandbox *box, const struct sandbox_subject *subject, struct arena *a,
                      struct sandbox_view *ret, struct err *e) MUST_CHECK;

/* The deny list, compiled once. Borrowed, for the life of the process. */
int sandbox_filter(const struct sock_filter **ret, size_t *ret_n, struct err *e) MUST_CHECK;

/* Runs bubblewrap once (sandbox_probe.c). */
void sandbox_probe(struct sandbox *box);

/* Whether path is equal to folder or below it. */
bool sandbox_is_below(const char *path, const char *folder);
/* The profile of a name ("standard", ...); SANDBOX_STANDARD for an unknown name. */
enum sandbox_profile sandbox_profile_named(const char *name);
