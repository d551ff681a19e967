/* Local Apps: registered, launched, supervised, logged.
 *
 * One per process. Calls are for any worker; child events arrive on the loop, which passes the work on to the short
 * pool. A crash restarts the app with back-off (apps.restart_backoff_ms doubling, at most apps.restart_limit in ten
 * minutes), then the status is error.
 */
#pragma once

#include "apps/config.h"
#include "base/pool.h"
#include "identity/identity.h"
#include "os/child.h"

enum app_status { APP_STOPPED, APP_STARTING, APP_RUNNING, APP_ERROR, APP_STOPPING };
const char *app_status_name(enum app_status s);

struct app_state {
    enum app_status status;
    const char *message; /* the cause of the status error, as a sentence for a person; NULL in other states */
    pid_t pid;
    uint16_t port; /* passed as <ABBR>_PORT */
    int64_t n_restarts;
    const char *started_at;
};

struct apps;
struct apps_config {
    struct loop *loop;
    struct pool *pool; /* NULL: no launching (command line without a service) */
    struct store *store;
    struct settings *settings;
    struct identity *identity;
    struct supervisor *supervisor;
    const char *data_dir;
    const char *base_url; /* http://127.0.0.1:PORT */
    /* An app was registered, removed or changed, or has another status; any thread. */
    void (*on_change)(void *arg, const char *app_id);
    void *arg;
};

int apps_open(const struct apps_config *c, struct apps **ret, struct err *e) MUST_CHECK;
/* Starts no more apps, and waits until running starts are over; call before supervisor_close(). Not on the loop thread.
 */
void apps_stop(struct apps *apps);
struct apps *apps_close(struct apps *apps); /* the supervisor has ended the children before */
/* Starts the enabled apps. */
int apps_start_enabled(struct apps *apps, struct err *e) MUST_CHECK;

/* Registers the app, or replaces it when app_id or name is known; starts nothing. ret_app_id: UUID_SIZE. */
int app_put(struct apps *apps, const struct app_config *c, struct slice json, const char *actor, char *ret_app_id,
            struct err *e) MUST_CHECK;
/* A table of Custom Mode belongs to one app: -EINVAL VALIDATION_ERROR names each of c's tables that another app lists
 * when one of the two is in Custom Mode. */
int app_check_tables(struct apps *apps, const struct app_config *c, struct err *e) MUST_CHECK;
/* Stops the app and removes its registration, its grants and, with with_data, its data folder. */
int app_remove(struct apps *apps, const char *app_id, bool with_data, const char *actor, struct err *e) MUST_CHECK;
int app_start(struct apps *apps, const char *app_id, struct err *e) MUST_CHECK;
int app_stop(struct apps *apps, const char *app_id, struct err *e) MUST_CHECK; /* returns when the app has ended */
int app_restart(struct apps *apps, const char *app_id, struct err *e) MUST_CHECK;
int app_state(struct apps *apps, const char *app_id, struct arena *a, struct app_state *ret, struct err *e) MUST_CHECK;
/* Could the app be launched: do its program and its folder exist? 0 also for an app that Hearth does not start. Starts
 * nothing. */
int app_check(struct apps *apps, const char *app_id, struct err *e) MUST_CHECK;
/* Adds text that the app sent to its log; the log is made when the app never ran. */
void app_log_add(struct apps *apps, const char *app_id, struct slice text);
/* The log across restarts, with a reference for the caller; NULL when the app never ran. */
struct child_log *app_log(struct apps *apps, const char *app_id);
/* By id, or by name when no id matches. -ENOENT APP_NOT_FOUND. */
int app_find(struct apps *apps, const char *id_or_name, struct arena *a, struct app_config *ret,
             struct err *e) MUST_CHECK;
/* Calls fn with the configuration of every registered app. */
int app_each(struct apps *apps, struct arena *a, int (*fn)(void *arg, const struct app_config *c, struct err *e),
             void *arg, struct err *e) MUST_CHECK;
