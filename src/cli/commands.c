/* The commands of the program; those of `hearth mcp` and `hearth backend` have tables of their own. */
#include "cli/command.h"

#include "cli/special.h"

#include <stdlib.h>

static void body_key_new(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "name", cli_value(cli, "--name"));
}

static void body_workspace_add(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "name", cli->args[0]);
    json_add_string(w, "slug", cli_value(cli, "--slug"));
    json_add_string(w, "type", cli_value(cli, "--type"));
}

static void body_thread_add(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "name", cli->args[1]);
    json_add_string(w, "slug", cli_value(cli, "--slug"));
}

static void body_activity_change(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "status", cli_value(cli, "--status"));
    json_add_string(w, "error_message", cli_value(cli, "--error-message"));
}

static void body_task_run(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "agent_name", cli_value(cli, "--agent"));
}

static void body_task_reject(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "reason", cli_value(cli, "--reason"));
}

static void body_confirm(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "code", cli->args[0]);
}

static void body_settings_set(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "value", cli->args[1]);
}

/* Text that is no number is sent unchanged: the service reports the violated rule. */
static void add_number(struct cli *cli, struct json_writer *w, const char *name, const char *option)
{
    const char *value = cli_value(cli, option);
    char *end = NULL;
    long long number = value ? strtoll(value, &end, 10) : 0;

    if (value && end > value && *end == '\0')
        json_add_int(w, name, number);
    else if (value)
        json_add_string(w, name, value);
}

static void body_search(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "text", cli->args[0]);
    json_add_bool(w, "embed", !cli_has(cli, "--words"));
    json_add_string(w, "app", cli_value(cli, "--app"));
    json_add_string(w, "key", cli_value(cli, "--key"));
    json_add_string(w, "workspaceId", cli_value(cli, "--workspace"));
    add_number(cli, w, "topK", "--top");
}

static void body_limit_set(struct cli *cli, struct json_writer *w)
{
    add_number(cli, w, "requests_a_minute", "--requests-a-minute");
    add_number(cli, w, "tokens_a_minute", "--tokens-a-minute");
    add_number(cli, w, "requests_a_day", "--requests-a-day");
    add_number(cli, w, "tokens_a_day", "--tokens-a-day");
    add_number(cli, w, "characters_a_minute", "--characters-a-minute");
    add_number(cli, w, "characters_a_day", "--characters-a-day");
}

/* clang-format off */

static const struct cli_option serve_options[] = {
    { "--listen", .value = "ADDR:PORT", .is_many = true, .help = "where to listen; port 0 picks a free one (setting http.listen)" },
    { "--config", .value = "FILE", .help = "file of settings; default: hearth.conf in the data folder" },
    { "--set", .value = "KEY=VALUE", .is_many = true, .help = "a setting that outranks file, environment and database" },
    { "--log", .value = "LEVEL", .help = "error, warn, info or debug" },
    { "--log-format", .value = "FORMAT", .help = "text or json" },
    { "--accept-loss", .help = "go on although a database is missing, damaged, older than it was or another one" },
    { "--check-config", .help = "only check settings and data folder" },
    { .name = NULL },
};

static const struct cli_option service_options[] = {
    { "--force", .help = "also replace or remove a file that a person changed, or of another data folder" },
    { .name = NULL },
};

static const struct cli_option upgrade_options[] = {
    { "--check", .help = "say what this program would change in the data folder; changes nothing" },
    { .name = NULL },
};

static const struct cli_option chat_options[] = {
    { "--model", .letter = "-m", .value = "MODEL", .help = "which model; default: as `hearth status` shows" },
    { "--provider", .value = "NAME", .help = "which provider; default: the one that has the model" },
    { "--system", .value = "TEXT", .help = "what the model is told before the question" },
    { "--agent", .letter = "-a", .value = "NAME", .help = "an agent instead of a model: @agent, or one of `hearth agent list`" },
    { "--workspace", .value = "SLUG", .help = "of the conversation with the agent; default: the first one" },
    { "--thread", .value = "SLUG", .help = "go on in this thread; default: a new one" },
    { .name = NULL },
};

static const struct cli_option say_options[] = {
    { "--out", .letter = "-o", .value = "FILE", .help = "save the audio instead of playing it" },
    { "--format", .value = "AUDIO", .help = "of the file: wav, mp3 or pcm; default: as its name ends, else wav" },
    { "--voice", .value = "VOICE", .help = "like flite_local/slt or de+f2; default: as the language's is configured" },
    { "--provider", .value = "NAME", .help = "who speaks; default: the one of the voice or of the language" },
    { "--language", .value = "LANGUAGE", .help = "of the text, like de; default: the setting speech.language" },
    { "--speed", .value = "N", .help = "0.5 to 2; default: 1" },
    { .name = NULL },
};

static const struct cli_option listen_options[] = {
    { "--timeout", .value = "SECONDS", .help = "listen at most so long; default: 60" },
    { "--phrases", .value = "TEXT", .help = "hear one of these and nothing else: phrases divided by commas, or a grammar in JSGF" },
    { "--language", .value = "LANGUAGE", .help = "that is spoken, like en" },
    { "--provider", .value = "NAME", .help = "which engine hears" },
    { "--keep", .help = "keep what was heard as a WAV in the data folder" },
    { .name = NULL },
};

static const struct cli_option model_options[] = {
    { "--model", .letter = "-m", .value = "MODEL", .help = "which model; default: as `hearth status` shows" },
    { "--provider", .value = "NAME", .help = "which provider; default: the one that has the model" },
    { .name = NULL },
};

