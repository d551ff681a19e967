/* Agents as the runner of tasks: a run is a process, or a turn of a model agent in the thread of the task. */
#include "service/private.h"

#include "agents/assignment.h"
#include "agents/turn_log.h"
#include "base/limits.h"
#include "identity/launches.h"
#include "os/few_files.h"
#include "store/tables/workspaces.h"

struct wired_run {
    struct service *service;
    struct agent_run *run;   /* owned; NULL: a model works */
    struct agent_turn *turn; /* owned; NULL: a process works */
    int64_t id;
    uint64_t launch; /* of the process, in identity/launches.h */
    char task_uuid[UUID_SIZE];
};

static struct wired_run *wired_new(struct service *s, int64_t run_id, const struct task_run_order *order)
{
    struct wired_run *w = xcalloc(1, sizeof(*w));

    w->service = s;
    w->id = run_id;
    snprintf(w->task_uuid, sizeof(w->task_uuid), "%s", order->task_uuid);
    return w;
}

static void report_end(const struct wired_run *w, const struct agent_outcome *o)
{
    const struct task_run_end end = {
        .is_success = o->is_success,
        .was_stopped = o->was_stopped,
        .was_crowded = o->was_crowded,
        .result_json = o->result_json,
        .error = o->error,
        .log = o->log,
    };

    tasks_run_ended(w->service->tasks, w->id, &end);
}

/* ---- processes ---- */

static void process_ended(void *arg, struct agent_run *run, const struct agent_outcome *o)
{
    struct wired_run *w = arg;

    launches_end(w->service->identity, w->launch);
    report_end(w, o);
}

static int start_process(struct wired_run *w, const struct task_run_order *order, struct arena *a, struct err *e)
{
    struct service *s = w->service;
    const struct launch_what what = { .app_id = order->app_id,
                                      .task_uuid = order->task_uuid,
                                      .attempt = order->attempt };
    char token[LAUNCH_SECRET_SIZE];
    struct agent_run_input in = {
        .agent_name = order->agent_name,
        .task_uuid = order->task_uuid,
        .machine_id = order->machine_id,
        .server_url = s->api.base_url,
        .table_name = order->table_name,
        .activity_json = order->activity_json,
        .prompt = order->prompt,
        .workspace_slug = order->workspace_slug,
        .thread_slug = order->thread_slug,
        .app_id = order->app_id,
        .app_name = order->app_name,
        .abbr = settings_string(s->settings, a, SETTING_IDENTITY_ABBR),
        .attempt = order->attempt,
        .token = token,
    };
    int r;

    launches_begin(s->identity, &what, token, &in.tag);
    w->launch = in.tag;
    r = agent_run_start(s->agents, &in, process_ended, w, &w->run, e);
    if (r < 0)
        launches_end(s->identity, w->launch);
    else
        launches_started(s->identity, w->launch, agent_run_pid(w->run));
    return r;
}

/* ---- turns ---- */

static void turn_ended(void *arg, const struct agent_turn_end *end)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct wired_run *w = arg;
    struct agent_outcome outcome;

    agent_assignment_outcome(end, a, &outcome);
    outcome.log = agent_turn_log(w->service->store, end->turn_id, a);
    report_end(w, &outcome);
}

/* The thread of that slug, made when there is none: then it is the caller's, because it will hold the data of rows. */
static int take_thread(struct service *s, struct arena *a, int64_t workspace_id, const char *slug,
                       struct agent_turn_job *job, struct err *e)
{
    const struct thread_row made = {
        .workspace_id = workspace_id, .slug = slug, .name = slug, .owner = job->caller->scope
    };
    struct thread_row thread;
    int r = store_threads_get(s->store, a, workspace_id, slug, &thread, NULL);

    if (r == -ENOENT) {
        r = store_threads_insert(s->store, &made, NULL, e);
        if (r < 0 && r != -EEXIST)
            return r;
        r = store_threads_get(s->store, a, workspace_id, slug, &thread, e);
    }
    if (r == 0)
        job->thread_id = thread.id;
    return r;
}

#define DEFAULT_WORKSPACE "default"

/* A workspace that is not there does not keep the task from being done. */
static int find_workspace(struct service *s, struct arena *a, const char *slug, int64_t *ret, struct err *e)
{
    struct workspace_row workspace;
    int r = -ENOENT;

    if (slug && *slug)
        r = store_workspaces_get(s->store, a, slug, &workspace, NULL);
    if (r == -ENOENT)
        r = store_workspaces_get(s->store, a, DEFAULT_WORKSPACE, &workspace, e);
    if (r == 0)
        *ret = workspace.id;
    return r;
}

/* Whose rows, grants and limits count: the app's. A task of no app was triggered with a developer key: it has every
 * permission, and rows and vectors of its own. */
#define NO_APP "tasks"

static struct caller caller_of(struct arena *a, const struct task_run_order *order)
{
    if (!order->app_id || !*order->app_id)
        return (struct caller){ .kind = CALLER_KEY,
                                .key_id = NO_APP,
                                .key_fingerprint = NO_APP,
                                .scope = NO_APP,
                                .actor = arena_printf(a, "agent:%s", order->agent_name) };
    return (struct caller){ .kind = CALLER_APP,
                            .app_id = order->app_id,
                            .app_name = order->app_name,
                            .scope = order->app_id,
                            .actor = arena_printf(a, "app:%s", order->app_id) };
}

