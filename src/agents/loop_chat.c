/* One chat that the turn's thread waits for. */
#include "agents/loop_private.h"

#include "base/clock.h"
#include "models/chat_run.h"

static void take_answer(struct turn *t, const struct llm_whole *whole, bool is_whole, struct loop_answer *ret)
{
    struct llm_usage used;

    if (!whole || !whole->progress.provider)
        return;
    used = llm_whole_usage(whole);
    llm_usage_add(&ret->usage, &used);
    ret->provider = arena_strdup(t->arena, whole->progress.provider);
    ret->model = arena_strdup(t->arena, whole->progress.model);
    ret->why = whole->answer.why;
    if (is_whole)
        loop_message_of(t->arena, &whole->answer, &ret->message);
}

int loop_chat(struct turn *t, struct llm_request *request, void (*on_text)(void *arg, struct slice delta),
              struct loop_answer *ret, struct err *e)
{
    const struct chat_job job = { .provider = t->l->agent->provider, .request = request, .arena = t->arena };
    const struct chat_run run = { .wait = &t->wait, .on_text = on_text, .arg = t->l->on->arg };
    int64_t began_ms = clock_mono_ms();
    struct llm_whole *whole = NULL;
    int r = chat_run(t->l->call, &job, &run, &whole, e);

    take_answer(t, whole, r == 0, ret);
    ret->took_ms = clock_mono_ms() - began_ms;
    llm_whole_free(whole);
    return r;
}
