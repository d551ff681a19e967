#include "settings/rules.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "net/url.h"
#include "settings/dialect.h"

#include <arpa/inet.h>

/* --- checks of single values --- */

static bool is_made_of(const char *text, const char *allowed)
{
    return text[strspn(text, allowed)] == '\0';
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static const char *check_word(const char *value)
{
    return *value == '\0' || dialect_is_word(value)
               ? NULL
               : "must be a lower-case word of letters, digits and _ that begins with a letter";
}

static const char *check_machine_id(const char *value)
{
    return is_made_of(value, LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "-_.")
               ? NULL
               : "must have letters, digits, -, _ and . only";
}

static const char *check_host(const char *value)
{
    return is_made_of(value, LOWER DIGITS "-.:[]") ? NULL
                                                   : "must be host names in lower case, with :port where one is needed";
}

static const char *check_private_host(const char *value)
{
    bool ok = strcmp(value, "*") == 0 || is_made_of(value, LOWER DIGITS "-_.:[]");

    return ok ? NULL
              : "must be host names in lower case or addresses, each with :port where only that port is meant, or * for all";
}

static const char *check_origin(const char *value)
{
    const char *host = strstr(value, "://");
    bool ok = host && (strncmp(value, "http://", 7) == 0 || strncmp(value, "https://", 8) == 0);

    return ok && host[3] && is_made_of(host + 3, LOWER DIGITS "-.:[]")
               ? NULL
               : "must be origins like https://example.org:8443";
}

/* Keys and tokens go there. */
static const char *check_safe_address(const char *value)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct url url;

    if (!*value)
        return NULL;
    if (value[strcspn(value, "?#")] || url_parse(a, value, &url, NULL) < 0)
        return "must be an address like https://example.org, without a query";
    return url.is_tls || url.is_loopback ? NULL : "must begin with https://, unless it is of this machine";
}

static const char *check_public_key(const char *value)
{
    if (strncmp(value, "sb_secret_", 10) == 0)
        return "must not be a secret key: every app gets it";
    return is_made_of(value, LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "-_.")
               ? NULL
               : "must have letters, digits, -, _ and . only";
}

static const char *check_window(const char *value)
{
    const char *at = strrchr(value, '=');
    long n = at ? strtol(at + 1, NULL, 10) : 0;

    return at && at > value && at[1] && is_made_of(at + 1, DIGITS) && n >= 512 && n <= 1 << 30
               ? NULL
               : "must be models with their tokens like qwen3:8b=40960";
}

#define LANGUAGE LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "-"

static const char *check_language(const char *value)
{
    return is_made_of(value, LANGUAGE) ? NULL : "must be a language like en or de-AT";
}

static const char *check_voice(const char *value)
{
    const char *equals = strchr(value, '='), *slash = equals ? strchr(equals, '/') : NULL;

    return slash && equals > value && slash > equals + 1 && slash[1] &&
                   strspn(value, LANGUAGE) == (size_t)(equals - value)
               ? NULL
               : "must be languages with their voices like de=espeak_local/de";
}

static bool is_port(const char *text)
{
    size_t n = strlen(text);

    return n >= 1 && n <= 5 && is_made_of(text, DIGITS) && strtol(text, NULL, 10) <= 65535;
}

static const char *check_listen(const char *value)
{
    static const char rule[] = "must be addresses with a port, like 127.0.0.1:3001 or [::1]:3001";
    const char *colon = strrchr(value, ':');
    bool is_v6 = value[0] == '[' && colon && colon > value + 1 && colon[-1] == ']';
    char host[INET6_ADDRSTRLEN + 2] = "";
    unsigned char address[sizeof(struct in6_addr)];
    size_t n;

    if (!colon || !is_port(colon + 1))
        return rule;
    n = (size_t)(colon - value) - (is_v6 ? 2 : 0);
    if (n >= sizeof(host))
        return rule;
    memcpy(host, value + (is_v6 ? 1 : 0), n);
    return inet_pton(is_v6 ? AF_INET6 : AF_INET, host, address) == 1 ? NULL : rule;
}

static const char *check_folder(const char *value)
{
    return !*value || *value == '/' ? NULL : "must be a whole path, beginning with /";
}

/* Of llm/local/probe.h. */
static const char *const servers[] = { "ollama", "lmstudio", "llamacpp", "localai", "kokoro", "piper", "whispercpp" };

static const char *check_local_server(const char *value)
{
    for (size_t i = 0; i < ARRAY_SIZE(servers); i++)
        if (strcmp(servers[i], value) == 0)
            return NULL;
    return "must be of ollama, lmstudio, llamacpp, localai, kokoro, piper and whispercpp";
}

static const char *check_local_port(const char *value)
{
    const char *equals = strchr(value, '=');

    for (size_t i = 0; equals && i < ARRAY_SIZE(servers); i++)
        if (strlen(servers[i]) == (size_t)(equals - value) && strncmp(value, servers[i], strlen(servers[i])) == 0 &&
            is_port(equals + 1) && strtol(equals + 1, NULL, 10) > 0)
            return NULL;
    return "must be elements like ollama=11500; the servers are ollama, lmstudio, llamacpp, localai, kokoro, piper and whispercpp";
}

/* Refuses arguments that Hearth sets itself, and those that would open the server to others, fetch files or let a model
 * act on this machine. A * at the end matches any rest. */
