// A PostgreSQL that means harm, as the backend of a service: it lies in the middle of honest answers, floods, falls silent, breaks off and sends wrong frames of
// the stream. Calls end with a reason by their deadline, memory stays bounded, nothing stalls, and all goes on when the server behaves again.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { coldHearth, startHearth, until } from '../api/harness.mjs';
import { insert, listeningApp, newApp, rowBecomes, shellAgent } from '../api/kit.mjs';
import { faceKeys } from '../api/realtime.mjs';
import { postgresPrograms, startPostgres } from '../api/postgres_server.mjs';
import { residentKib } from './kit.mjs';
import { begun, complete, described, message, parameter, ready, row, SILENCE, startPgDouble } from './pg_double.mjs';
import { startLiar } from './pg_liar.mjs';

const skip = postgresPrograms ? false : 'no PostgreSQL is installed';
const grants = ['activities.read', 'activities.write'];
const brisk = { 'backend.call_s': 2, 'tasks.sweep_s': 0.5, 'tasks.heartbeat_s': 0.2, 'tasks.presence_s': 0.5 };
// ASan keeps 256 MiB of what was freed, and more beside each allocation.
const mostKib = ((process.env.HEARTH_BIN ?? 'debug').includes('debug') ? 1000 : 400) * 1024;
const id = '11111111-0000-4000-8000-000000000001';

// A set-up database behind the liar, and a service on it.
async function world(t, { server = {}, settings = {}, role = 'owner' } = {}) {
    const pg = await startPostgres(t, server), db = await startLiar(t, pg), cold = coldHearth({ t });
    const env = { HEARTH_BACKEND_KIND: 'postgres', HEARTH_BACKEND_URL: pg.url(role), HEARTH_BACKEND_EVENTS: settings['backend.events'] ?? 'auto' };
    pg.psql((await cold.cli('backend', 'sql', { env })).stdout, role);
    const h = await startHearth({ t, settings: { 'backend.kind': 'postgres', 'backend.url': db.url(role), ...brisk, ...settings } });
    return { pg, db, h };
}

// ---- rows ----

const names = ['id', 'app_id', 'user_id', 'raw_data', 'old_data', 'status', 'locked_by', 'locked_at', 'completed_at', 'error_message', 'attempted_by', 'retry_count',
    'result', 'created_at', 'attempt', 'event_type', 'source_table', 'is_dirty'];
const honest = { id, app_id: null, user_id: null, raw_data: '{}', old_data: null, status: 'pending', locked_by: null, locked_at: null, completed_at: null, error_message: null,
    attempted_by: '[]', retry_count: 0, result: null, created_at: '2026-11-28T10:00:00.000000Z', attempt: 0, event_type: 'INSERT', source_table: null, is_dirty: 0 };
const record = (more = {}) => names.map((name) => ({ ...honest, ...more })[name]);
const answered = (...rows) => Buffer.concat([begun, described(names), ...rows.map(row), complete(`SELECT ${rows.length}`), ready()]);

function flood(piece, first = Buffer.alloc(0)) {
    return (socket) => {
        const more = () => { while (!socket.destroyed && socket.write(piece)); };
        socket.write(first);
        socket.on('drain', more);
        more();
    };
}

const many = (make) => Buffer.concat(Array.from({ length: 2000 }, (_, i) => make(i)));
const broken = (bytes) => (socket) => socket.end(bytes);
const notice = message('N', Buffer.from('SNOTICE\0C00000\0Mso it goes\0\0'));

