#include "agents/sessions.h"

#include "agents/approvals.h"
#include "agents/turns_private.h"
#include "base/clock.h"
#include "base/limits.h"
#include "models/provider_choice.h"
#include "settings/settings.h"

#include <string.h>

/* ---- which model answers ---- */

static struct llm_account_state *account_of(const struct models_call *call, const char *provider)
{
    size_t n = 0;
    struct llm_account_state **all;

    if (provider)
        return llm_accounts_find(call->models->llm_accounts, call->arena, provider);
    all = provider_account_states(call, PROVIDER_CHAT, NULL, &n);
    return n > 0 ? all[0] : NULL;
}

/* Asks no provider: a list that is not there yet leaves the model open. */
static const char *model_of(const struct models_call *call, struct llm_account_state *state)
{
    const char *model = NULL;

    if (state->account.model)
        return state->account.model;
    if (llm_account_state_models_wait(state) ||
        llm_account_state_model(state, call->models->settings, call->arena, call->is_gone, &model, NULL) < 0)
        return "";
    return model;
}

static void fill_provider(const struct models_call *call, const struct agent_definition *agent,
                          struct agent_session *ret)
{
    struct provider_choice choice = { 0 };
    struct llm_account_state *state = NULL;

    if (provider_choose(call, PROVIDER_CHAT, agent->provider, agent->model, &choice, NULL) == 0)
        state = account_of(call, choice.provider);
    ret->provider = choice.provider ? choice.provider : state ? state->account.name : "";
    ret->model = choice.model ? choice.model : state ? model_of(call, state) : "";
}

/* ---- what a session is ---- */

static int fill(struct agent_turns *turns, const struct models_call *call, struct agent_session *s, struct err *e)
{
    struct agent_definition agent = { 0 };
    struct agent_turn *turn = agent_turns_running(turns, s->row.id);
    int r = store_threads_get_id(turns->config.store, call->arena, s->row.thread_id, &s->thread, e);

    s->is_busy = turn != NULL;
    agent_turn_unref(turn);
    if (r == 0)
        r = store_workspaces_get_id(turns->config.store, call->arena, s->thread.workspace_id, &s->workspace, e);
    if (r == 0 && agent_find(turns->config.agents, s->row.agent_name, call->arena, &agent, NULL) == 0)
        fill_provider(call, &agent, s);
    else
        s->provider = s->model = "";
    return r;
}

/* ---- a new one ---- */

static int find_workspace(struct agent_turns *turns, const struct models_call *call, const char *slug,
                          struct workspace_row *ret, struct err *e)
{
    struct workspace_row *all = NULL;
    size_t n = 0;
    int r;

    if (slug && *slug)
        return store_workspaces_get(turns->config.store, call->arena, slug, ret, e);
    r = store_workspaces_list(turns->config.store, call->arena, &all, &n, e);
    if (r == 0 && n == 0)
        r = err_set(e, -ENOENT, "WORKSPACE_NOT_FOUND", "There is no workspace yet.");
    if (r == 0)
        *ret = all[0];
    return r;
}

/* An app may not read what another caller's sessions said. */
static bool may_use(const struct caller *caller, const struct thread_row *thread)
{
    return caller->kind != CALLER_APP || !thread->owner || strcmp(thread->owner, caller->scope) == 0;
}

static int new_thread(struct agent_turns *turns, const struct models_call *call, const struct workspace_row *workspace,
                      struct thread_row *ret, struct err *e)
{
    char uuid[UUID_SIZE], now[TIME_TEXT_SIZE];
    struct thread_row row = { .workspace_id = workspace->id, .owner = call->caller->scope };
    int r;

    uuid_v4(uuid);
    clock_now_text(now);
    row.slug = arena_printf(call->arena, "session-%.8s%.4s", uuid, uuid + 9);
    row.name = arena_printf(call->arena, "Conversation of %.10s %.5s", now, now + 11);
    r = store_threads_insert(turns->config.store, &row, NULL, e);
    return r < 0 ? r : store_threads_get(turns->config.store, call->arena, workspace->id, row.slug, ret, e);
}

