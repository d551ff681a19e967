/* A Local App's configuration (specification, "Local App configuration"), read as a whole with all errors at once.
 *
 * The JSON text is kept unchanged; the struct is a view of the text in an arena. app_id may be given (UUID); otherwise
 * an id is made.
 */
#pragma once

#include "base/fields.h"
#include "os/sandbox.h"

enum app_type { APP_PYTHON, APP_NODE, APP_NPX, APP_UVX, APP_CUSTOM };

struct app_handler {
    const char *table_name, *agent_id, *description, *workspace_slug, *thread_slug, *prompt;
    struct field_strings event_types; /* INSERT, UPDATE, DELETE */
    bool is_review;                   /* a person runs it from the calendar */
};

struct app_backend_config {
    bool is_enabled;
    const char *mode;                /* "compatible" or "custom" */
    struct field_strings tables;     /* "schema.table" */
    struct json_value schema;        /* apps/config_schema.h */
    struct json_value table_actions; /* map of table to array of events */
    const char *filter;
    int64_t max_concurrent_tasks;
};

struct app_config {
    const char *app_id, *name, *display_name, *description, *icon;
    const char *app_type;
    bool is_type_given; /* without a type and without a command, Hearth does not start the app */
    bool is_enabled;    /* the app starts with the service */
    bool is_user_auth_required;
    struct field_strings permissions; /* the manifest's */
    const char *command;
    struct field_strings args;
    const char *working_dir;
    struct json_value env;
    struct sandbox_definition sandbox;
    struct field_list handlers;        /* of struct app_handler */
    struct app_backend_config backend; /* `supabase`, the key named after the hosted backend, is read as `backend` */
    bool has_backend, has_supabase;    /* which of the two was given */
    int64_t port;                      /* fixed; 0: a port of the range is chosen at each start */
    const char *home_url;              /* the address of the app's page; {port} stands for its port */
};

extern const struct field app_config_fields[]; /* for the management route's body and for OpenAPI */

/* Checks the rules that field tables cannot express: command required for custom, a script or package for the others,
 * declared tables in tableActions and handlers (or <abbr>_activities), a filter that parses, an absolute working_dir,
 * names of variables. Adds every violation to e; call it also after fields_read() failed, so that all are reported
 * together. */
int app_config_check(const struct app_config *c, const char *abbr, struct err *e) MUST_CHECK;
/* Members of `config` that stand beside it would be ignored like unknown ones: adds each to e. json: the whole
 * configuration. */
int app_config_check_place(struct json_value json, struct err *e) MUST_CHECK;
/* Field rules only: for a configuration that was checked when it was registered. */
int app_config_read(struct arena *a, struct slice json, struct app_config *ret, struct err *e) MUST_CHECK;
/* home_url with the port filled in; NULL: the app has no home_url, or its port is unknown (0). */
const char *app_home_url(struct arena *a, const struct app_config *c, uint16_t port);
/* Does the app own its tables and their lock (docs/custom-mode.md)? */
bool app_config_is_custom(const struct app_config *c);
/* Has the app something to launch? */
bool app_config_is_launchable(const struct app_config *c);
