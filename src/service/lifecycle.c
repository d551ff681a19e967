/* The life of a serving process: open, listen, start the work, run the loop, and on SIGTERM stop in order.
 *
 * Stopping has its own thread because tasks and children end while the loop still runs. Order (architecture section 6):
 * stop accepting, let running requests finish, end tasks and release their leases, end children, stop the pools, stop
 * the loop; then service_close(). A second signal ends the process immediately: PDEATHSIG ends the children.
 */
#include "service/private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_writer.h"
#include "base/thread.h"
#include "base/visible.h"
#include "identity/consent.h"
#include "os/few_files.h"
#include "os/notify.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_BAD_USE = 2, EXIT_AT_ONCE = 143 };

enum { NOTIFY_WAIT_MS = 5000 };

/* For the manager that started this process, if one did; a manager that does not listen changes nothing. */
static void notify_manager(const char *state, int wait_ms)
{
    int r = notify_send(state, wait_ms);

    if (r < 0)
        log_warn("service", NULL, "the manager that NOTIFY_SOCKET names was not told: %s", strerror(-r));
}

static void wait_for_requests(struct service *s, int64_t deadline_ms)
{
    while (http_server_in_flight(s->server) > 0 && clock_mono_ms() < deadline_ms)
        usleep(5000);
}

/* Tasks and apps must have started before they can be stopped. */
static void wait_for_start(struct service *s)
{
    while (!atomic_load(&s->has_started))
        usleep(5000);
}

static void stop_server(void *arg)
{
    struct service *s = arg;

    s->server = http_server_stop(s->server);
}

struct closing {
    struct service *service;
    bool has_more;
};

static void close_some(void *arg)
{
    struct closing *closing = arg;

    closing->has_more = http_server_close_some(closing->service->server);
}

static void close_connections(struct service *s)
{
    struct closing closing = { .service = s };

    do
        loop_call(s->loop, close_some, &closing);
    while (closing.has_more);
}

static void end_event_streams(void *arg)
{
    struct service *s = arg;

    api_events_end_streams(s->events);
    mcp_api_end_streams(s->mcp_api);
    agent_turns_end_streams(s->agent_turns);
    realtime_end(s->realtime);
}

/* Requests, agents and children each have a share of the deadline: a slow step takes no time from the next. */
enum { LEAVING_STEPS = 3, ROWS_STEPS = 2 };

/* Leases cannot be released in a database that does not answer: they go stale. */
static void stop_waiting_for_rows(void *arg)
{
    struct service *s = arg;

    log_warn("service", NULL, "the database is waited for no longer");
    s->backend->ops->leave(s->backend);
}

static void start_leaving(void *arg)
{
    struct service *s = arg;
    int64_t share_ms = settings_ms(s->settings, SETTING_SHUTDOWN_DEADLINE_S) / LEAVING_STEPS;

    if (!s->backend->ops->leave)
        return;
    s->leaving = loop_timer_new(s->loop, stop_waiting_for_rows, s);
    loop_timer_set(s->leaving, ROWS_STEPS * share_ms);
}

static void *leave(void *arg)
{
    struct service *s = arg;
    int64_t share_ms = settings_ms(s->settings, SETTING_SHUTDOWN_DEADLINE_S) / LEAVING_STEPS;
    int64_t deadline_ms = clock_mono_ms() + share_ms;

    loop_call(s->loop, start_leaving, s);
    loop_call(s->loop, end_event_streams, s);
    loop_call(s->loop, service_stop_upkeep, s);
    wait_for_start(s);
    atomic_store(&s->api.is_leaving, true);
    consent_end_waits(s->identity);
    agent_turns_leave(s->agent_turns);
    approvals_end_waits(s->approvals);
    wait_for_requests(s, deadline_ms);
    tasks_stop(s->tasks, clock_mono_ms() + share_ms);
    agent_turns_finish(s->agent_turns);
    apps_stop(s->apps);
    llamacpp_stop(s->llamacpp);
    mcp_host_stop(s->mcp_host);
    s->supervisor = supervisor_close(s->supervisor, share_ms);
    agents_finish(s->agents);
    close_connections(s);
    loop_call(s->loop, stop_server, s);
    s->short_pool = pool_stop(s->short_pool);
    s->long_pool = pool_stop(s->long_pool);
    loop_stop(s->loop);
    return NULL;
}

