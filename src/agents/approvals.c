#include "agents/approvals_private.h"

#include "base/cond.h"
#include "base/json_schema.h"
#include "base/limits.h"
#include "identity/audit.h"
#include "settings/settings.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOOK_US = 250000 /* a wait looks at its cancel flag at least so often; approvals_poke() makes it look at once */
};

const char *approval_scope_name(enum approval_scope s)
{
    static const char *const names[] = { "once", "session", "always" };

    return names[s];
}

/* ---- open and close ---- */

int approvals_open(const struct approvals_config *c, struct approvals **ret, struct err *e)
{
    struct approvals *p = xcalloc(1, sizeof(*p));

    p->config = *c;
    p->last = &p->first;
    pthread_mutex_init(&p->lock, NULL);
    cond_init(&p->changed);
    *ret = p;
    return 0;
}

struct approvals *approvals_close(struct approvals *p)
{
    if (!p)
        return NULL;
    approvals_forget_session(p, NULL);
    while (p->clocks) {
        struct approval_clock *gone = p->clocks;

        p->clocks = gone->next;
        free(gone->of);
        free(gone);
    }
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

void approvals_poke(struct approvals *p)
{
    pthread_cond_broadcast(&p->changed);
}

void approvals_end_waits(struct approvals *p)
{
    pthread_mutex_lock(&p->lock);
    p->is_closing = true;
    pthread_mutex_unlock(&p->lock);
    approvals_poke(p);
}

static void report_change(struct approvals *p)
{
    if (p->config.on_change)
        p->config.on_change(p->config.arg);
}

/* ---- a question ---- */

static struct approval *free_question(struct approval *q)
{
    struct arena *a = q->arena;

