/* What a person sees of a session. */
#include "backend/hosted/hosted_session_private.h"

#include "base/clock.h"

#include <string.h>

static bool is_settled(const struct hosted_session *s, const struct hosted_channel *ch)
{
    if (!ch->is_wanted || ch->has_failed)
        return true;
    if (ch->step != HOSTED_JOINED)
        return false;
    return ch->kind != HOSTED_PRESENCE || (s->is_presence_known && (!s->record || s->is_tracked));
}

bool hosted_session_is_settled(struct hosted_session *s)
{
    struct hosted_channel *ch;

    TAILQ_FOREACH(ch, &s->channels, links)
    if (!is_settled(s, ch))
        return false;
    return true;
}

static enum backend_link_state state_of(const struct hosted_session *s, const struct hosted_channel *ch)
{
    if (!s->is_connected)
        return BACKEND_LINK_CONNECTING;
    if (ch->step == HOSTED_JOINED)
        return BACKEND_LINK_LIVE;
    return ch->has_failed && ch->step == HOSTED_IDLE ? BACKEND_LINK_FAILED : BACKEND_LINK_JOINING;
}

static const char *time_text(struct arena *a, int64_t wall_ms)
{
    char text[TIME_TEXT_SIZE];

    if (wall_ms == 0)
        return NULL;
    clock_format(wall_ms, text);
    return arena_strdup(a, text);
}

static const char *fault_text(struct arena *a, const struct hosted_fault *f)
{
    return f->text[0] ? arena_strdup(a, f->text) : NULL;
}

static struct backend_subscription show(struct hosted_session *s, const struct hosted_channel *ch, struct arena *a)
{
    return (struct backend_subscription){
        .table = arena_strdup(a, ch->table),
        .filter = arena_strdup(a, ch->filter),
        .state = state_of(s, ch),
        .last_event_at = time_text(a, ch->event_wall_ms),
        .lag_ms = ch->lag_ms,
        .n_events = ch->n_events,
        .n_gaps = ch->n_gaps,
        .n_retries = ch->n_retries,
        .last_error = fault_text(a, &ch->fault),
        .last_error_at = time_text(a, ch->fault.wall_ms),
    };
}

void hosted_session_monitor(struct hosted_session *s, struct arena *a, struct backend_monitor *ret)
{
    struct hosted_channel *ch;

    *ret = (struct backend_monitor){
        .way = "realtime",
        .state = s->is_connected ? BACKEND_LINK_LIVE : BACKEND_LINK_CONNECTING,
        .n_connects = s->n_connects,
        .n_ignored = s->n_ignored,
        .last_error = fault_text(a, &s->fault),
        .last_error_at = time_text(a, s->fault.wall_ms),
        .items = arena_array(a, s->n_channels, sizeof(*ret->items)),
    };
    TAILQ_FOREACH(ch, &s->channels, links)
    if (ch->kind == HOSTED_TABLE && ch->is_wanted)
        ret->items[ret->n++] = show(s, ch, a);
}
