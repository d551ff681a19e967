/* A client of one MCP server over stdio, for the tests in JavaScript (tests/peers, tests/hostile): operations come as
 * lines of JSON, results and events go out as lines of JSON.
 *
 *     client_cases COMMAND ARG...      {"op":"call","name":"echo","arguments":{"message":"hi"},"ms":5000}
 *
 * Variables: ERA (handshake, stateless), PROBE_MS, OPEN_MS, SANDBOX (a profile). The first line tells how the opening
 * went. */
#include "mcp/client.h"
#include "mcp/stdio.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/uuid.h"
#include "os/sandbox.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct cases {
    struct loop *loop;
    pthread_t loop_thread;
    pthread_barrier_t loop_runs;
    struct supervisor *supervisor;
    struct sandbox *box; /* NULL: none */
    struct sandbox_definition definition;
    struct pool *pool;
    struct child_log *log;
    struct mcp_client *client;
    enum mcp_era era;
    pthread_mutex_t lock; /* guards what follows, and standard output */
    char *elicited;       /* the answer to elicitations */
    char *sampled;
};

static struct cases cases = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- output ---- */

static void begin_line(struct json_writer *w, struct buf *out, const char *name, const char *value)
{
    buf_init(out, LIMIT_REPLY);
    json_write_init(w, out);
    json_begin_object(w);
    json_add_string(w, name, value);
}

static void end_line(struct json_writer *w, struct buf *out)
{
    json_end(w);
    pthread_mutex_lock(&cases.lock);
    puts(buf_str(out));
    fflush(stdout);
    pthread_mutex_unlock(&cases.lock);
    buf_clear(out);
}

static void add_error(struct json_writer *w, int r, const struct err *e)
{
    json_add_bool(w, "ok", r == 0);
    if (r == 0)
        return;
    json_add_int(w, "r", r);
    json_add_string(w, "code", e->code);
    json_add_string(w, "text", e->text);
}

/* ---- what the server asks and tells ---- */

static int answer_roots(void *arg, const struct mcp_server_request *request, struct json_writer *w, struct err *e)
{
    json_begin_object(w);
    json_add_string(w, "uri", "file:///srv/demo");
    json_add_string(w, "name", "demo");
    json_end(w);
    return 0;
}

static int answer(const char *what, const struct mcp_server_request *request, char *const *reply, struct buf *ret)
{
    struct json_writer w;
    struct buf out;

    begin_line(&w, &out, "event", what);
    json_add_string(&w, "caller", request->caller ? request->caller->name : NULL);
    json_add_value(&w, "params", request->params);
    end_line(&w, &out);
    pthread_mutex_lock(&cases.lock);
    buf_add_str(ret, *reply);
    pthread_mutex_unlock(&cases.lock);
    return strcmp(buf_str(ret), "refuse") == 0 ? -EPERM : 0;
}

static int answer_sample(void *arg, const struct mcp_server_request *request, struct buf *ret, struct err *e)
{
    return answer("sample", request, &cases.sampled, ret);
}

static int answer_elicit(void *arg, const struct mcp_server_request *request, struct buf *ret, struct err *e)
{
    return answer("elicit", request, &cases.elicited, ret);
}

static void note(const char *event, const char *name, const char *value)
{
    struct json_writer w;
    struct buf out;

    begin_line(&w, &out, "event", event);
    json_add_string(&w, name, value);
    end_line(&w, &out);
}

static void on_changed(void *arg, enum mcp_list what)
{
    static const char *const names[] = { "tools", "prompts", "resources" };

    note("changed", "what", names[what]);
}

static void on_updated(void *arg, const char *uri)
{
    note("updated", "uri", uri);
}

static void on_logged(void *arg, struct json_value params)
{
    struct json_writer w;
    struct buf out;

    begin_line(&w, &out, "event", "logged");
    json_add_value(&w, "params", params);
    end_line(&w, &out);
}

static void on_closed(void *arg, const struct err *why)
{
    note("closed", "text", why->text);
}