    arena_free(a);
    return NULL;
}

static const char *text_of(struct arena *a, struct json_value v)
{
    return json_is_absent(v) ? NULL : json_to_str(a, v);
}

static int make(const struct approval_question *from, struct approval **ret, struct err *e)
{
    struct arena *a = arena_new();
    struct approval *q = ARENA_NEW(a, struct approval);

    q->arena = a;
    uuid_v4(q->id);
    clock_now_text(q->requested_at);
    q->view = (struct approval_view){
        .id = q->id,
        .kind = arena_strdup(a, from->kind),
        .agent = arena_strdup(a, from->agent),
        .server = arena_strdup(a, from->server),
        .tool = arena_strdup(a, from->tool),
        .session_id = arena_strdup(a, from->session_id),
        .task_uuid = arena_strdup(a, from->task_uuid),
        .app_id = from->app_id && *from->app_id ? arena_strdup(a, from->app_id) : NULL,
        .text = arena_strdup(a, from->text),
        .arguments = text_of(a, from->arguments),
        .choices = text_of(a, from->choices),
        .schema = text_of(a, from->schema),
        .requested_at = q->requested_at,
        .is_destructive = from->is_destructive,
    };
    if (arena_bytes(a) > 2 * LIMIT_APPROVAL_BYTES ||
        (q->view.arguments && strlen(q->view.arguments) > LIMIT_APPROVAL_BYTES)) {
        free_question(q);
        err_set(e, -E2BIG, "TOO_LARGE", "A person is shown at most %d bytes of a call's arguments.",
                LIMIT_APPROVAL_BYTES);
        return -E2BIG;
    }
    *ret = q;
    return 0;
}

static void settle(struct approval *q, enum approval_outcome outcome)
{
    q->state = APPROVAL_DECIDED;
    q->outcome = outcome;
}

static void settle_kept(struct approval *q, bool is_allowed)
{
    settle(q, is_allowed ? APPROVAL_ALLOWED : APPROVAL_DENIED);
    q->was_kept = true;
}

/* An app cannot fill the list, neither alone nor with other apps. The caller holds the lock. */
static int check_share(const struct approvals *p, const char *app_id, struct err *e)
{
    size_t n_of_app = 0, n_of_apps = 0;

    for (const struct approval *q = p->first; q; q = q->next) {
        n_of_apps += q->view.app_id != NULL;
        n_of_app += q->view.app_id && strcmp(q->view.app_id, app_id) == 0;
    }
    if (n_of_app >= LIMIT_APP_APPROVALS)
        return err_set(e, -EAGAIN, "TOO_MANY_QUESTIONS", "%d questions of this app wait for a person already.",
                       LIMIT_APP_APPROVALS);
    if (n_of_apps >= LIMIT_PENDING_APPROVALS - LIMIT_APP_APPROVALS)
        return err_set(e, -EAGAIN, "TOO_MANY_QUESTIONS", "%d questions of apps wait for a person already.",
                       LIMIT_PENDING_APPROVALS - LIMIT_APP_APPROVALS);
    return 0;
}

/* The caller holds the lock. */
static int check_room(const struct approvals *p, const char *app_id, struct err *e)
{
    if (p->n == LIMIT_PENDING_APPROVALS)
        return err_set(e, -EAGAIN, "TOO_MANY_QUESTIONS", "%d questions wait for a person already.",
                       LIMIT_PENDING_APPROVALS);
    return app_id ? check_share(p, app_id, e) : 0;
}

/* The caller holds the lock. */
static int add(struct approvals *p, struct approval *q, struct err *e)
{
    bool is_allowed = false;
    int r;

    if (approvals_find_session_rule(p, &q->view, &is_allowed)) {
        settle_kept(q, is_allowed);
        return 0;
    }
    if (p->is_closing)
        return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The service is stopping.");
    r = check_room(p, q->view.app_id, e);
    if (r < 0)
        return r;
    *p->last = q;
    p->last = &q->next;
    p->n++;
    approvals_clock_begin(p, &q->view);
    return 0;
}

/* A decision that is kept between the look into the store and the list is not missed. */
static int add_unless_decided(struct approvals *p, struct approval *q, struct err *e)
{
    bool is_allowed = false;
    uint64_t seen;
    int r;

    do {
        pthread_mutex_lock(&p->lock);
        seen = p->n_changes;
        pthread_mutex_unlock(&p->lock);
        r = approvals_find_rule(p, &q->view, &is_allowed, e);
        if (r < 0)
            return r;
        if (r == 1) {
            settle_kept(q, is_allowed);
            return 0;
        }
        pthread_mutex_lock(&p->lock);
        r = seen == p->n_changes ? add(p, q, e) : -ESTALE;
        pthread_mutex_unlock(&p->lock);
    } while (r == -ESTALE);
    return r;
}

int approvals_put(struct approvals *p, const struct approval_question *from, struct approval **ret, struct err *e)
{
    struct approval *q = NULL;
    int r = make(from, &q, e);

    if (r < 0)
        return r;
    r = add_unless_decided(p, q, e);
    if (r < 0) {
        free_question(q);
        return r;
    }
    if (approval_is_open(q))
        report_change(p);
    *ret = q;
    return 0;
}

bool approval_is_open(const struct approval *question)
{
    return !question->was_kept;
}

/* ---- waiting ---- */

/* The caller holds the lock. */
static void take_off(struct approvals *p, struct approval *q)
{
    struct approval **at = &p->first;

    while (*at && *at != q)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = q->next;
    if (p->last == &q->next)
        p->last = at;
    p->n--;
    approvals_clock_end(p, &q->view);
}

static bool is_cancelled(const struct approvals *p, const struct net_wait *wait)
{
    return p->is_closing || (wait->is_gone && atomic_load(wait->is_gone)) ||
           (wait->is_leaving && atomic_load(wait->is_leaving));
}

/* The caller holds the lock. 0, or -ECANCELED. While a decision is being stored, neither deadline nor cancel count: the
 * question has the outcome that is stored. */
static int await(struct approvals *p, struct approval *q, const struct net_wait *wait)
{
    int64_t until_us = clock_mono_us() + settings_ms(p->config.settings, SETTING_APPROVALS_WAIT_S) * 1000;
    int r = 0;

    while (q->state != APPROVAL_DECIDED) {
        if (q->state == APPROVAL_OPEN && is_cancelled(p, wait)) {
            settle(q, APPROVAL_UNANSWERED);
            r = -ECANCELED;
        } else if (q->state == APPROVAL_OPEN && clock_mono_us() >= until_us) {
            settle(q, APPROVAL_UNANSWERED);
        } else {
            cond_wait_until(&p->changed, &p->lock, clock_mono_us() + LOOK_US);
        }
    }
    return r;
}

int approvals_wait(struct approvals *p, struct approval *q, const struct net_wait *wait, struct arena *a,
                   struct approval_answer *ret, struct err *e)
{
    bool was_listed = approval_is_open(q);
    int r;

