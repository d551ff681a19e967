/* Settings: one table of rows (settings_rules[]), five layers: default < file < environment < database < flags.
 *
 * Loaded by main; the store's rows may follow later (settings_apply_rows()). Values may change at run time through
 * settings_set(); getters are for any thread and always return a consistent value. An invalid value is never accepted.
 *
 *     struct settings_sources from = { .config_path = path, .env = environ, .flags = flags, .n_flags = n };
 *     r = settings_load(&from, &settings, e);
 *     loop_timer_set(t, settings_ms(settings, SETTING_TASKS_HEARTBEAT_S));
 */
#pragma once

#include "base/arena.h"
#include "base/json_write.h"
#include "store/tables/settings_rows.h"

enum setting_id {
    SETTING_HTTP_LISTEN,
    SETTING_HTTP_ALLOW_REMOTE,
    SETTING_HTTP_ALLOWED_HOSTS,
    SETTING_HTTP_ALLOWED_ORIGINS,
    SETTING_HTTP_HEADER_TIMEOUT_S,
    SETTING_HTTP_BODY_TIMEOUT_S,
    SETTING_HTTP_IDLE_TIMEOUT_S,
    SETTING_HTTP_MAX_CONNECTIONS,
    SETTING_HTTP_UI_FOLDER,
    SETTING_IDENTITY_DIALECT,
    SETTING_IDENTITY_TOKEN,
    SETTING_IDENTITY_ABBR,
    SETTING_IDENTITY_MACHINE_ID,
    SETTING_IDENTITY_USER_EMAIL,
    SETTING_IDENTITY_PEERS,
    SETTING_IDENTITY_REQUIRE_SECRET,
    SETTING_TASKS_HEARTBEAT_S,
    SETTING_TASKS_STALE_AFTER_S,
    SETTING_TASKS_SWEEP_S,
    SETTING_TASKS_RECOVERY_ROWS,
    SETTING_TASKS_MAX_MACHINES,
    SETTING_TASKS_PRESENCE_S,
    SETTING_BACKEND_KIND,
    SETTING_BACKEND_FILE,
    SETTING_BACKEND_POLL_MS,
    SETTING_FACE_ENABLED,
    SETTING_FACE_SIGNUP,
    SETTING_BACKEND_URL,
    SETTING_BACKEND_CONNECTIONS,
    SETTING_BACKEND_PROJECT,
    SETTING_BACKEND_PROJECT_KEY,
    SETTING_BACKEND_ACCOUNT_API,
    SETTING_BACKEND_ACCOUNT_PAGE,
    SETTING_BACKEND_CALL_S,
    SETTING_BACKEND_EVENTS,
    SETTING_BACKEND_EVENTS_URL,
    SETTING_BACKEND_LOCK_S,
    SETTING_BACKEND_WEBHOOK_S,
    SETTING_BACKEND_WEBHOOK_TRIES,
    SETTING_BACKEND_WEBHOOK_PAUSE_S,
    SETTING_APPROVALS_WAIT_S,
    SETTING_CONSENT_WAIT_S,
    SETTING_APPS_RESTART_LIMIT,
    SETTING_APPS_RESTART_BACKOFF_MS,
    SETTING_APPS_PORT_MIN,
    SETTING_APPS_PORT_MAX,
    SETTING_SANDBOX_DEFAULT,
    SETTING_SANDBOX_BWRAP,
    SETTING_EMBED_PROVIDER,
    SETTING_EMBED_MODEL,
    SETTING_EMBED_QUERY_PREFIX,
    SETTING_EMBED_DOCUMENT_PREFIX,
    SETTING_SPEECH_LANGUAGE,
    SETTING_SPEECH_VOICES,
    SETTING_SPEECH_WORKERS,
    SETTING_SPEECH_FOLDER,
    SETTING_SPEECH_IDLE_S,
    SETTING_SPEECH_CACHE_MB,
    SETTING_SPEECH_TIMEOUT_S,
    SETTING_SPEECH_PIPER,
    SETTING_SPEECH_PIPER_VOICES,
    SETTING_SPEECH_SHERPA,
    SETTING_SPEECH_SHERPA_VOICES,
    SETTING_SPEECH_MICROPHONE,
    SETTING_SPEECH_SILENCE_MS,
    SETTING_VECTORS_LIST_ABOVE_ROWS,
    SETTING_VECTORS_TARGET_RECALL_PERCENT,
    SETTING_VECTORS_SKETCH_DEVIATIONS,
    SETTING_VECTORS_MEMORY_MB,
    SETTING_VECTORS_STORE_TIMEOUT_S,
    SETTING_NET_PRIVATE_HOSTS,
    SETTING_SHUTDOWN_DEADLINE_S,
    SETTING_LLM_DEFAULT_PROVIDER,
    SETTING_LLM_DEFAULT_MODEL,
    SETTING_LLM_FALLBACKS,
    SETTING_LLM_CONNECT_S,
    SETTING_LLM_FIRST_BYTE_S,
    SETTING_LLM_IDLE_S,
    SETTING_LLM_TOTAL_S,
    SETTING_LLM_RETRIES,
    SETTING_LLM_RETRY_AFTER_MAX_S,
    SETTING_LLM_REST_AFTER,
    SETTING_LLM_MODELS_TTL_S,
    SETTING_LLM_RESUME_S,
    SETTING_LLM_RESPONSES_KEEP_S,
    SETTING_MCP_SESSION_IDLE_S,
    SETTING_TOOLS_FOLDER_MB,
    SETTING_TOOLS_RUN_COMMAND,
    SETTING_MCP_IDLE_STOP_S,
    SETTING_MCP_START_S,
    SETTING_MCP_PING_S,
    SETTING_MCP_CALL_S,
    SETTING_LIMITS_REQUESTS_A_MINUTE,
    SETTING_LIMITS_TOKENS_A_MINUTE,
    SETTING_LIMITS_REQUESTS_A_DAY,
    SETTING_LIMITS_TOKENS_A_DAY,
    SETTING_LIMITS_CHARACTERS_A_MINUTE,
    SETTING_LIMITS_CHARACTERS_A_DAY,
    SETTING_LIMITS_CONNECTIONS,
    SETTING_LIMITS_OPEN_REQUESTS,
    SETTING_LIMITS_LONG_REQUESTS,
    SETTING_LIMITS_SOCKETS,
    SETTING_LIMITS_SUBSCRIPTIONS,
    SETTING_LIMITS_STREAMS,
    SETTING_LIMITS_BODY_MB,
    SETTING_LIMITS_REPLIES_MB,
    SETTING_LIMITS_REQUEST_MEMORY_MB,
    SETTING_LIMITS_MEMORY_MB,
    SETTING_LIMITS_CHILDREN,
    SETTING_LIMITS_DISK_MB,
    SETTING_LIMITS_VECTORS_MB,
    SETTING_USAGE_KEEP_DAYS,
    SETTING_TASKS_KEEP_DAYS,
    SETTING_TASKS_KEEP_LOGS_DAYS,
    SETTING_CALENDAR_KEEP_DAYS,
    SETTING_AGENTS_SESSION_IDLE_S,
    SETTING_AGENTS_WINDOW_TOKENS,
    SETTING_AGENTS_WINDOWS,
    SETTING_AGENTS_KEEP_DAYS,
    SETTING_AUDIT_KEEP_DAYS,
    SETTING_WEBHOOKS_KEEP_DAYS,
    SETTING_LLM_FIND_LOCAL,
    SETTING_LLM_FIND_LOCAL_S,
    SETTING_LLM_FIND_LOCAL_WAIT_S,
    SETTING_LLM_LOCAL_PORTS,
    SETTING_LLM_LOCAL_ACCEPTED,
    SETTING_LLM_MODELS_DIR,
    SETTING_LLM_OLLAMA_OPEN,
    SETTING_LLAMACPP_SERVER,
    SETTING_LLAMACPP_ARGS,
    SETTING_LLAMACPP_CONTEXT,
    SETTING_LLAMACPP_PROCESSES,
    SETTING_LLAMACPP_MEMORY_MB,
    SETTING_LLAMACPP_START_S,
    SETTING_LLAMACPP_IDLE_S,
    SETTING_LOG_LEVEL,
    SETTING_LOG_FORMAT,
    N_SETTINGS,
};

