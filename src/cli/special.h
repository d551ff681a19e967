/* Commands that need more than one request; one file per group. For `run` of struct command. */
#pragma once

#include "cli/command.h"

int run_serve(struct cli *cli, struct err *e);
int run_status(struct cli *cli, struct err *e);
int run_chat(struct cli *cli, struct err *e);
int run_say(struct cli *cli, struct err *e);
int run_listen(struct cli *cli, struct err *e);
int run_embed(struct cli *cli, struct err *e);
int run_search(struct cli *cli, struct err *e);
int run_task_wait(struct cli *cli, struct err *e);
int run_activity_show(struct cli *cli, struct err *e);
int run_activity_add(struct cli *cli, struct err *e);
int run_app_add(struct cli *cli, struct err *e);
int run_app_new(struct cli *cli, struct err *e);
int run_key_import(struct cli *cli, struct err *e);
int run_agent_show(struct cli *cli, struct err *e);
int run_app_show(struct cli *cli, struct err *e);
int run_app_logs(struct cli *cli, struct err *e);
int run_app_open(struct cli *cli, struct err *e);
int run_approval_list(struct cli *cli, struct err *e);
int run_approval_decide(struct cli *cli, struct err *e); /* allow and deny */
int run_approval_watch(struct cli *cli, struct err *e);
int run_permission_list(struct cli *cli, struct err *e);
int run_permission_decide(struct cli *cli, struct err *e); /* grant and deny */
int run_permission_revoke(struct cli *cli, struct err *e);
int run_permission_reset(struct cli *cli, struct err *e);
int run_permission_watch(struct cli *cli, struct err *e);
int run_provider_add(struct cli *cli, struct err *e);
int run_provider_list(struct cli *cli, struct err *e);
int run_provider_test(struct cli *cli, struct err *e);
int run_provider_remove(struct cli *cli, struct err *e);
int run_provider_default(struct cli *cli, struct err *e);
int run_task_show(struct cli *cli, struct err *e);
int run_task_replay(struct cli *cli, struct err *e);
int run_mcp_add(struct cli *cli, struct err *e);
int run_mcp_import(struct cli *cli, struct err *e);
int run_mcp_accept(struct cli *cli, struct err *e);
int run_mcp_tools(struct cli *cli, struct err *e);
int run_mcp_call(struct cli *cli, struct err *e);
int run_mcp_resources(struct cli *cli, struct err *e);
int run_mcp_prompts(struct cli *cli, struct err *e);
int run_mcp_login(struct cli *cli, struct err *e);
int run_mcp_show(struct cli *cli, struct err *e);
int run_mcp_enable(struct cli *cli, struct err *e);
int run_mcp_disable(struct cli *cli, struct err *e);
int run_mcp_logs(struct cli *cli, struct err *e);
int run_mcp_serve(struct cli *cli, struct err *e);
int run_mcp_config(struct cli *cli, struct err *e);
int run_limit_show(struct cli *cli, struct err *e);
int run_limit_set(struct cli *cli, struct err *e);
int run_limit_clear(struct cli *cli, struct err *e);
int run_usage(struct cli *cli, struct err *e);
int run_settings(struct cli *cli, struct err *e);
int run_settings_set(struct cli *cli, struct err *e);
int run_open(struct cli *cli, struct err *e);
int run_doctor(struct cli *cli, struct err *e);
int run_audit_verify(struct cli *cli, struct err *e);
int run_backend_deliveries(struct cli *cli, struct err *e);
int run_user_add(struct cli *cli, struct err *e);
int run_user_password(struct cli *cli, struct err *e);
int run_backend_sql(struct cli *cli, struct err *e);
int run_backend_setup(struct cli *cli, struct err *e);
int run_backend_check(struct cli *cli, struct err *e);
int run_backend_password(struct cli *cli, struct err *e);
int run_backend_login(struct cli *cli, struct err *e);
int run_backend_status(struct cli *cli, struct err *e);
int run_backend_use(struct cli *cli, struct err *e);
int run_backend_monitor(struct cli *cli, struct err *e);
int run_backup(struct cli *cli, struct err *e);
int run_restore(struct cli *cli, struct err *e);
int run_service_install(struct cli *cli, struct err *e);
int run_service_start(struct cli *cli, struct err *e);
int run_service_stop(struct cli *cli, struct err *e);
int run_service_status(struct cli *cli, struct err *e);
int run_service_uninstall(struct cli *cli, struct err *e);
int run_upgrade(struct cli *cli, struct err *e);
int run_openapi(struct cli *cli, struct err *e);
int run_help(struct cli *cli, struct err *e);
int run_man(struct cli *cli, struct err *e);
int run_complete(struct cli *cli, struct err *e);
int run_completion(struct cli *cli, struct err *e);
int run_version(struct cli *cli, struct err *e);

/* Opens a page or an address in a browser when there is a display; best effort. */
void open_in_browser(const char *target);

/* Before the use of the MCP server that is argument 0: a command that nobody has accepted is shown and asked about
 * here, because the use would wait for an answer given elsewhere. -EPERM SERVER_NOT_TRUSTED without a terminal, or for
 * a no. */
int mcp_check_accepted(struct cli *cli, struct err *e) MUST_CHECK;

/* Bodies of the commands' requests. */
extern const struct cli_option backend_options[], backend_login_options[], backend_use_options[];
extern const struct cli_column backend_project_columns[];
extern const char backend_tables[];
#define BACKEND_SETUP(function)                                                                                        \
    .args = "[TABLE]...", .n_args_max = CLI_MAX_ARGS, .options = backend_options, .details = backend_tables,           \
    .run = function
extern const struct cli_option mcp_add_options[], mcp_import_options[], mcp_call_options[], mcp_accept_options[],
    mcp_login_options[], mcp_resources_options[], mcp_serve_options[], mcp_config_options[];
extern const struct cli_column mcp_columns[], mcp_tool_columns[];
void body_mcp_tool(struct cli *cli, struct json_writer *w);
extern const struct cli_option approval_allow_options[], approval_deny_options[];
extern const struct cli_column approval_rule_columns[];
void body_approval_rule(struct cli *cli, struct json_writer *w);
extern const struct cli_option provider_add_options[], provider_test_options[], provider_default_options[];
extern const struct cli_column provider_fact_columns[];
void body_provider_add(struct cli *cli, struct json_writer *w);
void body_provider_test(struct cli *cli, struct json_writer *w);
void body_provider_default(struct cli *cli, struct json_writer *w);
