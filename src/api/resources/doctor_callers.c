/* Checks of providers of models, of calling programs, and of callers near a limit. */
#include "api/resources/doctor.h"

#include "apps/apps.h"

#include "api/api.h"
#include "api/dispatch.h"
#include "api/resources/foreign_clients.h"
#include "api/resources/providers.h"
#include "base/budget.h"
#include "base/limits.h"
#include "identity/peers.h"
#include "llm/local/local.h"
#include "settings/settings.h"
#include "store/tables/app_contacts.h"
#include "store/tables/provider_choices.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { DOCTOR_CALLERS = 20 };

/* --- providers of models --- */

static void report_provider(struct checkup *c, const char *where, const char *name, const char *advice)
{
    doctor_add(c, "provider", false, arena_printf(c->arena, "%s names %s, which is not configured", where, name),
               advice);
}

static void check_settings_of_providers(struct checkup *c)
{
    const struct request *req = c->req;
    const char *chats = settings_string(c->api->settings, c->arena, SETTING_LLM_DEFAULT_PROVIDER);
    const char *embeddings = settings_string(c->api->settings, c->arena, SETTING_EMBED_PROVIDER);
    size_t n;
    const char *const *fallbacks = settings_list(c->api->settings, c->arena, SETTING_LLM_FALLBACKS, &n);

    if (*chats && !provider_can(metered_call(req), PROVIDER_CHAT, chats))
        report_provider(
            c, "llm.default_provider", chats,
            "the first provider of `hearth provider list` is asked instead; `hearth provider default NAME` chooses one");
    if (!provider_can(metered_call(req), PROVIDER_EMBED, embeddings))
        report_provider(c, "embed.provider", embeddings,
                        "embeddings are refused; `hearth provider default NAME --for embed` chooses another");
    for (size_t i = 0; i < n; i++)
        if (!provider_can(metered_call(req), PROVIDER_CHAT, fallbacks[i]))
            report_provider(c, "llm.fallbacks", fallbacks[i],
                            "it is passed over; `hearth settings set llm.fallbacks A,B` names others");
}

static void check_choices_of_apps(struct checkup *c)
{
    struct provider_choice_row *rows = NULL;
    struct err why = { 0 };
    size_t n = 0;
    int r = store_provider_choices_list(c->api->store, c->arena, &rows, &n, &why);

    if (r < 0)
        doctor_add(c, "provider", false, why.text, "see store");
    for (size_t i = 0; r == 0 && i < n; i++)
        if (!provider_can(metered_call(c->req), provider_capability_of(rows[i].capability), rows[i].provider))
            report_provider(
                c, arena_printf(c->arena, "the app %s", rows[i].app_name), rows[i].provider,
                arena_printf(c->arena,
                             "its requests are refused; `hearth provider default NAME --app %s` gives it another",
                             rows[i].app_name));
}

/* Finds API keys that cannot be decrypted, as after a database was restored without its master.key. */
static void check_stored_providers(struct checkup *c)
{
    const struct llm_vault vault = provider_vault(c->req);
    struct provider_account_row *rows = NULL;
    struct err why = { 0 };
    size_t n = 0;
    int r = store_provider_accounts_list(c->api->store, c->arena, &rows, &n, &why);

    if (r < 0)
        doctor_add(c, "provider", false, why.text, "see store");
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct llm_account account;

        why = (struct err){ 0 };
        if (llm_stored_open(&vault, &rows[i], c->arena, &account, &why) < 0)
            doctor_add(c, "provider", false, arena_printf(c->arena, "%s cannot be used: %s", rows[i].name, why.text),
                       arena_printf(c->arena, "put master.key back from the backup, or `hearth provider add %s` again",
                                    rows[i].preset));
    }
}

static const char *failure_text(struct checkup *c, struct llm_account_state *state)
{
    const struct llm_failure failure = llm_account_state_failure(state, c->arena);

    return failure.text ? arena_printf(c->arena, "; the last error, at %s: %s", failure.at, failure.text) : "";
}

static void report_rest(struct checkup *c, const char *what, struct llm_account_state *state)
{
    doctor_add(c, "provider", false,
               arena_printf(c->arena, "%s has failed several times in a row and rests%s", what, failure_text(c, state)),
               arena_printf(c->arena, "`hearth provider test %s` asks it and says why", state->account.name));
}

