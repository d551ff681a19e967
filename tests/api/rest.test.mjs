// /rest/v1 of the face as HTTP: who may, statuses and headers, what breaks a rule, each limit at its edge. The official client drives it in
// tests/peers/rest.test.mjs; the grammar of queries is tested in tests/unit/face/test_rest_query.c.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { insert, newKey } from './kit.mjs';
import { faceKeys, faceUser, token } from './realtime.mjs';

const origin = 'https://app.example.org';
const h = await startHearth({ settings: { 'http.allowed_origins': origin } });
const base = '/rest/v1/svc_activities';
const representation = { prefer: 'return=representation' };
let keys, user, service, asUser;

before(async () => {
    keys = await faceKeys(h);
    user = await faceUser(h);
    service = (method, path, body, more) => h.api(method, path, body, { apikey: keys.secret, ...more });
    asUser = (method, path, body, more) => h.api(method, path, body, { ...user.headers, ...more });
});
after(() => h.stop());

function refused(reply, status, code, text = /./) {
    assert.equal(reply.status, status, reply.text);
    assert.equal(reply.body.code, code, reply.text);
    assert.match(reply.body.message, text);
    for (const member of ['details', 'hint'])
        assert.ok(member in reply.body, `${member}: ${reply.text}`);
    return reply.body;
}

// A row with a mark of its own; {id, mark}.
async function row(more = {}) {
    const mark = randomUUID();
    const { status, body, text } = await service('POST', base, { raw_data: { mark }, status: 'kept', ...more }, representation);
    assert.equal(status, 201, text);
    return { id: body[0].id, mark };
}

// ---- who ----

test('a request without a key of the face is refused as by the gateway', async () => {
    const developer = await newKey(h);
    for (const headers of [{}, { apikey: '' }, { apikey: 'sb_publishable_x' }, { apikey: developer.key }, { authorization: `Bearer ${keys.secret}` }]) {
        const reply = await h.api('GET', base, undefined, headers);
        assert.equal(reply.status, 401, reply.text);
        assert.ok(!('code' in reply.body), reply.text);
        assert.match(reply.body.message, /^(No API key found in request|Invalid API key)$/);
        assert.ok(reply.body.hint);
    }
    assert.equal((await h.api('GET', `${base}?apikey=${keys.secret}&limit=1`)).status, 200);
    assert.equal((await h.api('GET', base, undefined, { apikey: keys.secret, authorization: `Bearer ${keys.secret}` })).status, 200);
});

test('a token that is wrong, too old or of another key is refused with the codes of the original', async () => {
    const now = Math.floor(Date.now() / 1000);
    const cases = [['x.y.z', 'PGRST301'], [token('another', user.user.id), 'PGRST301'], [token(keys.jwt_secret, user.user.id, { exp: now - 40 }), 'PGRST303', 'JWT expired'],
        [token(keys.jwt_secret, user.user.id, { nbf: now + 90 }), 'PGRST303'], [token(keys.jwt_secret, user.user.id, { role: 'postgres' }), 'PGRST301']];
    for (const [jwt, code, message] of cases) {
        const body = refused(await h.api('GET', base, undefined, { apikey: keys.publishable, authorization: `Bearer ${jwt}` }), 401, code);
        assert.equal(body.message, message ?? body.message);
    }
    const skewed = { apikey: keys.publishable, authorization: `Bearer ${token(keys.jwt_secret, user.user.id, { exp: now - 20 })}` };
    assert.equal((await h.api('GET', base, undefined, skewed)).status, 200, '30 s of skew are allowed');
});

test('anonymous callers, and tokens without a user, may do nothing', async () => {
    const { id } = await row();
    const anonymous = { apikey: keys.publishable };
    const nobody = { apikey: keys.publishable, authorization: `Bearer ${token(keys.jwt_secret, undefined)}` };
    for (const headers of [anonymous, nobody]) {
        for (const [method, path, body] of [['GET', base], ['POST', base, { raw_data: {} }], ['PATCH', `${base}?id=eq.${id}`, { status: 'x' }], ['DELETE', `${base}?id=eq.${id}`]])
            refused(await h.api(method, path, body, headers), 401, '42501', /permission denied for table svc_activities/);
        refused(await h.api('POST', '/rest/v1/rpc/get_publications_full', {}, headers), 401, '42501', /permission denied for function/);
    }
    assert.equal((await service('GET', `${base}?id=eq.${id}`)).body[0].status, 'kept');
});

