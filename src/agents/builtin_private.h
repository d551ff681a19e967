/* The functions of the table in builtin.c, by family. No other file includes this. */
#pragma once

#include "agents/builtin_answer.h"

typedef int builtin_run_fn(const struct builtin_call *c, struct mcp_result *ret, struct err *e);

builtin_run_fn builtin_files_read, builtin_files_write, builtin_files_list, builtin_files_edit; /* builtin_files.c */
builtin_run_fn builtin_web_fetch;                                                               /* builtin_web.c */
builtin_run_fn builtin_vectors_search, builtin_vectors_embed;                                   /* builtin_vectors.c */
/* builtin_route.c: what a route of the service does */
builtin_run_fn builtin_route_list_activities, builtin_route_add_activity, builtin_route_update_activity,
    builtin_route_trigger, builtin_route_task_status;
builtin_run_fn builtin_person_question; /* builtin_person.c */
builtin_run_fn builtin_time_now;        /* builtin_time.c */
builtin_run_fn builtin_command_run;
bool builtin_command_is_on(const struct models_call *call); /* builtin_command.c */

/* The folder of the call's thread; -ENOTSUP NO_FOLDER when there is none. Closed by folder_close(). */
struct folder;
int builtin_files_open(const struct builtin_call *c, struct folder *ret, struct err *e) MUST_CHECK;
