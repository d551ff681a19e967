#include "agents/private.h"

#include "base/hash.h"
#include "base/budget.h"
#include "base/limits.h"
#include "os/env.h"
#include "os/few_files.h"
#include "os/files.h"

#include <stdatomic.h>
#include <unistd.h>

/* Referenced by the caller, and by the process until its end is reported. */
struct agent_run {
    struct agents *agents; /* borrowed */
    atomic_int n_refs;
    struct arena *arena;         /* owned */
    struct child *child;         /* owned */
    struct budget_holder *payer; /* owned while the process runs: the app it works for; NULL: none */
    const char *activity_path;   /* NULL: the activity went through the environment */
    double timeout_s;
    struct child_exit how; /* valid once the process has ended */
    struct agent_outcome outcome;
    void (*on_end)(void *arg, struct agent_run *run, const struct agent_outcome *o);
    void *arg;
};

struct agent_run *agent_run_ref(struct agent_run *run)
{
    atomic_fetch_add(&run->n_refs, 1);
    return run;
}

struct agent_run *agent_run_unref(struct agent_run *run)
{
    if (!run || atomic_fetch_sub(&run->n_refs, 1) > 1)
        return NULL;
    if (run->activity_path)
        unlink(run->activity_path);
    child_unref(run->child);
    arena_free(run->arena);
    free(run);
    return NULL;
}

static void agent_run_unrefp(struct agent_run **run)
{
    *run = agent_run_unref(*run);
}

static int charge(struct agent_run *run, const char *app_id, struct err *e)
{
    int r;

    if (!app_id || !*app_id)
        return 0;
    run->payer = budget_holder_get(HOLDER_APP, app_id);
    r = budget_take(run->payer, BUDGET_CHILDREN, 1, e);
    if (r < 0)
        run->payer = budget_holder_unref(run->payer);
    return r < 0 ? -EAGAIN : 0; /* the same code as for too many children in total: a place will be free later */
}

static void discharge(struct agent_run *run)
{
    if (run->payer)
        budget_give(run->payer, BUDGET_CHILDREN, 1);
    run->payer = budget_holder_unref(run->payer);
}

/* The remains of an ended process: megabytes of output, and a file. */
struct ended {
    struct agent_run *run;
    struct child *child;
};

static void finish_run(void *arg)
{
    struct ended *ended = arg;
    struct agent_run *run = ended->run;
    struct agent_end end = { .how = run->how, .log = child_log_of(ended->child), .timeout_s = run->timeout_s };

    end.output = child_stdout(ended->child, &end.is_output_cut);
    if (run->activity_path)
        unlink(run->activity_path);
    agent_outcome_read(&end, run->arena, &run->outcome);
    run->on_end(run->arg, run, &run->outcome);
    agent_run_unref(run);
    child_unref(ended->child);
    free(ended);
}

/* Loop thread. May be called before agent_run_start() has returned, so run->child is not used. */
static void on_exit_of_child(struct child *c, const struct child_exit *how, void *arg)
{
    struct agent_run *run = arg;
    struct ended *ended = xcalloc(1, sizeof(*ended));

    discharge(run);
    run->how = *how;
    *ended = (struct ended){ run, child_ref(c) };
    if (pool_submit(run->agents->ends, finish_run, ended) < 0)
        finish_run(ended);
}

/* ---- the inputs of a start ---- */

struct start {
    struct agents *agents;
    const struct agent_run_input *in;
    struct agent_run *run;
    struct arena *arena;
    struct agent_definition agent;
    const char *activity; /* as in ACTIVITY_DATA */
    struct env_list *env;
    const char *own_dir; /* of the agent, to be its home */
};

/* The file may hold private data: its mode is 0600, and it is removed when the process ends. */
static int put_activity(struct start *s, struct err *e)
{
    struct slice whole = slice_of(s->in->activity_json);
    struct json_writer w;
    struct buf stub;
    int r;

    s->activity = s->in->activity_json;
    if (whole.n <= LIMIT_ENV_PAYLOAD)
        return 0;
    s->run->activity_path = arena_printf(s->run->arena, "%s/%s-%lld.json", s->agents->activities_dir, s->in->task_uuid,
                                         (long long)s->in->attempt);
    r = file_write(s->run->activity_path, whole, 0600, e);
    buf_init(&stub, LIMIT_ENV_PAYLOAD);
    json_write_init(&w, &stub);
    json_begin_object(&w);
    json_add_string(&w, "activity_file", s->run->activity_path);
    json_add_bool(&w, "truncated", true);
    json_end(&w);
    s->activity = buf_to_arena(&stub, s->arena);
    return r;
}

static int put_own_env(struct start *s, struct err *e)
{
    struct json_iter it = json_iter(s->agent.env);
    struct json_value value;
    struct slice name;
    int r = 0;

    while (r == 0 && json_next(&it, &name, &value))
        r = env_list_set(s->env, arena_slicedup(s->arena, name), json_cstr(value), e);
    return r;
}