static void on_progress(void *arg, double progress, double total, const char *message)
{
    struct json_writer w;
    struct buf out;

    begin_line(&w, &out, "event", "progress");
    json_add_double(&w, "progress", progress);
    json_add_double(&w, "total", total);
    json_add_string(&w, "message", message);
    end_line(&w, &out);
}

/* ---- operations ---- */

struct op {
    struct json_value in;
    struct mcp_call call;
    struct json_writer *w;
};

static const char *text(const struct op *op, const char *name)
{
    const char *s = json_cstr(json_get(op->in, name));

    return s ? s : "";
}

static int do_tools(struct op *op, struct err *e)
{
    struct mcp_tools tools = { 0 };
    int r = mcp_client_tools(cases.client, &op->call, &tools, e);

    json_add_string(op->w, "why_cut", tools.why_cut);
    json_begin_array_as(op->w, "tools");
    for (size_t i = 0; i < tools.n; i++) {
        const struct mcp_tool *t = &tools.items[i];

        json_begin_object(op->w);
        json_add_string(op->w, "name", t->name);
        json_add_string(op->w, "title", t->title);
        json_add_string(op->w, "description", t->description);
        json_add_value(op->w, "input_schema", t->input_schema);
        json_add_bool(op->w, "is_read_only", t->is_read_only);
        json_add_bool(op->w, "is_destructive", t->is_destructive);
        json_end(op->w);
    }
    json_end(op->w);
    return r;
}

static int do_call(struct op *op, struct err *e)
{
    struct mcp_result result = { 0 };
    int r = mcp_client_call(cases.client, &op->call, text(op, "name"), json_get(op->in, "arguments"), &result, e);

    if (r == 0) {
        json_add_value(op->w, "content", result.content);
        json_add_value(op->w, "structured", result.structured);
        json_add_bool(op->w, "isError", result.is_error);
    }
    return r;
}

static int do_resources(struct op *op, struct err *e)
{
    const bool are_templates = strcmp(text(op, "op"), "templates") == 0;
    struct mcp_resources list = { 0 };
    int r = (are_templates ? mcp_client_templates : mcp_client_resources)(cases.client, &op->call, &list, e);

    json_add_string(op->w, "why_cut", list.why_cut);
    json_begin_array_as(op->w, "uris");
    for (size_t i = 0; i < list.n; i++)
        json_add_string(op->w, NULL, list.items[i].uri);
    json_end(op->w);
    return r;
}

static int do_read(struct op *op, struct err *e)
{
    struct json_value contents = { 0 };
    int r = mcp_client_read(cases.client, &op->call, text(op, "uri"), &contents, e);

    json_add_value(op->w, "contents", contents);
    return r;
}

static int do_subscribe(struct op *op, struct err *e)
{
    return mcp_client_subscribe(cases.client, &op->call, text(op, "uri"), e);
}

static int do_unsubscribe(struct op *op, struct err *e)
{
    return mcp_client_unsubscribe(cases.client, &op->call, text(op, "uri"), e);
}

static int do_prompts(struct op *op, struct err *e)
{
    struct mcp_prompts list = { 0 };
    int r = mcp_client_prompts(cases.client, &op->call, &list, e);

    json_begin_array_as(op->w, "names");
    for (size_t i = 0; i < list.n; i++)
        json_add_string(op->w, NULL, list.items[i].name);
    json_end(op->w);
    return r;
}

static int do_prompt(struct op *op, struct err *e)
{
    struct json_value messages = { 0 };
    const char *description = NULL;
    int r = mcp_client_prompt(cases.client, &op->call, text(op, "name"), json_get(op->in, "arguments"), &description,
                              &messages, e);

    json_add_value(op->w, "messages", messages);
    return r;
}

static int do_complete(struct op *op, struct err *e)
{
    const struct mcp_completion what = { text(op, "ref_type"), text(op, "ref"), text(op, "argument"), text(op, "value"),
                                         json_get(op->in, "context") };
    struct json_value completion = { 0 };
    int r = mcp_client_complete(cases.client, &op->call, &what, &completion, e);

    json_add_value(op->w, "completion", completion);
    return r;
}

static int do_level(struct op *op, struct err *e)
{
    return mcp_client_log_level(cases.client, &op->call, text(op, "level"), e);
}