enum setting_type {
    SETTING_BOOL, /* true, false, 1, 0, yes, no, on, off */
    SETTING_INT,
    SETTING_SECONDS, /* fractions allowed */
    SETTING_STRING,
    SETTING_ENUM,
    SETTING_LIST, /* strings separated by commas */
};

enum setting_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENV, ORIGIN_DATABASE, ORIGIN_FLAG, N_ORIGINS };

struct setting_rule {
    const char *key; /* "tasks.heartbeat_s"; environment: HEARTH_TASKS_HEARTBEAT_S */
    enum setting_type type;
    double min, max;           /* value; length of strings and lists in bytes */
    const char *def;           /* as written in a file */
    const char *const *one_of; /* ENUM */
    /* Optional additional check of one value (one element of a LIST): returns NULL, or the violated rule. */
    const char *(*check)(const char *value);
    bool is_secret;     /* shown as **** */
    bool may_be_secret; /* a refused value is not repeated: somebody may have mixed up two keys */
    bool needs_restart;
    const char *help;
};

extern const struct setting_rule settings_rules[N_SETTINGS];

struct settings;

struct settings_sources {
    const char *config_path;        /* NULL: none; a missing file is -ENOENT */
    const char *const *env;         /* NULL-ended "NAME=value"; NULL: none */
    const struct setting_row *rows; /* of the database */
    size_t n_rows;
    const char *const *flags; /* "key=value" */
    size_t n_flags;
};