/* The definition's variables come first, so that none of them overrides one of ours. */
static int put_env(struct start *s, struct err *e)
{
    const char *abbr = s->in->abbr ? s->in->abbr : "svc";
    const struct {
        const char *name, *value;
    } ours[] = {
        { "TASK_UUID", s->in->task_uuid },
        { "ACTIVITY_DATA", s->activity },
        { "ACTIVITY_FILE", s->run->activity_path },
        { "MACHINE_ID", s->in->machine_id },
        { "SERVER_URL", s->in->server_url },
        { "TABLE_NAME", s->in->table_name },
        { "TASK_ATTEMPT", arena_printf(s->arena, "%lld", (long long)s->in->attempt) },
        { "AGENT_PROMPT", s->in->prompt },
        { "WORKSPACE_SLUG", s->in->workspace_slug },
        { "THREAD_SLUG", s->in->thread_slug },
        { env_name(s->arena, abbr, "APP_ID"), s->in->app_id },
        { env_name(s->arena, abbr, "APP_NAME"), s->in->app_name },
        { "HEARTH_TASK_TOKEN", s->in->token },
    };
    int r;

    s->env = env_list_new(s->arena);
    r = put_own_env(s, e);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ours); i++)
        if (ours[i].value)
            r = env_list_set(s->env, ours[i].name, ours[i].value, e);
    return r;
}

static const char *const *args_of(const struct start *s)
{
    size_t n = s->agent.args.n;
    const char **args = arena_array(s->arena, n + 3, sizeof(*args));

    for (size_t i = 0; i < n; i++)
        args[i] = s->agent.args.items[i];
    args[n] = s->in->task_uuid;
    if (s->agent.passes_arguments)
        args[n + 1] = s->activity;
    return args;
}

/* From here on the process holds its own reference, which on_exit_of_child() drops. */
static int spawn(struct start *s, struct err *e)
{
    const char *dir = s->agent.working_dir;
    const struct child_spec spec = {
        .label = arena_printf(s->arena, "agent %s", s->agent.name),
        .command = s->agent.command,
        .args = args_of(s),
        .env = env_list_strings(s->env),
        .working_dir = dir && *dir ? dir : NULL,
        .sandbox = &s->agent.sandbox,
        .own_dir = s->own_dir,
        .shown_file = s->run->activity_path,
        .tag = s->in->tag,
        .timeout_ms = MAX((int64_t)(s->agent.timeout_s * 1000), (int64_t)1),
        .max_stdout = LIMIT_RESULT_BYTES,
        .on_exit = on_exit_of_child,
        .arg = agent_run_ref(s->run),
    };
    int r = few_files_admit(e);

    if (r == 0)
        r = charge(s->run, s->in->app_id, e);
    if (r == 0) {
        r = child_start(s->agents->supervisor, &spec, &s->run->child, e);
        if (r < 0)
            discharge(s->run);
    }
    if (r < 0)
        agent_run_unref(s->run);
    return r;
}

/* Plain names are used as they are; a long name, or one that could be a path, is replaced by its hash. */
static int put_own_dir(struct start *s, struct err *e)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const char *name = s->agent.name;
    char hash[HASH_HEX_SIZE];

    hash_text_hex(slice_of(name), hash);
    if (name[strspn(name, plain)] != '\0' || strlen(name) >= HASH_HEX_SIZE - 1)
        name = hash;
    s->own_dir = arena_printf(s->arena, "%s/agents/%s", s->agents->data_dir, name);
    return dir_make(s->own_dir, e);
}

static int prepare(struct start *s, struct err *e)
{
    int r = agent_find(s->agents, s->in->agent_name, s->arena, &s->agent, e);

    if (r == 0 && agent_is_model(&s->agent))
        r = err_set(e, -ENOTSUP, "AGENT_HAS_NO_PROGRAM", "The agent %s works with a model and has no program.",
                    s->agent.name);
    if (r == 0)
        r = put_own_dir(s, e);
    if (r == 0)
        r = put_activity(s, e);
    if (r == 0)
        r = put_env(s, e);
    s->run->timeout_s = s->agent.timeout_s;
    return r;
}

static struct agent_run *run_new(struct agents *agents,
                                 void (*on_end)(void *arg, struct agent_run *run, const struct agent_outcome *o),
                                 void *arg)
{
    struct agent_run *run = xcalloc(1, sizeof(*run));

    atomic_init(&run->n_refs, 1);
    run->agents = agents;
    run->arena = arena_new();
    run->on_end = on_end;
    run->arg = arg;
    return run;
}

int agent_run_start(struct agents *agents, const struct agent_run_input *in,
                    void (*on_end)(void *arg, struct agent_run *run, const struct agent_outcome *o), void *arg,
                    struct agent_run **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(agent_run_unrefp) struct agent_run *run = run_new(agents, on_end, arg);
    struct start s = { .agents = agents, .in = in, .run = run, .arena = a };
    int r;

    if (!agents->supervisor)
        return err_set(e, -EAGAIN, "NOT_READY",
                       "No service runs, so no agent can be started; start it with `hearth serve`.");
    r = prepare(&s, e);
    if (r == 0)
        r = spawn(&s, e);
    if (r == 0)
        *ret = TAKE(run);
    return r;
}

/* ---- a running process ---- */

void agent_run_stop(struct agent_run *run)
{
    child_stop(run->child);
}

pid_t agent_run_pid(const struct agent_run *run)
{
    return child_pid(run->child);
}

struct child_log *agent_run_log(struct agent_run *run)
{
    return child_log_of(run->child);
}