static int do_ping(struct op *op, struct err *e)
{
    return mcp_client_ping(cases.client, &op->call, e);
}

static int do_roots(struct op *op, struct err *e)
{
    return mcp_client_roots_changed(cases.client, op->call.wait, e);
}

static int do_counts(struct op *op, struct err *e)
{
    struct mcp_counts counts;

    mcp_client_counts(cases.client, &counts);
    json_add_int(op->w, "frames", (int64_t)counts.n_frames);
    json_add_int(op->w, "bad", (int64_t)counts.n_bad);
    json_add_int(op->w, "unasked", (int64_t)counts.n_unasked);
    json_add_int(op->w, "refused", (int64_t)counts.n_refused);
    json_add_bool(op->w, "open", mcp_client_is_open(cases.client));
    return 0;
}

static int do_log(struct op *op, struct err *e)
{
    json_add_string(op->w, "stdout", child_log_tail(cases.log, op->call.arena, CHILD_STDOUT, 20));
    json_add_string(op->w, "stderr", child_log_tail(cases.log, op->call.arena, CHILD_STDERR, 20));
    return 0;
}

static int do_answers(struct op *op, struct err *e)
{
    pthread_mutex_lock(&cases.lock);
    free(cases.elicited);
    free(cases.sampled);
    cases.elicited = xstrdup(text(op, "elicited"));
    cases.sampled = xstrdup(text(op, "sampled"));
    pthread_mutex_unlock(&cases.lock);
    return 0;
}

static int do_close(struct op *op, struct err *e)
{
    mcp_client_close(cases.client);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(struct op *op, struct err *e);
} ops[] = {
    { "tools", do_tools },         { "call", do_call },
    { "resources", do_resources }, { "templates", do_resources },
    { "read", do_read },           { "subscribe", do_subscribe },
    { "prompts", do_prompts },     { "unsubscribe", do_unsubscribe },
    { "prompt", do_prompt },       { "complete", do_complete },
    { "level", do_level },         { "ping", do_ping },
    { "roots", do_roots },         { "counts", do_counts },
    { "answers", do_answers },     { "log", do_log },
    { "close", do_close },
};

static int run_op(struct op *op, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
        if (strcmp(ops[i].name, text(op, "op")) == 0)
            return ops[i].run(op, e);
    return err_set(e, -EINVAL, "NO_SUCH_OP", "no such operation");
}

/* On a thread of its own, so that operations run at the same time. */
static void *line_main(void *line)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    atomic_bool is_gone = false;
    struct json_writer w;
    struct net_wait wait;
    struct op op = { .w = &w };
    struct err e = { 0 };
    struct buf out;
    int r = json_parse(a, slice_of(line), &op.in, &e);
    int64_t ms = json_int(json_get(op.in, "ms"));
    const struct mcp_caller caller = { .name = json_cstr(json_get(op.in, "caller")) };

    wait = net_wait_of(ms > 0 ? ms : 60000, &is_gone, NULL);
    op.call = (struct mcp_call){ .arena = a,
                                 .wait = &wait,
                                 .quiet_ms = json_int(json_get(op.in, "quiet_ms")),
                                 .on_progress = json_bool(json_get(op.in, "progress")) ? on_progress : NULL,
                                 .caller = caller.name ? &caller : NULL };
    begin_line(&w, &out, "op", text(&op, "op"));
    json_add_value(&w, "id", json_get(op.in, "id"));
    if (r == 0)
        r = run_op(&op, &e);
    add_error(&w, r, &e);
    end_line(&w, &out);
    free(line);
    return NULL;
}