test('a user reads, changes, deletes and leaves behind own rows only', async () => {
    const other = await faceUser(h);
    const mine = await row({ user_id: user.user.id }), foreign = await row({ user_id: other.user.id }), nobodys = await row();
    const all = `id=in.(${[mine, foreign, nobodys].map(({ id }) => id)})`;
    assert.deepEqual((await asUser('GET', `${base}?${all}&select=id`)).body, [{ id: mine.id }]);
    assert.deepEqual((await asUser('GET', `${base}?or=(id.eq.${foreign.id},user_id.neq.${user.user.id},user_id.is.null)`)).body, []);
    assert.deepEqual((await asUser('PATCH', `${base}?${all}&select=id`, { status: 'mine' }, representation)).body, [{ id: mine.id }]);
    refused(await asUser('PATCH', `${base}?id=eq.${mine.id}`, { user_id: other.user.id }), 403, '42501', /row-level security/);
    refused(await asUser('POST', base, { raw_data: {}, user_id: other.user.id }), 403, '42501', /row-level security/);
    refused(await asUser('POST', base, [{ raw_data: {}, user_id: user.user.id }, { raw_data: {}, user_id: null }]), 403, '42501');
    refused(await asUser('POST', base, { id: foreign.id, raw_data: {}, user_id: user.user.id }, { prefer: 'resolution=merge-duplicates' }), 403, '42501');
    assert.deepEqual((await asUser('DELETE', `${base}?${all}&select=id`, undefined, representation)).body, [{ id: mine.id }]);
    assert.deepEqual((await service('GET', `${base}?${all}&select=status&order=id`)).body, [{ status: 'kept' }, { status: 'kept' }]);
});

test('a user claims, completes and fails own rows only', async () => {
    const mine = await row({ user_id: user.user.id, status: 'pending' }), foreign = await row({ user_id: randomUUID(), status: 'pending' });
    const call = (name, { id }, more = {}) => asUser('POST', `/rest/v1/rpc/svc_fn_${name}`, { task_id: id, machine_id: 'm1', ...more });
    for (const name of ['claim_task', 'complete_task', 'fail_task'])
        assert.deepEqual((await call(name, foreign)).body, { success: false, reason: 'not_found', error: 'Activity not found' });
    assert.equal((await call('claim_task', mine)).body.success, true);
    assert.equal((await call('complete_task', mine, { result: { ok: 1 } })).body.success, true);
    assert.deepEqual((await service('GET', `${base}?select=status&id=in.(${mine.id},${foreign.id})&order=status`)).body, [{ status: 'completed' }, { status: 'pending' }]);
});

// ---- pages ----

test('pages of allowed origins may send what the client sends and read what it reads', async () => {
    const asked = ['authorization', 'apikey', 'content-type', 'prefer', 'x-client-info', 'accept-profile', 'content-profile', 'range', 'range-unit'];
    const preflight = await h.api('OPTIONS', base, undefined, { origin, 'access-control-request-method': 'PATCH', 'access-control-request-headers': asked.join(',') });
    assert.equal(preflight.status, 200);
    assert.equal(preflight.headers['access-control-allow-origin'], origin);
    const allowed = preflight.headers['access-control-allow-headers'].split(/, */);
    for (const name of asked)
        assert.ok(allowed.includes(name), name);
    for (const method of ['GET', 'POST', 'PATCH', 'DELETE'])
        assert.ok(preflight.headers['access-control-allow-methods'].split(/, */).includes(method), method);
    const reply = await service('GET', `${base}?limit=1`, undefined, { origin });
    assert.equal(reply.status, 200);
    assert.equal(reply.headers['access-control-allow-origin'], origin);
    for (const name of ['content-range', 'location', 'preference-applied'])
        assert.ok(reply.headers['access-control-expose-headers'].split(/, */).includes(name), name);
});

