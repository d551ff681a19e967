#include "llm/local/llama_server.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "os/program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_AGAIN_MS = 2000, WAIT_STEP_MS = 50, IDLE_LOOK_MS = 500, MIB = 1 << 20 };

/* ---- the program and the models ---- */

static const char *models_dir(struct llamacpp *l, struct arena *a)
{
    const char *given = settings_string(l->config.settings, a, SETTING_LLM_MODELS_DIR);

    return *given ? given : arena_printf(a, "%s/models", l->config.data_dir);
}

static int find_program(struct llamacpp *l, struct arena *a, char **ret, struct err *e)
{
    const char *name = settings_string(l->config.settings, a, SETTING_LLAMACPP_SERVER);

    if (!*name)
        return err_set(e, -ENOENT, "COMMAND_NOT_FOUND", "The setting llamacpp.server is empty.");
    return program_find(a, name, NULL, getenv("PATH"), ret, e);
}

static const char *why_no_program(struct llamacpp *l, struct arena *a)
{
    const char *name = settings_string(l->config.settings, a, SETTING_LLAMACPP_SERVER);
    struct err why = { 0 };
    char *program = NULL;
    int r = find_program(l, a, &program, &why);

    if (r == 0)
        return NULL;
    return r == -ENOENT && *name ? arena_printf(a, "There is no program %s%s.", name,
                                                strchr(name, '/') ? "" : " on the PATH of the service")
                                 : arena_strdup(a, why.text);
}

int llamacpp_explain(struct llamacpp *l, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *dir = models_dir(l, a), *no_program = why_no_program(l, a);
    struct model_files files = { NULL, 0 };
    struct err why = { 0 };

    if (no_program)
        return err_set(
            e, -EINVAL, "PROVIDER_UNAVAILABLE",
            "llamacpp cannot run models yet. %.200s Install llama.cpp (https://github.com/ggml-org/llama.cpp has packages and releases), or name its "
            "llama-server in the setting llamacpp.server; and put a model file (.gguf) into %.200s.",
            no_program, dir);
    if (model_files_list(dir, a, &files, &why) < 0)
        return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "llamacpp cannot run models yet. %s.", why.text);
    return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE",
                   "llamacpp has no model yet: put a model file (.gguf) into %.300s.", dir);
}

bool llamacpp_must_look(const struct llamacpp *l)
{
    int64_t looked_ms = atomic_load(&l->looked_ms);

    return !looked_ms || clock_mono_ms() - looked_ms >= LOOK_AGAIN_MS;
}

bool llamacpp_is_offered(struct llamacpp *l, bool is_fresh)
{
    AUTO(arena_freep) struct arena *a = NULL;
    struct model_files files = { NULL, 0 };
    char *program = NULL;
    bool is_known, is_offered;

    pthread_mutex_lock(&l->lock);
    is_offered = l->is_offered;
    is_known = !is_fresh && !llamacpp_must_look(l);
    if (!is_known)
        atomic_store(&l->looked_ms, clock_mono_ms()); /* concurrent callers use the previous result */
    pthread_mutex_unlock(&l->lock);
    if (is_known)
        return is_offered;
    a = arena_new();
    is_offered = find_program(l, a, &program, NULL) == 0 && model_files_list(models_dir(l, a), a, &files, NULL) == 0 &&
                 files.n > 0;
    pthread_mutex_lock(&l->lock);
    l->is_offered = is_offered;
    pthread_mutex_unlock(&l->lock);
    return is_offered;
}

int llamacpp_models(struct llamacpp *l, struct arena *a, struct llm_models *ret, struct err *e)
{
    struct model_files files = { NULL, 0 };
    struct llm_model *items;
    int r = model_files_list(models_dir(l, a), a, &files, e);

    if (r < 0)
        return r;
    items = arena_array(a, files.n + 1, sizeof(*items));
    for (size_t i = 0; i < files.n; i++)
        items[i] = (struct llm_model){ files.items[i].id, files.items[i].id, files.items[i].created_s };
    *ret = (struct llm_models){ items, files.n };
    return 0;
}

/* ---- the requested model ---- */

static double gib(int64_t n_bytes)
{
    return (double)n_bytes / (1 << 30);
}