/* -EINVAL BAD_SETTING for an unknown key or a bad value: the text names key, rule, and file:line, variable or flag.
 * Also for an unknown HEARTH_ variable whose first word is that of a setting. An empty variable counts as not set. */
int settings_load(const struct settings_sources *from, struct settings **ret, struct err *e) MUST_CHECK;
/* Sets the database layer when the store was opened after the load. Usable rows apply; -EINVAL BAD_SETTING when a row
 * is unusable: a repair command continues with the others. */
int settings_apply_rows(struct settings *s, const struct setting_row *rows, size_t n, struct err *e) MUST_CHECK;
/* Values that cannot be used, each as a sentence; of a stored one, it says how to remove it. NULL after the last. */
const char *settings_fault(const struct settings *s, size_t i);
/* For a value of another layer that failed when it was used, before other threads know the settings. */
void settings_note_fault(struct settings *s, const char *why);
/* Ignores, for the rest of this process, a stored value that failed when it was used. */
void settings_drop_stored(struct settings *s, enum setting_id id, const char *why);
/* Reads the file layer again; path NULL makes it empty. -EINVAL BAD_SETTING, without any change, when a value is wrong
 * or violates a rule between settings. */
int settings_reload_file(struct settings *s, const char *path, struct err *e) MUST_CHECK;
/* Applies log.level and log.format. */
void settings_apply_log(struct settings *s);
/* The service starts with the loaded values: from now on getters keep the values of settings that need a restart. */
void settings_begin(struct settings *s);
struct settings *settings_free(struct settings *s);
void settings_freep(struct settings **s);

bool settings_bool(struct settings *s, enum setting_id id);
int64_t settings_int(struct settings *s, enum setting_id id);
int64_t settings_ms(struct settings *s, enum setting_id id); /* of SECONDS; at least 1 unless the value is 0 */
char *settings_string(struct settings *s, struct arena *a, enum setting_id id); /* STRING and ENUM; never NULL */
/* Elements of a LIST, trimmed, without empty ones; NULL-ended. */
const char *const *settings_list(struct settings *s, struct arena *a, enum setting_id id, size_t *ret_n);

/* Changes the database layer (value NULL: removes the value there). Takes effect immediately unless a flag overrides it
 * or the setting needs a restart. The caller stores the row (store_settings_set()) before this call, after
 * settings_check() returned 0. */
int settings_set(struct settings *s, const char *key, const char *value, struct err *e) MUST_CHECK;

/* Returns the result of settings_set() without changing anything. */
int settings_check(struct settings *s, const char *key, const char *value, struct err *e) MUST_CHECK;

bool settings_find(const char *key, enum setting_id *ret);
/* Sets r and code; the text begins with start ("There is no setting") and names the nearest known key. Returns r. */
int settings_refuse_key(const char *start, const char *key, int r, const char *code, struct err *e);
enum setting_origin settings_origin(struct settings *s, enum setting_id id);
const char *settings_origin_name(enum setting_origin o); /* default, file, environment, database, flag */
/* The value as text, **** for a secret; for a setting that needs a restart, the value after the restart. */
char *settings_show(struct settings *s, struct arena *a, enum setting_id id);
/* Write one setting as an object, or all as an array, of {key, value, origin, default, type, needs_restart, help}; name
 * as in json_write.h. */
void settings_write_one(struct settings *s, enum setting_id id, struct json_writer *w, const char *name);
void settings_write_json(struct settings *s, struct json_writer *w, const char *name);