test('pages of foreign origins and names pointed at this machine get nothing, whatever key they have', async () => {
    const { id } = await row();
    for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }, { origin: `${origin}.evil.example` }, { host: 'evil.example' }])
        for (const [method, path] of [['GET', base], ['POST', base], ['DELETE', `${base}?id=eq.${id}`], ['POST', '/rest/v1/rpc/get_publications_full'], ['OPTIONS', base]]) {
            const reply = await service(method, path, method === 'POST' ? {} : undefined, headers);
            assert.equal(reply.status, 403, reply.text);
            assert.equal(reply.headers['access-control-allow-origin'], undefined);
        }
    assert.equal((await service('GET', `${base}?id=eq.${id}`)).body.length, 1);
});

// ---- statuses and headers ----

test('Content-Range and status tell which rows of how many an answer has', async () => {
    const mark = randomUUID();
    assert.equal((await service('POST', base, [0, 1, 2, 3].map((n) => ({ raw_data: { mark, n }, status: 'kept' })))).status, 201);
    const filter = `raw_data->>mark=eq.${mark}&select=n:raw_data->n&order=raw_data->>n`;
    const counted = { prefer: 'count=exact' };
    const cases = [
        ['', {}, 200, '0-3/*', 4], ['', counted, 200, '0-3/4', 4], ['&limit=2', {}, 200, '0-1/*', 2], ['&limit=2', counted, 206, '0-1/4', 2],
        ['&limit=2&offset=2', counted, 206, '2-3/4', 2], ['&offset=4', counted, 206, '*/4', 0], ['&offset=9', {}, 200, '*/*', 0], ['&limit=0', counted, 206, '*/4', 0],
        ['', { range: '1-2' }, 200, '1-2/*', 2], ['', { range: '1-2', 'range-unit': 'items', ...counted }, 206, '1-2/4', 2], ['', { range: '3-' }, 200, '3-3/*', 1],
        ['&limit=3&offset=1', { range: '2-9' }, 200, '2-3/*', 2], ['', { range: 'bytes=0-1' }, 200, '0-3/*', 4], ['', { range: '0-0', 'range-unit': 'bytes' }, 200, '0-3/*', 4],
        ['&raw_data->>n=eq.9', counted, 200, '*/0', 0],
    ];
    for (const [query, headers, status, range, n] of cases) {
        const reply = await service('GET', `${base}?${filter}${query}`, undefined, headers);
        const told = `${query} ${JSON.stringify(headers)}: ${reply.status} ${reply.headers['content-range']}`;
        assert.deepEqual([reply.status, reply.headers['content-range'], reply.body.length], [status, range, n], told);
        assert.equal(reply.headers['preference-applied'], headers.prefer, told);
    }
    const behind = await service('GET', `${base}?${filter}&offset=5`, undefined, counted);
    assert.equal(refused(behind, 416, 'PGRST103').details, 'An offset of 5 was requested, but there are only 4 rows.');
    assert.equal(behind.headers['content-range'], '*/4');
    for (const [query, headers] of [['&limit=-1', {}], ['&offset=-1', {}], ['', { range: '3-1' }]])
        refused(await service('GET', `${base}?${filter}${query}`, undefined, headers), 416, 'PGRST103');
    const head = await service('HEAD', `${base}?${filter}`, undefined, counted);
    assert.deepEqual([head.status, head.headers['content-range'], head.text], [200, '0-3/4', '']);
});

