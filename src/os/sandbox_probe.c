/* Finds out what this machine supports by trying it, not from version numbers. */
#include "os/sandbox_private.h"

#include "os/program.h"
#include "os/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PROBE_MS = 10000, PROBE_LANDLOCK_VERSION = 1 /* LANDLOCK_CREATE_RULESET_VERSION */ };

/* The namespaces of a strict child, around the smallest possible program. */
static const char *const probe_args[] = {
    "bwrap",
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--unshare-net",
    "--die-with-parent",
    "--as-pid-1",
    "--cap-drop",
    "ALL",
    "--cap-add",
    "CAP_SYS_ADMIN",
    "--cap-add",
    "CAP_SETPCAP",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--perms",
    "1777",
    "--size",
    "4096",
    "--tmpfs",
    "/tmp",
    "--",
    "/bin/true",
    NULL,
};

static const char *const probe_env[] = { "PATH=/usr/bin:/bin", NULL };

static void probe_run(const char *program, struct sandbox_means *means)
{
    const struct run_plan plan = { program, probe_args, probe_env, PROBE_MS };
    struct run_result result;
    struct err e = { 0 };
    int r = run_program(&plan, &result, &e);

    means->has_namespaces = r == 0 && result.code == 0;
    if (means->has_namespaces)
        return;
    result.errors[strcspn(result.errors, "\n")] = '\0';
    if (r == -ETIMEDOUT)
        snprintf(means->why, sizeof(means->why), "bubblewrap did not end within %d s", PROBE_MS / 1000);
    else if (r == 0 && result.errors[0])
        snprintf(means->why, sizeof(means->why), "%s", result.errors);
    else
        snprintf(means->why, sizeof(means->why), "bubblewrap could not make a namespace (status %d)", result.code);
}

void sandbox_probe(struct sandbox *box)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, PROBE_LANDLOCK_VERSION);
    struct err e = { 0 };
    char *program = NULL;

    box->means = (struct sandbox_means){ .landlock_abi = abi > 0 ? (int)abi : 0 };
    if (!*box->bwrap || program_find(box->arena, box->bwrap, NULL, getenv("PATH"), &program, &e) < 0) {
        snprintf(box->means.why, sizeof(box->means.why), "bubblewrap is not installed");
        return;
    }
    box->means.has_bwrap = true;
    box->bwrap_path = program;
    probe_run(program, &box->means);
}
