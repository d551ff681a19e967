// What of src/ a test file is about. A change of any part of the program makes another program, which would run every test again: in an ordinary run of
// script/test a file that has passed is skipped when the parts that it is about are those it passed with. A file of src/ in no part is the ground (base, os,
// net, http, store, settings, identity, backend, service, the dispatcher): all tests see its changes, and so does a test file without a row here every change.
// --all and continuous integration do not use this table.
const parts = {
    models: ['llm/', 'stand_in/', 'models/', 'api/compat/', 'api/resources/llm', 'api/resources/provider', 'api/resources/usage', 'api/resources/foreign_clients'],
    vectors: ['vector/', 'embed/', 'api/resources/vector', 'api/resources/embed'],
    work: ['tasks/', 'agents/', 'api/resources/activities', 'api/resources/agents', 'api/resources/calendar', 'api/resources/external_tasks', 'api/resources/task',
        'api/resources/webhooks', 'api/resources/workspaces'],
    apps: ['apps/', 'api/resources/app_logs', 'api/resources/apps'],
    speech: ['speech/', 'api/resources/speech', 'api/resources/hearing', 'api/resources/listening', 'api/form'],
    backup: ['backup/', 'api/resources/backup'],
    doctor: ['api/resources/doctor'],
    pages: ['api/assets/', 'api/resources/home', 'api/resources/session_page', 'api/resources/static_files', 'api/page'],
    cli: ['cli/'],
};

const rows = [
    ['tests/api/(agent_inputs|machines|task_states|tasks_calendar|webhooks|main_job|activities)', ['work']],
    ['tests/api/(agents_workspaces|app_rows)', ['work', 'apps']],
    ['tests/api/(app_ports|apps)', ['apps']],
    ['tests/api/(audit|backend_token|confirm|connectivity|host_origin|keys|log_pipe|permissions|reload|settings_presence)', []],
    ['tests/(api/backend_(account|setup)|peers/hosted_(cli|contract))', ['cli']],
    ['tests/api/(chat_waits|dialect|ollama|providers|usage|v1_responses)', ['models']],
    ['tests/api/speech', ['speech']],
    ['tests/api/hearing', ['speech']],
    ['tests/api/listening', ['speech']],
    ['tests/peers/(microphone|listening_providers)', ['speech']],
    ['tests/api/(vector_texts|vectors|embed)', ['vectors', 'models']],
    ['tests/api/(cli_apps|completion)', ['cli', 'apps', 'work']],
    ['tests/api/(cli_backup|durable_backup|copied_folder)', ['cli', 'backup']],
    ['tests/api/(cli_chat|cli_providers)', ['cli', 'models', 'vectors']],
    ['tests/api/(cli_tasks|cli_rooms)', ['cli', 'work']],
    ['tests/api/(cli_use|cli_words|cli_serve|cli_commands)', ['cli']],
    ['tests/api/damage', ['doctor', 'backup']],
    ['tests/api/(session|static_files)', ['pages']],
    ['tests/peers/(anthropic_client|content_blocks|image_addresses|llm|llm_errors|local_models|ollama_client|openai_client|protocols|reasoning|responses_client|structured_output|usage)', ['models']],
    ['tests/peers/providers', ['models', 'cli']],
    ['tests/peers/embed', ['models', 'vectors']],
    ['tests/peers/(chroma|pgvector|qdrant|rest_stores|store_clients|vector_contract)', ['vectors']],
    ['tests/peers/(http|json_schema)', []],
    ['tests/hostile/(app|links)', ['apps', 'work']],
    ['tests/hostile/backup', ['backup', 'cli']],
    ['tests/hostile/(caller|neighbour)', ['apps', 'work']],
    ['tests/hostile/flood', []],
    ['tests/(hostile|peers)/(hosted_)?realtime', []],
    ['tests/hostile/page', ['pages']],
    ['tests/hostile/(provider|memory)', ['models']],
    ['tests/hostile/(rest_stores|store)', ['vectors']],
    ['tests/chaos/(clock|fleet|triage)', ['work']],
    ['tests/chaos/vectors', ['vectors']],
].map(([pattern, names]) => [new RegExp(`^${pattern}\\.test\\.mjs$`), names]);

// The part of a file below src/, or 'ground'.
export function partOf(path) {
    return Object.keys(parts).find((name) => parts[name].some((prefix) => path.startsWith(prefix))) ?? 'ground';
}

// The parts that a test file is about, the ground among them; null: all.
export function areaOf(file) {
    const row = rows.find(([pattern]) => pattern.test(file));
    return row ? ['ground', ...row[1]] : null;
}

// For the tests of this table: the prefixes and patterns that match no file.
export function stale(sources, tests) {
    return [...Object.values(parts).flat().filter((prefix) => !sources.some((path) => path.startsWith(prefix))),
        ...rows.filter(([pattern]) => !tests.some((file) => pattern.test(file))).map(([pattern]) => pattern.source)];
}
