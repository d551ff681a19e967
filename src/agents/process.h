/* One run of a process agent (specification, "Agent process inputs").
 *
 * Environment TASK_UUID, ACTIVITY_DATA, MACHINE_ID, SERVER_URL, TASK_ATTEMPT, HEARTH_TASK_TOKEN. The task id is an
 * argument after the definition's own args; the activity follows only when the definition sets pass_arguments, because
 * every user of the machine can read arguments in /proc. An activity above LIMIT_ENV_PAYLOAD goes through a 0600 file
 * named in ACTIVITY_FILE; ACTIVITY_DATA and the argument are then
 * {"activity_file": path, "truncated": true}. The file is removed when the process has ended.
 */
#pragma once

#include "agents/agents.h"

struct agent_run_input {
    const char *agent_name;
    const char *task_uuid, *machine_id, *server_url, *table_name;
    const char *activity_json; /* whole activity: id, raw_data, old_data, status, event, ... */
    const char *prompt;        /* AGENT_PROMPT; NULL: none */
    const char *workspace_slug, *thread_slug;
    const char *app_id, *app_name; /* <ABBR>_APP_ID, <ABBR>_APP_NAME; NULL: the task belongs to no app */
    const char *abbr;              /* NULL: the app is not named */
    /* HEARTH_TASK_TOKEN: proves that a report comes from this run (identity/launches.h); NULL: none */
    const char *token;
    uint64_t tag; /* of the process (os/child.h); 0: a new one */
    int64_t attempt;
};

struct agent_outcome {
    bool is_success;  /* exit code 0 */
    bool was_stopped; /* agent_run_stop() */
    bool was_crowded; /* it failed of itself while the machine had hardly a process left */
    /* Of success: standard output, unchanged when it is JSON, else {"output": text}; {} when empty. */
    const char *result_json;
    /* Of failure: last lines of standard error, or "timed out after 900 s", or the way the process ended. */
    const char *error;
    const char *log; /* both outputs with times, bounded in size */
};

struct agent_run;
/* on_end is called once, on a thread of the agents. The outcome lives until agent_run_unref(). */
int agent_run_start(struct agents *agents, const struct agent_run_input *in,
                    void (*on_end)(void *arg, struct agent_run *run, const struct agent_outcome *o), void *arg,
                    struct agent_run **ret, struct err *e) MUST_CHECK;
void agent_run_stop(struct agent_run *run); /* any thread; on_end is still called */
pid_t agent_run_pid(const struct agent_run *run);
struct child_log *agent_run_log(struct agent_run *run); /* borrowed */
struct agent_run *agent_run_ref(struct agent_run *run);
struct agent_run *agent_run_unref(struct agent_run *run);
