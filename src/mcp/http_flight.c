/* One HTTP request of a link: credentials, redirects, and the list that lets closing end it. */
#include "mcp/http_private.h"
#include "net/url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SEND_AGAIN = 1, MOST_REDIRECTS = 3, MOST_REFUSALS = 2 };

struct attempt {
    const char *url;
    const char *authorization; /* that was sent; NULL: none */
    unsigned n_redirects, n_refusals;
};

/* ---- the list ---- */

static int err_closed(struct err *e)
{
    return err_set(e, -EPIPE, "MCP_CLOSED", "The connection to the MCP server was closed.");
}

static int add_flight(struct mcp_http *h, struct mcp_flight *f, struct http_pull *pull, struct err *e)
{
    bool is_closing;

    pthread_mutex_lock(&h->lock);
    is_closing = h->is_closing;
    if (!is_closing) {
        *f = (struct mcp_flight){ .pull = pull, .next = h->flights };
        if (h->flights)
            h->flights->previous = f;
        h->flights = f;
    }
    pthread_mutex_unlock(&h->lock);
    return is_closing ? err_closed(e) : 0;
}

void mcp_flight_end(struct mcp_http *h, struct mcp_flight *f)
{
    struct http_pull *pull;

    pthread_mutex_lock(&h->lock);
    pull = TAKE(f->pull);
    if (pull) {
        if (f->previous)
            f->previous->next = f->next;
        else
            h->flights = f->next;
        if (f->next)
            f->next->previous = f->previous;
    }
    pthread_mutex_unlock(&h->lock);
    http_pull_free(pull);
}

int mcp_http_enter(struct mcp_http *h, struct err *e)
{
    bool is_closing;

    pthread_mutex_lock(&h->lock);
    is_closing = h->is_closing;
    h->n_senders += !is_closing;
    pthread_mutex_unlock(&h->lock);
    return is_closing ? err_closed(e) : 0;
}

void mcp_http_leave(struct mcp_http *h)
{
    pthread_mutex_lock(&h->lock);
    h->n_senders--;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

int mcp_http_error(struct mcp_http *h, int r, struct err *e)
{
    bool is_closing;

    if (r != -ECANCELED)
        return r;
    pthread_mutex_lock(&h->lock);
    is_closing = h->is_closing;
    pthread_mutex_unlock(&h->lock);
    return is_closing ? err_closed(e) : r;
}

/* ---- redirects ---- */

bool mcp_http_is_same_origin(struct arena *a, const char *one, const char *other)
{
    struct url x, y;

    return url_parse(a, one, &x, NULL) == 0 && url_parse(a, other, &y, NULL) == 0 && strcmp(x.scheme, y.scheme) == 0 &&
           strcasecmp(x.host, y.host) == 0 && x.port == y.port;
}

const char *mcp_http_target(struct mcp_http *h, struct arena *a)
{
    const char *target;

    pthread_mutex_lock(&h->lock);
    target = h->target ? arena_strdup(a, h->target) : h->url;
    pthread_mutex_unlock(&h->lock);
    return target;
}

/* Later frames go to the new address at once. */
static void keep_target(struct mcp_http *h, const char *url)
{
    char *kept = xstrdup(url), *old;

    pthread_mutex_lock(&h->lock);
    old = h->target;
    h->target = kept;
    pthread_mutex_unlock(&h->lock);
    free(old);
}

static int follow(struct mcp_http *h, const struct mcp_http_request *q, struct attempt *t, const char *location,
                  struct arena *a, struct err *e)
{
    char *to = NULL;
    int r = url_follow(a, t->url, location, &to, e);

    if (r < 0)
        return r;
    if (!mcp_http_is_same_origin(a, h->url, to))
        return err_set(e, -EPROTO, "MCP_NO_ANSWER",
                       "The MCP server redirects to another server, %.200s: give that address if it is right.", to);
    if (t->n_redirects++ == MOST_REDIRECTS)
        return err_set(e, -EPROTO, "MCP_NO_ANSWER", "The MCP server redirects more than %d times.", MOST_REDIRECTS);
    t->url = to;
    if (strcmp(q->method, "POST") == 0)
        keep_target(h, to);
    return SEND_AGAIN;
}

/* ---- credentials ---- */

static const char *join_challenges(const struct http_answer *head, struct arena *a)
{
    const char *joined = "";

    for (size_t i = 0; i < head->n_headers; i++)
        if (strcmp(head->headers[i].name, "www-authenticate") == 0)
            joined = *joined ? arena_printf(a, "%s, %s", joined, head->headers[i].value) : head->headers[i].value;
    return arena_strdup(a, joined);
}

static int authorize_again(struct mcp_http *h, const struct mcp_http_request *q, struct attempt *t, int status,
                           const char *challenge, struct err *e)
{
    const struct mcp_refusal refusal = { status, challenge, t->authorization };
    int r;

    if (!h->has_authorizer || t->n_refusals++ == MOST_REFUSALS)
        return err_set(e, -EACCES, "MCP_LOGIN_REQUIRED",
                       status == 401 ? "The MCP server asks for a login (401)%s."
                                     : "The MCP server refuses this login (403)%s.",
                       h->has_authorization ? "; it does not accept the configured header Authorization" : "");
    r = h->authorizer.refused(h->authorizer.arg, &refusal, q->wait, e);
    return r == 0 ? SEND_AGAIN : r;
}

/* ---- sending ---- */

/* SEND_AGAIN, a negative error, or 0: the head is the answer. */
static int judge(struct mcp_http *h, const struct mcp_http_request *q, struct attempt *t,
                 const struct http_answer *head, struct arena *a, struct err *e)
{
    const char *location = http_answer_header(head, "location"), *challenge = join_challenges(head, a);

    if ((head->status == 307 || head->status == 308) && location)
        return follow(h, q, t, location, a, e);
    if (head->status == 401 || (head->status == 403 && *challenge))
        return authorize_again(h, q, t, head->status, challenge, e);
    return 0;
}

static int send_once(struct mcp_http *h, const struct mcp_http_request *q, struct attempt *t, struct mcp_flight *f,
                     struct arena *a, struct err *e)
{
    struct http_call_request request = { .method = q->method, .url = t->url, .body = q->body, .guard = h->guard };
    char session[LIMIT_MCP_SESSION_BYTES + 1];
    struct http_pull *pull;
    int r;

    mcp_http_session(h, session);
    request.headers = mcp_http_headers(a, h, q, session, t->authorization, &request.n_headers);
    pull = http_pull_new();
    r = add_flight(h, f, pull, e);
    if (r < 0) {
        http_pull_free(pull);
        return r;
    }
    r = http_pull_open(pull, &request, q->wait, e);
    return r < 0 ? r : judge(h, q, t, http_pull_head(pull), a, e);
}

int mcp_flight_begin(struct mcp_http *h, const struct mcp_http_request *q, struct mcp_flight *f, struct arena *a,
                     struct err *e)
{
    struct attempt t = { .url = q->url };
    int r = SEND_AGAIN;

    while (r == SEND_AGAIN) {
        mcp_flight_end(h, f);
        t.authorization = NULL;
        r = h->has_authorizer ? h->authorizer.value(h->authorizer.arg, q->wait, a, &t.authorization, e) : 0;
        if (r == 0)
            r = send_once(h, q, &t, f, a, e);
    }
    return mcp_http_error(h, r, e);
}