test('changes answer with the status, the rows and the headers that Prefer asks for', async () => {
    const id = randomUUID();
    const made = await service('POST', base, { id, raw_data: {}, status: 'kept' }, { prefer: 'return=headers-only' });
    assert.deepEqual([made.status, made.text, made.headers.location, made.headers['content-range'], made.headers['preference-applied']],
        [201, '', `/svc_activities?id=eq.${id}`, '*/*', 'return=headers-only']);
    assert.equal((await h.api('GET', `/rest/v1${made.headers.location}`, undefined, { apikey: keys.secret })).body[0].id, id);
    const merged = await service('POST', base, { id, raw_data: { n: 1 }, status: 'kept' }, { prefer: 'resolution=merge-duplicates, return=representation, count=exact' });
    assert.deepEqual([merged.status, merged.body[0].raw_data, merged.headers['content-range'], merged.headers['preference-applied']],
        [200, { n: 1 }, '*/1', 'resolution=merge-duplicates, return=representation, count=exact']);
    const ignored = await service('POST', base, { id, raw_data: { n: 2 }, status: 'kept' }, { prefer: 'resolution=ignore-duplicates,return=representation' });
    assert.deepEqual([ignored.status, ignored.body], [201, []]);
    refused(await service('POST', base, { id, raw_data: {} }), 409, '23505');
    const patched = await service('PATCH', `${base}?id=eq.${id}`, { status: 'other' });
    assert.deepEqual([patched.status, patched.text, patched.headers['content-range']], [204, '', '0-0/*']);
    const shown = await service('PATCH', `${base}?id=eq.${id}&select=status`, { status: 'more' }, { prefer: 'return=representation,count=exact' });
    assert.deepEqual([shown.status, shown.body, shown.headers['content-range']], [200, [{ status: 'more' }], '0-0/1']);
    const none = await service('PATCH', `${base}?id=eq.${id}`, {}, representation);
    assert.deepEqual([none.status, none.body, none.headers['content-range']], [200, [], '*/*']);
    const deleted = await service('DELETE', `${base}?id=eq.${id}`, undefined, { prefer: 'count=exact' });
    assert.deepEqual([deleted.status, deleted.text, deleted.headers['content-range']], [204, '', '*/1']);
    const gone = await service('DELETE', `${base}?id=eq.${id}`, undefined, representation);
    assert.deepEqual([gone.status, gone.body], [200, []]);
});

test('one object is given, or the change of another number of rows is undone', async () => {
    const one = { accept: 'application/vnd.pgrst.object+json' };
    const { id } = await row(), { id: second } = await row();
    const got = await service('GET', `${base}?id=eq.${id}&select=id`, undefined, one);
    assert.deepEqual([got.status, got.body, got.headers['content-type']], [200, { id }, 'application/vnd.pgrst.object+json; charset=utf-8']);
    assert.equal(refused(await service('GET', `${base}?id=in.(${id},${second})`, undefined, one), 406, 'PGRST116').details, 'The result contains 2 rows');
    refused(await service('GET', `${base}?id=eq.${randomUUID()}`, undefined, one), 406, 'PGRST116');
    const both = `${base}?id=in.(${id},${second})`;
    refused(await service('PATCH', both, { status: 'changed' }, { ...one, ...representation }), 406, 'PGRST116');
    refused(await service('DELETE', both, undefined, one), 406, 'PGRST116');
    const ids = [randomUUID(), randomUUID()];
    refused(await service('POST', base, ids.map((new_) => ({ id: new_, raw_data: {} })), one), 406, 'PGRST116');
    assert.deepEqual((await service('GET', `${base}?id=in.(${[id, second, ...ids]})&select=status`)).body, [{ status: 'kept' }, { status: 'kept' }]);
});

test('preferences are obeyed, ignored, or refused when they are strict', async () => {
    const mark = randomUUID();
    await service('POST', base, [1, 2].map(() => ({ raw_data: { mark }, status: 'kept' })));
    const path = `${base}?raw_data->>mark=eq.${mark}`;
    const strict = refused(await service('GET', path, undefined, { prefer: 'handling=strict, anything' }), 400, 'PGRST122');
    assert.equal(strict.details, 'Invalid preferences: anything');
    assert.equal((await service('GET', path, undefined, { prefer: 'anything, return=nothing' })).status, 200);
    refused(await service('PATCH', path, { status: 'x' }, { prefer: 'handling=strict,max-affected=1' }), 400, 'PGRST124');
    refused(await service('DELETE', path, undefined, { prefer: 'handling=strict,max-affected=1' }), 400, 'PGRST124');
    const enough = await service('PATCH', path, { status: 'x' }, { prefer: 'handling=strict,max-affected=2' });
    assert.deepEqual([enough.status, enough.headers['preference-applied']], [204, 'handling=strict, max-affected=2']);
    assert.equal((await service('PATCH', path, { status: 'y' }, { prefer: 'max-affected=1' })).status, 204, 'only with handling=strict');
});

