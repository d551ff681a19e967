/* Runs llama-server. Its options and routes: https://github.com/ggml-org/llama.cpp/tree/master/tools/server */
#include "llm/local/llama_server.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "os/env.h"
#include "os/proc.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    KEY_BYTES = 32,
    TAIL_LINES = 6,
    TAIL_BYTES = 240,
    FIRST_NAP_MS = 20,
    LONGEST_NAP_MS = 250,
    HEALTH_MS = 2000, /* the limit for one answer of /health */
    SOUND_MS = 60000, /* earlier crashes are forgotten after this run time */
    LONGEST_REST_MS = 60000,
    STOP_GRACE_MS = 5000,
    UNAUTHORIZED = 401,
};

int64_t llamacpp_rest_ms(unsigned n_crashes)
{
    return n_crashes == 0  ? 0
           : n_crashes > 6 ? LONGEST_REST_MS
                           : MIN((int64_t)1000 << (n_crashes - 1), (int64_t)LONGEST_REST_MS);
}

/* ---- the end of a process; under the lock ---- */

static void note_crash(struct llama_server *s, const char *what, const char *tail)
{
    size_t n = strlen(tail);

    if (s->ready_ms && clock_mono_ms() - s->ready_ms >= SOUND_MS)
        s->n_crashes = 0;
    s->n_crashes++;
    s->not_before_ms = clock_mono_ms() + llamacpp_rest_ms(s->n_crashes);
    snprintf(s->why, sizeof(s->why), "%s%s%s", what, n ? " Its last words: " : "",
             tail + n - MIN(n, (size_t)TAIL_BYTES));
    for (char *at = s->why; *at; at++)
        if (*at == '\n')
            *at = ' ';
    log_debug("llm", NULL, "model %s: %s", LOG_Q(s->model), LOG_Q(s->why));
}

static const char *end_in_words(struct arena *a, const struct llama_server *s, const struct child_exit *how)
{
    if (s->failure)
        return s->failure;
    if (how->signal)
        return arena_printf(a, "llama-server was ended by signal %d (%s).", how->signal, strsignal(how->signal));
    return arena_printf(a, "llama-server ended with code %d.", how->code);
}

/* On the loop thread. */
static void on_exit_of(struct child *c, const struct child_exit *how, void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llama_server *s = arg;
    struct llamacpp *l = s->owner;
    struct child *mine;

    pthread_mutex_lock(&l->lock);
    if (!l->is_closing && (s->state != LLAMA_STOPPING || s->failure))
        note_crash(s, end_in_words(a, s, how), child_log_tail(child_log_of(c), a, CHILD_STDERR, TAIL_LINES));
    s->state = LLAMA_STOPPED;
    s->has_exited = true;
    mine = TAKE(s->child);
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    child_unref(mine);
}

void llama_server_stop(struct llama_server *s)
{
    s->state = LLAMA_STOPPING;
    child_stop(s->child);
}

/* ---- the start of a process ---- */

struct start {
    struct arena *a; /* owned; this struct is allocated in it */
    struct llama_server *server;
    struct child_spec spec;
    struct child *child; /* a reference */
    char api_key[48];
    int64_t until_ms;
    unsigned run;
};

static const char *const *make_args(const struct llamacpp *l, const struct llama_plan *plan, struct arena *a)
{
    const char *n_tokens = arena_printf(a, "%lld", (long long)plan->n_tokens);
    /* To make vectors, llama-server needs every text in one batch. */
    const char *const for_vectors[] = { "--embeddings", "--batch-size", n_tokens, "--ubatch-size", n_tokens };
    const char *const always[] = { "--model",   plan->file->path, "--alias", plan->file->id, "--host",
                                   "127.0.0.1", "--port",         "0",       "--ctx-size",   n_tokens };
    size_t n_more, n = 0;
    const char *const *more = settings_list(l->config.settings, a, SETTING_LLAMACPP_ARGS, &n_more);
    const char **args = arena_array(a, ARRAY_SIZE(always) + ARRAY_SIZE(for_vectors) + n_more + 1, sizeof(*args));

    for (size_t i = 0; i < ARRAY_SIZE(always); i++)
        args[n++] = arena_strdup(a, always[i]);
    for (size_t i = 0; gguf_is_embedding(&plan->file->info) && i < ARRAY_SIZE(for_vectors); i++)
        args[n++] = for_vectors[i];
    for (size_t i = 0; i < n_more; i++)
        args[n++] = more[i];
    return args;
}

/* Passes the variables that name the program's libraries and graphics cards. */
static int make_env(struct arena *a, const char *api_key, const char *const **ret, struct err *e)
{
    static const char *const passed[] = {
        "LD_LIBRARY_PATH",      "CUDA_VISIBLE_DEVICES",     "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "GGML_VK_VISIBLE_DEVICES"
    };
    struct env_list *env = env_list_new(a);
    int r = env_list_set(env, "LLAMA_API_KEY", api_key, e);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(passed); i++) {
        const char *value = getenv(passed[i]);

        if (value)
            r = env_list_set(env, passed[i], value, e);
    }
    if (r == 0)
        *ret = env_list_strings(env);
    return r;
}