static const char *check_llamacpp_arg(const char *value)
{
    static const char *const refused[] = {
        "-m",
        "--model*",
        "-mu",
        "-hf*",
        "--hf-*",
        "--spec-draft-hf*",
        "--mmproj-url",
        "-mmu",
        "-dr",
        "--docker-repo",
        "--rpc",
        "--host",
        "--port",
        "--reuse-port",
        "--api-*",
        "--path",
        "--ssl-*",
        "--cors-*",
        "--tools*",
        "-ag",
        "--agent",
        "--mcp-*",
        "--ui-mcp-*",
        "--webui-mcp-*",
        "--embedding*",
        "--rerank*",
        "-c",
        "--ctx-size",
        "-a",
        "--alias",
        "--log-file",
        "--log-prompts-dir",
        "--slot-save-path",
        "--media-path",
    };

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        size_t n = strcspn(refused[i], "*");

        if (strncmp(value, refused[i], n) == 0 && (refused[i][n] == '*' || value[n] == '\0' || value[n] == '='))
            return "must not have options that name the model, its context or its name, say where llama-server listens and to whom, or let it fetch files "
                   "or run tools";
    }
    return NULL;
}

/* --- the table --- */

static const char *const sandbox_profiles[] = { "none", "standard", "strict", NULL };
static const char *const peer_modes[] = { "launched", "same_user", "any", NULL };
static const char *const backend_event_modes[] = { "auto", "outbox", "logical",
                                                   NULL }; /* of backend/postgres/postgres_events.h */
static const char *const backend_names[] = { "embedded", "postgres", "hosted",
                                             NULL }; /* of backend/backend_providers.c */
static const char *const signup_names[] = { "local", "open", "closed", NULL };
static const char *const log_levels[] = { "error", "warn", "info", "debug", NULL };
static const char *const log_formats[] = { "text", "json", NULL };