// [what, answer, reason]; the answer of the statement that lists rows.
const lies = [
    ['more rows than were asked for', answered(...Array.from({ length: 5 }, () => record())), /more rows than/],
    ['rows without end', flood(many(() => row(record())), Buffer.concat([begun, described(names)])), /more rows than/],
    ['a row of one column', Buffer.concat([begun, described(['id']), row(['x']), complete('SELECT 1'), ready()]), /1 columns where 18/],
    ['a row of 1,600 columns', Buffer.concat([begun, described(Array.from({ length: 1600 }, (_, i) => `c${i}`)), row(Array(1600).fill('1')), ready()]), /1600 columns where 18/],
    ['binary columns', Buffer.concat([begun, described(names, 1), row(record()), ready()]), /binary/],
    ['rows that do not fit their description', Buffer.concat([begun, described(names), row(['x']), complete('SELECT 1'), ready()]), /PostgreSQL/],
    ['an id of NULL', answered(record({ id: null })), /lacks a value/],
    ['raw_data of NULL', answered(record({ raw_data: null })), /lacks a value/],
    ['a count in words', answered(record({ retry_count: 'many' })), /whole number/],
    ['an attempt beyond 64 bits', answered(record({ attempt: '99999999999999999999' })), /whole number/],
    ['a text that is no UTF-8', answered(record({ locked_by: Buffer.from([0x61, 0xff]) })), /UTF-8/],
    ['a text with NUL', answered(record({ locked_by: Buffer.from('a\0b') })), /UTF-8/],
    ['raw_data that leaves its place', answered(record({ raw_data: '{}},"admin":true,"x":{"a":1' })), /no JSON/],
    ['raw_data of two values', answered(record({ raw_data: '{} {}' })), /no JSON/],
    ['raw_data that is closed, and is no JSON', answered(record({ raw_data: '{,}' })), /no JSON/],
    ['raw_data without a comma', answered(record({ raw_data: '{"a":[1 2]}' })), /no JSON/],
    ['raw_data with a word of JavaScript', answered(record({ raw_data: '{"a":undefined}' })), /no JSON/],
    ['machines whose array is closed by a brace', answered(record({ attempted_by: '["a"}' })), /no JSON/],
    ['a result of an escape that is none', answered(record({ result: '"\\x"' })), /no JSON/],
    ['a result that does not end', answered(record({ result: '{"a":"' })), /no JSON/],
    ['a row of a gigabyte', flood(Buffer.alloc(1 << 16, 0x78), Buffer.concat([begun, described(names), Buffer.from('D'), Buffer.from([0x3f, 0xff, 0xff, 0xff, 0, 18, 0x3f, 0xff, 0, 0])])), /no whole row|did not answer/],
    ['notices without end', flood(many(() => notice)), /no whole row|did not answer/],
    ['settings without end', flood(many((i) => parameter(`p${i}`, 'x'.repeat(200)))), /no whole row|did not answer/],
    ['notifications without end', flood(many(() => message('A', Buffer.from('\0\0\0\x01svc_events\0x\0')))), /no whole row|did not answer/],
    ['a copy instead of rows', Buffer.concat([begun, message('H', Buffer.from([0, 0, 0])), ready()]), /neither rows nor an error/],
    ['a message of no kind', Buffer.from('garbage of a server that is none'), /PostgreSQL|database/],
    ['a refusal of a megabyte', Buffer.concat([begun, message('E', Buffer.from(`SERROR\0CXX000\0M${'no '.repeat(300_000)}\0\0`)), ready()]), /PostgreSQL: no no/],
    ['a refusal without words', Buffer.concat([begun, message('E', Buffer.from('\0')), ready()]), /PostgreSQL/],
    ['a connection that ends within a row', broken(Buffer.concat([begun, described(names), row(record()).subarray(0, 40)])), /PostgreSQL|database/],
    ['silence', SILENCE, /did not answer within 2 seconds/],
    ['silence within a row', (socket) => socket.write(Buffer.concat([begun, described(names), row(record()).subarray(0, 40)])), /did not answer within 2 seconds/],
    ['single bytes at long intervals', (socket) => { const drip = setInterval(() => socket.destroyed ? clearInterval(drip) : socket.write(notice.subarray(0, 1)), 100); }, /PostgreSQL|did not answer/],
];