static int find_thread(struct agent_turns *turns, const struct models_call *call, const struct agent_session_new *how,
                       struct agent_session *s, struct err *e)
{
    int r;

    if (!how->thread_slug || !*how->thread_slug)
        return new_thread(turns, call, &s->workspace, &s->thread, e);
    r = store_threads_get(turns->config.store, call->arena, s->workspace.id, how->thread_slug, &s->thread, e);
    if (r == 0 && !may_use(call->caller, &s->thread))
        r = err_set(e, -ENOENT, "THREAD_NOT_FOUND", "There is no thread %.200s.", how->thread_slug);
    return r;
}

static int check_agent(struct agent_turns *turns, const struct models_call *call, const char *name, struct err *e)
{
    struct agent_definition agent = { 0 };
    int r = agent_find(turns->config.agents, name, call->arena, &agent, e);

    if (r == 0 && !agent_is_model(&agent))
        r = err_add_field(e, "agent_name", "must be an agent of kind model; %.128s is a process", name);
    return r;
}

int agent_session_create(struct agent_turns *turns, const struct models_call *call, const struct agent_session_new *how,
                         struct agent_session *ret, struct err *e)
{
    const char *agent_name = how->agent_name && *how->agent_name ? how->agent_name : AGENT_DEFAULT;
    char *id = arena_alloc(call->arena, UUID_SIZE);
    struct agent_session s = { 0 };
    int r = check_agent(turns, call, agent_name, e);

    if (r == 0)
        r = find_workspace(turns, call, how->workspace_slug, &s.workspace, e);
    if (r == 0)
        r = find_thread(turns, call, how, &s, e);
    if (r < 0)
        return r;
    uuid_v4(id);
    s.row = (struct agent_session_row){
        .id = id, .scope = call->caller->scope, .thread_id = s.thread.id, .agent_name = agent_name
    };
    r = store_agent_sessions_insert(turns->config.store, &s.row, e);
    return r < 0 ? r : agent_session_get(turns, call, id, ret, e);
}

/* ---- an existing one ---- */

/* A session is not idle while its turn runs, however long that takes. */
static void used_after(struct agent_turns *turns, const char *id, char out[TIME_TEXT_SIZE])
{
    struct agent_turn *turn = agent_turns_running(turns, id);
    int64_t idle_ms = settings_ms(turns->config.settings, SETTING_AGENTS_SESSION_IDLE_S);

    clock_format(turn ? 0 : clock_wall_ms() - idle_ms, out);
    agent_turn_unref(turn);
}

int agent_session_get(struct agent_turns *turns, const struct models_call *call, const char *id,
                      struct agent_session *ret, struct err *e)
{
    struct agent_session s = { 0 };
    char after[TIME_TEXT_SIZE];
    int r;

    used_after(turns, id, after);
    r = store_agent_sessions_get(turns->config.store, call->arena, id, call->caller->scope, after, &s.row, e);
    if (r == 0)
        r = fill(turns, call, &s, e);
    if (r == 0)
        *ret = s;
    return r;
}

int agent_session_remove(struct agent_turns *turns, const struct models_call *call, const char *id, struct err *e)
{
    struct agent_session s = { 0 };
    int r = agent_session_get(turns, call, id, &s, e);

    if (r == 0)
        r = store_agent_sessions_remove(turns->config.store, id, call->caller->scope, e);
    if (r < 0)
        return r;
    agent_turns_end_session(turns, id);
    if (turns->config.approvals)
        approvals_forget_session(turns->config.approvals, id);
    return 0;
}

int agent_sessions_expire(struct agent_turns *turns, struct err *e)
{
    char before[TIME_TEXT_SIZE];
    int64_t n = 0;

    clock_format(clock_wall_ms() - settings_ms(turns->config.settings, SETTING_AGENTS_SESSION_IDLE_S), before);
    return store_agent_sessions_expire(turns->config.store, before, &n, e);
}