static const struct cli_option search_options[] = {
    { "--app", .value = "APP", .help = "the vectors of this app (id or name)" },
    { "--key", .value = "KEY", .help = "the vectors of this developer key (id, fingerprint or name)" },
    { "--workspace", .value = "ID", .help = "of which workspace; default: default", .field = "workspaceId" },
    { "--top", .value = "N", .help = "the best N; default 5", .field = "topK" },
    { "--words", .help = "only by words: nothing is embedded" },
    { .name = NULL },
};

static const struct cli_option key_new_options[] = { { "--name", .value = "NAME", .help = "what the key is for" }, { .name = NULL } };

static const struct cli_option logs_options[] = {
    { "--follow", .letter = "-f", .help = "go on with what the app writes from now on" },
    { "--lines", .letter = "-n", .value = "N", .help = "at most the last N lines" },
    { .name = NULL },
};

static const struct cli_option app_new_options[] = {
    { "--lang", .value = "LANG", .help = "node, python or bash (required)" },
    { "--dir", .value = "DIR", .help = "the folder to write, new or empty; default: NAME in the current folder" },
    { .name = NULL },
};

static const struct cli_option app_remove_options[] = {
    { "--with-data", .help = "remove the app's data folder too" }, { .name = NULL },
};

static const struct cli_option grant_options[] = {
    { "--requested", .help = "every permission that the app declares or waits for, instead of PERMISSION" },
    { "--once", .help = "for one use" },
    { "--until-stop", .help = "until the app stops" },
    { "--until", .value = "DATE", .help = "until then: 2030-01-31 or 2030-01-31T18:00:00Z" },
    { .name = NULL },
};

static const struct cli_option workspace_add_options[] = {
    { "--slug", .value = "SLUG", .help = "what programs call it; default: made from NAME" },
    { "--type", .value = "TYPE", .help = "default: default" },
    { .name = NULL },
};
static const struct cli_option thread_add_options[] = {
    { "--slug", .value = "SLUG", .help = "what programs call it; default: made from NAME" }, { .name = NULL },
};
static const struct cli_option thread_list_options[] = { { "--limit", .value = "N", .help = "at most N, newest first" }, { .name = NULL } };
static const struct cli_option activity_list_options[] = {
    { "--status", .value = "STATUS", .help = "only those: pending, claimed, completed, failed, or a word of the app's own" },
    { "--app", .value = "APP", .help = "only of this app (id or name)" },
    { "--limit", .value = "N", .help = "at most N, newest first" },
    { .name = NULL },
};
static const struct cli_option activity_add_options[] = {
    { "--app", .value = "APP", .help = "the app it is of (id or name), whose agents work on it" },
    { "--wait", .help = "wait for its end and print its result instead of its id" },
    { "--timeout", .value = "SECONDS", .help = "with --wait: wait at most so long" },
    { .name = NULL },
};
static const struct cli_option activity_change_options[] = {
    { "--status", .value = "STATUS", .help = "its new status" },
    { "--error-message", .value = "TEXT", .help = "what went wrong" },
    { .name = NULL },
};

static const struct cli_option task_list_options[] = {
    { "--status", .value = "STATUS", .help = "only those: pending, claimed, processing, completed, failed, canceled" },
    { "--app", .value = "APP", .help = "only of this app (id or name)" },
    { "--quarantined", .help = "only those that too many machines failed" },
    { "--limit", .value = "N", .help = "at most N, newest first" },
    { .name = NULL },
};

static const struct cli_option task_wait_options[] = { { "--timeout", .value = "SECONDS", .help = "wait at most so long" }, { .name = NULL } };
static const struct cli_option task_run_options[] = { { "--agent", .value = "NAME", .help = "another agent than the one planned", .field = "agent_name" }, { .name = NULL } };
static const struct cli_option task_replay_options[] = {
    { "--agent", .value = "NAME", .help = "another agent than the one that failed", .field = "agent_name" },
    { "--all", .help = "every failed task, instead of one UUID" },
    { "--app", .value = "APP", .help = "with --all: only of this app (id or name)" },
    { "--status", .value = "STATUS", .help = "with --all: failed (default) or canceled" },
    { .name = NULL },
};
static const struct cli_option task_reject_options[] = { { "--reason", .value = "TEXT", .help = "kept as the task's error" }, { .name = NULL } };
static const struct cli_option calendar_options[] = {
    { "--from", .value = "DATE", .help = "only what ends at or after it: 2030-01-31 or 2030-01-31T18:00:00Z" },
    { "--to", .value = "DATE", .help = "only what starts before it" },
    { "--limit", .value = "N", .help = "at most N" },
    { .name = NULL },
};
static const struct cli_option audit_list_options[] = { { "--limit", .value = "N", .help = "at most N, newest first" }, { .name = NULL } };
static const struct cli_option limit_options[] = {
    { "--requests-a-minute", .value = "N", .help = "requests to models within any 60 seconds; 0: any number" },
    { "--tokens-a-minute", .value = "N", .help = "tokens of models within any 60 seconds; 0: any number" },
    { "--requests-a-day", .value = "N", .help = "requests a day of UTC; 0: any number" },
    { "--tokens-a-day", .value = "N", .help = "tokens a day of UTC; 0: any number" },
    { "--characters-a-minute", .value = "N", .help = "spoken characters within any 60 seconds; 0: any number" },
    { "--characters-a-day", .value = "N", .help = "spoken characters a day of UTC; 0: any number" },
    { .name = NULL },
};
static const struct cli_option usage_options[] = {
    { "--days", .value = "N", .help = "of the last N days, today among them; default 30" },
    { "--by", .value = "WORDS", .help = "what a line is of: day, app, key, provider, model, kind, several with commas; default day", .field = "group" },
    { "--app", .value = "APP", .help = "only of this app (id or name)" },
    { "--key", .value = "ID", .help = "only of this developer key" },
    { "--provider", .value = "NAME", .help = "only of this provider" },
    { "--model", .value = "NAME", .help = "only of this model" },
    { "--limit", .value = "N", .help = "at most N lines" },
    { .name = NULL },
};
static const struct cli_option agent_remove_options[] = { { "--force", .help = "also while apps or unfinished tasks use it" }, { .name = NULL } };
static const struct cli_option restore_options[] = {
    { "--force", .help = "also over data that is there" },
    { "--max-mb", .value = "N", .help = "what the files may take in all; default: 100 times the archive, at least 64" },
    { .name = NULL },
};

