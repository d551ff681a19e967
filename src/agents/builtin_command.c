/* run_command: a command line in the thread's folder, in a sandbox of bubblewrap without any network. */
#include "agents/builtin_private.h"

#include "agents/folder.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "os/child.h"
#include "os/few_files.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum { COMMAND_S_DEFAULT = 60, LOOK_US = 200000, MEASURE_US = 1000000, GRACE_MS = 1000 };

struct command_arguments {
    const char *command;
    int64_t timeout_s;
};

static const struct field command_fields[] = {
    FIELD_STRING(struct command_arguments, command, "command", FIELD_REQUIRED, .min = 1, .max = LIMIT_COMMAND_BYTES),
    FIELD_INT(struct command_arguments, timeout_s, "timeout_s", .min = 1, .max = LIMIT_COMMAND_S,
              .def = COMMAND_S_DEFAULT),
    FIELD_END,
};

/* Shared by the tool's thread and the loop, which reports the end. */
struct command {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended;
    struct child_exit how;
    struct supervisor *supervisor; /* borrowed */
    struct child *child;           /* a reference */
    struct budget_holder *payer;   /* NULL: nobody pays */
};

bool builtin_command_is_on(const struct models_call *call)
{
    return settings_bool(call->models->settings, SETTING_TOOLS_RUN_COMMAND);
}

/* Loop thread. */
static void on_exit_of_command(struct child *c, const struct child_exit *how, void *arg)
{
    struct command *command = arg;

    pthread_mutex_lock(&command->lock);
    command->how = *how;
    command->has_ended = true;
    pthread_cond_signal(&command->ended);
    pthread_mutex_unlock(&command->lock);
}

static struct budget_holder *payer_of(const struct caller *caller)
{
    return caller->app_id               ? budget_holder_get(HOLDER_APP, caller->app_id)
           : caller->kind == CALLER_KEY ? budget_holder_get(HOLDER_KEY, caller->key_id)
                                        : NULL;
}

/* Both outputs into one, in the order in which they were written. */
static int start(const struct builtin_call *c, const struct command_arguments *in, const struct folder *folder,
                 int64_t room, struct command *command, struct err *e)
{
    AUTO(freep) char *dir = realpath(folder->path, NULL);
    const char *const args[] = { "-c", "exec 2>&1; exec /bin/sh -c \"$1\"", "sh", in->command, NULL };
    const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/tmp", NULL };
    const struct sandbox_definition sandbox = { .profile = "strict" };
    const struct child_spec spec = {
        .label = "command of an agent",
        .command = "/bin/sh",
        .args = args,
        .env = env,
        .working_dir = dir,
        .sandbox = &sandbox,
        .own_dir = dir,
        .is_cut_off = true,
        .max_file_bytes = (uint64_t)MAX(room, (int64_t)1),
        .timeout_ms = in->timeout_s * 1000,
        .stop_grace_ms = GRACE_MS,
        .max_stdout = LIMIT_COMMAND_OUTPUT,
        .on_exit = on_exit_of_command,
        .arg = command,
    };
    int r = dir ? few_files_admit(e) : err_errno(e, errno, "The folder of the thread");

    if (r == 0 && !command->supervisor)
        r = err_set(e, -ENOTSUP, "NOT_SERVING", "Commands run in a running service only.");

    if (r == 0 && command->payer)
        r = budget_take(command->payer, BUDGET_CHILDREN, 1, e);
    if (r < 0)
        return r;
    r = child_start(command->supervisor, &spec, &command->child, e);
    if (r < 0 && command->payer)
        budget_give(command->payer, BUDGET_CHILDREN, 1);
    return r;
}

/* Waits for a moment. */
static bool has_ended_soon(struct command *command)
{
    bool has_ended;

    pthread_mutex_lock(&command->lock);
    if (!command->has_ended)
        cond_wait_until(&command->ended, &command->lock, clock_mono_us() + LOOK_US);
    has_ended = command->has_ended;
    pthread_mutex_unlock(&command->lock);
    return has_ended;
}

/* A full folder may be emptied by a command, so only what it adds counts. */
static bool is_too_full(const struct folder *folder, const struct folder_usage *before)
{
    struct folder_usage usage = { 0 };

    return folder_measure(folder, &usage, NULL) < 0 || usage.n_bytes > MAX(folder->quota_bytes, before->n_bytes);
}