struct leaving {
    struct service *service;
    pthread_t thread;
};

static void on_signal(int signum, void *arg)
{
    struct leaving *l = arg;
    struct service *s = l->service;

    if (s->is_stopping)
        _exit(EXIT_AT_ONCE);
    s->is_stopping = true;
    notify_manager("STOPPING=1", 0);
    log_info("service", NULL, "stopping on %s", strsignal(signum));
    service_unlisten(s);
    if (thread_start(&l->thread, "leave", leave, s) < 0)
        _exit(EXIT_AT_ONCE);
}

/* From here on /readyz answers; a disk that is full at the start is no reason to start again and again. */
static void notify_ready(struct service *s)
{
    char state[sizeof(s->api.base_url) + 64];

    snprintf(state, sizeof(state), "READY=1\nSTATUS=listening on %s", s->api.base_url);
    notify_manager(state, NOTIFY_WAIT_MS);
}

/* The loop reads no files: a worker does. */
static void on_hangup(int signum, void *arg)
{
    struct service *s = arg;

    if (!s->is_stopping && pool_submit(s->long_pool, service_reload, s) < 0)
        log_warn("service", NULL, "too busy to read the settings file again; send SIGHUP later");
}

/* Work starts once the loop runs, because the loop starts the child processes. */
static void start_work(void *arg)
{
    struct service *s = arg;
    struct err e = { 0 };

    if (tasks_start(s->tasks, &e) < 0)
        log_error("service", NULL, "tasks did not start: %s", e.text);
    wire_custom_start(s);
    e = (struct err){ 0 };
    if (apps_start_enabled(s->apps, &e) < 0)
        log_error("service", NULL, "apps did not start: %s", e.text);
    notify_ready(s);
    atomic_store(&s->has_started, true);
}

static int complain(const struct err *e)
{
    struct buf line;

    buf_init(&line, LIMIT_LOG_OWN_LINE_BYTES);
    visible_add(&line, slice_of(e->text), VISIBLE_LINE);
    fprintf(stderr, "hearth: %s\n", buf_str(&line));
    buf_clear(&line);
    return strcmp(e->code, "BAD_SETTING") == 0 ? EXIT_BAD_USE : EXIT_FAILED;
}

/* Signals are watched before the service prints its listening line. */
static int run(struct service *s, struct err *e)
{
    struct leaving l = { .service = s };
    int r;

    signal(SIGPIPE, SIG_IGN);
    s->on_term = loop_watch_signal(s->loop, SIGTERM, on_signal, &l);
    s->on_int = loop_watch_signal(s->loop, SIGINT, on_signal, &l);
    s->on_hup = loop_watch_signal(s->loop, SIGHUP, on_hangup, s);
    r = service_listen(s, e);
    if (r == 0)
        r = service_start_upkeep(s, e);
    if (r == 0)
        r = pool_submit(s->long_pool, start_work, s);
    if (r == 0)
        r = loop_run(s->loop, e);
    if (s->is_stopping)
        pthread_join(l.thread, NULL);
    return r;
}

/* Every connection needs a descriptor; the usual soft limit of 1024 is below LIMIT_CONNECTIONS. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        log_warn("service", NULL, "the limit of open files stays at its soft value: %s", strerror(errno));
}

int service_serve(const struct service_config *c)
{
    struct err e = { 0 };
    struct service *s = xcalloc(1, sizeof(*s));
    int r;

    raise_descriptor_limit();
    few_files_reserve(LIMIT_CONNECTIONS);
    r = few_files_check(&e);
    if (r == 0)
        r = service_open_core(s, c, true, &e);
    if (r == 0)
        r = log_writer_start(STDERR_FILENO, &e);
    if (r == 0)
        r = run(s, &e);
    service_close(s);
    if (r == 0)
        log_info("service", NULL, "stopped");
    log_writer_stop();
    return r < 0 ? complain(&e) : EXIT_DONE;
}
