/* The commands of `hearth backend`. */
#include "cli/command.h"
#include "cli/special.h"

/* clang-format off */

const struct command commands_backend[] = {
    { .words = "backend keys", .makes_folder = true, .is_json = true, .method = HTTP_GET, .path = "/api/backend/keys", .done = "publishable {publishable}\nsecret {secret}\njwt_secret {jwt_secret}", .summary = "Print the keys for apps of the hosted service" },
    { .words = "backend sql", BACKEND_SETUP(run_backend_sql), .summary = "Print the SQL that sets the database of the backend up" },
    { .words = "backend setup", BACKEND_SETUP(run_backend_setup), .summary = "Set the database of the backend up, as the role of backend.url" },
    { .words = "backend check", BACKEND_SETUP(run_backend_check), .is_json = true, .summary = "Say what the database of the backend lacks, each with its SQL; exit code 1 when there is something" },
    { .words = "backend password", .makes_folder = true, .run = run_backend_password, .summary = "Keep the password of the backend's database, encrypted", .details = "Read from the terminal without echo, or from standard input. Without it libpq looks in PGPASSWORD and ~/.pgpass." },
    { .words = NULL },
};
