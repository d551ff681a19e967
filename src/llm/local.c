#include "llm/local.h"

#include "base/log.h"
#include "llm/finder.h"

#include <stdlib.h>
#include <string.h>

static const char run_name[] = "llamacpp";

struct llm_local {
    struct settings *settings;          /* borrowed */
    struct llm_finder *finder;          /* owned */
    struct llamacpp *llamacpp;          /* borrowed */
    pthread_mutex_t lock;               /* guards what is among the accounts: */
    struct llm_found offered;
    bool is_run_offered;
};

bool llm_local_knows(const char *name)
{
    for (size_t i = 0; i < LLM_N_PROBES; i++)
        if (strcmp(llm_probes[i].preset, name) == 0)
            return true;
    return false;
}

/* An account that could not be put is tried again at the next look. */
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

void llm_local_find(struct llm_local *l, struct llm_accounts *accounts)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_found found;

    llm_finder_look(l->finder, &found);
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < LLM_N_PROBES; i++) {
        const char *name = llm_probes[i].preset;
        const struct llm_account account = { .source = LLM_FOUND, .name = name, .preset = llm_preset_find(name),
                                             .base_url = arena_printf(a, "http://127.0.0.1:%u", found.ports[i]) };

        if (found.ports[i] != l->offered.ports[i] && change(accounts, &account, found.ports[i] != 0))
            l->offered.ports[i] = found.ports[i];
    }
    pthread_mutex_unlock(&l->lock);
}

void llm_local_run(struct llm_local *l, struct llm_accounts *accounts, const char *missing)
{
    const struct llm_account account = { .source = LLM_RUN, .name = run_name, .preset = llm_preset_find(run_name), .runner = l->llamacpp,
                                         .base_url = "http://127.0.0.1" };
    bool is_offered = llamacpp_is_offered(l->llamacpp, missing && strcmp(missing, run_name) == 0);

    pthread_mutex_lock(&l->lock);
    if (is_offered != l->is_run_offered && change(accounts, &account, is_offered))
        l->is_run_offered = is_offered;
    pthread_mutex_unlock(&l->lock);
}

static bool explain_server(struct llm_local *l, const struct llm_probe *probe, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n;
    unsigned port = llm_probe_port(probe, settings_list(l->settings, a, SETTING_LLM_LOCAL_PORTS, &n));
    const char *label = llm_preset_find(probe->preset)->label;

    err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "%s does not answer as such at 127.0.0.1:%u and is not configured. Start it, or say where it is: `hearth provider "
            "add %s --base-url URL`.", label, port, probe->preset);
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
