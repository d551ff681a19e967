/* The whole program except the command line: opens every module in order, connects the modules, closes them in reverse.
 *
 * Two modes: serving (loop, pools, sockets, children, timers) and offline (the same handlers on the same data folder
 * when no service runs, for the command line). service/wiring.c connects siblings: apps -> listeners of tasks, agents
 * -> runner of tasks.
 */
#pragma once

#include "api/api.h"
#include "http/http.h"
#include "settings/settings.h"

struct service;

struct service_config {
    const char *data_dir;    /* absolute */
    const char *config_file; /* NULL: <data>/hearth.conf when it exists */
    const char *const *sets;
    size_t n_sets; /* "key=value" of --set */
    const char *const *listens;
    size_t n_listens; /* "address:port" of --listen; NULL: the setting is used */
    bool accept_loss; /* continues when a database is missing, damaged, or not the expected one */
    bool is_repair;   /* offline: opens in spite of unusable stored settings */
};

/* Serves until SIGTERM or SIGINT; prints the listening line on standard output; returns the exit code. */
int service_serve(const struct service_config *c);
/* Only reads and checks the settings and the data folder. */
int service_check_config(const struct service_config *c, struct err *e) MUST_CHECK;

/* Calls fn with the settings as a service would have them, also while one runs or cannot start. */
int service_with_settings(const struct service_config *c, bool is_in_use,
                          int (*fn)(void *arg, struct settings *settings, struct err *e), void *arg,
                          struct err *e) MUST_CHECK;

/* Writes the members `settings`, `databases`, `space` and `copies` of a report: what this program would change in the
 * folder. Changes nothing. is_in_use: a service works on the folder. *ret_due: something is to be done. */
int service_examine(const struct service_config *c, bool is_in_use, struct json_writer *w, bool *ret_due,
                    struct err *e) MUST_CHECK;

int service_open_offline(const struct service_config *c, struct service **ret, struct err *e) MUST_CHECK;
struct service *service_close(struct service *s);
/* Stored settings that are unusable, like settings_fault(). */
const char *service_fault(const struct service *s, size_t i);
/* Runs one request through dispatch in this thread. The reply is borrowed from the exchange. */
void service_request(struct service *s, struct http_exchange *x);