/* clang-format off */
const struct setting_rule settings_rules[N_SETTINGS] = {
    [SETTING_HTTP_LISTEN] = { "http.listen", SETTING_LIST, .min = 1, .max = LIMIT_SETTING_BYTES, .def = "127.0.0.1:3001,[::1]:3001",
        .check = check_listen, .needs_restart = true, .help = "Addresses to listen on; port 0 picks a free one." },
    [SETTING_HTTP_ALLOW_REMOTE] = { "http.allow_remote", SETTING_BOOL, .def = "false", .needs_restart = true,
        .help = "Allows http.listen to name addresses that other machines reach." },
    [SETTING_HTTP_ALLOWED_HOSTS] = { "http.allowed_hosts", SETTING_LIST, .max = LIMIT_SETTING_BYTES, .def = "", .check = check_host,
        .needs_restart = true, .help = "Host headers that are accepted besides the loopback names." },
    [SETTING_HTTP_ALLOWED_ORIGINS] = { "http.allowed_origins", SETTING_LIST, .max = LIMIT_SETTING_BYTES, .def = "", .check = check_origin,
        .needs_restart = true, .help = "Origins of web pages that may call the service besides its own." },
    [SETTING_HTTP_HEADER_TIMEOUT_S] = { "http.header_timeout_s", SETTING_SECONDS, .min = 0.1, .max = 600, .def = "10", .needs_restart = true,
        .help = "Time a client has to send a whole request head." },
    [SETTING_HTTP_BODY_TIMEOUT_S] = { "http.body_timeout_s", SETTING_SECONDS, .min = 0.1, .max = 3600, .def = "60", .needs_restart = true,
        .help = "Time a client has to send a whole request body." },
    [SETTING_HTTP_IDLE_TIMEOUT_S] = { "http.idle_timeout_s", SETTING_SECONDS, .min = 0.1, .max = 3600, .def = "75", .needs_restart = true,
        .help = "Time a connection may stay open without a request." },
    [SETTING_HTTP_MAX_CONNECTIONS] = { "http.max_connections", SETTING_INT, .min = 1, .max = LIMIT_CONNECTIONS, .def = "8192",
        .needs_restart = true, .help = "Open connections over TCP; beyond it those at no work give way to new ones, and when all are at work new ones are answered with 503." },
    [SETTING_HTTP_UI_FOLDER] = { "http.ui_folder", SETTING_STRING, .max = 4000, .def = "", .check = check_folder,
        .help = "Folder of a web interface that is served below /ui/, to everyone who reaches this service; empty: none." },

    [SETTING_IDENTITY_DIALECT] = { "identity.dialect", SETTING_ENUM, .def = "svc", .one_of = dialect_names, .needs_restart = true,
        .help = "Whose words clients use: sets identity.token and identity.abbr in one step, unless those are set themselves." },
    [SETTING_IDENTITY_TOKEN] = { "identity.token", SETTING_STRING, .min = 1, .max = DIALECT_WORD_CHARS, .def = "svc", .check = check_word,
        .needs_restart = true, .help = "The product's word in paths, /webhooks/<token>; not set: that of identity.dialect." },
    [SETTING_IDENTITY_ABBR] = { "identity.abbr", SETTING_STRING, .max = 16, .def = "", .check = check_word, .needs_restart = true,
        .help = "The product's word in table and variable names; empty: as identity.token, or that of identity.dialect when identity.token is not set." },
    [SETTING_IDENTITY_MACHINE_ID] = { "identity.machine_id", SETTING_STRING, .max = 64, .def = "", .check = check_machine_id,
        .needs_restart = true, .help = "Name of this machine towards others; empty: one made at the first start." },
    [SETTING_IDENTITY_USER_EMAIL] = { "identity.user_email", SETTING_STRING, .max = 254, .def = "",
        .help = "Told in this machine's presence record." },
    [SETTING_IDENTITY_PEERS] = { "identity.peers", SETTING_ENUM, .one_of = peer_modes, .def = "same_user", .needs_restart = true,
        .help = "Whose programs may use the id of an app or task: those Hearth started, those of its own user, or any." },
    [SETTING_IDENTITY_REQUIRE_SECRET] = { "identity.require_secret", SETTING_BOOL, .def = "false", .needs_restart = true,
        .help = "Takes the id of an app or task only with the secret Hearth gave that program at its start." },

    [SETTING_TASKS_HEARTBEAT_S] = { "tasks.heartbeat_s", SETTING_SECONDS, .min = 0.05, .max = 86400, .def = "120", .needs_restart = true,
        .help = "How often a running task's lease is renewed." },
    [SETTING_TASKS_STALE_AFTER_S] = { "tasks.stale_after_s", SETTING_SECONDS, .min = 0.1, .max = 86400, .def = "300", .needs_restart = true,
        .help = "Age at which a lease that was not renewed is taken back; above tasks.heartbeat_s." },
    [SETTING_TASKS_SWEEP_S] = { "tasks.sweep_s", SETTING_SECONDS, .min = 0.05, .max = 86400, .def = "60", .needs_restart = true,
        .help = "How often tables are searched for stale leases and unnoticed rows." },
    [SETTING_TASKS_RECOVERY_ROWS] = { "tasks.recovery_rows", SETTING_INT, .min = 1, .max = LIMIT_LIST, .def = "50",
        .help = "Newest rows of each table that are taken up at start." },
    [SETTING_TASKS_MAX_MACHINES] = { "tasks.max_machines", SETTING_INT, .min = 1, .max = 100, .def = "3",
        .help = "Machines that may fail a task before it is quarantined." },
    [SETTING_TASKS_PRESENCE_S] = { "tasks.presence_s", SETTING_SECONDS, .min = 0.05, .max = 86400, .def = "30", .needs_restart = true,
        .help = "How often this machine says that it is there." },

    [SETTING_BACKEND_KIND] = { "backend.kind", SETTING_ENUM, .one_of = backend_names, .def = "embedded", .needs_restart = true,
        .help = "What holds the rows and reports their changes." },
    [SETTING_BACKEND_FILE] = { "backend.file", SETTING_STRING, .max = LIMIT_SETTING_BYTES, .def = "", .needs_restart = true,
        .help = "Database file of the embedded backend; empty: backend.db in the data folder." },
    [SETTING_BACKEND_POLL_MS] = { "backend.poll_ms", SETTING_INT, .min = 5, .max = 60000, .def = "100", .needs_restart = true,
        .help = "How often the backend looks for changes by other processes." },
    [SETTING_BACKEND_URL] = { "backend.url", SETTING_STRING, .max = LIMIT_SETTING_BYTES, .def = "", .needs_restart = true,
        .help = "Database of backend.kind postgres, without a password: postgresql://USER@HOST/DATABASE?sslmode=verify-full." },
    [SETTING_BACKEND_CONNECTIONS] = { "backend.connections", SETTING_INT, .min = 1, .max = LIMIT_BACKEND_CONNECTIONS, .def = "8", .needs_restart = true,
        .help = "Most connections to that database at the same time, for statements." },
    [SETTING_BACKEND_PROJECT] = { "backend.project", SETTING_STRING, .max = LIMIT_HOSTED_ADDRESS, .def = "", .check = check_safe_address, .needs_restart = true,
        .help = "Address of the project of backend.kind hosted, https://REF.supabase.co; `hearth backend use` sets it." },
    [SETTING_BACKEND_PROJECT_KEY] = { "backend.project_key", SETTING_STRING, .max = LIMIT_HOSTED_KEY, .def = "", .check = check_public_key, .may_be_secret = true, .needs_restart = true,
        .help = "Publishable key of that project, or its legacy anon key; apps are told it." },
    [SETTING_BACKEND_ACCOUNT_API] = { "backend.account_api", SETTING_STRING, .max = LIMIT_HOSTED_ADDRESS, .def = "https://api.supabase.com", .check = check_safe_address,
        .help = "Address of the hosted service's management API." },
    [SETTING_BACKEND_ACCOUNT_PAGE] = { "backend.account_page", SETTING_STRING, .max = LIMIT_HOSTED_ADDRESS, .def = "https://supabase.com/dashboard", .check = check_safe_address,
        .help = "Address of the hosted service's web pages, where a person logs in." },
    [SETTING_BACKEND_CALL_S] = { "backend.call_s", SETTING_SECONDS, .min = 0.1, .max = 120, .def = "20", .needs_restart = true,
        .help = "How long a call waits for that database, in all." },
    [SETTING_BACKEND_EVENTS] = { "backend.events", SETTING_ENUM, .one_of = backend_event_modes, .def = "auto", .needs_restart = true,
        .help = "How changes of that database are learnt of: from its outbox, from its logical stream, or auto: the stream where it can be had." },
    [SETTING_BACKEND_EVENTS_URL] = { "backend.events_url", SETTING_STRING, .max = LIMIT_SETTING_BYTES, .def = "", .needs_restart = true,
        .help = "The same database without the pooler that backend.url leads through, for its events; empty: backend.url." },
    [SETTING_BACKEND_LOCK_S] = { "backend.lock_s", SETTING_SECONDS, .min = 0.1, .max = 120, .def = "10", .needs_restart = true,
        .help = "How long an app in Custom Mode may take to answer whether a task is locked." },
    [SETTING_BACKEND_WEBHOOK_S] = { "backend.webhook_s", SETTING_SECONDS, .min = 0.1, .max = 600, .def = "30", .needs_restart = true,
        .help = "How long such an app may take to accept the end of a task." },
    [SETTING_BACKEND_WEBHOOK_TRIES] = { "backend.webhook_tries", SETTING_INT, .min = 1, .max = 10000, .def = "300", .needs_restart = true,
        .help = "How often the end of a task is sent to such an app before it waits for a person (`hearth backend deliveries`)." },
    [SETTING_BACKEND_WEBHOOK_PAUSE_S] = { "backend.webhook_pause_s", SETTING_SECONDS, .min = 0.01, .max = 300, .def = "1", .needs_restart = true,
        .help = "Pause before the end of a task is sent again, doubled each time up to 5 minutes." },

    [SETTING_FACE_ENABLED] = { "face.enabled", SETTING_BOOL, .def = "true", .needs_restart = true,
        .help = "Serves the hosted service's protocol (/auth/v1, /realtime/v1) to apps that have a key of `hearth backend keys`." },
    [SETTING_FACE_SIGNUP] = { "face.signup", SETTING_ENUM, .one_of = signup_names, .def = "local",
        .help = "Who may make a user at /auth/v1/signup: programs of this machine, everyone who reaches the port (open), nobody (closed)." },

    [SETTING_APPROVALS_WAIT_S] = { "approvals.wait_s", SETTING_SECONDS, .min = 1, .max = 604800, .def = "3600",
        .help = "How long an agent's question waits for a person; then the answer is no." },

    [SETTING_CONSENT_WAIT_S] = { "consent.wait_s", SETTING_SECONDS, .min = 0, .max = 600, .def = "60",
        .help = "How long a permission request waits for the person." },

    [SETTING_APPS_RESTART_LIMIT] = { "apps.restart_limit", SETTING_INT, .min = 0, .max = 100, .def = "5",
        .help = "Crashes in a row after which an app stays stopped." },
    [SETTING_APPS_RESTART_BACKOFF_MS] = { "apps.restart_backoff_ms", SETTING_INT, .min = 1, .max = 600000, .def = "1000",
        .help = "Wait before the first restart of a crashed app; doubles with each." },
    [SETTING_APPS_PORT_MIN] = { "apps.port_min", SETTING_INT, .min = 1024, .max = 65535, .def = "23100",
        .help = "First port given to apps." },
    [SETTING_APPS_PORT_MAX] = { "apps.port_max", SETTING_INT, .min = 1024, .max = 65535, .def = "23999",
        .help = "Last port given to apps; not below apps.port_min." },

    [SETTING_SANDBOX_DEFAULT] = { "sandbox.default", SETTING_ENUM, .def = "standard", .one_of = sandbox_profiles, .needs_restart = true,
        .help = "Profile of apps and agents whose definition names none." },
    [SETTING_SANDBOX_BWRAP] = { "sandbox.bwrap", SETTING_STRING, .max = LIMIT_SETTING_BYTES, .def = "bwrap", .needs_restart = true,
        .help = "bubblewrap, which makes the sandbox; looked up in PATH. Without it Landlock is used." },

    [SETTING_EMBED_PROVIDER] = { "embed.provider", SETTING_STRING, .min = 1, .max = LIMIT_NAME_CHARS, .def = "builtin",
        .help = "Provider that embeds when the caller names none; vectors of two models cannot be compared." },
    [SETTING_EMBED_MODEL] = { "embed.model", SETTING_STRING, .max = 256, .def = "",
        .help = "Model of embed.provider when the caller names none; empty: the provider's own." },
    [SETTING_EMBED_QUERY_PREFIX] = { "embed.query_prefix", SETTING_STRING, .max = 256, .def = "",
        .help = "Put before texts whose input_type is query, for models that want it (search_query: ); not for builtin and voyageai." },
    [SETTING_EMBED_DOCUMENT_PREFIX] = { "embed.document_prefix", SETTING_STRING, .max = 256, .def = "",
        .help = "The same for texts whose input_type is document (search_document: )." },

    [SETTING_SPEECH_LANGUAGE] = { "speech.language", SETTING_STRING, .min = 2, .max = 16, .def = "en", .check = check_language,
        .help = "Language of a text to be spoken when the caller names neither a language nor a voice." },
    [SETTING_SPEECH_VOICES] = { "speech.voices", SETTING_LIST, .max = LIMIT_SETTING_BYTES, .def = "", .check = check_voice,
        .help = "Voices of languages, LANGUAGE=PROVIDER/VOICE, like en=flite_local/slt. Others: flite_local/rms for English, espeak_local for the rest." },
    [SETTING_SPEECH_WORKERS] = { "speech.workers", SETTING_INT, .min = 0, .max = LIMIT_SPEECH_WORKERS, .def = "1", .needs_restart = true,
        .help = "Programs of one engine that speak at the same time and stay warm; 0: one, started for each sentence." },
    [SETTING_SPEECH_FOLDER] = { "speech.folder", SETTING_STRING, .max = LIMIT_SETTING_BYTES, .def = "", .needs_restart = true,
        .help = "Where hearth-speech-flite and hearth-speech-espeak are; empty: beside hearth, or in ../libexec/hearth." },
    [SETTING_SPEECH_IDLE_S] = { "speech.idle_s", SETTING_INT, .min = 0, .max = LIMIT_SPEECH_IDLE_S, .def = "300",
        .help = "Seconds after which a program of an engine that nobody needed ends; 0: it stays." },
    [SETTING_SPEECH_CACHE_MB] = { "speech.cache_mb", SETTING_INT, .min = 0, .max = LIMIT_SPEECH_CACHE_MB, .def = "32",
        .help = "Megabytes of the newest spoken sentences that are kept in memory, for each caller's own use; 0: none." },
    [SETTING_SPEECH_TIMEOUT_S] = { "speech.timeout_s", SETTING_SECONDS, .min = 0.05, .max = LIMIT_SPEECH_REPLY_MS / 1e3, .def = "30",
        .help = "Seconds that a provider over HTTP has for one sentence; for a recording it has ten times as many." },
    [SETTING_SPEECH_PIPER] = { "speech.piper", SETTING_STRING, .max = LIMIT_SETTING_BYTES, .def = "piper",
        .help = "The program piper, looked up in PATH; empty: it is not used." },
    [SETTING_SPEECH_PIPER_VOICES] = { "speech.piper_voices", SETTING_STRING, .max = 4000, .def = "", .check = check_folder,
        .help = "Folder with voices of piper (NAME.onnx, NAME.onnx.json), outside of the data folder." },
    [SETTING_SPEECH_SHERPA] = { "speech.sherpa", SETTING_STRING, .max = LIMIT_SETTING_BYTES, .def = "sherpa-onnx-offline-tts",
        .help = "The program sherpa-onnx-offline-tts, looked up in PATH; empty: it is not used." },
    [SETTING_SPEECH_SHERPA_VOICES] = { "speech.sherpa_voices", SETTING_STRING, .max = 4000, .def = "", .check = check_folder,
        .help = "Folder with folders of models that speak, of sherpa-onnx (tokens.txt, a file of ONNX), outside of the data folder." },
    [SETTING_SPEECH_MICROPHONE] = { "speech.microphone", SETTING_STRING, .min = 1, .max = LIMIT_SPEECH_DEVICE, .def = "default",
        .help = "ALSA's name of the microphone, like default, pulse, plughw:1 (`arecord -L` lists them)." },
    [SETTING_SPEECH_SILENCE_MS] = { "speech.silence_ms", SETTING_INT, .min = 300, .max = LIMIT_SPEECH_SILENCE_MS, .def = "1200",
        .help = "Milliseconds of silence after speech that end listening to the microphone." },

    [SETTING_VECTORS_LIST_ABOVE_ROWS] = { "vectors.list_above_rows", SETTING_INT, .min = 1000, .max = 1000000000, .def = "1000000",
        .needs_restart = true, .help = "Vectors of one namespace above which inverted lists are built for its queries. Above a quarter of it, lists are built where they lose nothing." },
    [SETTING_VECTORS_TARGET_RECALL_PERCENT] = { "vectors.target_recall_percent", SETTING_INT, .min = 50, .max = 100, .def = "97",
        .needs_restart = true, .help = "How many of the true nearest vectors a query by inverted lists shall find." },
    [SETTING_VECTORS_SKETCH_DEVIATIONS] = { "vectors.sketch_deviations", SETTING_INT, .min = 0, .max = 5, .def = "3",
        .needs_restart = true, .help = "How far a vector may score above its one-bit sketch before it is left out, in standard deviations: 4 is as good as exact, 0 is exact and slower." },
    [SETTING_VECTORS_MEMORY_MB] = { "vectors.memory_mb", SETTING_INT, .min = 16, .max = 1048576, .def = "1024",
        .needs_restart = true, .help = "Memory for loaded namespaces; those not used for longest are unloaded above it." },
    [SETTING_VECTORS_STORE_TIMEOUT_S] = { "vectors.store_timeout_s", SETTING_SECONDS, .min = 0.05, .max = 600, .def = "120",
        .help = "How long one request waits for a registered vector store in all; registering waits for 20 seconds at most." },

    [SETTING_NET_PRIVATE_HOSTS] = { "net.private_hosts", SETTING_LIST, .max = LIMIT_SETTING_BYTES, .def = "", .check = check_private_host,
        .needs_restart = true, .help = "Hosts of the local network that apps may name as vector stores, files or images, like nas.lan or nas.lan:6333; * for all." },

    [SETTING_SHUTDOWN_DEADLINE_S] = { "shutdown.deadline_s", SETTING_SECONDS, .min = 0, .max = 600, .def = "10",
        .help = "How long requests, agents and children may take to finish when the service stops, a third each." },

    [SETTING_LLM_DEFAULT_PROVIDER] = { "llm.default_provider", SETTING_STRING, .max = 128, .def = "",
        .help = "Provider asked when a request names none; empty: the first that is configured." },
    [SETTING_LLM_DEFAULT_MODEL] = { "llm.default_model", SETTING_STRING, .max = 256, .def = "",
        .help = "Model of llm.default_provider when the caller names none; empty: the provider's own." },
    [SETTING_LLM_FALLBACKS] = { "llm.fallbacks", SETTING_LIST, .max = LIMIT_SETTING_BYTES, .def = "",
        .help = "Providers asked in this order when the default one fails before its first byte." },
    [SETTING_LLM_CONNECT_S] = { "llm.connect_s", SETTING_SECONDS, .min = 0.05, .max = 600, .def = "10",
        .help = "Time a provider has to take a connection." },
    [SETTING_LLM_FIRST_BYTE_S] = { "llm.first_byte_s", SETTING_SECONDS, .min = 0.05, .max = 7200, .def = "300",
        .help = "Time a provider has to begin its answer." },
    [SETTING_LLM_IDLE_S] = { "llm.idle_s", SETTING_SECONDS, .min = 0.05, .max = 7200, .def = "120",
        .help = "Silence of a provider within an answer after which it is given up." },
    [SETTING_LLM_TOTAL_S] = { "llm.total_s", SETTING_SECONDS, .min = 0.1, .max = 86400, .def = "1800",
        .help = "Time one chat may take in all, retries among it." },
    [SETTING_LLM_RETRIES] = { "llm.retries", SETTING_INT, .min = 0, .max = 10, .def = "2",
        .help = "Further attempts with one provider before the first byte of its answer." },
    [SETTING_LLM_RETRY_AFTER_MAX_S] = { "llm.retry_after_max_s", SETTING_SECONDS, .min = 0, .max = 600, .def = "10",
        .help = "Longest Retry-After of a provider that is waited for; a longer one is told to the caller." },
    [SETTING_LLM_REST_AFTER] = { "llm.rest_after", SETTING_INT, .min = 0, .max = 1000, .def = "5",
        .help = "Failed requests in a row after which a model, or a provider that cannot be reached, rests for 15 seconds; 0: never." },
    [SETTING_LLM_MODELS_TTL_S] = { "llm.models_ttl_s", SETTING_SECONDS, .min = 0, .max = 86400, .def = "300",
        .help = "How long a provider's list of models is kept." },
    [SETTING_LLM_RESUME_S] = { "llm.resume_s", SETTING_SECONDS, .min = 0, .max = 3600, .def = "60",
        .help = "How long a resumable stream goes on, and is kept, without its client; 0: not at all." },
    [SETTING_LLM_RESPONSES_KEEP_S] = { "llm.responses_keep_s", SETTING_SECONDS, .min = 0, .max = 86400, .def = "3600",
        .help = "How long answers of /v1/responses are kept in memory, to be continued by their id; 0: not at all." },
    [SETTING_MCP_SESSION_IDLE_S] = { "mcp.session_idle_s", SETTING_SECONDS, .min = 0.1, .max = 86400, .def = "1800",
        .help = "How long a session of /mcp lives without a request and without an open stream." },
    [SETTING_TOOLS_FOLDER_MB] = { "tools.folder_mb", SETTING_INT, .min = 1, .max = 102400, .def = "256",
        .help = "Megabytes that the files of one conversation may take: those that the tools of agents write." },
    [SETTING_TOOLS_RUN_COMMAND] = { "tools.run_command", SETTING_BOOL, .def = "false",
        .help = "Let model agents run commands (tool run_command): in the conversation's folder, in a sandbox without network, each after an approval." },
    [SETTING_MCP_IDLE_STOP_S] = { "mcp.idle_stop_s", SETTING_SECONDS, .min = 0, .max = 604800, .def = "600",
        .help = "Time without a call after which an MCP server is ended; the next use starts it again; 0: never." },
    [SETTING_MCP_START_S] = { "mcp.start_s", SETTING_SECONDS, .min = 0.1, .max = 3600, .def = "60",
        .help = "Time an MCP server has to start and to list its tools." },
    [SETTING_MCP_PING_S] = { "mcp.ping_s", SETTING_SECONDS, .min = 0, .max = 86400, .def = "30",
        .help = "How often an MCP server without calls is asked whether it still answers; 0: never." },
    [SETTING_MCP_CALL_S] = { "mcp.call_s", SETTING_SECONDS, .min = 0.1, .max = 86400, .def = "3600",
        .help = "Longest time of one call of a tool, whatever progress it reports." },
    [SETTING_LLM_FIND_LOCAL] = { "llm.find_local", SETTING_BOOL, .def = "true",
        .help = "Look for Ollama, LM Studio, llama.cpp and LocalAI on this machine while no provider is configured." },
    [SETTING_LLM_FIND_LOCAL_S] = { "llm.find_local_s", SETTING_SECONDS, .min = 0, .max = 86400, .def = "30",
        .help = "How long it is remembered which of them answer." },
    [SETTING_LLM_FIND_LOCAL_WAIT_S] = { "llm.find_local_wait_s", SETTING_SECONDS, .min = 0.05, .max = 30, .def = "0.25",
        .help = "Time they have to answer; a request waits for no longer." },
    [SETTING_LLM_LOCAL_PORTS] = { "llm.local_ports", SETTING_LIST, .max = LIMIT_SETTING_BYTES, .def = "", .check = check_local_port,
        .help = "Ports of theirs that are not the usual ones, like ollama=11500." },
    [SETTING_LLM_LOCAL_ACCEPTED] = { "llm.local_accepted", SETTING_LIST, .max = LIMIT_SETTING_BYTES, .def = "", .check = check_local_server,
        .help = "Servers of models and of speech on this machine that may be used when they are found; `hearth provider accept` adds one." },
    [SETTING_LLM_MODELS_DIR] = { "llm.models_dir", SETTING_STRING, .max = 4000, .def = "", .check = check_folder,
        .help = "Folder of GGUF files that llama-server is run for; empty: models in the data folder." },
    [SETTING_LLM_OLLAMA_OPEN] = { "llm.ollama_open", SETTING_BOOL, .def = "false",
        .help = "Lets programs of this machine and user use Ollama's interface (/api/chat and its kind) without a key." },

    [SETTING_LLAMACPP_SERVER] = { "llamacpp.server", SETTING_STRING, .max = 4000, .def = "llama-server",
        .help = "The llama-server program, by name or whole path; empty: it is never run." },
    [SETTING_LLAMACPP_ARGS] = { "llamacpp.args", SETTING_LIST, .max = LIMIT_SETTING_BYTES, .def = "", .check = check_llamacpp_arg,
        .help = "More arguments for llama-server, like --n-gpu-layers, 99." },
    [SETTING_LLAMACPP_CONTEXT] = { "llamacpp.context", SETTING_INT, .min = 256, .max = 16777216, .def = "8192",
        .help = "Tokens of context a model is run with; less when the model was trained for less." },
    [SETTING_LLAMACPP_PROCESSES] = { "llamacpp.processes", SETTING_INT, .min = 1, .max = LIMIT_LLAMA_SERVERS, .def = "2",
        .help = "Models run at a time; the one unused for longest is ended for another." },
    [SETTING_LLAMACPP_MEMORY_MB] = { "llamacpp.memory_mb", SETTING_INT, .min = 0, .max = 16777216, .def = "0",
        .help = "What the models run at a time may need in all: their files and contexts. 0: three quarters of the machine's memory." },
    [SETTING_LLAMACPP_START_S] = { "llamacpp.start_s", SETTING_SECONDS, .min = 0.1, .max = 3600, .def = "120",
        .help = "Time llama-server has to load a model." },
    [SETTING_LLAMACPP_IDLE_S] = { "llamacpp.idle_s", SETTING_SECONDS, .min = 0.1, .max = 604800, .def = "600",
        .help = "A model that is not asked for so long is ended." },

    [SETTING_LIMITS_REQUESTS_A_MINUTE] = { "limits.requests_a_minute", SETTING_INT, .min = 0, .max = 1e12, .def = "0",
        .help = "Requests to models that each app and each developer key may make a minute; 0: any number." },
    [SETTING_LIMITS_TOKENS_A_MINUTE] = { "limits.tokens_a_minute", SETTING_INT, .min = 0, .max = 1e12, .def = "0",
        .help = "Tokens of models that each app and each developer key may use a minute; 0: any number." },
    [SETTING_LIMITS_REQUESTS_A_DAY] = { "limits.requests_a_day", SETTING_INT, .min = 0, .max = 1e12, .def = "0",
        .help = "Requests to models that each app and each developer key may make a day (UTC); 0: any number." },
    [SETTING_LIMITS_TOKENS_A_DAY] = { "limits.tokens_a_day", SETTING_INT, .min = 0, .max = 1e12, .def = "0",
        .help = "Tokens of models that each app and each developer key may use a day (UTC); 0: any number." },
    [SETTING_LIMITS_CHARACTERS_A_MINUTE] = { "limits.characters_a_minute", SETTING_INT, .min = 0, .max = 1e12, .def = "0",
        .help = "Characters that each app and each developer key may have spoken a minute; 0: any number." },
    [SETTING_LIMITS_CHARACTERS_A_DAY] = { "limits.characters_a_day", SETTING_INT, .min = 0, .max = 1e12, .def = "0",
        .help = "Characters that each app and each developer key may have spoken a day (UTC); 0: any number." },
    [SETTING_LIMITS_CONNECTIONS] = { "limits.connections", SETTING_INT, .min = 1, .max = LIMIT_CONNECTIONS, .def = "1024", .needs_restart = true,
        .help = "Connections that one app or one developer key may have open." },
    [SETTING_LIMITS_OPEN_REQUESTS] = { "limits.open_requests", SETTING_INT, .min = 1, .max = LIMIT_SHORT_WAITING, .def = "1024", .needs_restart = true,
        .help = "Unanswered requests that one app or one developer key may have." },
    [SETTING_LIMITS_LONG_REQUESTS] = { "limits.long_requests", SETTING_INT, .min = 1, .max = LIMIT_LONG_THREADS + LIMIT_LONG_WAITING, .def = "128", .needs_restart = true,
        .help = "Of them, those that wait on a thread: for embeddings, a list of models, another store, or the person." },
    [SETTING_LIMITS_SOCKETS] = { "limits.sockets", SETTING_INT, .min = 1, .max = LIMIT_SOCKETS, .def = "1024", .needs_restart = true,
        .help = "WebSockets that one app or one developer key may have open." },
    [SETTING_LIMITS_SUBSCRIPTIONS] = { "limits.subscriptions", SETTING_INT, .min = 1, .max = LIMIT_SUBSCRIPTIONS, .def = "16384",
        .needs_restart = true, .help = "Channels and subscriptions that the WebSockets of one app or one developer key may have together." },
    [SETTING_LIMITS_STREAMS] = { "limits.streams", SETTING_INT, .min = 1, .max = LIMIT_EVENT_STREAMS, .def = "1024", .needs_restart = true,
        .help = "Streamed answers that one app or one developer key may have open." },
    [SETTING_LIMITS_BODY_MB] = { "limits.body_mb", SETTING_INT, .min = 1, .max = 1 << 20, .def = "256", .needs_restart = true,
        .help = "MiB of request bodies that one app or one developer key may have on their way or at work." },
    [SETTING_LIMITS_REPLIES_MB] = { "limits.replies_mb", SETTING_INT, .min = 1, .max = 1 << 20, .def = "256", .needs_restart = true,
        .help = "MiB of answers that one app or one developer key may leave unread." },
    [SETTING_LIMITS_REQUEST_MEMORY_MB] = { "limits.request_memory_mb", SETTING_INT, .min = 1, .max = 1 << 20, .def = "512", .needs_restart = true,
        .help = "MiB of memory that the large requests of one app or one developer key may need at a time; one request is always possible." },
    [SETTING_LIMITS_MEMORY_MB] = { "limits.memory_mb", SETTING_INT, .min = 0, .max = 1 << 24, .def = "0", .needs_restart = true,
        .help = "MiB of memory that requests may need in all before large ones wait; 0: a quarter of the machine's, at most 2048." },
    [SETTING_LIMITS_CHILDREN] = { "limits.children", SETTING_INT, .min = 1, .max = LIMIT_CHILDREN, .def = "96", .needs_restart = true,
        .help = "Processes that may run for one app: its own and the agents that work for it." },
    [SETTING_LIMITS_DISK_MB] = { "limits.disk_mb", SETTING_INT, .min = 1, .max = 1 << 24, .def = "10240", .needs_restart = true,
        .help = "MiB that one app's data folder may have before the service stores nothing more for it." },
    [SETTING_LIMITS_VECTORS_MB] = { "limits.vectors_mb", SETTING_INT, .min = 1, .max = 1 << 24, .def = "2048", .needs_restart = true,
        .help = "MiB that the vectors of one app or key may take in the embedded store, with their ids and metadata." },
    [SETTING_USAGE_KEEP_DAYS] = { "usage.keep_days", SETTING_INT, .min = 0, .max = 36500, .def = "400",
        .help = "Days the usage of a day is kept; 0: forever." },

    [SETTING_TASKS_KEEP_DAYS] = { "tasks.keep_days", SETTING_INT, .min = 0, .max = 36500, .def = "365",
        .help = "Days a finished task and its runs are kept; 0: forever. Quarantined ones stay until a person decides." },
    [SETTING_TASKS_KEEP_LOGS_DAYS] = { "tasks.keep_logs_days", SETTING_INT, .min = 0, .max = 36500, .def = "90",
        .help = "Days the output of a finished run is kept, not longer than its task; 0: as long." },
    [SETTING_CALENDAR_KEEP_DAYS] = { "calendar.keep_days", SETTING_INT, .min = 0, .max = 36500, .def = "365",
        .help = "Days a past calendar event of a finished task is kept; 0: forever. Other events stay." },
    [SETTING_AGENTS_SESSION_IDLE_S] = { "agents.session_idle_s", SETTING_SECONDS, .min = 0.1, .max = 31536000, .def = "3600",
        .help = "Idle time after which an agent session ends; its thread stays." },
    [SETTING_AGENTS_WINDOW_TOKENS] = { "agents.window_tokens", SETTING_INT, .min = 512, .max = 1 << 30, .def = "128000",
        .help = "Tokens that a conversation may have for a model whose window is not known." },
    [SETTING_AGENTS_WINDOWS] = { "agents.windows", SETTING_LIST, .max = LIMIT_SETTING_BYTES, .def = "", .check = check_window,
        .help = "Windows of models in tokens, MODEL=TOKENS; a * ends the beginning of a name." },
    [SETTING_AGENTS_KEEP_DAYS] = { "agents.keep_days", SETTING_INT, .min = 0, .max = 36500, .def = "0",
        .help = "Days a turn of a conversation is kept; 0: forever." },
    [SETTING_AUDIT_KEEP_DAYS] = { "audit.keep_days", SETTING_INT, .min = 0, .max = 36500, .def = "1095",
        .help = "Days an entry of the audit log is kept; 0: forever. The rest of the chain stays checkable." },
    [SETTING_WEBHOOKS_KEEP_DAYS] = { "webhooks.keep_days", SETTING_INT, .min = 0, .max = 36500, .def = "30",
        .help = "Days a webhook's event_id makes a repeat harmless; 0: forever." },

    [SETTING_LOG_LEVEL] = { "log.level", SETTING_ENUM, .def = "info", .one_of = log_levels,
        .help = "What is logged." },
    [SETTING_LOG_FORMAT] = { "log.format", SETTING_ENUM, .def = "text", .one_of = log_formats,
        .help = "Form of the log lines." },
};
/* clang-format on */

int settings_refuse_key(const char *start, const char *key, int r, const char *code, struct err *e)
{
    const char *keys[N_SETTINGS], *near;

    for (size_t i = 0; i < N_SETTINGS; i++)
        keys[i] = settings_rules[i].key;
    near = suggest_name(key, keys, N_SETTINGS);
    return err_set(e, r, code, "%s %.80s; %s%s%s`hearth settings` lists them", start, key, near ? "did you mean " : "",
                   near ? near : "", near ? "? " : "");
}

bool settings_find(const char *key, enum setting_id *ret)
{
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (strcmp(settings_rules[i].key, key) == 0) {
            *ret = (enum setting_id)i;
            return true;
        }
    }
    return false;
}