static void run_lines(void)
{
    pthread_t threads[256];
    char *line = NULL;
    size_t cap = 0, n = 0;

    while (n < ARRAY_SIZE(threads) && getline(&line, &cap, stdin) > 0)
        if (pthread_create(&threads[n], NULL, line_main, xstrdup(line)) == 0)
            n++;
    free(line);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* ---- opening ---- */

static int64_t milliseconds(const char *name, int64_t otherwise)
{
    const char *value = getenv(name);

    return value ? strtol(value, NULL, 10) : otherwise;
}

static int open_once(const char *const *argv, struct err *e)
{
    static const struct mcp_handlers handlers = { .roots = answer_roots,
                                                  .sample = answer_sample,
                                                  .elicit = answer_elicit,
                                                  .changed = on_changed,
                                                  .updated = on_updated,
                                                  .logged = on_logged,
                                                  .closed = on_closed };
    const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", NULL };
    const struct child_spec spec = { .label = "mcp test",
                                     .command = argv[0],
                                     .args = argv + 1,
                                     .env = env,
                                     .sandbox = cases.box ? &cases.definition : NULL,
                                     .stop_grace_ms = 1000,
                                     .log = cases.log };
    const struct mcp_client_config config = {
        .era = cases.era, .handlers = &handlers, .pool = cases.pool, .probe_ms = milliseconds("PROBE_MS", 0)
    };
    const struct net_wait wait = net_wait_of(milliseconds("OPEN_MS", 60000), NULL, NULL);
    struct mcp_link *link;
    int r = mcp_stdio_open(&(struct mcp_stdio_config){ cases.supervisor, &spec }, &link, e);

    return r < 0 ? r : mcp_client_open(link, &config, &wait, &cases.client, &cases.era, e);
}

static void open_client(const char *const *argv)
{
    const char *era = getenv("ERA");
    struct err e = { 0 };
    struct json_writer w;
    struct buf out;
    int r;

    cases.era = !era ? MCP_ERA_UNKNOWN : strcmp(era, "stateless") == 0 ? MCP_ERA_STATELESS : MCP_ERA_HANDSHAKE;
    r = open_once(argv, &e);
    if (r == -EAGAIN)
        r = open_once(argv, &e);
    begin_line(&w, &out, "op", "open");
    add_error(&w, r, &e);
    json_add_int(&w, "era", cases.era);
    if (r == 0) {
        json_add_string(&w, "version", mcp_client_about(cases.client)->version);
        json_add_string(&w, "name", mcp_client_about(cases.client)->name);
    }
    end_line(&w, &out);
}

static void tell_that_it_runs(void *arg)
{
    pthread_barrier_wait(&cases.loop_runs);
}

static void *loop_main(void *arg)
{
    return loop_run(cases.loop, NULL) < 0 ? arg : NULL;
}

/* Until its thread runs, the thread that made the loop counts as the loop's. */
static int start_loop(void)
{
    pthread_barrier_init(&cases.loop_runs, NULL, 2);
    loop_post(cases.loop, tell_that_it_runs, NULL);
    if (pthread_create(&cases.loop_thread, NULL, loop_main, NULL) != 0)
        return -1;
    pthread_barrier_wait(&cases.loop_runs);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct pool_config pool = { .name = "mcp", .n_min = 1, .n_max = 16, .max_waiting = 64 };
    char instance[UUID_SIZE];
    size_t n_orphans;

    if (argc < 2 || hash_init(NULL) < 0 || loop_new(&cases.loop, NULL) < 0)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    if (getenv("SANDBOX"))
        cases.box = sandbox_new(
            &(struct sandbox_config){ .bwrap = "bwrap", .data_dir = "/nowhere", .profile = getenv("SANDBOX") });
    uuid_v4(instance);
    cases.elicited = xstrdup("{\"action\":\"decline\"}");
    cases.sampled =
        xstrdup("{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"sampled\"},\"model\":\"m\"}");
    cases.log = child_log_new();
    if (supervisor_open(cases.loop, instance, &cases.supervisor, &n_orphans, NULL) < 0 ||
        pool_start(&pool, &cases.pool, NULL) < 0 || start_loop() < 0)
        return 2;
    if (cases.box)
        supervisor_set_sandbox(cases.supervisor, cases.box);
    open_client((const char *const *)argv + 1);
    if (cases.client)
        run_lines();
    mcp_client_unref(cases.client);
    pool_stop(cases.pool);
    supervisor_close(cases.supervisor, 1000);
    loop_stop(cases.loop);
    pthread_join(cases.loop_thread, NULL);
    loop_free(cases.loop);
    sandbox_free(cases.box);
    child_log_unref(cases.log);
    free(cases.elicited);
    free(cases.sampled);
    return 0;
}