test('only the schema public, JSON and the methods of the table are served', async () => {
    assert.equal((await service('GET', `${base}?limit=1`, undefined, { 'accept-profile': 'public' })).status, 200);
    refused(await service('GET', base, undefined, { 'accept-profile': 'auth' }), 406, 'PGRST106');
    refused(await service('POST', base, { raw_data: {} }, { 'content-profile': 'storage' }), 406, 'PGRST106');
    refused(await service('POST', '/rest/v1/rpc/get_publications_full', {}, { 'content-profile': 'x' }), 406, 'PGRST106');
    for (const accept of ['text/csv', 'application/vnd.pgrst.plan', 'application/geo+json', 'application/vnd.pgrst.object+json;nulls=stripped'])
        refused(await service('GET', base, undefined, { accept }), 406, 'PGRST107');
    assert.equal((await service('GET', `${base}?limit=1`, undefined, { accept: 'text/html, */*;q=0.1' })).status, 200);
    refused(await service('PUT', `${base}?id=eq.${randomUUID()}`, {}), 405, 'PGRST117');
    refused(await service('GET', '/rest/v1/a/b'), 501, 'FACE_PART_MISSING');
});

// ---- what breaks a rule ----

test('tables that are not there, or are the service\'s own, are not served', async () => {
    const names = ['nope', 'public.svc_activities', 'sqlite_master', 'sqlite_schema', '_presence', '_changes', 'svc_presence', 'svc_activities;', '%22svc_activities%22', 'sales.orders', '%22sales%22.%22orders%22', 'svc_activities%22',
        'svc_activities%20', '%C3%BC', 'x'.repeat(63), 'x'.repeat(64), 'SVC_ACTIVITIES%00'.slice(0, 14), 'a%27b', 'rpc'];
    for (const name of names)
        for (const [method, body] of [['GET'], ['POST', {}], ['PATCH', {}], ['DELETE']]) {
            const reply = await service(method, `/rest/v1/${name}?id=eq.1`, body);
            refused(reply, 404, 'PGRST205', /Could not find the table 'public\./);
        }
});

test('the work of deleted rows is the service role\'s', async () => {
    const { body: [{ id }] } = await service('POST', base, { raw_data: { gone: true } }, { prefer: 'return=representation' });
    assert.equal((await service('DELETE', `${base}?id=eq.${id}`)).status, 204);
    const { status, body } = await service('GET', `/rest/v1/svc_deletions?old_data->>id=eq.${id}`);
    assert.equal(status, 200);
    assert.deepEqual(body.map((row) => [row.source_table, row.event_type, row.status, row.old_data.id]), [['svc_activities', 'DELETE', 'pending', id]]);
    refused(await asUser('GET', '/rest/v1/svc_deletions'), 404, 'PGRST205');
});

test('queries that break the grammar, or ask for what is not served, name the parameter and the rule', async () => {
    const cases = [['status=pending', /`status` needs an operator/], ['select=orders(*)', /embeds another table/], ['status=fts.x', /operator fts.*not serve/], ['limit=x', /`limit`/],
        ['or=(status.eq.x', /`or`/], ['select=%ff', /select/], ['status=eq.%ff', /percent-encoded/], ['status=eq.%00', /percent-encoded/], ['order=status.sideways', /`order`/]];
    for (const [query, text] of cases)
        refused(await service('GET', `${base}?${query}`), 400, 'PGRST100', text);
    refused(await service('GET', `${base}?nope=eq.1`), 400, '42703');
    refused(await service('GET', `${base}?select=nope`), 400, '42703');
    refused(await service('GET', `${base}?order=nope`), 400, '42703');
    refused(await service('GET', `${base}?id=eq.x`), 400, '22P02');
    refused(await service('GET', `${base}?retry_count=gt.many`), 400, '22P02');
    refused(await service('GET', `${base}?id=like.x*`), 404, '42883');
    for (const method of ['PATCH', 'DELETE']) {
        refused(await service(method, `${base}?id=eq.${randomUUID()}&limit=1`, method === 'PATCH' ? {} : undefined), 400, 'PGRST100', /limit/);
        refused(await service(method, base, method === 'PATCH' ? { status: 'x' } : undefined), 400, '21000', /WHERE/);
    }
    assert.equal((await service('GET', `${base}?limit=1`)).status, 200);
});

test('texts of a query are values, never SQL', async () => {
    const nasty = ["'", '"', "' OR 1=1 --", '"; DROP TABLE svc_activities; --', '\\', '%27', '$1', '?1', '{', '}', '[1', "x'||'y", '\u0007', '😀', "')) UNION SELECT 1 --"];
    for (const text of nasty) {
        const value = encodeURIComponent(text);
        for (const query of [`status=eq.${value}`, `raw_data->>mark=eq.${value}`, `raw_data->${encodeURIComponent(JSON.stringify(text))}->>x=eq.${value}`, `status=in.(${encodeURIComponent(JSON.stringify(text))})`]) {
            const reply = await service('GET', `${base}?${query}`);
            assert.ok(reply.status === 200 || reply.body.code === 'PGRST100', `${query}: ${reply.text}`);
            assert.ok(reply.status !== 200 || reply.body.length === 0, `${query} matched`);
        }
        refused(await service('GET', `${base}?${encodeURIComponent(JSON.stringify(text))}=eq.x`), 400, '42703');
        refused(await service('GET', `${base}?select=${encodeURIComponent(JSON.stringify(text))}`), 400, '42703');
        const made = await service('POST', `${base}?select=status`, { raw_data: {}, status: text }, representation);
        assert.deepEqual(made.body, [{ status: text }]);
        const path = `${base}?status=eq.${value}`;
        assert.equal((await service('DELETE', path, undefined, { prefer: 'count=exact' })).headers['content-range'], '*/1', text);
    }
    const call = await h.asKey();
    assert.ok((await insert(call, {})).id, 'the table is still there');
});

test('bodies that are no rows are refused', async () => {
    const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`;
    for (const text of ['', ' ', '{', '{"raw_data":{},}', "{'raw_data':{}}", '{} {}', deep, `{"raw_data":${deep}}`, Buffer.from([0x7b, 0xff, 0x7d])])
        refused(await service('POST', base, text, { 'content-type': 'application/json' }), 400, 'PGRST102');
    for (const body of ['1', '"x"', 'null', 'true', '[1]', '[[]]', '[null]', '[{},1]'])
        refused(await service('POST', base, body, { 'content-type': 'application/json' }), 400, 'PGRST102', /object/);
    refused(await service('POST', base, [{ raw_data: {} }, { status: 'x' }]), 400, 'PGRST102', /keys must match/);
    refused(await service('POST', base, 'a,b\n1,2', { 'content-type': 'text/csv' }), 400, 'PGRST102', /Content-Type/);
    for (const [path, body] of [[base, { nope: 1 }], [base, { raw_data: {}, '"id"': 1 }], [`${base}?columns=nope`, { raw_data: {} }]])
        refused(await service('POST', path, body), 400, 'PGRST204', /Could not find the '.*' column of 'svc_activities'/);
    const path = `${base}?id=eq.${randomUUID()}`;
    refused(await service('PATCH', path, { nope: 1 }), 400, 'PGRST204');
    refused(await service('PATCH', path, '[]', { 'content-type': 'application/json' }), 400, 'PGRST102', /one object/);
    refused(await service('PATCH', path, [{ status: 'a' }, { status: 'b' }]), 400, 'PGRST102', /one object/);
    refused(await service('POST', base, { raw_data: null }), 400, '23502');
    refused(await service('POST', base, { id: 'x', raw_data: {} }), 400, '22P02');
    refused(await service('POST', base, { raw_data: {}, retry_count: 'many' }), 400, '22P02');
    refused(await service('POST', `${base}?on_conflict=status`, { raw_data: {} }, { prefer: 'resolution=merge-duplicates' }), 400, '42P10');
});

test('functions are found by their name and the names of their arguments', async () => {
    const rpc = '/rest/v1/rpc';
    const task = { task_id: randomUUID(), machine_id: 'm1' };
    refused(await service('POST', `${rpc}/nope`, {}), 404, 'PGRST202', /public\.nope without parameters/);
    refused(await service('POST', `${rpc}/svc_fn_claim_task`, { ...task, force: true }), 404, 'PGRST202', /public\.svc_fn_claim_task\(task_id, machine_id, force\)/);
    refused(await service('POST', `${rpc}/get_publications_full`, { x: 1 }), 404, 'PGRST202');
    refused(await service('GET', `${rpc}/get_publications_full?x=1`), 404, 'PGRST202');
    refused(await service('POST', `${rpc}/svc_fn_claim_task`, {}), 400, '22023', /task_id|machine_id/);
    refused(await service('POST', `${rpc}/svc_fn_claim_task`, { ...task, machine_id: {} }), 400, '22023', /machine_id/);
    refused(await service('GET', `${rpc}/svc_fn_claim_task?task_id=${task.task_id}&machine_id=m1`), 405, '25006');
    refused(await service('POST', `${rpc}/svc_fn_claim_task`, '[]', { 'content-type': 'application/json' }), 400, 'PGRST102');
    refused(await service('POST', `${rpc}/svc_fn_claim_task`, '{', { 'content-type': 'application/json' }), 400, 'PGRST102');
    refused(await service('POST', `${rpc}/get_publications_full?order=pubname`, {}), 400, 'PGRST100', /order/);
    assert.equal((await service('POST', `${rpc}/svc_fn_claim_task`, task)).body.reason, 'not_found');
    for (const [method, body] of [['POST', {}], ['POST', ''], ['GET']]) {
        const reply = await service(method, `${rpc}/get_publications_full`, body);
        assert.deepEqual([reply.status, reply.headers['content-range']], [200, '0-0/*']);
        assert.ok(Array.isArray(reply.body));
    }
    assert.equal((await service('HEAD', `${rpc}/get_publications_full`)).text, '');
});

// ---- limits ----

test('each limit holds at its edge', async () => {
    const repeat = (n, text) => Array.from({ length: n }, () => text).join(',');
    const edges = [['select=', 'id', 200], ['order=', 'id', 32], ['retry_count=in.(', '1', 1000, ')'], ['or=(', 'id.is.null', 255, ')']];
    for (const [head, part, n, tail = ''] of edges) {
        const reply = await service('GET', `${base}?limit=1&${head}${repeat(n, part)}${tail}`);
        assert.ok(reply.status === 200 || reply.body.code === '42702' || reply.body.code === 'PGRST100' && /twice/.test(reply.text), `${head} ${n}: ${reply.text}`);
        refused(await service('GET', `${base}?limit=1&${head}${repeat(n + 1, part)}${tail}`), 400, 'PGRST100', new RegExp(`${n}|${n + 1}`));
    }
    const nested = (n) => `or=(${'and('.repeat(n - 1)}id.is.null${')'.repeat(n)}`;
    assert.equal((await service('GET', `${base}?${nested(16)}`)).status, 200);
    refused(await service('GET', `${base}?${nested(17)}`), 400, 'PGRST100', /16 deep/);
    const target = `${base}?status=eq.`;
    assert.equal((await service('GET', target + 'x'.repeat(8192 - target.length))).status, 200);
    assert.equal((await service('GET', target + 'x'.repeat(8193 - target.length))).status, 414);
    const rows = (n) => Array.from({ length: n }, () => ({ id: '00000000-0000-4000-8000-00000000000e', raw_data: {} }));
    refused(await service('POST', base, rows(10_001)), 400, 'PGRST102', /10000 rows/);
    assert.equal((await service('POST', base, rows(10_000), { prefer: 'resolution=ignore-duplicates' })).status, 201);
    const wide = (n) => ({ raw_data: {}, ...Object.fromEntries(Array.from({ length: n - 1 }, (_, i) => [`c${i}`, 1])) });
    refused(await service('POST', base, wide(200)), 400, 'PGRST204');
    refused(await service('POST', base, wide(201)), 400, 'PGRST102', /200 members/);
    const bytes = (n) => `{"status":"kept","raw_data":{"x":"${'a'.repeat(n - 37)}"}}`;
    const limit = 4 * 1024 * 1024;
    assert.equal(bytes(100).length, 100);
    assert.equal((await service('POST', base, bytes(limit), { 'content-type': 'application/json' })).status, 201);
    assert.equal((await service('POST', base, bytes(limit + 1), { 'content-type': 'application/json' })).status, 413);
});
