#include "store/schema.h"

/* clang-format off */
static const char identity_tables[] =
    "PRAGMA application_id = 0x48525448;"

    "CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE settings_rows (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, updated_at TEXT NOT NULL) WITHOUT ROWID;"

    "CREATE TABLE api_keys (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, hash BLOB NOT NULL UNIQUE, last4 TEXT NOT NULL,"
    "    fingerprint TEXT NOT NULL, created_at TEXT NOT NULL, last_used_at TEXT, revoked_at TEXT);"

    "CREATE TABLE apps (app_id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL UNIQUE, display_name TEXT NOT NULL,"
    "    description TEXT, icon TEXT, app_type TEXT NOT NULL, config TEXT NOT NULL, permissions TEXT NOT NULL DEFAULT '[]',"
    "    is_enabled INTEGER NOT NULL, requires_user_auth INTEGER NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);"

    "CREATE TABLE grants (app_id TEXT NOT NULL REFERENCES apps(app_id) ON DELETE CASCADE, permission TEXT NOT NULL,"
    "    decision TEXT NOT NULL CHECK (decision IN ('allow', 'deny')),"
    "    scope TEXT NOT NULL CHECK (scope IN ('once', 'until_stop', 'until_date', 'always')),"
    "    expires_at TEXT, n_denials INTEGER NOT NULL, is_used INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL,"
    "    last_used_at TEXT, PRIMARY KEY (app_id, permission)) WITHOUT ROWID;"

    "CREATE TABLE backend_tokens (scope TEXT PRIMARY KEY NOT NULL, token BLOB NOT NULL, synced_at TEXT NOT NULL);"

    "CREATE TABLE sessions (id_hash BLOB PRIMARY KEY NOT NULL, kind TEXT NOT NULL, created_at TEXT NOT NULL,"
    "    expires_at TEXT NOT NULL, revoked_at TEXT) WITHOUT ROWID;"
    "CREATE TABLE login_links (token_hash BLOB PRIMARY KEY NOT NULL, expires_at TEXT NOT NULL) WITHOUT ROWID;"

    "CREATE TABLE audit (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, subject TEXT,"
    "    detail TEXT, prev_hash TEXT NOT NULL, hash TEXT NOT NULL);"
    "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;"
    "CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;";

static const char work_tables[] =
    "CREATE TABLE agents (name TEXT PRIMARY KEY NOT NULL, display_name TEXT NOT NULL, description TEXT, hub_id TEXT,"
    "    kind TEXT NOT NULL, definition TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);"

    "CREATE TABLE workspaces (id INTEGER PRIMARY KEY AUTOINCREMENT, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL,"
    "    type TEXT NOT NULL DEFAULT 'default', created_at TEXT NOT NULL);"
    "INSERT INTO workspaces (slug, name, type, created_at) VALUES ('default', 'Default', 'default',"
    "    strftime('%Y-%m-%dT%H:%M:%fZ'));"
    "CREATE TABLE threads (id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "    workspace_id INTEGER NOT NULL REFERENCES workspaces(id) ON DELETE CASCADE, slug TEXT NOT NULL, name TEXT NOT NULL,"
    "    created_at TEXT NOT NULL, UNIQUE (workspace_id, slug));"

    "CREATE TABLE tasks (seq INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL UNIQUE, title TEXT NOT NULL, status TEXT NOT NULL,"
    "    action_type TEXT NOT NULL, source_app TEXT, source_app_name TEXT, backend_table TEXT, row_id TEXT, agent_name TEXT,"
    "    workspace_slug TEXT, thread_slug TEXT, prompt TEXT, raw_data TEXT, old_data TEXT, auto_run INTEGER NOT NULL,"
    "    review TEXT, error TEXT, result TEXT, attempt INTEGER NOT NULL DEFAULT 0, machine_id TEXT,"
    "    attempted_by TEXT NOT NULL DEFAULT '[]', retry_count INTEGER NOT NULL DEFAULT 0, calendar_event_uuid TEXT,"
    "    is_quarantined INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, completed_at TEXT);"
    "CREATE UNIQUE INDEX tasks_by_row ON tasks (backend_table, row_id) WHERE backend_table IS NOT NULL;"
    "CREATE INDEX tasks_by_app ON tasks (source_app, status, seq);"
    "CREATE INDEX tasks_by_status ON tasks (status, seq);"

    "CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, task_uuid TEXT NOT NULL REFERENCES tasks(uuid) ON DELETE CASCADE,"
    "    agent_name TEXT, workspace_slug TEXT, thread_slug TEXT,"
    "    status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'failed')), attempt INTEGER NOT NULL,"
    "    machine_id TEXT, pid INTEGER NOT NULL DEFAULT 0, started_at TEXT, completed_at TEXT, error TEXT, log TEXT);"
    "CREATE INDEX runs_by_task ON runs (task_uuid, id);"
    "CREATE INDEX runs_open ON runs (machine_id) WHERE status IN ('pending', 'running');"

    "CREATE TABLE calendar (uuid TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL, description TEXT, start_date TEXT NOT NULL,"
    "    end_date TEXT, all_day INTEGER NOT NULL DEFAULT 0, color TEXT, repeat TEXT, reminders TEXT NOT NULL DEFAULT '[]',"
    "    metadata TEXT NOT NULL DEFAULT '{}', task_uuid TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);"
    "CREATE INDEX calendar_by_start ON calendar (start_date);"

    "CREATE TABLE deliveries (source TEXT NOT NULL, event_id TEXT NOT NULL, status INTEGER NOT NULL DEFAULT 0, answer TEXT,"
    "    created_at TEXT NOT NULL, PRIMARY KEY (source, event_id)) WITHOUT ROWID;"
    "CREATE INDEX deliveries_by_age ON deliveries (created_at);";

