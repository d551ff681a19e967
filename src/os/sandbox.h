/* Profiles of what a child may see and do, and the means of this machine to enforce them.
 *
 * standard: own PID, IPC, UTS and cgroup namespaces (bubblewrap), a view of the machine with the system's programs, the
 * working folder, the folders the definition names and the child's own folder; no capabilities, no new privileges, a
 * list of forbidden system calls, limits. strict: also no network except the service's port. none: the service's
 * rights. In every profile hearth-child (child_plan.h) runs between the service and the program, so that no process
 * outlives the child. Without bubblewrap the profiles use Landlock; without Landlock only hearth-child remains.
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

/* The member `sandbox` of a definition; all zero: the setting sandbox.default applies. */
struct sandbox_definition {
    const char *profile;              /* NULL: the default */
    struct field_strings read, write; /* folders: absolute or ~/... */
    bool network, is_network_given;
};

struct sandbox_config {
    const char *bwrap;         /* program; looked up in PATH when it has no slash; "": none */
    const char *data_dir;      /* of the service: never visible */
    const char *const *hidden; /* NULL-ended: more files that are never visible; may be NULL */
    const char *profile;       /* for definitions without a profile */
};

struct sandbox_means {
    bool has_bwrap, has_namespaces; /* installed; works for this user */
    int landlock_abi;               /* 0: none */
    char why[240];                  /* why there are no namespaces; "" */
};

struct sandbox;
struct sandbox *sandbox_new(const struct sandbox_config *c) MUST_CHECK;
struct sandbox *sandbox_free(struct sandbox *box);
/* Sets the service's port on loopback; call before the first child starts. */
void sandbox_set_port(struct sandbox *box, uint16_t port);
/* What the machine supports. The first call runs bubblewrap once and takes about 20 ms: not on the loop. Any other
 * thread. */
void sandbox_means(struct sandbox *box, struct sandbox_means *ret);
enum sandbox_profile sandbox_profile_of(const struct sandbox *box, const struct sandbox_definition *definition);
/* The best level that the machine supports for this profile. */
enum sandbox_level sandbox_level_of(struct sandbox *box, enum sandbox_profile profile);

/* ---- definitions (sandbox_definition.c) ---- */

extern const struct field sandbox_definition_fields[];
/* Checks the rules that a table of fields cannot express; adds every violation to e under `path` ("config.sandbox").
 * data_dir NULL: unknown.
 */
int sandbox_definition_check(const struct sandbox_definition *definition, const char *path, const char *data_dir,
                             struct err *e) MUST_CHECK;
/* For a person: "may read ~/Documents, may write ~/out, may use the network". In the arena. */
const char *sandbox_words(struct arena *a, const struct sandbox *box, const struct sandbox_definition *definition);
/* A text that is equal exactly when two definitions request the same; a grant is bound to it. In the arena. */
const char *sandbox_canonical(struct arena *a, const struct sandbox_definition *definition);
/* Expands "~/x" to a path below the home folder of the service. In the arena; NULL when there is no home. */
const char *sandbox_expand(struct arena *a, const char *path);