/* The status of the answer; 0: no answer. api_key NULL: sends no key. */
static int request(uint16_t port, const char *path, const char *api_key)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct http_call_header key = { "authorization", arena_printf(a, "Bearer %s", api_key ? api_key : "") };
    const struct http_call_request get = { .method = "GET",
                                           .url = arena_printf(a, "http://127.0.0.1:%u%s", port, path),
                                           .headers = &key,
                                           .n_headers = api_key ? 1 : 0,
                                           .connect_ms = HEALTH_MS,
                                           .total_ms = HEALTH_MS };
    struct http_answer answer = { 0 };

    return http_call(&get, a, NULL, &answer, NULL) < 0 ? 0 : answer.status;
}

/* Under the lock. */
static bool is_mine(const struct start *start)
{
    return start->server->state == LLAMA_STARTING && start->server->run == start->run;
}

static bool may_go_on(const struct start *start)
{
    struct llamacpp *l = start->server->owner;
    bool may;

    pthread_mutex_lock(&l->lock);
    may = is_mine(start) && !l->is_closing;
    pthread_mutex_unlock(&l->lock);
    return may;
}

/* Waits until the process answers that the model is loaded. Returns the process's port, and in *ret_status the status
 * of its answer to a request without the key; 0: the process ended, or the time is over. The kernel names the port, so
 * no other process listens there. */
static uint16_t wait_until_ready(const struct start *start, int *ret_status)
{
    struct timespec nap = { .tv_sec = 0 };

    for (int64_t nap_ms = FIRST_NAP_MS; may_go_on(start) && clock_mono_ms() < start->until_ms;
         nap_ms = MIN(2 * nap_ms, LONGEST_NAP_MS)) {
        uint16_t port = proc_listening_port(child_pid(start->child));

        if (port && request(port, "/health", start->api_key) == 200 &&
            (*ret_status = request(port, "/props", NULL)) > 0)
            return port;
        nap.tv_nsec = nap_ms * 1000000;
        nanosleep(&nap, NULL);
    }
    return 0;
}

static void arm_timer(void *arg)
{
    struct llamacpp *l = arg;

    loop_timer_set(l->timer, LONGEST_NAP_MS);
}

/* Makes the process ready, or stops it: a process that answers requests without the key (llama.cpp before September
 * 2024 does not know LLAMA_API_KEY) is not used. */
static void conclude(const struct start *start)
{
    struct llama_server *s = start->server;
    struct llamacpp *l = s->owner;
    int status = 0;
    uint16_t port = wait_until_ready(start, &status);
    bool is_open = port && status != UNAUTHORIZED, is_ready;

    pthread_mutex_lock(&l->lock);
    is_ready = port && !is_open && is_mine(start);
    if (is_ready) {
        s->state = LLAMA_READY;
        s->used_ms = s->ready_ms = clock_mono_ms();
        snprintf(s->base_url, sizeof(s->base_url), "http://127.0.0.1:%u/v1", port);
        memcpy(s->api_key, start->api_key, sizeof(s->api_key));
    } else if (is_mine(start)) {
        s->failure = is_open
                         ? "llama-server answers without asking for its key; llama.cpp of September 2024 or later does."
                         : "llama-server did not load it in the time of the setting llamacpp.start_s.";
        llama_server_stop(s);
    }
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (is_ready)
        loop_call(l->config.loop, arm_timer, l);
}

/* False: the process could not be started, or has ended already. */
static bool begin(struct start *start)
{
    struct llama_server *s = start->server;
    struct err e = { 0 };
    int r = child_start(s->owner->config.supervisor, &start->spec, &start->child, &e);
    bool is_there;

    pthread_mutex_lock(&s->owner->lock);
    if (r < 0) {
        note_crash(s, e.text, "");
        s->state = LLAMA_STOPPED;
    }
    is_there = r == 0 && !s->has_exited;
    if (is_there)
        s->child = child_ref(start->child);
    pthread_cond_broadcast(&s->owner->changed);
    pthread_mutex_unlock(&s->owner->lock);
    return is_there;
}

static void run_start(void *arg)
{
    struct start *start = arg;

    if (begin(start))
        conclude(start);
    child_unref(start->child);
    arena_free(start->a);
}

/* There is no sandbox, as graphics cards need devices and driver files that differ between machines. The process still
 * ends with the service. */
static const struct sandbox_definition without_sandbox = { .profile = "none" };

int llama_server_start(struct llama_server *s, const struct llama_plan *plan, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llamacpp *l = s->owner;
    struct start *start = ARENA_NEW(a, struct start);
    int r;

    start->server = s;
    start->until_ms = clock_mono_ms() + settings_ms(l->config.settings, SETTING_LLAMACPP_START_S);
    random_token(start->api_key, KEY_BYTES);
    start->spec = (struct child_spec){ .label = arena_printf(a, "model %s", s->model),
                                       .command = arena_strdup(a, plan->program),
                                       .args = make_args(l, plan, a),
                                       .sandbox = &without_sandbox,
                                       .stop_grace_ms = STOP_GRACE_MS,
                                       .on_exit = on_exit_of,
                                       .arg = s };
    r = make_env(a, start->api_key, &start->spec.env, e);
    if (r < 0)
        return r;
    start->run = ++s->run;
    s->has_exited = false;
    s->failure = NULL;
    s->ready_ms = 0;
    start->a = a;
    if (pool_submit(l->pool, run_start, start) < 0)
        return err_set(e, -EAGAIN, "OVERLOADED", "Too many models are being loaded already; try again soon.");
    a = NULL;
    s->state = LLAMA_STARTING;
    return 0;
}