/* Once the app's thread of tasks is full, the next one is begun. */
static int start_in_own_thread(struct wired_run *w, struct agent_turn_job *job, const struct agent_turn_client *client,
                               int64_t workspace_id, const char *slug, struct arena *a, struct err *e)
{
    int r = -EDQUOT;

    for (int i = 1; r == -EDQUOT && i <= LIMIT_TASK_THREADS_OF_APP; i++) {
        const char *name = i == 1 ? slug : arena_printf(a, "%s-%d", slug, i);

        r = take_thread(w->service, a, workspace_id, name, job, e);
        if (r == 0)
            r = agent_turn_start(w->service->agent_turns, job, client, &w->turn, e);
    }
    return r;
}

static int start_turn(struct wired_run *w, const struct task_run_order *order, struct arena *a, struct err *e)
{
    const struct agent_assignment assignment = { order->prompt, order->activity_json };
    const struct agent_turn_client client = { .on_end = turn_ended, .arg = w };
    const struct caller caller = caller_of(a, order);
    const char *own = arena_printf(a, "tasks-%s", caller.scope);
    bool is_named = order->thread_slug && *order->thread_slug && strcmp(order->thread_slug, own) != 0;
    struct agent_turn_job job = {
        .caller = &caller,
        .agent_name = order->agent_name,
        .task_uuid = order->task_uuid,
        .app_id = order->app_id,
        .sees_thread = is_named,
    };
    int64_t workspace_id = 0;
    char *message = NULL;
    int r = agent_assignment_message(a, &assignment, &message, e);

    if (r == 0)
        r = find_workspace(w->service, a, order->workspace_slug, &workspace_id, e);
    if (r < 0)
        return r;
    job.message = message;
    if (!is_named)
        return start_in_own_thread(w, &job, &client, workspace_id, own, a, e);
    r = take_thread(w->service, a, workspace_id, order->thread_slug, &job, e);
    return r < 0 ? r : agent_turn_start(w->service->agent_turns, &job, &client, &w->turn, e);
}

/* ---- the runner ---- */

static int start_run(void *arg, int64_t run_id, const struct task_run_order *order, void **ret_handle, pid_t *ret_pid,
                     struct err *e)
{
    struct service *s = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct wired_run *w = wired_new(s, run_id, order);
    struct agent_definition agent;
    int r = agent_find(s->agents, order->agent_name, a, &agent, e);

    if (r == 0)
        r = agent_is_model(&agent) ? start_turn(w, order, a, e) : start_process(w, order, a, e);
    if (r < 0) {
        free(w);
        return r;
    }
    *ret_pid = w->run ? agent_run_pid(w->run) : 0;
    *ret_handle = w;
    return 0;
}

static int64_t room_for_runs(void *arg, struct err *why)
{
    struct service *s = arg;
    int64_t n_places, n_starts;

    if (!s->supervisor)
        return INT64_MAX;
    n_places = LIMIT_CHILDREN - (int64_t)supervisor_n_children(s->supervisor);
    n_starts = (int64_t)few_files_room(LIMIT_TASK_THREADS);
    if (n_places < 1)
        err_set(why, -EAGAIN, "TOO_MANY_CHILDREN", "%d programs run already.", LIMIT_CHILDREN);
    else if (n_starts < 1 && few_files_admit(why) == 0)
        n_starts = 1;
    return MIN(n_places, n_starts);
}

static int check_agent(void *arg, const char *agent_name, struct err *e)
{
    struct service *s = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct agent_definition agent;

    return agent_find(s->agents, agent_name, a, &agent, e);
}

static void stop_run(void *arg, void *handle)
{
    struct wired_run *w = handle;

    if (w->run)
        agent_run_stop(w->run);
    else
        agent_turn_cancel(w->turn);
}

static void release_run(void *arg, void *handle)
{
    struct wired_run *w = handle;

    agent_run_unref(w->run);
    agent_turn_unref(w->turn);
    free(w);
}

static char *log_of_run(void *arg, void *handle, struct arena *a)
{
    struct wired_run *w = handle;

    if (w->run)
        return child_log_text(agent_run_log(w->run), a);
    return agent_turn_log(w->service->store, agent_turn_uuid(w->turn), a);
}

static bool run_waits(void *arg, void *handle)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct approval_views pending = { 0 };
    struct service *s = arg;
    struct wired_run *w = handle;

    if (w->run)
        return false;
    approvals_list(s->approvals, a, &pending);
    for (size_t i = 0; i < pending.n; i++)
        if (pending.items[i].task_uuid && strcmp(pending.items[i].task_uuid, w->task_uuid) == 0)
            return true;
    return false;
}

struct task_runner wire_runner(struct service *s)
{
    return (struct task_runner){ .arg = s,
                                 .check = check_agent,
                                 .room = room_for_runs,
                                 .start = start_run,
                                 .stop = stop_run,
                                 .release = release_run,
                                 .log = log_of_run,
                                 .waits = run_waits };
}
