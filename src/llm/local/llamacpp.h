/* Models this service runs itself: one llama-server process (llama.cpp) for each requested model of the models folder.
 *
 * A process is started at its first use and held while requests use it. It is ended after some idle time, when another
 * model needs its memory, and with the service. It listens on a port of 127.0.0.1 that the kernel picks and requires a
 * key that only this service has. After a crash it is not restarted before 1, 2, 4, ... 60 s. Any thread but the
 * loop's; llamacpp_hold() blocks until the model is loaded.
 *
 *     r = llamacpp_hold(l, &(struct llamacpp_start_request){ .model = "llama-3.2-3b", .may_wait = true }, arena,
 * &place, e);
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

struct llamacpp_start_request {
    const char *model;
    bool is_for_vectors;        /* embeddings, not chats */
    bool may_wait;              /* else only a loaded model is held */
    int64_t ready_by_ms;        /* clock_mono_ms(): the wait for the model ends then; 0: waits until it is loaded */
    const atomic_bool *is_gone; /* may be NULL */
};

struct llamacpp_place {
    const char *base_url, *api_key;
}; /* in the arena */

int llamacpp_new(const struct llamacpp_config *c, struct llamacpp **ret,
                 struct err *e) MUST_CHECK; /* before the loop runs */
void llamacpp_stop(struct llamacpp *l);     /* no starts from now on; call before supervisor_close(), NULL is fine */
struct llamacpp *llamacpp_free(struct llamacpp *l); /* after supervisor_close(), when no arena holds a process */

/* Are there a program and a model? Looks at most every two seconds, unless is_fresh. */
bool llamacpp_is_offered(struct llamacpp *l, bool is_fresh);
bool llamacpp_must_look(const struct llamacpp *l); /* would it look now? Takes no lock. */
/* Why llamacpp is not offered: -EINVAL PROVIDER_UNAVAILABLE with what to install and where to put a model. */
int llamacpp_explain(struct llamacpp *l, struct err *e);
/* The models of the folder, those for chats first. */
int llamacpp_models(struct llamacpp *l, struct arena *a, struct llm_models *ret, struct err *e) MUST_CHECK;

/* The models that are loaded now, by name. */
void llamacpp_running(struct llamacpp *l, struct arena *a, struct llm_models *ret);

/* The process runs at least until the arena ends. -EINVAL INVALID_MODEL; -EBADMSG BAD_MODEL_FILE; -EFBIG
 * MODEL_TOO_LARGE for the memory allowed; -EAGAIN OVERLOADED when every place is taken by a model that answers,
 * PROVIDER_UNAVAILABLE while the model rests after a crash, or when it is not ready in time (loading continues);
 * -ECANCELED. */
int llamacpp_hold(struct llamacpp *l, const struct llamacpp_start_request *start_request, struct arena *a,
                  struct llamacpp_place *ret, struct err *e) MUST_CHECK;

/* Is the model loaded, so that llamacpp_hold() does not block? False also when its name must be looked up in the
 * folder. */
bool llamacpp_is_loaded(struct llamacpp *l, const char *model);
int64_t llamacpp_rest_ms(unsigned n_crashes); /* after n_crashes in a row: 1, 2, 4, ... 60 s */