static const struct cli_column search_columns[] = {
    { "SCORE", "score" }, { "ID", "id" }, { "DOCUMENT", "metadata.documentId" }, { "TEXT", "metadata.text" }, { .title = NULL },
};
static const struct cli_column preset_columns[] = {
    { "ID", "id" }, { "PROVIDER", "label" }, { "CHATS", "can_chat", CLI_YES_NO }, { "EMBEDS", "can_embed", CLI_YES_NO },
    { "SPEAKS", "can_speak", CLI_YES_NO }, { "HEARS", "can_hear", CLI_YES_NO }, { "NEEDS", "needs", CLI_JOINED },
    { "ADDRESS", "base_url", .drop = 2 }, { "HELP", "help", .drop = 3 }, { .title = NULL },
};
static const struct cli_column key_columns[] = {
    { "ID", "id", CLI_ID }, { "NAME", "name" }, { "ENDS IN", "last4" }, { "MAY", "may" }, { "FINGERPRINT", "fingerprint", .drop = 4 }, { "MADE", "created_at", CLI_TIME },
    { "LAST USED", "last_used_at", CLI_TIME, 2 }, { "REVOKED", "revoked_at", CLI_TIME, 1 }, { .title = NULL },
};
static const struct cli_column app_columns[] = {
    { "NAME", "name" }, { "STATUS", "status" }, { "TYPE", "app_type" }, { "ENABLED", "enabled", CLI_YES_NO }, { "PORT", "port" },
    { "PID", "pid", .drop = 4 }, { "HOME", "home_url", .drop = 3 }, { "ID", "app_id", .drop = 5 }, { "MESSAGE", "message", .drop = 1 }, { .title = NULL },
};
static const struct cli_column permission_columns[] = {
    { "PERMISSION", "name" }, { "THE APP WANTS TO", "asks" }, { "EVERY USE AUDITED", "dangerous", CLI_YES_NO, 1 }, { .title = NULL },
};
static const struct cli_column agent_columns[] = {
    { "NAME", "name" }, { "DISPLAY NAME", "display_name" }, { "DESCRIPTION", "description" }, { .title = NULL },
};
static const struct cli_column workspace_columns[] = {
    { "SLUG", "slug" }, { "NAME", "name" }, { "TYPE", "type" }, { "MADE", "created_at", CLI_TIME }, { .title = NULL },
};
static const struct cli_column thread_columns[] = {
    { "SLUG", "slug" }, { "NAME", "name" }, { "MADE", "created_at", CLI_TIME }, { .title = NULL },
};
static const struct cli_column activity_columns[] = {
    { "ID", "id", CLI_ID }, { "STATUS", "status" }, { "CREATED", "created_at", CLI_TIME }, { "COMPLETED", "completed_at", CLI_TIME, 3 }, { "ATTEMPT", "attempt", .drop = 4 },
    { "ERROR", "error_message", .drop = 1 }, { "RAW DATA", "raw_data", .drop = 2 }, { .title = NULL },
};
static const struct cli_column task_columns[] = {
    { "UUID", "uuid", CLI_ID }, { "STATUS", "status" }, { "WAITS FOR", "waits_for" }, { "TITLE", "title" }, { "ACTION", "action_type", .drop = 3 }, { "CREATED", "created_at", CLI_TIME, 2 },
    { "ERROR", "error", .drop = 1 }, { .title = NULL },
};
static const struct cli_column calendar_columns[] = {
    { "START", "start_date", CLI_TIME }, { "TITLE", "title" }, { "DISPATCH", "metadata.dispatch_status" }, { "AGENT", "metadata.agent_name" },
    { "TASK", "task_uuid", CLI_ID }, { .title = NULL },
};
static const struct cli_column audit_columns[] = {
    { "SEQ", "seq" }, { "AT", "at", CLI_TIME }, { "WHO", "actor" }, { "WHAT", "action" }, { "SUBJECT", "subject" }, { "DETAIL", "detail" },
    { .title = NULL },
};
static const struct cli_column route_columns[] = {
    { "METHOD", "method" }, { "PATH", "path" }, { "PERMISSION", "permission" }, { "SUMMARY", "summary" }, { .title = NULL },
};

static const struct cli_column limit_columns[] = {
    { "OF", "of" }, { "NAME", "name" }, { "REQUESTS/MIN", "own.requests_a_minute" }, { "TOKENS/MIN", "own.tokens_a_minute" },
    { "REQUESTS/DAY", "own.requests_a_day" }, { "TOKENS/DAY", "own.tokens_a_day" }, { "CHARS/DAY", "own.characters_a_day", .drop = 1 }, { "ID", "id" }, { .title = NULL },
};