static const char vector_tables[] =
    "CREATE TABLE vector_configs (scope TEXT PRIMARY KEY NOT NULL, provider TEXT NOT NULL, config BLOB NOT NULL,"
    "    updated_at TEXT NOT NULL);"
    "CREATE TABLE vector_models (provider TEXT NOT NULL, namespace TEXT NOT NULL, model TEXT NOT NULL, created_at TEXT NOT NULL,"
    "    PRIMARY KEY (provider, namespace)) WITHOUT ROWID;";

static const char provider_tables[] =
    "CREATE TABLE provider_accounts (name TEXT PRIMARY KEY NOT NULL, preset TEXT NOT NULL, sealed BLOB NOT NULL, model TEXT,"
    "    embed_model TEXT, models TEXT NOT NULL DEFAULT '[]', position INTEGER NOT NULL, created_at TEXT NOT NULL,"
    "    updated_at TEXT NOT NULL);"
    "CREATE TABLE provider_choices (app_id TEXT NOT NULL REFERENCES apps(app_id) ON DELETE CASCADE,"
    "    capability TEXT NOT NULL CHECK (capability IN ('chat', 'embed')), provider TEXT NOT NULL, model TEXT,"
    "    updated_at TEXT NOT NULL, PRIMARY KEY (app_id, capability)) WITHOUT ROWID;";
static const char usage_tables[] =
    "CREATE TABLE usage (day TEXT NOT NULL, app_id TEXT NOT NULL, key_id TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,"
    "    kind TEXT NOT NULL, requests INTEGER NOT NULL, failed INTEGER NOT NULL, estimated INTEGER NOT NULL,"
    "    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,"
    "    PRIMARY KEY (day, app_id, key_id, provider, model, kind)) WITHOUT ROWID;"
    "CREATE TABLE rate_limits (kind TEXT NOT NULL CHECK (kind IN ('app', 'key')), id TEXT NOT NULL, requests_a_minute INTEGER NOT NULL,"
    "    tokens_a_minute INTEGER NOT NULL, requests_a_day INTEGER NOT NULL, tokens_a_day INTEGER NOT NULL, updated_at TEXT NOT NULL,"
    "    PRIMARY KEY (kind, id)) WITHOUT ROWID;";

/* An entry of the audit log may be deleted once its hash is kept as the new beginning (store/tables/audit.c). */
static const char retention_rules[] =
    "CREATE INDEX tasks_by_end ON tasks (completed_at) WHERE completed_at IS NOT NULL;"
    "CREATE INDEX runs_with_log ON runs (completed_at) WHERE log IS NOT NULL;"
    "DROP TRIGGER audit_no_delete;"
    "CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit WHEN OLD.seq > coalesce("
    "    (SELECT CAST(substr(value, 1, instr(value, ':') - 1) AS INTEGER) FROM meta WHERE key = 'audit.base'), 0)"
    "    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;";

/* A session is a cookie and a proof. Older sessions have no proof, so they end: `hearth open` makes new ones. */
static const char session_proofs[] =
    "DELETE FROM sessions;"
    "ALTER TABLE sessions ADD COLUMN proof_hash BLOB NOT NULL DEFAULT x'';";