test('every lie about rows is an error that names it, and the next call is served', { skip }, async (t) => {
    const { db, h } = await world(t), app = h.asApp(await newApp(h, {}, grants)), beforeKib = residentKib(h.pid);
    const stored = await insert(app, { n: 1 });
    for (const [what, lie, reason] of lies) {
        db.lies.push([/ORDER BY created_at DESC, seq DESC LIMIT \$3/, lie]);
        const began = performance.now(), reply = await app('GET', '/activities?limit=4');
        const told = `${what}: ${reply.status} ${reply.text.slice(0, 300)}`;
        assert.ok([413, 502, 503].includes(reply.status), told);
        assert.match(reply.body.error, reason, told);
        assert.ok(reply.text.length < 2000 && !('admin' in reply.body), told);
        const tookMs = Math.round(performance.now() - began);
        assert.ok(tookMs < 15_000, `${what} took ${tookMs} ms`);
        db.lies.length = 0;
        const after = await until(async () => { const next = await app('GET', '/activities'); return next.status === 200 && next; }, { what: `rows after ${what}` });
        assert.deepEqual(after.body.data.map((one) => one.id), [stored.id]);
        assert.equal((await h.api('GET', '/healthz')).status, 200);
    }
    assert.ok(residentKib(h.pid) - beforeKib < mostKib, `${residentKib(h.pid) - beforeKib} KiB more`);
});

// What a user's app reads over the face is one statement that prints each row.
const printed = (text) => Buffer.concat([begun, described(['rows', 'new', 'guard', 'json']), row([1, 0, 0, text]), complete('SELECT 1'), ready()]);
const printedLies = [
    ['what is closed, and is no JSON', '{,}'], ['what leaves its place', '{}],"x":[{}'], ['two rows in one', '{},{}'], ['no row', '7'], ['nothing', ''],
];

test('every lie about rows of the face is an error that names it', { skip }, async (t) => {
    const { db, h } = await world(t), { secret } = await faceKeys(h);
    const rows = () => h.api('GET', '/rest/v1/svc_activities', undefined, { apikey: secret });
    for (const [what, text] of printedLies) {
        db.lies.push([/row_to_json/, printed(text)]);
        const reply = await rows();
        assert.deepEqual([reply.status, /no JSON object/.test(reply.text)], [502, true], `${what}: ${reply.status} ${reply.text.slice(0, 300)}`);
        db.lies.length = 0;
    }
    db.lies.push([/row_to_json/, printed(' {"a": [1,\n\t"b c"]} ')]);
    assert.deepEqual((await rows()).body, [{ a: [1, 'b c'] }]);
});

// ---- claims and ends ----

const cutShort = (columns, ...values) => Buffer.concat([begun, described(columns), row(values), complete('UPDATE 1'), ready()]);
const leaseLies = [
    ['a claim of one column', /SET status = 'claimed'/, cutShort(['id'], id)],
    ['a claim of a row that nobody named', /SET status = 'claimed'/, answered(record({ status: 'claimed', attempt: 7 }), record({ id: id.replace('1', '2'), status: 'claimed' }))],
    ['a claim that nobody answers', /SET status = 'claimed'/, SILENCE],
    ['an end that does not say how many rows it changed', /SET status = 'completed'/, Buffer.concat([begun, complete('UPDATE many'), ready()])],
    ['an end of a billion rows in words', /SET status = 'completed'/, Buffer.concat([begun, complete('UPDATE 99999999999999999999'), ready()])],
    ['work that is no row', /UNION ALL/, cutShort(['id'], null)],
    ['signs of life of another shape', /SET locked_at/, Buffer.concat([begun, message('H', Buffer.from([0, 0, 0])), ready()])],
];

test('a row is worked on once and its result stored, whatever was answered to claims and ends before', { skip }, async (t) => {
    const { db, h } = await world(t, { settings: { 'tasks.stale_after_s': 600 } });
    // It works until the lie was told that is about signs of life; those come while it works.
    const told = join(h.desk, 'told');
    await shellAgent(h, `case "$ACTIVITY_DATA" in *"signs of life"*) while [ ! -e ${told} ]; do sleep 0.05; done; esac; printf '{"done":true}'`, { name: 'worker' });
    const { call } = await listeningApp(h, 'worker');
    for (const [what, pattern, lie] of leaseLies) {
        rmSync(told, { force: true });
        db.told.length = 0;
        db.lies.push([pattern, lie]);
        const { id: rowId } = await insert(call, { what });
        await until(() => db.told.length > 0, { what: `the lie of ${what}` });
        db.lies.length = 0;
        writeFileSync(told, '');
        const done = await rowBecomes(call, rowId, 'completed');
        assert.deepEqual([done.result, done.attempt], [{ done: true }, 1], what);
        assert.equal((await h.api('GET', '/healthz')).status, 200);
    }
});

