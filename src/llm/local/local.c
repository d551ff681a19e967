#include "llm/local/local.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static const char run_name[] = "llamacpp";

struct llm_local {
    struct settings *settings; /* borrowed */
    struct llm_finder *finder; /* owned */
    struct llamacpp *llamacpp; /* borrowed */
    pthread_mutex_t lock;      /* guards the members below */
    struct llm_found offered, found;
    bool is_run_offered;
    bool is_unreported;            /* a server has begun to wait for consent since the last call of on_waiting */
    void (*on_waiting)(void *arg); /* set before the first search */
    void *on_waiting_arg;
};

bool llm_local_knows(const char *name)
{
    for (size_t i = 0; i < LLM_N_PROBES; i++)
        if (strcmp(llm_probes[i].preset, name) == 0)
            return true;
    return false;
}

/* False: the account could not be put; the next search tries again. */
static bool change(struct llm_accounts *accounts, const struct llm_account *account, bool is_there)
{
    struct err e = { 0 };

    if (!is_there)
        (void)llm_accounts_remove(accounts, account->source, account->name);
    else if (llm_accounts_put(accounts, account, &e) < 0)
        return false;
    log_debug("llm", NULL, "%s %s", account->name, is_there ? "is offered" : "is not offered any more");
    return true;
}

static bool is_accepted(struct llm_local *l, const char *name)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n;
    const char *const *names = settings_list(l->settings, a, SETTING_LLM_LOCAL_ACCEPTED, &n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

size_t llm_local_waiting(struct llm_local *l, struct llm_waiting ret[LLM_N_PROBES])
{
    size_t n = 0;

    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < LLM_N_PROBES; i++) {
        const char *name = llm_probes[i].preset;
        bool is_foreign = l->found.foreign[i] != 0;

        if (is_foreign || (l->found.ports[i] && !is_accepted(l, name)))
            ret[n++] = (struct llm_waiting){ name, llm_preset_find(name)->label,
                                             is_foreign ? l->found.foreign[i] : l->found.ports[i], is_foreign };
    }
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* Records the found servers, leaves only accepted servers in `found`, and notes a new waiting server for on_waiting. */
static void note_found(struct llm_local *l, struct llm_found *found)
{
    bool is_new = false;

    for (size_t i = 0; i < LLM_N_PROBES; i++)
        if (!is_accepted(l, llm_probes[i].preset)) {
            is_new = is_new || (found->ports[i] && found->ports[i] != l->found.ports[i]);
            l->found.ports[i] = found->ports[i];
            found->ports[i] = 0;
        } else {
            l->found.ports[i] = found->ports[i];
        }
    memcpy(l->found.foreign, found->foreign, sizeof(found->foreign));
    l->is_unreported = l->is_unreported || is_new;
}

/* Outside the lock. */
static void err_waiting(struct llm_local *l)
{
    bool is_unreported;

    pthread_mutex_lock(&l->lock);
    is_unreported = l->is_unreported;
    l->is_unreported = false;
    pthread_mutex_unlock(&l->lock);
    if (is_unreported && l->on_waiting)
        l->on_waiting(l->on_waiting_arg);
}

void llm_local_on_waiting(struct llm_local *l, void (*fn)(void *arg), void *arg)
{
    l->on_waiting = fn;
    l->on_waiting_arg = arg;
}

int llm_local_check(struct llm_local *l, const char *name, struct err *e)
{
    uint16_t port = 0;

    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < LLM_N_PROBES; i++)
        if (strcmp(llm_probes[i].preset, name) == 0)
            port = l->offered.ports[i];
    pthread_mutex_unlock(&l->lock);
    return llm_finder_check(l->finder, port, e);
}