    pthread_mutex_lock(&p->lock);
    r = await(p, q, wait);
    take_off(p, q);
    pthread_mutex_unlock(&p->lock);
    if (was_listed)
        report_change(p);
    *ret = (struct approval_answer){ .outcome = q->outcome, .was_kept = q->was_kept };
    if (r < 0)
        err_set(e, r, "SHUTTING_DOWN", "The caller has left or the service is stopping.");
    else if (q->reply)
        r = json_parse(a, slice_of(q->reply), &ret->reply, e);
    free_question(q);
    return r;
}

int approvals_request(struct approvals *p, const struct approval_question *q, const struct net_wait *wait,
                      struct arena *a, struct approval_answer *ret, struct err *e)
{
    struct approval *question = NULL;
    int r = approvals_put(p, q, &question, e);

    return r < 0 ? r : approvals_wait(p, question, wait, a, ret, e);
}

/* ---- for people ---- */

size_t approvals_n_pending(struct approvals *p)
{
    size_t n;

    pthread_mutex_lock(&p->lock);
    n = p->n;
    pthread_mutex_unlock(&p->lock);
    return n;
}

static struct approval_view copy_view(struct arena *a, const struct approval_view *v)
{
    struct approval_view to = *v;
    const char **const texts[] = { &to.id,         &to.kind,      &to.agent,       &to.server, &to.tool,
                                   &to.session_id, &to.task_uuid, &to.app_id,      &to.text,   &to.arguments,
                                   &to.choices,    &to.schema,    &to.requested_at };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        *texts[i] = arena_strdup(a, *texts[i]);
    return to;
}

void approvals_list(struct approvals *p, struct arena *a, struct approval_views *ret)
{
    size_t n = 0;

    pthread_mutex_lock(&p->lock);
    ret->items = arena_array(a, p->n + 1, sizeof(*ret->items));
    for (const struct approval *q = p->first; q; q = q->next)
        if (q->state == APPROVAL_OPEN)
            ret->items[n++] = copy_view(a, &q->view);
    pthread_mutex_unlock(&p->lock);
    ret->n = n;
}

static int not_found(const char *id, struct err *e)
{
    err_set(e, -ENOENT, "APPROVAL_NOT_FOUND",
            "No question with the id %.40s waits for an answer: it was answered, given up, or never put.", id);
    return -ENOENT;
}

/* Under the lock. */
static struct approval *find_open(struct approvals *p, const char *id)
{
    for (struct approval *q = p->first; q; q = q->next)
        if (q->state == APPROVAL_OPEN && strcmp(q->id, id) == 0)
            return q;
    return NULL;
}

bool approvals_has_kind(struct approvals *p, const char *id, const char *kind)
{
    const struct approval *q;
    bool ret;

    pthread_mutex_lock(&p->lock);
    q = find_open(p, id);
    ret = q && strcmp(q->view.kind, kind) == 0;
    pthread_mutex_unlock(&p->lock);
    return ret;
}

/* The open question, from now on being decided; a copy of what it says. */
static int claim(struct approvals *p, const char *id, struct arena *a, struct approval_view *ret, struct err *e)
{
    struct approval *q;

    pthread_mutex_lock(&p->lock);
    q = find_open(p, id);
    if (q) {
        q->state = APPROVAL_DECIDING;
        *ret = copy_view(a, &q->view);
    }
    pthread_mutex_unlock(&p->lock);
    return q ? 0 : not_found(id, e);
}

/* Others that the decision answers as well. The caller holds the lock. */
static void settle_same(struct approvals *p, const struct approval_view *of, const struct approval_decision *d)
{
    for (struct approval *q = p->first; q; q = q->next) {
        bool is_meant = d->scope == APPROVAL_ALWAYS ||
                        (q->view.session_id && of->session_id && strcmp(q->view.session_id, of->session_id) == 0);

        if (q->state == APPROVAL_OPEN && is_meant && approvals_is_same(&q->view, of))
            settle(q, d->is_allowed ? APPROVAL_ALLOWED : APPROVAL_DENIED);
    }
}

void approvals_settle_same(struct approvals *p, const struct approval_view *of, bool is_allowed)
{
    pthread_mutex_lock(&p->lock);
    p->n_changes++;
    settle_same(p, of, &(struct approval_decision){ .is_allowed = is_allowed, .scope = APPROVAL_ALWAYS });
    pthread_mutex_unlock(&p->lock);
    approvals_poke(p);
}

/* r < 0: the decision could not be stored, and the question is open again. */
static void finish(struct approvals *p, const struct approval_view *of, const struct approval_decision *d, int r)
{
    struct approval *q;

    pthread_mutex_lock(&p->lock);
    for (q = p->first; strcmp(q->id, of->id) != 0; q = q->next)
        ;
    if (r < 0) {
        q->state = APPROVAL_OPEN;
    } else {
        settle(q, d->is_allowed ? APPROVAL_ALLOWED : APPROVAL_DENIED);
        q->reply = d->is_allowed ? text_of(q->arena, d->reply) : NULL;
        if (d->scope == APPROVAL_SESSION)
            approvals_keep_session_rule(p, of, d->is_allowed);
        if (d->scope != APPROVAL_ONCE) {
            p->n_changes++;
            settle_same(p, of, d);
        }
    }
    pthread_mutex_unlock(&p->lock);
    approvals_poke(p);
}

/* ---- what may be decided ---- */

static bool is_choice(struct arena *a, const char *choices, struct slice reply)
{
    struct json_value list = { 0 }, item;

    if (json_parse(a, slice_of(choices), &list, NULL) < 0)
        return false;
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        if (slice_eq(json_string(item), reply))
            return true;
    return false;
}

static int check_reply(struct arena *a, const struct approval_view *q, const struct approval_decision *d, struct err *e)
{
    struct json_value schema = { 0 };
    int r;

    if (!d->is_allowed)
        return 0;
    if (strcmp(q->kind, "question") == 0) {
        if (json_type(d->reply) != JSON_STRING || json_string(d->reply).n > LIMIT_APPROVAL_BYTES)
            return err_add_field(e, "reply", "must be a text: the answer to the question");
        if (q->choices && !is_choice(a, q->choices, json_string(d->reply)))
            return err_add_field(e, "reply", "must be one of the question's choices");
    }
    if (strcmp(q->kind, "elicitation") != 0)
        return 0;
    if (json_type(d->reply) != JSON_OBJECT && (q->schema || !json_is_absent(d->reply)))
        return err_add_field(e, "reply", "must be an object");
    if (!q->schema)
        return 0; /* the person has done what the server wanted elsewhere (mode url) */
    r = json_parse(a, slice_of(q->schema), &schema, e);
    return r < 0 ? r : json_schema_check(schema, d->reply, "reply", e);
}

static int check_scope(const struct approval_view *q, const struct approval_decision *d, struct err *e)
{
    if (d->scope == APPROVAL_ONCE)
        return 0;
    if (!approvals_is_same(q, q))
        return err_add_field(e, "scope", "must be once: only calls of tools by agents can be decided for later");
    if (d->scope == APPROVAL_SESSION && !q->session_id)
        return err_add_field(e, "scope", "must be once or always: the call belongs to no session");
    return 0;
}

static int audit(struct approvals *p, const struct approval_view *q, const struct approval_decision *d, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_writer w;
    struct buf out;
    int r;

    if (!p->config.identity)
        return 0;
    buf_init(&out, KIB(16));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "kind", q->kind);
    json_add_string(&w, "server", q->server);
    json_add_string(&w, "tool", q->tool);
    json_add_string(&w, "scope", approval_scope_name(d->scope));
    json_add_string(&w, "session_id", q->session_id);
    json_add_string(&w, "task_uuid", q->task_uuid);
    json_end(&w);
    r = audit_append(p->config.identity, d->actor, d->is_allowed ? "approval.allow" : "approval.deny", q->agent,
                     buf_to_arena(&out, a), e);
    return r;
}

int approvals_decide(struct approvals *p, const struct approval_decision *d, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct approval_view q = { 0 };
    int r = claim(p, d->id, a, &q, e);

    if (r < 0)
        return r;
    r = check_scope(&q, d, e);
    if (r == 0)
        r = check_reply(a, &q, d, e);
    if (r == 0)
        r = audit(p, &q, d, e);
    if (r == 0 && d->scope == APPROVAL_ALWAYS)
        r = approvals_keep_rule(p, &q, d->is_allowed, e);
    finish(p, &q, d, r);
    return r;
}
