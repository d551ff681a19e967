#include "agents/approvals_private.h"

#include "base/limits.h"
#include "identity/audit.h"
#include "store/tables/approval_rules.h"

#include <stdlib.h>
#include <string.h>

static bool is_equal(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Only calls of tools by agents can be decided for later. */
static bool can_keep(const struct approval_view *q)
{
    return strcmp(q->kind, "tool") == 0 && q->agent && q->tool;
}

bool approvals_is_same(const struct approval_view *a, const struct approval_view *b)
{
    return can_keep(a) && can_keep(b) && is_equal(a->agent, b->agent) && is_equal(a->server, b->server) &&
           is_equal(a->tool, b->tool);
}

int approvals_find_rule(struct approvals *p, const struct approval_view *q, bool *ret_is_allowed, struct err *e)
{
    return can_keep(q) ? store_approval_rules_get(p->config.store, q->agent, q->server ? q->server : "", q->tool,
                                                  ret_is_allowed, e)
                       : 0;
}

int approvals_keep_rule(struct approvals *p, const struct approval_view *q, bool is_allowed, struct err *e)
{
    const struct approval_rule_row row = {
        .agent = q->agent, .server = q->server ? q->server : "", .tool = q->tool, .is_allowed = is_allowed
    };

    return store_approval_rules_set(p->config.store, &row, e);
}

/* ---- decided without a question ---- */

static int audit(struct approvals *p, const struct approval_rule *rule, const char *actor, const char *action,
                 struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_writer w;
    struct buf out;

    if (!p->config.identity)
        return 0;
    buf_init(&out, KIB(16));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "kind", "tool");
    json_add_string(&w, "server", *rule->server ? rule->server : NULL);
    json_add_string(&w, "tool", rule->tool);
    json_add_string(&w, "scope", "always");
    json_end(&w);
    return audit_append(p->config.identity, actor, action, rule->agent, buf_to_arena(&out, a), e);
}

int approvals_set_rule(struct approvals *p, const struct approval_rule *rule, const char *actor, struct err *e)
{
    const struct approval_view same = {
        .kind = "tool", .agent = rule->agent, .server = rule->server, .tool = rule->tool
    };
    int r = audit(p, rule, actor, rule->is_allowed ? "approval.allow" : "approval.deny", e);

    if (r == 0)
        r = approvals_keep_rule(p, &same, rule->is_allowed, e);
    if (r == 0)
        approvals_settle_same(p, &same, rule->is_allowed);
    return r;
}

int approvals_forget_rule(struct approvals *p, const struct approval_rule *rule, const char *actor, struct err *e)
{
    int r = audit(p, rule, actor, "approval.forget", e);

    if (r == 0)
        r = store_approval_rules_remove(p->config.store, rule->agent, rule->server, rule->tool, e);
    if (r == 0)
        return err_set(e, -ENOENT, "RULE_NOT_FOUND", "No decision about %.100s and the tool %.100s is kept.",
                       rule->agent, rule->tool);
    return r < 0 ? r : 0;
}

/* ---- for one session ---- */

static bool is_of(const struct session_rule *rule, const struct approval_view *q)
{
    return is_equal(rule->session_id, q->session_id) && is_equal(rule->agent, q->agent) &&
           is_equal(rule->server, q->server) && is_equal(rule->tool, q->tool);
}

static struct session_rule *find(struct approvals *p, const struct approval_view *q)
{
    struct session_rule *rule = p->rules;

    while (rule && !is_of(rule, q))
        rule = rule->next;
    return rule;
}

bool approvals_find_session_rule(struct approvals *p, const struct approval_view *q, bool *ret_is_allowed)
{
    struct session_rule *rule = can_keep(q) && q->session_id ? find(p, q) : NULL;

    if (rule)
        *ret_is_allowed = rule->is_allowed;
    return rule != NULL;
}

static void free_rule(struct approvals *p, struct session_rule **at)
{
    struct session_rule *rule = *at;

    *at = rule->next;
    p->n_rules--;
    free(rule->session_id);
    free(rule->agent);
    free(rule->server);
    free(rule->tool);
    free(rule);
}

static void drop_oldest(struct approvals *p)
{
    struct session_rule **oldest = NULL;

    for (struct session_rule **at = &p->rules; *at; at = &(*at)->next)
        oldest = at;
    if (oldest)
        free_rule(p, oldest);
}

void approvals_keep_session_rule(struct approvals *p, const struct approval_view *q, bool is_allowed)
{
    struct session_rule *rule = find(p, q);

    if (rule) {
        rule->is_allowed = is_allowed;
        return;
    }
    if (p->n_rules == LIMIT_SESSION_APPROVALS)
        drop_oldest(p);
    rule = xcalloc(1, sizeof(*rule));
    *rule = (struct session_rule){ .next = p->rules,
                                   .session_id = xstrdup(q->session_id),
                                   .agent = xstrdup(q->agent),
                                   .server = xstrdup(q->server ? q->server : ""),
                                   .tool = xstrdup(q->tool),
                                   .is_allowed = is_allowed };
    p->rules = rule;
    p->n_rules++;
}

void approvals_forget_allowed(struct approvals *p, const char *agent, const char *server)
{
    struct session_rule **at = &p->rules;

    pthread_mutex_lock(&p->lock);
    while (*at)
        if ((*at)->is_allowed && (agent ? is_equal((*at)->agent, agent) : is_equal((*at)->server, server)))
            free_rule(p, at);
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&p->lock);
}

void approvals_forget_session(struct approvals *p, const char *session_id)
{
    struct session_rule **at = &p->rules;

    pthread_mutex_lock(&p->lock);
    while (*at)
        if (!session_id || strcmp((*at)->session_id, session_id) == 0)
            free_rule(p, at);
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&p->lock);
}