/* Stops it when the turn ends or is cancelled, and when its files exceed the quota. *ret_why: what the model is told;
 * NULL: it ended by itself. Returns when it has ended. */
static int await(const struct builtin_call *c, const struct folder *folder, struct command *command,
                 const struct folder_usage *before, const char **ret_why, struct err *e)
{
    int64_t measure_us = clock_mono_us() + MEASURE_US;
    int r = 0;

    while (!has_ended_soon(command)) {
        if (r == 0)
            r = (int)MIN(net_wait_left(c->wait, e), (int64_t)0);
        if (!*ret_why && clock_mono_us() > measure_us) {
            measure_us = clock_mono_us() + MEASURE_US;
            *ret_why = is_too_full(folder, before) ? "it was stopped because the thread's folder was full" : NULL;
        }
        if (r < 0 || *ret_why)
            child_stop(command->child);
    }
    return r;
}

static const char *end_words(struct arena *a, const struct command *command, int64_t timeout_s, const char *why)
{
    const struct child_exit *how = &command->how;

    if (why)
        return why;
    if (how->timed_out)
        return arena_printf(a, "it was stopped after %lld s", (long long)timeout_s);
    if (how->signal == SIGXFSZ)
        return "it was stopped because a file would have been larger than the thread's folder may be";
    if (how->signal)
        return arena_printf(a, "signal %d ended it", how->signal);
    return arena_printf(a, "exit code %d", how->code);
}

/* A NUL would end the text for readers of strings. */
static void add_output(struct buf *out, struct slice output)
{
    while (output.n > 0) {
        size_t n = strnlen(output.p, output.n);

        buf_add(out, output.p, n);
        if (n < output.n)
            buf_add_str(out, "\xef\xbf\xbd");
        n = MIN(n + 1, output.n);
        output = (struct slice){ output.p + n, output.n - n };
    }
}

static int answer(const struct builtin_call *c, const struct command *command, int64_t timeout_s, const char *why,
                  struct mcp_result *ret, struct err *e)
{
    bool is_cut = false;
    struct slice output = child_stdout(command->child, &is_cut);
    struct buf out;
    int r;

    buf_init(&out, LIMIT_REPLY);
    buf_printf(&out, "[%s]\n", end_words(c->call->arena, command, timeout_s, why));
    add_output(&out, output);
    if (is_cut)
        buf_add_str(&out, "\n[the rest of the output is left out]");
    r = builtin_answer_text(c->call->arena, buf_slice(&out), ret, e);
    buf_clear(&out);
    ret->is_error = r == 0 && (why || command->how.code != 0);
    return r;
}

static int run(const struct builtin_call *c, const struct command_arguments *in, const struct folder *folder,
               const struct folder_usage *before, struct mcp_result *ret, struct err *e)
{
    struct command command = { .lock = PTHREAD_MUTEX_INITIALIZER,
                               .supervisor = c->services ? c->services->supervisor : NULL,
                               .payer = payer_of(c->call->caller) };
    const char *why = NULL;
    int r;

    cond_init(&command.ended);
    r = start(c, in, folder, folder->quota_bytes - before->n_bytes, &command, e);
    if (r == 0) {
        r = await(c, folder, &command, before, &why, e);
        if (command.payer)
            budget_give(command.payer, BUDGET_CHILDREN, 1);
        if (r == 0)
            r = answer(c, &command, in->timeout_s, why, ret, e);
    }
    child_unref(command.child);
    budget_holder_unref(command.payer);
    pthread_cond_destroy(&command.ended);
    return r;
}

int builtin_command_run(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    AUTO(folder_close) struct folder folder = { .fd = -1 };
    struct command_arguments in = { 0 };
    struct folder_usage usage = { 0 };
    int r = fields_read(command_fields, c->arguments, &in, c->call->arena, "", e);

    if (r == 0 && !builtin_command_is_on(c->call))
        r = err_set(e, -EPERM, "TOOL_OFF", "run_command is off; a person can turn it on: setting tools.run_command.");
    if (r == 0)
        r = builtin_files_open(c, &folder, e);
    if (r == 0)
        r = folder_measure(&folder, &usage, e);
    return r == 0 ? run(c, &in, &folder, &usage, ret, e) : r;
}