/* The number of findings about the account. */
static size_t check_rest(struct checkup *c, struct llm_account_state *state)
{
    const struct field_strings models = llm_account_state_resting_models(state, c->arena);
    const char *name = state->account.name;
    bool is_resting = llm_account_state_rest_ms(state, NULL) > 0;

    if (is_resting)
        report_rest(c, name, state);
    for (size_t i = 0; i < models.n; i++)
        report_rest(c, arena_printf(c->arena, "the model %s of %s", models.items[i], name), state);
    return is_resting + models.n;
}

static bool is_default(struct checkup *c, enum provider_capability what, const char *name)
{
    struct provider_default def = { 0 };

    return provider_default_for(metered_call(c->req), what, NULL, &def, NULL) == 0 && def.provider &&
           strcmp(def.provider, name) == 0;
}

static void report_default(struct checkup *c, struct llm_account_state *state, const char *what)
{
    const char *name = state->account.name;

    doctor_add(c, "provider", false, arena_printf(c->arena, "%s, a default, %s%s", name, what, failure_text(c, state)),
               arena_printf(c->arena,
                            "`hearth provider test %s` asks it again; `hearth provider default NAME` chooses another",
                            name));
}

/* The list of models costs nothing: when no connection to the default provider comes about, fetching the list keeps the
 * failure. */
static void check_default(struct checkup *c, struct llm_account_state *state)
{
    bool is_for_chats = is_default(c, PROVIDER_CHAT, state->account.name);
    int r = 0;

    if (!is_for_chats && !is_default(c, PROVIDER_EMBED, state->account.name))
        return;
    if (is_for_chats && !state->account.runner)
        r = llm_account_state_check(state, c->api->settings, LIMIT_DOCTOR_WAIT_MS, &c->req->exchange->is_gone, NULL);
    if (r == -ETIMEDOUT)
        report_default(c, state, arena_printf(c->arena, "did not answer within %d s", LIMIT_DOCTOR_WAIT_MS / 1000));
    else if (llm_account_state_failure(state, c->arena).text)
        report_default(c, state, "failed");
}

static void check_accounts(struct checkup *c)
{
    size_t n;
    struct llm_account_state **states = llm_accounts_list(c->api->llm_accounts, c->arena, &n);

    for (size_t i = 0; i < n; i++)
        if (check_rest(c, states[i]) == 0)
            check_default(c, states[i]);
}

/* "a, b (no language model)"; "" when there is none. */
static const char *labelled_names(struct checkup *c)
{
    const char *names = "";
    size_t n;
    struct llm_account_state **states = llm_accounts_list(c->api->llm_accounts, c->arena, &n);

    for (size_t i = 0; i < n; i++)
        names = arena_printf(c->arena, "%s%s%s%s", names, i ? ", " : "", states[i]->account.name,
                             states[i]->account.preset->is_stand_in ? " (no language model)" : "");
    return names;
}

void doctor_check_providers(struct checkup *c)
{
    const char *names = labelled_names(c);

    doctor_add(c, "providers", true,
               *names ? arena_printf(c->arena, "configured: %s", names)
                      : "no provider of language models is configured; `hearth provider add` adds one",
               NULL);
    check_settings_of_providers(c);
    check_choices_of_apps(c);
    check_stored_providers(c);
    check_accounts(c);
}

void doctor_check_found(struct checkup *c)
{
    struct llm_waiting waiting[LLM_N_PROBES];
    size_t n = llm_accounts_waiting(c->api->llm_accounts, waiting);

    for (size_t i = 0; i < n; i++)
        doctor_add(
            c, "found", !waiting[i].is_foreign,
            waiting[i].is_foreign
                ? arena_printf(c->arena, "at 127.0.0.1:%u, where %s usually listens, another user's program does",
                               waiting[i].port, waiting[i].label)
                : arena_printf(c->arena,
                               "%s was found at 127.0.0.1:%u and waits for your yes: `hearth provider accept %s`",
                               waiting[i].label, waiting[i].port, waiting[i].name),
            "it is sent nothing; find out whose it is");
}