void llm_local_find(struct llm_local *l, struct llm_accounts *accounts)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_found found;

    llm_finder_look(l->finder, &found);
    pthread_mutex_lock(&l->lock);
    note_found(l, &found);
    for (size_t i = 0; i < LLM_N_PROBES; i++) {
        const char *name = llm_probes[i].preset;
        const struct llm_preset *preset = llm_preset_find(name);
        const struct llm_account account = { .source = LLM_FOUND,
                                             .local = l,
                                             .use = preset->can_speak || preset->can_hear ? LLM_USE_ALL : LLM_USE_USUAL,
                                             .name = name,
                                             .preset = preset,
                                             .base_url = arena_printf(a, "http://127.0.0.1:%u", found.ports[i]) };

        if (found.ports[i] != l->offered.ports[i] && change(accounts, &account, found.ports[i] != 0))
            l->offered.ports[i] = found.ports[i];
    }
    pthread_mutex_unlock(&l->lock);
    err_waiting(l);
}

bool llm_local_find_waits(struct llm_local *l)
{
    return llm_finder_waits(l->finder);
}

bool llm_local_run_waits(struct llm_local *l)
{
    return llamacpp_must_look(l->llamacpp);
}

void llm_local_run(struct llm_local *l, struct llm_accounts *accounts, const char *missing)
{
    const struct llm_account account = { .source = LLM_RUN,
                                         .name = run_name,
                                         .preset = llm_preset_find(run_name),
                                         .runner = l->llamacpp,
                                         .base_url = "http://127.0.0.1" };
    bool is_offered = llamacpp_is_offered(l->llamacpp, missing && strcmp(missing, run_name) == 0);

    pthread_mutex_lock(&l->lock);
    if (is_offered != l->is_run_offered && change(accounts, &account, is_offered))
        l->is_run_offered = is_offered;
    pthread_mutex_unlock(&l->lock);
}

static bool explain_waiting(const struct llm_waiting *w, struct err *e)
{
    if (w->is_foreign)
        err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE",
                "At 127.0.0.1:%u, where %s usually listens, another user's program does; it is not used.", w->port,
                w->label);
    else
        err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE",
                "%s was found at 127.0.0.1:%u and waits for your yes: `hearth provider accept %s`.", w->label, w->port,
                w->name);
    return true;
}

static bool explain_server(struct llm_local *l, const struct llm_probe *probe, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n;
    unsigned port = llm_probe_port(probe, settings_list(l->settings, a, SETTING_LLM_LOCAL_PORTS, &n));
    const char *label = llm_preset_find(probe->preset)->label;
    struct llm_waiting waiting[LLM_N_PROBES];

    for (size_t i = 0, n_waiting = llm_local_waiting(l, waiting); i < n_waiting; i++)
        if (strcmp(waiting[i].name, probe->preset) == 0)
            return explain_waiting(&waiting[i], e);
    err_set(
        e, -EINVAL, "PROVIDER_UNAVAILABLE",
        "%s does not answer as such at 127.0.0.1:%u and is not configured. Start it, or say where it is: `hearth provider "
        "add %s --base-url URL`.",
        label, port, probe->preset);
    return true;
}

bool llm_local_explain(struct llm_local *l, const char *name, struct err *e)
{
    if (strcmp(name, run_name) == 0)
        return llamacpp_explain(l->llamacpp, e) < 0;
    for (size_t i = 0; i < LLM_N_PROBES; i++)
        if (strcmp(llm_probes[i].preset, name) == 0 && settings_bool(l->settings, SETTING_LLM_FIND_LOCAL))
            return explain_server(l, &llm_probes[i], e);
    return false;
}

int llm_local_new(struct settings *settings, struct llamacpp *llamacpp, struct llm_local **ret, struct err *e)
{
    struct llm_local *l = xcalloc(1, sizeof(*l));
    int r = llm_finder_new(settings, &l->finder, e);

    if (r < 0) {
        free(l);
        return r;
    }
    l->settings = settings;
    l->llamacpp = llamacpp;
    pthread_mutex_init(&l->lock, NULL);
    *ret = l;
    return 0;
}

struct llm_local *llm_local_free(struct llm_local *l)
{
    if (!l)
        return NULL;
    l->finder = llm_finder_free(l->finder);
    pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}
