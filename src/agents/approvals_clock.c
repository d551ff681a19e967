/* How long persons took, for deadlines of turns. */
#include "agents/approvals_private.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

static const char *owner_of(const struct approval_view *q)
{
    return q->session_id ? q->session_id : q->task_uuid;
}

static struct approval_clock **find(struct approvals *p, const char *of)
{
    struct approval_clock **at = &p->clocks;

    while (*at && strcmp((*at)->of, of) != 0)
        at = &(*at)->next;
    return at;
}

/* The oldest that nothing waits by. */
static void drop_oldest(struct approvals *p)
{
    struct approval_clock **oldest = NULL, *gone;

    for (struct approval_clock **at = &p->clocks; *at; at = &(*at)->next)
        if ((*at)->n_waiting == 0)
            oldest = at;
    if (!oldest)
        return;
    gone = *oldest;
    *oldest = gone->next;
    free(gone->of);
    free(gone);
    p->n_clocks--;
}

void approvals_clock_begin(struct approvals *p, const struct approval_view *q)
{
    const char *of = owner_of(q);
    struct approval_clock *clock = of ? *find(p, of) : NULL;

    if (!of)
        return;
    if (!clock) {
        if (p->n_clocks >= LIMIT_SESSION_APPROVALS)
            drop_oldest(p);
        clock = xcalloc(1, sizeof(*clock));
        *clock = (struct approval_clock){ .next = p->clocks, .of = xstrdup(of) };
        p->clocks = clock;
        p->n_clocks++;
    }
    if (clock->n_waiting++ == 0)
        clock->since_ms = clock_mono_ms();
}

void approvals_clock_end(struct approvals *p, const struct approval_view *q)
{
    const char *of = owner_of(q);
    struct approval_clock *clock = of ? *find(p, of) : NULL;

    if (clock && --clock->n_waiting == 0)
        clock->total_ms += clock_mono_ms() - clock->since_ms;
}

int64_t approvals_waited_ms(struct approvals *p, const char *session_id)
{
    struct approval_clock *clock;
    int64_t ms = 0;

    pthread_mutex_lock(&p->lock);
    clock = *find(p, session_id);
    if (clock)
        ms = clock->total_ms + (clock->n_waiting > 0 ? clock_mono_ms() - clock->since_ms : 0);
    pthread_mutex_unlock(&p->lock);
    return ms;
}