/* command: of an app, its start command (apps/command.h); of a grant, the app's command at the decision, NULL while the
 * app still has that command. */
static const char caller_tables[] =
    "ALTER TABLE apps ADD COLUMN command TEXT;"
    "ALTER TABLE grants ADD COLUMN command TEXT;"
    "CREATE TABLE app_contacts (app_id TEXT NOT NULL REFERENCES apps(app_id) ON DELETE CASCADE, program TEXT NOT NULL,"
    "    first_at TEXT NOT NULL, PRIMARY KEY (app_id, program)) WITHOUT ROWID;";
/* A key of one app is deleted with the app. */
static const char app_keys[] = "ALTER TABLE api_keys ADD COLUMN app_id TEXT REFERENCES apps(app_id) ON DELETE CASCADE;";
/* The definition of a server is sealed whole: arguments and addresses hold secrets too. */
static const char mcp_tables[] =
    "CREATE TABLE mcp_servers (name TEXT PRIMARY KEY NOT NULL, sealed BLOB NOT NULL, is_enabled INTEGER NOT NULL,"
    "    disabled_tools TEXT NOT NULL DEFAULT '[]', accepted TEXT, era TEXT, authorization BLOB, position INTEGER NOT NULL,"
    "    created_at TEXT NOT NULL, updated_at TEXT NOT NULL);"
    "CREATE TABLE mcp_pins (server TEXT NOT NULL REFERENCES mcp_servers(name) ON DELETE CASCADE, tool TEXT NOT NULL,"
    "    hash TEXT NOT NULL, definition TEXT NOT NULL, offered_hash TEXT, offered_definition TEXT, pinned_at TEXT NOT NULL,"
    "    PRIMARY KEY (server, tool)) WITHOUT ROWID;";
/* owner: the data scope of the session that made the thread; NULL: a person or a task did. */
static const char conversation_tables[] =
    "ALTER TABLE threads ADD COLUMN owner TEXT;"
    "CREATE INDEX threads_owned ON threads (created_at) WHERE owner IS NOT NULL;"
    "CREATE TABLE agent_sessions (id TEXT PRIMARY KEY NOT NULL, scope TEXT NOT NULL,"
    "    thread_id INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE, agent_name TEXT NOT NULL,"
    "    created_at TEXT NOT NULL, used_at TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX agent_sessions_by_scope ON agent_sessions (scope);"
    "CREATE INDEX agent_sessions_by_use ON agent_sessions (used_at);"
    "CREATE INDEX agent_sessions_by_thread ON agent_sessions (thread_id);"
    "CREATE TABLE turns (id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL UNIQUE,"
    "    thread_id INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE, session_id TEXT, task_uuid TEXT,"
    "    scope TEXT NOT NULL, who TEXT NOT NULL, agent_name TEXT NOT NULL,"
    "    state TEXT NOT NULL CHECK (state IN ('running', 'ended', 'interrupted')), why TEXT, error_code TEXT, error TEXT,"
    "    n_steps INTEGER NOT NULL DEFAULT 0, provider TEXT, model TEXT, prompt_tokens INTEGER NOT NULL DEFAULT 0,"
    "    completion_tokens INTEGER NOT NULL DEFAULT 0, is_estimated INTEGER NOT NULL DEFAULT 0, cut TEXT, thoughts TEXT,"
    "    blocks TEXT, started_at TEXT NOT NULL, ended_at TEXT);"
    "CREATE INDEX turns_by_thread ON turns (thread_id, id);"
    "CREATE INDEX turns_running ON turns (id) WHERE state = 'running';"
    "CREATE INDEX turns_by_end ON turns (ended_at) WHERE ended_at IS NOT NULL;"
    "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "    turn_id INTEGER NOT NULL REFERENCES turns(id) ON DELETE CASCADE,"
    "    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')), message TEXT NOT NULL, tool_name TEXT,"
    "    is_error INTEGER NOT NULL DEFAULT 0, took_ms INTEGER NOT NULL DEFAULT 0, provider TEXT, model TEXT,"
    "    prompt_tokens INTEGER NOT NULL DEFAULT 0, completion_tokens INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL);"
    "CREATE INDEX messages_by_turn ON messages (turn_id, id);"
    "CREATE TABLE thread_summaries (thread_id INTEGER PRIMARY KEY REFERENCES threads(id) ON DELETE CASCADE,"
    "    through_turn INTEGER NOT NULL, n_turns INTEGER NOT NULL, text TEXT NOT NULL, made_at TEXT NOT NULL);";

