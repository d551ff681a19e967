/* A Local App's configuration (specification, "Local App configuration"), read whole with every error at once.
 *
 * The JSON text is kept as it was written; the struct is a view of it in an arena. app_id may be given (UUID) or is made.
 */
#pragma once

#include "base/fields.h"
#include "os/sandbox.h"

enum app_type { APP_PYTHON, APP_NODE, APP_NPX, APP_UVX, APP_CUSTOM };

struct app_handler {
    const char *table_name, *agent_id, *description, *workspace_slug, *thread_slug, *prompt;
    struct field_strings event_types;   /* INSERT, UPDATE, DELETE */
    bool is_review;                     /* a person runs it from the calendar */
};

struct app_backend_config {
    bool is_enabled;
    const char *mode;                   /* "compatible" or "custom" */
    struct field_strings tables;        /* "schema.table" */
    struct json_value table_actions;    /* map of table to array of events */
    const char *filter;
    int64_t max_concurrent_tasks;
};

struct app_config {
    const char *app_id, *name, *display_name, *description, *icon;
    const char *app_type;
    bool is_type_given;                 /* without one and without a command it is started elsewhere */
    bool is_enabled;                    /* starts with the service */
    bool is_user_auth_required;
    struct field_strings permissions;   /* the manifest's */
    const char *command;
    struct field_strings args;
    const char *working_dir;
    struct json_value env;
    struct sandbox_wish sandbox;
    struct field_list handlers;         /* of struct app_handler */
    struct app_backend_config backend;
};

extern const struct field app_config_fields[];          /* for the management route's body and for OpenAPI */

/* What tables cannot say: command needed for custom, a script or package for the others, declared tables in tableActions and
 * handlers (or <abbr>_activities), a filter that parses, an absolute working_dir, names of variables. Adds every violation to e;
 * call it also after fields_read() failed, so that all are told at once. */
int app_config_check(const struct app_config *c, const char *abbr, struct err *e) MUST_CHECK;
/* JSON, field rules and those of app_config_check(), every error at once. */
int app_config_parse(struct arena *a, struct slice json, const char *abbr, struct app_config *ret, struct err *e) MUST_CHECK;
/* Field rules only: for what was checked when it was registered. */
int app_config_read(struct arena *a, struct slice json, struct app_config *ret, struct err *e) MUST_CHECK;
/* Has it something to launch? */
bool app_config_is_launchable(const struct app_config *c);
