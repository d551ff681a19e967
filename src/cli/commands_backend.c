/* The commands of `hearth backend` and `hearth user`. */
#include "cli/command.h"
#include "cli/special.h"

/* clang-format off */

static const struct cli_column user_columns[] = {
    { "E-MAIL", "email" }, { "MADE", "created_at", CLI_TIME }, { "SIGNED IN", "last_sign_in_at", CLI_TIME, 1 }, { "ID", "id", CLI_ID, 2 }, { .title = NULL },
};

static const struct cli_column delivery_columns[] = {
    { "ID", "id", CLI_ID }, { "STATE", "state" }, { "TABLE", "table_name" }, { "TASK", "task_id", .drop = 2 }, { "END", "action", .drop = 4 }, { "TRIES", "tries", .drop = 3 },
    { "NEXT", "next_at", CLI_TIME, .drop = 5 }, { "ERROR", "error", .drop = 1 }, { .title = NULL },
};
static const struct cli_option delivery_options[] = {
    { .name = "--state", .value = "STATE", .help = "waiting, dead, delivered or dropped; absent: waiting and dead" },
    { .name = "--limit", .value = "N", .help = "at most so many, the newest" },
    { .name = NULL },
};

const struct command commands_backend[] = {
    { .words = "backend monitor", .needs_service = true, .is_json = true, .has_table = true, .run = run_backend_monitor, .summary = "Show the machines that listen, and the state of each subscription" },
    { .words = "backend keys", .makes_folder = true, .is_json = true, .method = HTTP_GET, .path = "/api/backend/keys", .done = "publishable {publishable}\nsecret {secret}\njwt_secret {jwt_secret}", .summary = "Print the keys for apps of the hosted service" },
    { .words = "backend deliveries", .args = "[retry|drop ID]", .n_args_max = 2, .options = delivery_options, .is_json = true, .method = HTTP_GET, .path = "/api/backend/deliveries",
      .query = "state={--state}&limit={--limit}", .list = "deliveries", .columns = delivery_columns, .empty = "Every app has accepted the ends of its tasks.", .run = run_backend_deliveries,
      .summary = "List the ends of tasks that apps in Custom Mode have not accepted; send one again, or drop it",
      .details = "retry sends the end at once and as often as a new one. drop gives it up: the row waits again, and the work is done anew (docs/custom-mode.md)." },
    { .words = "user list", .is_json = true, .method = HTTP_GET, .path = "/api/backend/users", .list = "users", .columns = user_columns, .empty = "No user has signed up.", .summary = "List the users of apps of the hosted service" },
    { .words = "user add", .args = "EMAIL", .n_args_min = 1, .n_args_max = 1, .is_json = true, .run = run_user_add, .summary = "Add such a user", .details = "The password is read from the terminal without echo, or from standard input." },
    { .words = "user password", .args = "EMAIL", .n_args_min = 1, .n_args_max = 1, .run = run_user_password, .summary = "Give such a user a new password, which ends the user's sessions", .details = "The password is read from the terminal without echo, or from standard input." },
    { .words = "user remove", .args = "EMAIL", .n_args_min = 1, .n_args_max = 1, .method = HTTP_DELETE, .path = "/api/backend/users/{0}", .done = "The user {0} is removed; the user's rows stay.", .summary = "Remove such a user" },
    { .words = "backend sql", BACKEND_SETUP(run_backend_sql), .summary = "Print the SQL that sets the database of the backend up" },
    { .words = "backend setup", BACKEND_SETUP(run_backend_setup), .summary = "Set the database of the backend up, as the role of backend.url" },
    { .words = "backend check", BACKEND_SETUP(run_backend_check), .is_json = true, .summary = "Say what the database of the backend lacks, each with its SQL; exit code 1 when there is something" },
    { .words = "backend password", .makes_folder = true, .run = run_backend_password, .summary = "Keep the password of the backend's database, encrypted", .details = "Read from the terminal without echo, or from standard input. Without it libpq looks in PGPASSWORD and ~/.pgpass." },

    { .words = "backend login", .is_repair = true, .makes_folder = true, .options = backend_login_options, .run = run_backend_login, .summary = "Log in at the hosted service, in a browser that then shows a code",
      .details = "The account's token is kept encrypted and never shown. A further login takes the place of the earlier one, also of another account." },
    { .words = "backend logout", .is_repair = true, .method = HTTP_POST, .path = "/api/backend/account/logout", .done = "The account and the project's secret key are forgotten here.",
      .summary = "Forget the account at the hosted service", .details = "The token stays valid at the service until it is revoked there." },
    { .words = "backend status", .is_repair = true, .is_json = true, .run = run_backend_status, .summary = "Show who is logged in at the hosted service, and the project" },
    { .words = "backend projects", .is_repair = true, .is_json = true, .method = HTTP_GET, .path = "/api/backend/projects", .list = "projects", .columns = backend_project_columns,
      .empty = "The account has no project.", .summary = "List the projects of the account at the hosted service" },
    { .words = "backend use", .is_repair = true, .makes_folder = true, .args = "PROJECT", .n_args_min = 1, .n_args_max = 1, .options = backend_use_options, .is_json = true, .run = run_backend_use,
      .summary = "Choose the project of the hosted service, and take its keys",
      .details = "PROJECT is the ref or name of a project of the account, or with --key the address of any project.\n"
                 "Taken are the publishable key (or the legacy anon key) and, encrypted, a secret key for the service's own work." },
    { .words = NULL },
};
