/* Profiles of what a child may see and do, and what this machine has to enforce them.
 *
 * standard: own PID, IPC, UTS and cgroup namespaces (bubblewrap), a view of the machine with the system's programs, the working folder,
 * the folders the definition names and the child's own folder; no capabilities, no new privileges, a list of forbidden system calls,
 * limits. strict: also no network but the service's port. none: the service's rights. In every profile hearth-child (child_plan.h)
 * stands between, so that nothing outlives the child. Without bubblewrap: Landlock; without that: the last sentence.
 *
 *     sandbox_new(&(struct sandbox_config){ .bwrap = "bwrap", .data_dir = dir, .profile = "standard" });
 *     supervisor_set_sandbox(supervisor, sandbox);
 *     child_start(supervisor, &(struct child_spec){ ..., .sandbox = &definition->sandbox, .own_dir = dir }, &child, e);
 */
#pragma once

#include "base/arena.h"
#include "base/fields.h"

enum sandbox_profile { SANDBOX_NONE, SANDBOX_STANDARD, SANDBOX_STRICT };
enum sandbox_level { SANDBOX_LEVEL_TREE, SANDBOX_LEVEL_LANDLOCK, SANDBOX_LEVEL_NAMESPACES };

/* The member `sandbox` of a definition; all zero: what the setting sandbox.default says. */
struct sandbox_wish {
    const char *profile;                /* NULL: the default */
    struct field_strings read, write;   /* folders: absolute, or ~/... */
    bool network, is_network_given;
};

struct sandbox_config {
    const char *bwrap;                  /* program; looked up in PATH when it has no slash; "": none */
    const char *data_dir;               /* of the service: never visible */
    const char *const *hidden;          /* NULL-ended: further files that are never visible; may be NULL */
    const char *profile;                /* of definitions that name none */
};

struct sandbox_means {
    bool has_bwrap, has_namespaces;     /* it is installed; it works for this user */
    int landlock_abi;                   /* 0: none */
    char why[240];                      /* why there are no namespaces; "" */
};

struct sandbox;
struct sandbox *sandbox_new(const struct sandbox_config *c) MUST_CHECK;
struct sandbox *sandbox_free(struct sandbox *box);
/* Where the service listens on loopback: before the first child starts. */
void sandbox_set_port(struct sandbox *box, uint16_t port);
/* What the machine can. The first call runs bubblewrap once and takes some 20 ms: not on the loop. Any thread. */
void sandbox_means(struct sandbox *box, struct sandbox_means *ret);
enum sandbox_profile sandbox_profile_of(const struct sandbox *box, const struct sandbox_wish *wish);
/* The best that the machine has for this profile. */
enum sandbox_level sandbox_level_of(struct sandbox *box, enum sandbox_profile profile);

/* ---- definitions (sandbox_definition.c) ---- */

extern const struct field sandbox_wish_fields[];
/* What the table cannot say; adds every violation to e under `path` ("config.sandbox"). data_dir NULL: not known here. */
int sandbox_wish_check(const struct sandbox_wish *wish, const char *path, const char *data_dir, struct err *e) MUST_CHECK;
/* For a person: "may read ~/Documents, may write ~/out, may use the network". In the arena. */
const char *sandbox_words(struct arena *a, const struct sandbox *box, const struct sandbox_wish *wish);
/* One text that is equal exactly when two definitions ask for the same: part of what a grant is bound to. In the arena. */
const char *sandbox_canonical(struct arena *a, const struct sandbox_wish *wish);
/* "~/x" below the home folder of the service. In the arena; NULL when there is no home. */
const char *sandbox_expand(struct arena *a, const char *path);
