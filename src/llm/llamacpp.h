/* Models this service runs itself: a llama-server process (llama.cpp) for each model of the models folder that is asked for.
 *
 * A process is started at its first use, held while requests use it, ended when nobody did for a while, when another model needs its place,
 * and with the service. It listens on a port of 127.0.0.1 that the kernel picks and wants a key that only this service has. One that crashes
 * is not started again before 1, 2, 4, ... 60 s. Any thread but the loop's; llamacpp_hold() blocks until the model is loaded.
 *
 *     r = llamacpp_hold(l, &(struct llamacpp_wish){ .model = "llama-3.2-3b", .may_wait = true }, arena, &place, e);
 */
#pragma once

#include "base/loop.h"
#include "llm/llm.h"
#include "settings/settings.h"

#include <stdatomic.h>

struct supervisor;
struct llamacpp;

struct llamacpp_config {
    struct loop *loop;
    struct settings *settings;
    struct supervisor *supervisor;
    const char *data_dir;
};

struct llamacpp_wish {
    const char *model;
    bool is_for_vectors;                /* embeddings, not chats */
    bool may_wait;                      /* else only a model that is loaded will do */
    int64_t ready_by_ms;                /* clock_mono_ms(): waits no longer for the model; 0: as long as it loads */
    const atomic_bool *is_gone;         /* may be NULL */
};

struct llamacpp_place { const char *base_url, *api_key; };      /* in the arena */

int llamacpp_new(const struct llamacpp_config *c, struct llamacpp **ret, struct err *e) MUST_CHECK;     /* before the loop runs */
void llamacpp_stop(struct llamacpp *l);                 /* starts nothing any more; before supervisor_close(), NULL is fine */
struct llamacpp *llamacpp_free(struct llamacpp *l);     /* after supervisor_close(), when no arena holds a process */

/* There is a program and a model; looked for at most every two seconds, unless is_fresh. */
bool llamacpp_is_offered(struct llamacpp *l, bool is_fresh);
/* Why it is not: -EINVAL PROVIDER_UNAVAILABLE with what to install and where to put a model. */
int llamacpp_explain(struct llamacpp *l, struct err *e);
/* Those for chats first. */
int llamacpp_models(struct llamacpp *l, struct arena *a, struct llm_models *ret, struct err *e) MUST_CHECK;

/* The process runs at least until the arena ends. -EINVAL INVALID_MODEL; -EBADMSG BAD_MODEL_FILE; -EFBIG MODEL_TOO_LARGE for the memory allowed;
 * -EAGAIN OVERLOADED when every place is taken by a model that answers, PROVIDER_UNAVAILABLE while a crashed one rests or when the model is not
 * ready in time (it goes on loading); -ECANCELED. */
int llamacpp_hold(struct llamacpp *l, const struct llamacpp_wish *wish, struct arena *a, struct llamacpp_place *ret, struct err *e) MUST_CHECK;

int64_t llamacpp_rest_ms(unsigned n_crashes);           /* after so many in a row: 1, 2, 4, ... 60 s */