static const char *const key_made[] = { "id", "key", NULL };
static const char *const key_imported[] = { "id", "last4", "app_id", "app", NULL };
static const char *const provider_made[] = { "provider", "note", NULL };
static const char *const app_made[] = { "app_id", "sandbox", NULL };
static const char *const agent_made[] = { "name", "sandbox", NULL };

#define APPROVAL_IDS .ids = { "/api/approvals", "approvals", "id" }
#define TASK_IDS .ids = { "/api/tasks", "tasks", "uuid" }
#define KEY_IDS .ids = { "/api/keys", "keys", "id" }
#define ACTIVITY_IDS .ids = { "/activities", "data", "id" }

const struct command commands[] = {
    { .words = "serve", .options = serve_options, .run = run_serve, .summary = "Run the service until SIGTERM or Ctrl-C",
      .details = "The first line on standard output says where it listens; the log goes to standard error.\n"
                 "Settings, weakest first: default, file, environment (HEARTH_<KEY>), database (hearth settings set), flags." },

    { .words = "service install", .options = service_options, .is_json = true, .run = run_service_install,
      .summary = "Have the service start by itself, and start it now",
      .details = "As a systemd user unit, where a user manager answers; else by an autostart entry of the desktop.\n"
                 "The unit runs this program on this data folder. Files that others made or changed are kept." },
    { .words = "service start", .is_json = true, .run = run_service_start, .summary = "Start the installed service" },
    { .words = "service stop", .is_json = true, .run = run_service_stop, .summary = "Stop the service that runs on the data folder",
      .details = "Also one that `hearth serve` runs in a terminal. It starts again with the next session, unless it is uninstalled." },
    { .words = "service status", .is_json = true, .run = run_service_status,
      .summary = "Show how the service is installed, whether it runs, since when and where its log is",
      .details = "Exit code 3 when it does not run." },
    { .words = "service uninstall", .options = service_options, .is_json = true, .run = run_service_uninstall,
      .summary = "Stop the service and remove what `service install` wrote",
      .details = "Exit code 1 when a file was kept because a person changed it, or because it is of another data folder." },

    { .words = "status", .is_json = true, .run = run_status, .summary = "Show the service, models, apps, what waits for you and the last failures",
      .details = "Exit code 1 when no service runs." },

    { .words = "chat", .args = "[TEXT]...", .n_args_max = CLI_MAX_ARGS, .options = chat_options, .is_json = true, .needs_service = true, .run = run_chat,
      .summary = "Ask a model or an agent; without TEXT, hold a conversation",
      .details = "A text that is piped into standard input follows after TEXT, or is the question: `cat x | hearth chat summarise`.\n"
                 "In a conversation Ctrl-C cancels the answer that is coming; a second one, or one at the prompt, ends.\n"
                 "What an agent does is shown on standard error; its tools that need your approval ask in the terminal." },
    { .words = "say", .args = "[TEXT]...", .n_args_max = CLI_MAX_ARGS, .options = say_options, .needs_service = true, .run = run_say,
      .summary = "Speak a text aloud, or into a file",
      .details = "A text that is piped into standard input follows after TEXT, or is the text: `hearth say < letter.md`. It is read as Markdown.\n"
                 "Sound is played by aplay (Debian: alsa-utils), sentence by sentence; without a sound card, --out saves the audio." },
    { .words = "listen", .options = listen_options, .is_json = true, .needs_service = true, .run = run_listen,
      .summary = "Print what is said into the microphone",
      .details = "Listens until nobody has spoken for a moment (the setting speech.silence_ms), or for --timeout seconds. Ctrl-C ends it.\n"
                 "Exit code 1 when nothing was heard, or there is no microphone; the setting speech.microphone names another one." },
    { .words = "embed", .args = "[TEXT]...", .n_args_max = CLI_MAX_ARGS, .options = model_options, .is_json = true, .run = run_embed,
      .summary = "Print the vectors of texts, one a line", .details = "Without TEXT, standard input is the text." },
    { .words = "search", .args = "TEXT", .n_args_min = 1, .n_args_max = 1, .options = search_options, .is_json = true, .run = run_search, .method = HTTP_POST,
      .path = "/sdk/llm/vectors/query", .body = body_search, .list = "results", .columns = search_columns, .empty = "Nothing was found.",
      .summary = "Search the vectors that an app or a developer key has stored", .details = "--app or --key says whose. TEXT is embedded with the model of the stored vectors, and its words count as well." },

    { .words = "key new", .makes_folder = true, .options = key_new_options, .is_json = true, .method = HTTP_POST, .path = "/api/keys", .body = body_key_new,
      .made = key_made, .done = "{key}", .summary = "Make a developer key and print it, this one time" },
    { .words = "key import", .args = "APP", .n_args_min = 1, .n_args_max = 1, .options = key_new_options, .is_json = true, .run = run_key_import,
      .made = key_imported, .summary = "Tie a key that was made elsewhere to one app",
      .details = "APP is an app's id or name. The key is read from standard input: 16 to 256 visible characters, 8 different ones at least.\n"
                 "Its caller is that app, with what that app was granted and nothing else. Only its hash is kept. How hard the key is to\n"
                 "guess nobody can tell: whoever knows it is that app here. A key of this service loses its other rights by it." },
    { .words = "key list", .is_json = true, .method = HTTP_GET, .path = "/api/keys", .list = "keys", .columns = key_columns,
      .empty = "There are no developer keys; `hearth key new` makes one.", .summary = "List the developer keys, revoked ones too" },
    { .words = "key revoke", .args = "ID", .n_args_min = 1, .n_args_max = 1, .method = HTTP_DELETE, .path = "/api/keys/{0}", KEY_IDS,
      .done = "The key {0} is revoked.", .summary = "Revoke a developer key, at once" },

    { .words = "app new", .args = "NAME", .n_args_min = 1, .n_args_max = 1, .options = app_new_options, .is_json = true, .run = run_app_new,
      .summary = "Write the folder of a new app that runs: manifest, agent, tests",
      .details = "It uses only what the language brings: Node 18 or later, Python 3, or bash and curl. NAME becomes the app's name: 1 to 64\n"
                 "letters of ASCII, digits, - and _. Needs no service and registers nothing; the next commands are printed." },
    { .words = "app add", .makes_folder = true, .args = "FILE.json|FOLDER", .n_args_min = 1, .n_args_max = 1, .is_json = true, .run = run_app_add, .method = HTTP_POST, .path = "/api/apps",
      .is_body_file = true, .made = app_made, .done = "The app {app_id} is registered: it {sandbox}.",
      .summary = "Register a Local App, or replace one of the same id or name",
      .details = "FILE.json is its configuration (docs/local-apps.md); - reads it from standard input.\n"
                 "FOLDER stands for its app.json; its agent.json, when there is one, is registered first.\n"
                 "When the app is refused, the agent stays as it was.\n"
                 "A relative working_dir is meant from the file's own folder. Nothing is started." },
    { .words = "app list", .is_json = true, .method = HTTP_GET, .path = "/api/apps", .list = "apps", .columns = app_columns,
      .empty = "No app is registered; `hearth app add FILE.json` registers one.", .summary = "List the Local Apps and how they are" },
    { .words = "app show", .args = "APP", .n_args_min = 1, .n_args_max = 1, .is_json = true, .run = run_app_show, .summary = "Show an app's configuration and status", .details = "APP is its id or its name." },
    { .words = "app start", .args = "APP", .n_args_min = 1, .n_args_max = 1, .needs_service = true, .method = HTTP_POST,
      .path = "/api/apps/{0}/start", .done = "{0} is started.", .summary = "Start an app" },
    { .words = "app stop", .args = "APP", .n_args_min = 1, .n_args_max = 1, .needs_service = true, .method = HTTP_POST,
      .path = "/api/apps/{0}/stop", .done = "{0} is stopped.", .summary = "Stop an app and wait for its end" },
    { .words = "app restart", .args = "APP", .n_args_min = 1, .n_args_max = 1, .needs_service = true, .method = HTTP_POST,
      .path = "/api/apps/{0}/restart", .done = "{0} is restarted.", .summary = "Stop an app, then start it" },
    { .words = "app logs", .args = "APP", .n_args_min = 1, .n_args_max = 1, .options = logs_options, .is_json = true, .needs_service = true,
      .run = run_app_logs, .summary = "Print what an app has written" },
    { .words = "app open", .args = "APP", .n_args_min = 1, .n_args_max = 1, .is_json = true, .needs_service = true, .run = run_app_open,
      .summary = "Print where an app shows itself, and open it", .details = "The address is config.home_url of the app's configuration." },
    { .words = "app secret", .args = "APP", .n_args_min = 1, .n_args_max = 1, .is_json = true, .method = HTTP_GET, .path = "/api/apps/{0}/webhook-secret",
      .done = "{secret}", .summary = "Print the secret that signs Hearth's requests to an app in Custom Mode", .details = "An app that Hearth starts finds it in SVC_WEBHOOK_SECRET; one that runs by itself is given it once." },
    { .words = "app remove", .args = "APP", .n_args_min = 1, .n_args_max = 1, .options = app_remove_options, .method = HTTP_DELETE,
      .path = "/api/apps/{0}", .query = "with_data={--with-data}", .done = "{0} is removed.",
      .summary = "Stop an app and forget it with its permissions" },

    { .words = "permission list", .has_table = true, .args = "[APP]", .n_args_max = 1, .is_json = true, .run = run_permission_list,
      .summary = "Show grants, denials and what waits for an answer" },
    { .words = "permission names", .is_json = true, .method = HTTP_GET, .path = "/api/permissions/known", .list = "permissions",
      .columns = permission_columns, .empty = "", .summary = "List every permission that an app may ask for" },
    { .words = "permission grant", .args = "APP [PERMISSION]...", .n_args_min = 1, .n_args_max = CLI_MAX_ARGS, .options = grant_options,
      .run = run_permission_decide, .summary = "Let an app use permissions, always unless said otherwise" },
    { .words = "permission deny", .args = "APP PERMISSION...", .n_args_min = 2, .n_args_max = CLI_MAX_ARGS, .run = run_permission_decide,
      .summary = "Refuse an app permissions" },
    { .words = "permission revoke", .args = "APP PERMISSION", .n_args_min = 2, .n_args_max = 2, .run = run_permission_revoke,
      .done = "The decision about {1} of {0} is taken back.", .summary = "Take a decision back, at once" },
    { .words = "permission reset", .args = "APP", .n_args_min = 1, .n_args_max = 1, .run = run_permission_reset,
      .done = "Every decision about {0} is forgotten.", .summary = "Forget every decision about an app" },
    { .words = "permission watch", .needs_service = true, .run = run_permission_watch,
      .summary = "Ask in this terminal as apps ask for permissions" },

    { .words = "approval list", .is_json = true, .run = run_approval_list,
      .summary = "Show what agents wait for: calls of tools, with their arguments, and questions" },
    { .words = "approval allow", .args = "ID", .n_args_min = 1, .n_args_max = 1, APPROVAL_IDS, .options = approval_allow_options, .run = run_approval_decide,
      .done = "Allowed.", .summary = "Allow a call, or answer a question" },
    { .words = "approval deny", .args = "ID", .n_args_min = 1, .n_args_max = 1, APPROVAL_IDS, .options = approval_deny_options, .run = run_approval_decide,
      .done = "Denied.", .summary = "Deny a call, or decline a question; the model is told" },
    { .words = "approval watch", .needs_service = true, .run = run_approval_watch,
      .summary = "Ask in this terminal as agents ask" },
    { .words = "approval rules", .is_json = true, .method = HTTP_GET, .path = "/api/approvals/rules", .list = "rules", .columns = approval_rule_columns,
      .empty = "No decision is kept.", .summary = "List what was decided for all later calls of a tool" },
    { .words = "approval set", .args = "AGENT TOOL always|never", .n_args_min = 3, .n_args_max = 3, .method = HTTP_POST, .path = "/api/approvals/rules",
      .body = body_approval_rule, .done = "{0} calls {1}: {2}.", .summary = "Decide about all calls of a tool by an agent before it asks",
      .details = "TOOL is SERVER/TOOL, or builtin/TOOL." },
    { .words = "approval forget", .args = "AGENT TOOL", .n_args_min = 2, .n_args_max = 2, .method = HTTP_POST, .path = "/api/approvals/rules/forget",
      .body = body_approval_rule, .done = "The decision about {1} of {0} is taken back.", .summary = "Take such a decision back: the person is asked again",
      .details = "TOOL is SERVER/TOOL, or builtin/TOOL." },

    { .words = "provider add", .makes_folder = true, .args = "ID", .n_args_min = 1, .n_args_max = 1, .options = provider_add_options, .is_json = true,
      .run = run_provider_add, .body = body_provider_add, .made = provider_made, .summary = "Add a provider of models or of speech, or replace the one of that name",
      .details = "ID is one of `hearth provider presets`; generic-openai is any service that speaks OpenAI's protocol;\n"
                 "stand-in needs nothing and is no language model: it repeats what you say, for first steps and for tests of apps.\n"
                 "Keys and headers are sealed in the data folder and never shown again. It counts at once, before one of that name in the environment." },
    { .words = "provider list", .has_table = true, .is_json = true, .run = run_provider_list, .summary = "List the configured providers and what is asked by default" },
    { .words = "provider presets", .is_json = true, .method = HTTP_GET, .path = "/api/providers/presets", .list = "presets",
      .columns = preset_columns, .empty = "", .summary = "List every provider that is known by name" },
    { .words = "provider test", .args = "NAME", .n_args_min = 1, .n_args_max = 1, .options = provider_test_options, .is_json = true,
      .run = run_provider_test, .body = body_provider_test, .summary = "Make one small real call and say what came of it",
      .details = "Costs a few tokens. Exit code 1 when it does not work." },
    { .words = "provider default", .args = "[NAME]", .n_args_max = 1, .options = provider_default_options, .is_json = true,
      .run = run_provider_default, .body = body_provider_default, .summary = "Choose who is asked when a request names no provider" },
    { .words = "provider accept", .args = "NAME", .n_args_min = 1, .n_args_max = 1, .method = HTTP_POST, .path = "/api/providers/{0}/accept",
      .done = "{0} may be used when it is found on this machine.", .summary = "Let a model server that was found on this machine be used" },
    { .words = "provider facts", .is_json = true, .method = HTTP_GET, .path = "/api/models/facts", .list = "facts", .columns = provider_fact_columns,
      .empty = "Nothing is learnt about models: no provider has refused tools, images or the length of a conversation.",
      .summary = "List what was learnt about models from refusals",
      .details = "tools: the model gets them by a schema or in words, because it refused them; images: none, it refused them; window: the tokens that it reads.\n"
                 "Facts count for 30 days. `hearth provider forget` has a model tried anew." },
    { .words = "provider forget", .args = "NAME [MODEL]", .n_args_min = 1, .n_args_max = 2, .is_json = true, .method = HTTP_DELETE, .path = "/api/models/facts",
      .query = "provider={0}&model={1}", .done = "Forgotten ({forgotten}); the next turn tries anew.",
      .summary = "Forget what was learnt about a provider's models, or about one" },
    { .words = "provider remove", .args = "NAME", .n_args_min = 1, .n_args_max = 1, .run = run_provider_remove,
      .summary = "Forget a provider and its secrets" },

    { .words = "agent add", .makes_folder = true, .args = "FILE.json", .n_args_min = 1, .n_args_max = 1, .is_json = true, .method = HTTP_POST,
      .path = "/api/agents", .is_body_file = true, .made = agent_made, .done = "The agent {name} is registered: it {sandbox}.",
      .summary = "Register an agent, or replace the one of that name",
      .details = "FILE.json is its definition (docs/agents.md); - reads it from standard input.\n"
                 "A relative working_dir in it is meant from the file's own folder." },
    { .words = "agent list", .is_json = true, .method = HTTP_GET, .path = "/api/agents", .list = "agents", .columns = agent_columns, .empty = "",
      .summary = "List the agents" },
    { .words = "agent show", .args = "NAME", .n_args_min = 1, .n_args_max = 1, .is_json = true, .run = run_agent_show,
      .summary = "Show an agent's definition" },
    { .words = "agent remove", .args = "NAME", .n_args_min = 1, .n_args_max = 1, .options = agent_remove_options, .method = HTTP_DELETE,
      .path = "/api/agents/{0}", .query = "force={--force}", .done = "The agent {0} is removed.", .summary = "Forget an agent" },

    { .words = "task list", .options = task_list_options, .is_json = true, .method = HTTP_GET, .path = "/api/tasks",
      .query = "status={--status}&app={--app}&quarantined={--quarantined}&limit={--limit}", .list = "tasks", .columns = task_columns, .empty = "There are no tasks.",
      .summary = "List tasks, newest first" },
    { .words = "task show", .has_table = true, TASK_IDS, .args = "UUID", .n_args_min = 1, .n_args_max = 1, .is_json = true, .run = run_task_show,
      .summary = "Show a task, its runs and the newest run's log" },
    { .words = "task wait", TASK_IDS, .args = "UUID", .n_args_min = 1, .n_args_max = 1, .options = task_wait_options, .is_json = true, .needs_service = true,
      .run = run_task_wait, .summary = "Wait until a task ends", .details = "Exit code 0 when it is completed; 1 when it failed or was canceled, or the time is over." },
    { .words = "task run", TASK_IDS, .args = "UUID", .n_args_min = 1, .n_args_max = 1, .options = task_run_options, .needs_service = true,
      .method = HTTP_POST, .path = "/api/tasks/{0}/run", .body = body_task_run, .done = "The task {0} is started.",
      .summary = "Start a task that waits for a person" },
    { .words = "task replay", TASK_IDS, .args = "[UUID]", .n_args_max = 1, .options = task_replay_options, .method = HTTP_POST, .run = run_task_replay,
      .path = "/api/tasks/{0}/replay", .body = body_task_run, .done = "The task {0} will be done again.",
      .summary = "Do a failed, canceled or quarantined task again, or all of them" },
    { .words = "task cancel", TASK_IDS, .args = "UUID", .n_args_min = 1, .n_args_max = 1, .options = task_reject_options, .method = HTTP_POST,
      .path = "/api/tasks/{0}/cancel", .body = body_task_reject, .done = "The task {0} is canceled.",
      .summary = "End a task, also while an agent works on it" },
    { .words = "task reject", TASK_IDS, .args = "UUID", .n_args_min = 1, .n_args_max = 1, .options = task_reject_options, .method = HTTP_POST,
      .path = "/api/tasks/{0}/reject", .body = body_task_reject, .done = "The task {0} is rejected.",
      .summary = "Decide that a waiting task is not done" },

    { .words = "activity list", .options = activity_list_options, .is_json = true, .method = HTTP_GET, .path = "/activities",
      .query = "status={--status}&app={--app}&limit={--limit}", .list = "data", .columns = activity_columns, .empty = "There are no activities.",
      .summary = "List activities of all apps, newest first" },
    { .words = "activity show", ACTIVITY_IDS,
      .args = "ID",
      .n_args_min = 1,
      .n_args_max = 1,
      .is_json = true,
      .list = "data",
      .run = run_activity_show,
      .summary = "Show an activity: what it is about, and what came of it" },
    { .words = "activity add", .args = "FILE.json", .n_args_min = 1, .n_args_max = 1, .options = activity_add_options, .is_json = true,
      .run = run_activity_add, .summary = "Insert an activity and print its id",
      .details = "FILE.json is its raw_data, an object; - reads it from standard input. Without --app it is no app's, and nobody works on it.\n"
                 "With --wait the exit code is 1 when it failed or the time is over." },
    { .words = "activity change", ACTIVITY_IDS, .args = "ID", .n_args_min = 1, .n_args_max = 1, .options = activity_change_options, .method = HTTP_PATCH,
      .path = "/activities/{0}", .body = body_activity_change, .done = "The activity {0} is changed.", .summary = "Change an activity's status or error" },
    { .words = "activity remove", ACTIVITY_IDS, .args = "ID", .n_args_min = 1, .n_args_max = 1, .method = HTTP_DELETE, .path = "/activities/{0}",
      .done = "The activity {0} is removed.", .summary = "Remove an activity" },

    { .words = "workspace list", .is_json = true, .method = HTTP_GET, .path = "/workspaces", .list = "workspaces", .columns = workspace_columns,
      .empty = "There are no workspaces; `hearth workspace add NAME` makes one.", .summary = "List the workspaces" },
    { .words = "workspace add", .makes_folder = true, .args = "NAME", .n_args_min = 1, .n_args_max = 1, .options = workspace_add_options, .is_json = true, .method = HTTP_POST,
      .path = "/api/workspaces", .body = body_workspace_add, .done = "The workspace {0} is made.", .summary = "Make a workspace" },
    { .words = "thread list", .args = "WORKSPACE", .n_args_min = 1, .n_args_max = 1, .options = thread_list_options, .is_json = true, .method = HTTP_GET,
      .path = "/workspaces/{0}/threads", .query = "limit={--limit}", .list = "threads", .columns = thread_columns,
      .empty = "There are no threads in this workspace; `hearth thread add WORKSPACE NAME` makes one.",
      .summary = "List the threads of a workspace, newest first", .details = "WORKSPACE is its slug." },
    { .words = "thread add", .args = "WORKSPACE NAME", .n_args_min = 2, .n_args_max = 2, .options = thread_add_options, .is_json = true, .method = HTTP_POST,
      .path = "/api/workspaces/{0}/threads", .body = body_thread_add, .done = "The thread {1} is made.", .summary = "Make a thread in a workspace",
      .details = "WORKSPACE is its slug." },

    { .words = "calendar list", .options = calendar_options, .is_json = true, .method = HTTP_GET, .path = "/api/calendar",
      .query = "from={--from}&to={--to}&limit={--limit}", .list = "events", .columns = calendar_columns, .empty = "The calendar is empty.",
      .summary = "List calendar events: the work of the agents and what waits for you" },

    { .words = "usage", .has_table = true, .options = usage_options, .is_json = true, .query = "days={--days}&group={--by}&app={--app}&key={--key}"
      "&provider={--provider}&model={--model}&limit={--limit}", .run = run_usage, .summary = "Show what was asked of models: requests and tokens" },
    { .words = "limit list", .is_json = true, .method = HTTP_GET, .path = "/api/limits", .list = "limits", .columns = limit_columns,
      .empty = "No app and no key has limits of its own; the settings limits.* hold for all.",
      .summary = "List the apps and developer keys that have limits of their own", .details = "-: as the setting limits.* says; 0: any number." },
    { .words = "limit show", .args = "app|key ID", .n_args_min = 2, .n_args_max = 2, .is_json = true, .run = run_limit_show, .list = "limits",
      .summary = "Show the limits of an app or developer key and what it has used", .details = "An app may be named instead of its id." },
    { .words = "limit set", .args = "app|key ID", .n_args_min = 2, .n_args_max = 2, .options = limit_options, .body = body_limit_set,
      .run = run_limit_set, .done = "The limits of the {0} {1} are in force.",
      .summary = "Limit what an app or developer key may ask of models", .details = "Limits that are not given are as the settings limits.* say." },
    { .words = "limit clear", .args = "app|key ID", .n_args_min = 2, .n_args_max = 2, .run = run_limit_clear,
      .done = "The settings decide about the {0} {1} again.", .summary = "Take the own limits of an app or developer key back" },

    { .words = "settings", .has_table = true, .is_repair = true, .args = "[KEY]", .n_args_max = 1, .is_json = true, .run = run_settings,
      .summary = "Show settings: value and where it comes from" },
    { .words = "settings set", .makes_folder = true, .is_repair = true, .args = "KEY VALUE", .n_args_min = 2, .n_args_max = 2, .method = HTTP_PUT, .path = "/api/settings/{0}",
      .body = body_settings_set, .run = run_settings_set, .summary = "Keep a setting in the database" },
    { .words = "settings unset", .is_repair = true, .args = "KEY", .n_args_min = 1, .n_args_max = 1, .method = HTTP_DELETE, .path = "/api/settings/{0}",
      .done = "{0} is no longer kept in the database.", .summary = "Remove a setting from the database" },

    { .words = "audit list", .options = audit_list_options, .is_json = true, .method = HTTP_GET, .path = "/api/audit",
      .query = "limit={--limit}", .list = "entries", .columns = audit_columns, .empty = "The audit log is empty.",
      .summary = "List who changed whose access, newest first" },
    { .words = "audit verify", .is_json = true, .run = run_audit_verify, .summary = "Check that the audit log is whole and unchanged" },

    { .words = "open", .is_json = true, .needs_service = true, .run = run_open,
      .summary = "Print a one-time link that signs a browser in, and open it" },
    { .words = "confirm", .args = "CODE", .n_args_min = 1, .n_args_max = 1, .is_json = true, .needs_service = true, .method = HTTP_POST,
      .path = "/api/session/confirm", .body = body_confirm, .done = "Confirmed for five minutes. The browser asked for this: {what}.",
      .summary = "Confirm that a browser may change what runs on this machine",
      .details = "A page that is refused with CONFIRMATION_REQUIRED shows the code. Confirm only what you asked for yourself." },
    { .words = "doctor", .is_repair = true, .is_json = true, .run = run_doctor, .summary = "Check everything and say what to do" },

    { .words = "backup", .is_repair = true, .args = "FILE", .n_args_min = 1, .n_args_max = 1, .is_json = true, .run = run_backup, .summary = "Copy databases, settings file and keys into one archive", .details = "May be done while the service runs. The archive opens what is sealed: keep it as safe as the data folder." },
    { .words = "restore", .args = "FILE", .n_args_min = 1, .n_args_max = 1, .options = restore_options, .run = run_restore, .summary = "Put a backup in the place of the data folder's databases", .details = "Refused while a service runs. What was there is kept beside it as <name>.before-restore-<time>." },
    { .words = "upgrade", .options = upgrade_options, .is_json = true, .run = run_upgrade,
      .summary = "Say how to upgrade, or what this program would change in the data folder",
      .details = "--check names databases whose schema changes at the next start or is newer than this program, stored settings that it cannot use,\n"
                 "the space that copies need, and whether the running service is another program. Exit code 0: nothing is to be done; 1: something is." },
    { .words = "routes", .is_json = true, .method = HTTP_GET, .path = "/api/routes", .list = "routes", .columns = route_columns,
      .empty = "", .summary = "List every route of the HTTP API" },
    { .words = "openapi", .run = run_openapi, .summary = "Print the OpenAPI description of the HTTP API" },

    { .words = "help", .args = "[COMMAND]", .n_args_max = 2, .run = run_help, .summary = "Say what there is, or what a command does" },
    { .words = "man", .run = run_man, .summary = "Print the manual page", .details = "hearth man | man -l -" },
    { .words = "completion", .args = "SHELL", .n_args_min = 1, .n_args_max = 1, .run = run_completion,
      .summary = "Print a completion script", .details = "SHELL is bash, zsh or fish: source <(hearth completion bash). The Debian package installs all three." },
    { .words = "complete", .is_hidden = true, .args = "[WORD]...", .n_args_max = CLI_MAX_ARGS, .run = run_complete,
      .summary = "Print what may stand for the last WORD, for the completion of a shell" },
    { .words = "version", .run = run_version, .summary = "Print the version" },
    { .words = NULL, .more = commands_mcp },
};