// ---- events ----

const told = async (h) => (await h.cliJson('backend', 'monitor')).last_error ?? '';
const notification = (channel, payload) => message('A', Buffer.from(`\0\0\0\x01${channel}\0${payload}\0`));
const oddNotifications = Buffer.concat([
    ...['', 'x'.repeat(7999), '{', '[]', '{"channel":7}', '{"channel":"task-retry-x","event":null,"payload":[]}', `{"a":${'['.repeat(7000)}`, 'null', '"\ud800"'].map((payload) => notification('svc_broadcast', payload)),
    ...['', 'other', 'svc_events', 'y'.repeat(300)].map((channel) => notification(channel, 'z')), notice, parameter('TimeZone', 'Mars/Phobos'),
]);

// The row that another program writes is worked on although no sweep comes by itself.
async function isServed(pg, h, call, what) {
    const rowId = pg.psql(`INSERT INTO svc_activities (app_id, raw_data) VALUES ('${call.appId}', '{}') RETURNING id`, 'root');
    assert.deepEqual((await rowBecomes(call.call, rowId, 'completed')).result, { done: true }, what);
    assert.equal((await h.api('GET', '/healthz')).status, 200);
}

async function follower(t, options) {
    const w = await world(t, { ...options, settings: { 'tasks.sweep_s': 3600, 'backend.call_s': 2, ...options?.settings } });
    await shellAgent(w.h, 'printf \'{"done":true}\'', { name: 'worker' });
    const { id: appId, call } = await listeningApp(w.h, 'worker');
    return { ...w, app: { appId, call } };
}

// Each attempt to connect gets the next lie; between two of them are up to five seconds.
async function tellAll(db, h, pattern, list) {
    for (const [what, lie] of list) {
        db.told.length = 0;
        db.lies.splice(0, 1, [pattern, lie]);
        await until(() => db.told.length > 0, { what: `the lie of ${what}` });
        assert.equal((await h.api('GET', '/healthz')).status, 200, what);
    }
    db.lies.length = 0;
}

const lookLies = [
    ['a position of 40 MiB', cutShort(['a', 'b', 'c', 'd', 'e'], 0, 0, 'x'.repeat(40 << 20), 0, 0)],
    ['a position that is none', cutShort(['a', 'b', 'c', 'd', 'e'], 0, 0, 'here; DROP TABLE svc_activities', 0, 0)],
    ['columns of NULL', cutShort(['a', 'b', 'c', 'd', 'e'], null, null, null, null, null)],
    ['another shape', cutShort(['a'], 1)],
    ['settings without end', flood(many((i) => parameter(`p${i}`, 'x'.repeat(200))))],
];

test('lies about changes are gaps: the rows are found, and the reason is told', { skip }, async (t) => {
    const { pg, db, h, app } = await follower(t), beforeKib = residentKib(h.pid);
    await tellAll(db, h, /pg_current_snapshot\(\)::text/, lookLies);
    db.inject(oddNotifications);
    await isServed(pg, h, app, 'after the lies');
    assert.notEqual(await told(h), '');
    assert.ok(residentKib(h.pid) - beforeKib < mostKib, `${residentKib(h.pid) - beforeKib} KiB more`);
});

// ---- the stream ----

