// The contract of backends (tests/unit/backend/test_contract_*.c) over the hosted backend: against our own face over the embedded backend, with its
// realtime, and against the hosted service's own small server (@supabase/lite, which has no realtime) over PostgreSQL. What a peer cannot do is listed with
// its reason; anything else that fails, and anything listed that passes, fails here.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { postgresPrograms } from '../api/postgres_server.mjs';
import { faceKeys } from '../api/realtime.mjs';
import { startLite } from './lite_server.mjs';
import { hostedProject } from './hosted_project.mjs';

const skip = postgresPrograms ? false : 'no PostgreSQL is installed';
const folder = join(dirname(process.env.HEARTH_BIN ?? 'build/debug/hearth'), 'tests/unit');
const parts = ['lease', 'change', 'query', 'rows', 'functions', 'race', 'names', 'limits'];

// Name of a test -> ok, failed or skipped, each with what the program said.
function read(output) {
    const found = new Map();
    let said = [];
    for (const line of output.split('\n')) {
        const [, not, name, skipped] = /^(not )?ok \d+ - (.*?)( # SKIP.*)?$/.exec(line) ?? [];
        if (!name) {
            said.push(line);
            continue;
        }
        found.set(name, { state: skipped ? 'skipped' : not ? 'failed' : 'ok', said: said.join('\n') });
        said = [];
    }
    return found;
}

function run(part, env) {
    const child = spawn(join(folder, `test_contract_${part}`), { env: { ...process.env, ...env, HEARTH_TEST_PROVIDER: 'hosted', HEARTH_TEST_FIXTURE: 'hosted', CMOCKA_MESSAGE_OUTPUT: 'TAP' } });
    const said = [];
    for (const stream of [child.stdout, child.stderr])
        stream.on('data', (bytes) => said.push(String(bytes)));
    return new Promise((done) => child.once('close', (code, signal) => done({ signal, output: said.join('') })));
}

// explained: a test's name -> why it fails there.
async function check(env, explained, more = []) {
    const seen = new Set(), wrong = [];
    for (const part of [...parts, ...more, 'strange']) {     // the huge rows of the last part hold changes up

        const { signal, output } = await run(part, env), results = read(output);
        assert.ok(signal === null && results.size > 0, `${part}: ${signal}\n${output}`);
        for (const [name, { state, said }] of results) {
            const plain = name.replace(/^[^:]*: /, '');
            seen.add(plain);
            if (!unsteady.includes(plain) && (state === 'failed') !== plain in explained)
                wrong.push(`${part}: ${plain}: ${state}\n${said}${plain in explained ? `\nlisted: ${explained[plain]}` : ''}`);
        }
    }
    assert.deepEqual(wrong, []);
    assert.deepEqual(Object.keys(explained).filter((name) => !seen.has(name)), [], 'listed, and not a test');
}

// The face shows the columns of the specification, not the attempt: there leases are fenced by their time, as in a table that another set-up made.
const time = 'without the column attempt a lease is known by its time', dirty = 'without the column is_dirty new data of a finished row is not seen';
const large = 'the face takes bodies of 4 MiB at most', schema = 'the face serves the schema public only';
const onFace = {
    many_leases_are_renewed_at_once_and_the_lost_ones_told: time, the_same_machine_is_fenced_by_the_attempt_alone: time,
    a_heartbeat_keeps_a_lease_from_going_stale: time, repeating_complete_is_a_success_that_changes_nothing: time,
    fail_counts_names_the_machine_and_frees_the_row: time,
    new_data_makes_a_finished_row_dirty_and_rearm_sets_it_to_work: dirty, data_that_changes_under_a_holder_leaves_the_row_dirty_after_it: dirty,
    claimable_lists_what_this_machine_could_claim_oldest_of_the_newest_first: dirty, rows_of_work_are_columns_too: dirty,
    a_result_and_a_message_are_bounded: large,
    a_declared_table_is_published: 'the face does not serve the lists of its tables',
    a_table_may_have_any_name_in_quotes: schema, a_user_table_reports_its_events_under_its_name: schema,
    raw_data_is_bounded: large, a_patch_changes_what_it_names_and_nothing_else: dirty,
    waiting_rows_are_counted_by_their_owner_and_what_holds_them_up: time,
    complete_task_stores_any_json_and_only_for_the_holder: time,
    what_only_moves_a_lease_is_reported_as_such: 'of such a change the face tells the key of the old row only',
    rows_live_in_a_table_of_any_schema: schema, changes_are_reported_under_any_schema: schema, functions_take_a_name_as_it_is_declared: schema,
    rows_live_in_a_table_whose_name_is_no_path: 'the face takes no path with such a segment',
    a_query_is_bounded: 'the face takes 256 conditions', a_reply_is_bounded: 'the face gives 200 columns',
};
// Rows of one millisecond are in the order of their ids, which is that of their insertion at times.
const unsteady = ['claimable_goes_on_before_a_place', 'lists_are_newest_first_in_pages_and_by_status'];

test('the contract holds over the face of the embedded backend', async (t) => {
    const h = await startHearth({ t }), { secret } = await faceKeys(h);
    await check({ HEARTH_TEST_HOSTED_URL: h.url, HEARTH_TEST_HOSTED_KEY: secret, HEARTH_TEST_HOSTED_FILE: join(h.dataDir, 'backend.db'), HEARTH_TEST_HOSTED_REALTIME: '1' },
        onFace, ['events']);
});

// lite sees the tables that are there when it starts.
const later = 'lite sees no table that is made later', names = 'lite does not read names with quotes', count = 'lite takes a column of the name count for the function';
const refused = 'lite answers a refused CHECK with 500', text = 'lite gives a function its jsonb argument as a string';
const onLite = {
    a_stale_lease_is_taken_over_and_its_holder_is_fenced_off: text, complete_stores_the_result_and_clears_the_lock: text,
    complete_task_stores_any_json_and_only_for_the_holder: text, a_late_completion_and_a_take_over_never_both_succeed: text,
    repeating_complete_is_a_success_that_changes_nothing: text, a_result_that_is_no_json_is_refused_and_the_lease_lives_on: text,
    constraints_are_kept: refused, rows_are_updated_and_deleted: refused,
    conflicts_merge_or_are_ignored: count, missing_members_are_null_or_default: count, a_value_is_read_as_its_columns_type: count,
    rows_live_in_a_table_of_any_name: later, rows_live_in_a_table_of_any_schema: later, rows_live_in_a_table_whose_name_is_no_path: later,
    functions_take_a_name_as_it_is_declared: later,
    a_change_affects_so_many_rows_or_none: later,
    a_declaration_may_be_repeated_and_grow: later, a_table_may_have_any_name_in_quotes: later,
    values_come_back_as_postgresql_shows_them: names, items_have_names_paths_and_casts: names,
    a_condition_chooses_rows: 'lite compares a boolean with the text t as false', rows_of_work_are_columns_too: 'lite shows times in another form',
};

async function startTwice(t, pg, options, env) {
    const ends = [], first = await startLite({ after: (end) => ends.push(end) }, pg, options);
    await run('query', env(first)).finally(() => ends[0]());
    return startLite(t, pg, options);
}

test('the contract holds over the hosted service\'s own small server', { skip }, async (t) => {
    const pg = await hostedProject(t);
    const env = (lite) => ({ HEARTH_TEST_HOSTED_URL: lite.url, HEARTH_TEST_HOSTED_KEY: lite.secret, HEARTH_TEST_HOSTED_PG: pg.url('root'), HEARTH_TEST_HOSTED_FIXED: '1' });
    await check(env(await startTwice(t, pg, { schemas: ['public', 'sales'] }, env)), onLite);
});