static const char approval_tables[] =
    "CREATE TABLE approval_rules (agent TEXT NOT NULL, server TEXT NOT NULL, tool TEXT NOT NULL, is_allowed INTEGER NOT NULL,"
    "    decided_at TEXT NOT NULL, PRIMARY KEY (agent, server, tool)) WITHOUT ROWID;"
    "CREATE TABLE model_facts (provider TEXT NOT NULL, model TEXT NOT NULL, fact TEXT NOT NULL, value TEXT NOT NULL,"
    "    learnt_at TEXT NOT NULL, PRIMARY KEY (provider, model, fact)) WITHOUT ROWID;";
/* trigger_depth: how many tasks of agents, each triggered by the one before, led to this one. */
static const char trigger_depths[] = "ALTER TABLE tasks ADD COLUMN trigger_depth INTEGER NOT NULL DEFAULT 0;";
/* All tasks of an app share a thread, which holds 10,000 turns before the next is begun. */
static const char turn_tasks[] = "CREATE INDEX turns_by_task ON turns (task_uuid, id) WHERE task_uuid IS NOT NULL;";
/* Users who signed up at the face, and their sessions. counter: of the session's current refresh token. */
static const char face_tables[] =
    "CREATE TABLE face_users (id TEXT PRIMARY KEY NOT NULL, email TEXT NOT NULL UNIQUE, password TEXT NOT NULL,"
    "    user_data TEXT NOT NULL DEFAULT '{}', created_at TEXT NOT NULL, updated_at TEXT NOT NULL, last_sign_in_at TEXT);"
    "CREATE TABLE face_sessions (id TEXT PRIMARY KEY NOT NULL,"
    "    user_id TEXT NOT NULL REFERENCES face_users(id) ON DELETE CASCADE, counter INTEGER NOT NULL DEFAULT 0,"
    "    created_at TEXT NOT NULL, refreshed_at TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX face_sessions_by_user ON face_sessions (user_id, refreshed_at);"
    "CREATE INDEX face_sessions_by_use ON face_sessions (refreshed_at);";
/* Ends of tasks for apps in Custom Mode. One of a lease; the body is NULL once it is delivered or dropped. */
static const char app_delivery_tables[] =
    "CREATE TABLE app_deliveries (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, app_id TEXT NOT NULL,"
    "    table_name TEXT NOT NULL, row_id TEXT NOT NULL, machine_id TEXT NOT NULL, attempt INTEGER NOT NULL,"
    "    action TEXT NOT NULL CHECK (action IN ('complete', 'fail')), body TEXT, n_bytes INTEGER NOT NULL,"
    "    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'dead', 'delivered', 'dropped')),"
    "    n_tries INTEGER NOT NULL DEFAULT 0, status INTEGER NOT NULL DEFAULT 0, error TEXT,"
    "    next_ms INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,"
    "    UNIQUE (table_name, row_id, machine_id, attempt));"
    "CREATE INDEX app_deliveries_due ON app_deliveries (app_id, next_ms) WHERE state = 'waiting';"
    "CREATE INDEX app_deliveries_open ON app_deliveries (seq) WHERE state IN ('waiting', 'dead');"
    "CREATE INDEX app_deliveries_over ON app_deliveries (updated_at) WHERE state IN ('delivered', 'dropped');";
/* What is spoken is counted in characters and milliseconds. -1: as the setting says. */
static const char speech_counts[] =
    "ALTER TABLE usage ADD COLUMN characters INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE usage ADD COLUMN audio_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE rate_limits ADD COLUMN characters_a_minute INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE rate_limits ADD COLUMN characters_a_day INTEGER NOT NULL DEFAULT -1;";
/* clang-format on */

const struct migration store_migrations[] = {
    { "identity tables", identity_tables },
    { "work tables", work_tables },
    { "vector stores", vector_tables },
    { "providers", provider_tables },
    { "usage and limits", usage_tables },
    { "retention", retention_rules },
    { "proofs of sessions", session_proofs },
    { "callers", caller_tables },
    { "keys of apps", app_keys },
    { "MCP servers", mcp_tables },
    { "conversations", conversation_tables },
    { "approvals", approval_tables },
    { "depth of triggers", trigger_depths },
    { "turns of a task", turn_tasks },
    { "users of the face", face_tables },
    { "deliveries to apps", app_delivery_tables },
    { "counts of speech", speech_counts },
};
const size_t store_n_migrations = ARRAY_SIZE(store_migrations);