const int32 = (n) => { const b = Buffer.alloc(4); b.writeInt32BE(n); return b; };
const begin = message('W', Buffer.from([0, 0, 0]));
const data = (body) => message('d', Buffer.concat([Buffer.from('w'), Buffer.alloc(24), Buffer.from(body)]));
const keepalive = message('d', Buffer.concat([Buffer.from('k'), Buffer.alloc(16), Buffer.from([1])]));
const opened = data(Buffer.concat([Buffer.from('B'), Buffer.alloc(20)]));
const streamLies = [
    ['a frame of no kind', Buffer.concat([begin, message('d', Buffer.from('x'))])],
    ['a frame that ends in its head', Buffer.concat([begin, message('d', Buffer.from('w123'))])],
    ['a commit without a beginning', Buffer.concat([begin, data(Buffer.concat([Buffer.from('C'), Buffer.alloc(25)]))])],
    ['a relation of 65,535 columns that are not there', Buffer.concat([begin, opened, data(Buffer.concat([Buffer.from('R'), int32(1), Buffer.from('public\0svc_activities\0f'), Buffer.from([0xff, 0xff])]))])],
    ['a row of an unknown table', Buffer.concat([begin, opened, data(Buffer.concat([Buffer.from('I'), int32(4711), Buffer.from('N'), Buffer.from([0, 1]), Buffer.from('t'), int32(1), Buffer.from('x')]))])],
    ['a value that is longer than its message', Buffer.concat([begin, opened, data(Buffer.concat([Buffer.from('I'), int32(1), Buffer.from('N'), Buffer.from([0, 1]), Buffer.from('t'), int32(0x7fffffff)]))])],
    ['a refusal within the stream', Buffer.concat([begin, message('E', Buffer.from('SERROR\0CXX000\0Mnot today\0\0'))])],
    ['rows instead of a stream', Buffer.concat([described(['x']), row(['1']), complete('SELECT 1'), ready()])],
    ['a frame of a gigabyte', flood(Buffer.alloc(1 << 16, 0x78), Buffer.concat([begin, Buffer.from('d'), int32(0x3fffffff)]))],
    ['a connection that ends within a frame', broken(Buffer.concat([begin, keepalive.subarray(0, 9)]))],
];

test('wrong frames of the stream end it with a reason, and the rows are found', { skip }, async (t) => {
    const { pg, db, h, app } = await follower(t, { server: { wal_level: 'logical' }, role: 'root', settings: { 'backend.events': 'logical' } });
    const beforeKib = residentKib(h.pid);
    await until(async () => (await h.cliJson('backend', 'monitor')).state === 'live', { what: 'the stream' });
    pg.psql('SELECT count(pg_terminate_backend(active_pid)) FROM pg_replication_slots WHERE active_pid IS NOT NULL', 'root');
    await tellAll(db, h, /^START_REPLICATION/, streamLies);
    await isServed(pg, h, app, 'after the lies');
    assert.notEqual(await told(h), '');
    assert.ok(residentKib(h.pid) - beforeKib < mostKib, `${residentKib(h.pid) - beforeKib} KiB more`);
});

test('keepalives without end that want an answer each hold up nothing', { skip }, async (t) => {
    const { pg, db, h, app } = await follower(t, { server: { wal_level: 'logical' }, role: 'root', settings: { 'backend.events': 'logical' } });
    db.lies.push([/^START_REPLICATION/, flood(many(() => keepalive), begin)]);
    pg.psql('SELECT count(pg_terminate_backend(active_pid)) FROM pg_replication_slots WHERE active_pid IS NOT NULL', 'root');
    await until(() => db.told.length > 0, { what: 'the keepalives' });
    const stored = await insert(app.call, {});
    assert.equal((await app.call('GET', `/activities/${stored.id}`)).status, 200);
    assert.equal((await h.api('GET', '/healthz')).status, 200);
});

// ---- the beginning ----

test('a service starts while its database says nothing or nonsense, and ends in time', async (t) => {
    const welcomes = [{ isSilent: true }, { welcome: Buffer.from('HTTP/1.1 200 OK\r\n\r\n') }, { welcome: message('R', int32(7777)) }, { welcome: message('R', int32(10), Buffer.from('SCRAM-SHA-512\0\0')) },
        { welcome: message('E', Buffer.from('SFATAL\0C57P03\0Mthe database system is starting up\0\0')) }, { welcome: many(() => notice) }, { welcome: Buffer.concat([message('R', int32(0)), ready()]) }];
    for (const options of welcomes) {
        const pg = await startPgDouble(t, () => SILENCE, options);
        const h = await startHearth({ t, settings: { 'backend.kind': 'postgres', 'backend.url': pg.url.replace(':s3cret', ''), ...brisk, 'backend.call_s': 1, 'shutdown.deadline_s': 1 } });
        const app = h.asApp(await newApp(h, { config: { backend: { enabled: true } } }, grants)), reply = await app('GET', '/activities');
        assert.ok([502, 503].includes(reply.status), reply.text);
        const ready = await h.socket('GET', '/readyz');
        assert.equal(ready.body.code, 'NOT_READY', ready.text);
        await h.stop();
    }
});