static int64_t memory_allowed(struct llamacpp *l)
{
    int64_t given = settings_int(l->config.settings, SETTING_LLAMACPP_MEMORY_MB);

    return given ? given * MIB : (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 4 * 3;
}

static int64_t memory_needed(const struct llama_plan *plan)
{
    int64_t sum;

    return __builtin_add_overflow(plan->file->n_bytes, gguf_context_bytes(&plan->file->info, plan->n_tokens), &sum)
               ? INT64_MAX
               : sum;
}

static int check_memory(struct llamacpp *l, const struct llama_plan *plan, struct err *e)
{
    int64_t needed = memory_needed(plan), allowed = memory_allowed(l);

    if (needed <= allowed)
        return 0;
    return err_set(
        e, -EFBIG, "MODEL_TOO_LARGE",
        "The model %.200s needs about %.2f GiB (%.2f GiB for its files, the rest for %lld tokens of context), and the setting llamacpp.memory_mb "
        "allows %.2f GiB.",
        plan->file->id, gib(needed), gib(plan->file->n_bytes), (long long)plan->n_tokens, gib(allowed));
}

static int check_file(const struct model_file *file, const struct llamacpp_start_request *start_request, struct err *e)
{
    struct gguf_info info;

    if (file->n_missing > 0)
        return err_set(e, -EBADMSG, "BAD_MODEL_FILE",
                       "The model %.200s has %u files, and %u of them %s missing in the models folder.", file->id,
                       file->n_parts, file->n_missing, file->n_missing == 1 ? "is" : "are");
    if (!*file->info.architecture)
        return gguf_read(file->path, &info, e);
    if (gguf_is_embedding(&file->info) == start_request->is_for_vectors)
        return 0;
    return err_set(e, -EINVAL, "INVALID_MODEL",
                   start_request->is_for_vectors ? "The model %.200s has chats but no embeddings."
                                                 : "The model %.200s makes embeddings and has no chats.",
                   file->id);
}

/* NULL: there is no such model, or no program to run it; *ret_r and e have the error. */
static const struct model_file *find_file(struct llamacpp *l, const char *model, struct arena *a, int *ret_r,
                                          struct err *e)
{
    const char *dir = models_dir(l, a), *ids = "";
    const struct model_file *file;
    struct model_files files = { NULL, 0 };
    char *program = NULL;

    *ret_r = -EINVAL;
    if (find_program(l, a, &program, NULL) < 0) {
        llamacpp_explain(l, e);
        return NULL;
    }
    *ret_r = model_files_list(dir, a, &files, e);
    if (*ret_r < 0)
        return NULL;
    file = model_files_find(&files, model);
    if (file)
        return file;
    for (size_t i = 0; i < MIN(files.n, (size_t)10); i++)
        ids = arena_printf(a, "%s%s%s", ids, i ? ", " : "", files.items[i].id);
    *ret_r = -EINVAL;
    err_set(e, -EINVAL, "INVALID_MODEL", "There is no model %.100s in %.200s; there are: %.250s.", model, dir, ids);
    return NULL;
}

static int make_plan(struct llamacpp *l, const struct model_file *file,
                     const struct llamacpp_start_request *start_request, struct arena *a, struct llama_plan *ret,
                     struct err *e)
{
    char *program = NULL;
    int r = find_program(l, a, &program, e);

    if (r == 0)
        r = check_file(file, start_request, e);
    if (r < 0)
        return r;
    *ret = (struct llama_plan){ .program = program,
                                .file = file,
                                .n_tokens = settings_int(l->config.settings, SETTING_LLAMACPP_CONTEXT) };
    if (file->info.n_context > 0)
        ret->n_tokens = MIN(ret->n_tokens, file->info.n_context);
    return check_memory(l, ret, e);
}

/* ---- room in memory; all functions under the lock ---- */

static struct llama_server *server_of(struct llamacpp *l, const char *model)
{
    struct llama_server *s = l->servers;

    while (s && strcmp(s->model, model) != 0)
        s = s->next;
    if (s)
        return s;
    s = xcalloc(1, sizeof(*s));
    s->owner = l;
    s->model = xstrdup(model);
    s->next = l->servers;
    l->servers = s;
    return s;
}

static bool is_idle(const struct llama_server *s)
{
    return s->state == LLAMA_READY && s->n_holds == 0 && s->n_waiting == 0;
}

void llamacpp_running(struct llamacpp *l, struct arena *a, struct llm_models *ret)
{
    struct llm_model *items = arena_array(a, LIMIT_LLAMA_SERVERS, sizeof(*items));
    size_t n = 0;

    pthread_mutex_lock(&l->lock);
    for (const struct llama_server *s = l->servers; s && n < LIMIT_LLAMA_SERVERS; s = s->next)
        if (s->state == LLAMA_READY) {
            items[n].id = items[n].name = arena_strdup(a, s->model);
            n++;
        }
    pthread_mutex_unlock(&l->lock);
    *ret = (struct llm_models){ items, n };
}

struct load {
    size_t n, n_stopping;
    int64_t n_bytes;
    struct llama_server *idlest;
};

static struct load load_of(struct llamacpp *l)
{
    struct load load = { .n = 0 };

    for (struct llama_server *s = l->servers; s; s = s->next) {
        if (s->state == LLAMA_STOPPED)
            continue;
        load.n++;
        load.n_stopping += s->state == LLAMA_STOPPING;
        load.n_bytes += s->n_bytes;
        if (is_idle(s) && (!load.idlest || s->used_ms < load.idlest->used_ms))
            load.idlest = s;
    }
    return load;
}

/* 1: there is room; 0: there will be room once a process has ended. */
static int make_room(struct llamacpp *l, int64_t n_bytes, struct err *e)
{
    const struct load load = load_of(l);
    bool has_place = load.n < (size_t)settings_int(l->config.settings, SETTING_LLAMACPP_PROCESSES);

    if (has_place && load.n_bytes <= memory_allowed(l) - n_bytes)
        return 1;
    if (load.n_stopping > 0)
        return 0;
    if (load.idlest) {
        llama_server_stop(load.idlest);
        return 0;
    }
    return err_set(
        e, -EAGAIN, "OVERLOADED",
        has_place
            ? "The models that answer now leave too little memory for another one (llamacpp.memory_mb); try again soon."
            : "As many models answer now as may run at a time (llamacpp.processes); try again soon.");
}

/* ---- holding a process; all functions under the lock ---- */

static int err_crash(const struct llama_server *s, struct err *e)
{
    int64_t wait_ms = MAX(s->not_before_ms - clock_mono_ms(), (int64_t)1);

    if (e)
        e->retry_after_ms = wait_ms;
    return err_set(e, -EAGAIN, "PROVIDER_UNAVAILABLE",
                   "The model %.100s cannot be asked now; it is tried again in %lld s. %s", s->model,
                   (long long)(wait_ms + 999) / 1000, s->why);
}

static int start(struct llama_server *s, const struct llama_plan *plan, struct err *e)
{
    int64_t n_bytes = memory_needed(plan);
    int r = make_room(s->owner, n_bytes, e);

    if (r <= 0)
        return r;
    s->n_bytes = n_bytes;
    return llama_server_start(s, plan, e);
}

/* 1: the process is held; 0: the caller waits for a change and tries again. */
static int step(struct llama_server *s, const struct llama_plan *plan,
                const struct llamacpp_start_request *start_request, struct err *e)
{
    if (s->owner->is_closing)
        return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The service is stopping.");
    if (s->state == LLAMA_READY) {
        s->n_holds++;
        return 1;
    }
    if (s->state == LLAMA_STOPPED && clock_mono_ms() < s->not_before_ms)
        return err_crash(s, e);
    if (!start_request->may_wait)
        return err_set(e, -EAGAIN, "PROVIDER_UNAVAILABLE", "The model %.200s is not loaded.", s->model);
    if (start_request->ready_by_ms && clock_mono_ms() >= start_request->ready_by_ms)
        return err_set(e, -EAGAIN, "PROVIDER_UNAVAILABLE", "The model %.200s is still being loaded; ask again.",
                       s->model);
    return s->state == LLAMA_STOPPED ? start(s, plan, e) : 0;
}

static int wait_step(struct llamacpp *l, const atomic_bool *is_gone, struct err *e)
{
    (void)cond_wait_until(&l->changed, &l->lock, clock_mono_us() + WAIT_STEP_MS * 1000);
    if (is_gone && atomic_load(is_gone))
        return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping.");
    return 0;
}

static void release(void *arg)
{
    struct llama_server *s = arg;

    pthread_mutex_lock(&s->owner->lock);
    s->n_holds--;
    s->used_ms = clock_mono_ms();
    pthread_cond_broadcast(&s->owner->changed);
    pthread_mutex_unlock(&s->owner->lock);
}

int llamacpp_hold(struct llamacpp *l, const struct llamacpp_start_request *start_request, struct arena *a,
                  struct llamacpp_place *ret, struct err *e)
{
    struct llama_plan plan = { .file = NULL };
    struct llama_server *s;
    int r = 0;
    const struct model_file *file = find_file(l, start_request->model, a, &r, e);

    if (!file)
        return r;
    r = make_plan(l, file, start_request, a, &plan, e);
    if (r < 0)
        return r;
    pthread_mutex_lock(&l->lock);
    s = server_of(l, file->id);
    s->n_waiting++;
    while ((r = step(s, &plan, start_request, e)) == 0 && (r = wait_step(l, start_request->is_gone, e)) == 0) {
    }
    s->n_waiting--;
    if (r > 0) {
        *ret = (struct llamacpp_place){ arena_strdup(a, s->base_url), arena_strdup(a, s->api_key) };
        arena_defer(a, release, s);
    }
    pthread_mutex_unlock(&l->lock);
    return MIN(r, 0);
}

bool llamacpp_is_loaded(struct llamacpp *l, const char *model)
{
    bool is_loaded = false;

    pthread_mutex_lock(&l->lock);
    for (struct llama_server *s = l->servers; s && !is_loaded; s = s->next)
        is_loaded = s->state == LLAMA_READY && strcmp(s->model, model) == 0;
    pthread_mutex_unlock(&l->lock);
    return is_loaded;
}

/* ---- lifetime ---- */

/* On the loop thread, while a process runs. */
static void end_idle(void *arg)
{
    struct llamacpp *l = arg;
    int64_t idle_ms = settings_ms(l->config.settings, SETTING_LLAMACPP_IDLE_S);
    bool has_running = false;

    pthread_mutex_lock(&l->lock);
    for (struct llama_server *s = l->servers; s; s = s->next) {
        if (is_idle(s) && clock_mono_ms() - s->used_ms >= idle_ms)
            llama_server_stop(s);
        has_running |= s->state == LLAMA_READY;
    }
    pthread_mutex_unlock(&l->lock);
    if (has_running)
        loop_timer_set(l->timer, IDLE_LOOK_MS);
}

int llamacpp_new(const struct llamacpp_config *c, struct llamacpp **ret, struct err *e)
{
    const struct pool_config threads = { .name = "models",
                                         .n_max = LIMIT_LLAMA_SERVERS,
                                         .max_waiting = LIMIT_LLAMA_SERVERS };
    struct llamacpp *l = xcalloc(1, sizeof(*l));
    int r;

    l->config = *c;
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->changed);
    r = pool_start(&threads, &l->pool, e);
    if (r < 0) {
        llamacpp_free(l);
        return r;
    }
    l->timer = loop_timer_new(c->loop, end_idle, l);
    (void)llamacpp_is_offered(l, true); /* so that the result exists before the first requests */
    *ret = l;
    return 0;
}

void llamacpp_stop(struct llamacpp *l)
{
    bool is_first;

    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    is_first = !l->is_closing;
    l->is_closing = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (is_first)
        pool_finish(l->pool);
}

struct llamacpp *llamacpp_free(struct llamacpp *l)
{
    if (!l)
        return NULL;
    if (l->pool)
        llamacpp_stop(l);
    pool_stop(l->pool);
    if (l->timer)
        loop_timer_free(l->timer);
    for (struct llama_server *s = l->servers, *next; s; s = next) {
        next = s->next;
        free(s->model);
        free(s);
    }
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}