/* Without the kernel's word, ids of apps over TCP are refused (identity/peers.h). */
static void check_kernel(struct checkup *c)
{
    struct err why = { 0 };

    if (peers_check_kernel(c->api->identity, &why) < 0)
        doctor_add(
            c, "callers", false, why.text,
            "ids of apps over TCP are refused until `modprobe tcp_diag` has loaded what is missing; programs may "
            "send a key or an app's secret instead");
}

/* Findings about callers are never a fault: a person may start an app's program by hand. */
void doctor_check_callers(struct checkup *c)
{
    struct app_contact_row *rows;
    struct err why = { 0 };
    size_t n = 0;
    int r = store_app_contacts_list(c->api->store, c->arena, &rows, &n, &why);

    doctor_add(c, "callers", r == 0,
               r < 0 ? why.text
                     : arena_printf(c->arena, "ids of apps are taken from: %s (identity.peers)",
                                    settings_string(c->api->settings, c->arena, SETTING_IDENTITY_PEERS)),
               "see store");
    check_kernel(c);
    for (size_t i = 0; r == 0 && i < MIN(n, (size_t)DOCTOR_CALLERS); i++)
        doctor_add(
            c, "caller", true,
            arena_printf(
                c->arena,
                "a program that Hearth did not start, %s, used the id of %s first at %s; identity.peers at launched "
                "refuses it",
                rows[i].program, rows[i].app_name, rows[i].first_at),
            NULL);
}

/* --- callers near a limit --- */

enum { NEARLY = 10, LATELY_MS = 10 * 60 * 1000 };

struct budget_check {
    struct checkup *c;
    enum budget budget;
};

static const char *holder_text(struct checkup *c, const struct budget_state *s)
{
    struct app_config app;

    if (s->kind == HOLDER_APP && app_find(c->api->apps, s->id, c->arena, &app, NULL) == 0)
        return arena_printf(c->arena, "the app %s", app.name);
    if (s->kind == HOLDER_NOBODY)
        return "programs of this machine that do not say who they are";
    return arena_printf(c->arena, "the %s %s", holder_kind_name(s->kind), s->id);
}

static const char *amount_text(struct checkup *c, enum budget b, int64_t n)
{
    return budget_rules[b].is_bytes ? arena_printf(c->arena, "%.1f MiB", (double)n / (double)MIB(1))
                                    : arena_printf(c->arena, "%lld", (long long)n);
}

static void check_holder(void *arg, const struct budget_state *s)
{
    const struct budget_check *check = arg;
    const struct budget_rule *rule = &budget_rules[check->budget];
    struct checkup *c = check->c;
    bool is_near = s->limit != BUDGET_UNLIMITED && s->held >= s->limit - s->limit / NEARLY;
    bool was_refused = s->refused_ago_ms != BUDGET_NEVER_REFUSED && s->refused_ago_ms < LATELY_MS;

    if (!is_near && !was_refused)
        return;
    doctor_add(
        c, "budget", false,
        arena_printf(
            c->arena, "%s: %s%s %s%s", holder_text(c, s), amount_text(c, check->budget, s->held),
            s->limit == BUDGET_UNLIMITED ? ""
                                         : arena_printf(c->arena, " of %s", amount_text(c, check->budget, s->limit)),
            rule->holds,
            was_refused ? arena_printf(c->arena, "; requests refused so far: %lld", (long long)s->n_refused) : ""),
        arena_printf(c->arena, "look at what it does, or raise the setting %s", rule->setting));
}

void doctor_check_budgets(struct checkup *c)
{
    for (enum budget b = 0; b < N_BUDGETS; b++)
        budget_each(b, check_holder, &(struct budget_check){ c, b });
}

/* --- clients of another dialect --- */

void doctor_check_clients(struct checkup *c)
{
    struct foreign_client *list;
    size_t n = foreign_clients_list(dispatch_foreign_clients(c->api->dispatch), c->arena, &list);

    for (size_t i = 0; i < n; i++)
        doctor_add(c, "clients", false,
                   arena_printf(c->arena, "%s (seen %lld times)", list[i].text, (long long)list[i].n_seen),
                   arena_printf(c->arena, "`%s`, then start the service again", list[i].advice));
    if (n == 0 && c->api->is_serving)
        doctor_add(c, "clients", true, "no client has used another product word than this service's", NULL);
}
