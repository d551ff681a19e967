// What runs is changed by a browser only after a fresh confirmation in a terminal, and every change is audited with its values (issue 7, section 2).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, confirm, newApp, refused, signIn, unique } from './kit.mjs';
import { makeWorld, successes } from './success.mjs';

let h;
before(async () => { h = await startHearth(); });
after(() => h.stop());

const agent = (more) => ({ name: unique('agent'), command: '/bin/true', ...more });
const newest = async () => (await admin(h, 'GET', '/api/audit?limit=1')).entries[0];

test('every route that changes what runs is refused in a browser until the person confirms, and needs nothing on the socket', async (t) => {
    const own = await startHearth({ t });
    const world = await makeWorld(own);
    const { routes } = await admin(own, 'GET', '/api/routes');
    const defining = routes.filter((route) => route.defines && route.path !== '/api/approvals/:id');     // for commands only: mcp_host.test.mjs
    assert.ok(defining.length >= 10);
    for (const route of defining) {
        const name = `${route.method} ${route.path}`;
        const { path, body } = await successes[name](world);
        const { call } = await signIn(own);
        const tuned = name.endsWith('/api/settings/:key');
        const request = tuned ? [route.method, '/api/settings/net.private_hosts', route.method === 'PUT' ? { value: 'nas.lan' } : undefined]
            : [route.method, path, body];
        const reply = await call(...request);
        const { error, confirm: command } = refused(reply, 403, 'CONFIRMATION_REQUIRED');
        assert.match(error, /run `hearth confirm [2-9A-Z]{4}-[2-9A-Z]{4}` in a terminal, then repeat the request within 5 minutes/, name);
        assert.match(command, /^hearth confirm /);
        const before = (await admin(own, 'GET', '/api/audit/verify')).entries;
        await confirm(own, reply);
        const done = await call(...request);
        assert.ok(done.status < 300, `${name}: ${done.status} ${done.text}`);
        assert.ok((await admin(own, 'GET', '/api/audit/verify')).entries > before + 1, `${name} is audited beside its confirmation`);
    }
});

test('a setting that is a number needs no confirmation, one that names hosts, programs or files does', async () => {
    const { call } = await signIn(h);
    assert.equal((await call('PUT', '/api/settings/consent.wait_s', { value: 5 })).status, 200);
    for (const [key, value] of [['llamacpp.server', '/tmp/evil'], ['net.private_hosts', '*'], ['http.allow_remote', true], ['backend.file', '/tmp/x.db'],
        ['http.allowed_origins', 'https://evil.example'], ['llm.default_provider', 'x']])
        refused(await call('PUT', `/api/settings/${key}`, { value }), 403, 'CONFIRMATION_REQUIRED');
});

test('the command confirms one session, once, and says what was asked for', async () => {
    const [one, other] = [await signIn(h), await signIn(h)];
    const reply = await one.call('POST', '/api/agents', agent());
    const [, code] = /^hearth confirm (\S+)$/.exec(reply.body.confirm);
    assert.equal((await one.call('POST', '/api/agents', agent())).body.confirm, reply.body.confirm, 'a repeated request has the same code');
    assert.equal((await one.call('GET', '/api/session')).body.confirmed_for_s, 0);
    const said = await h.cli('confirm', code.toLowerCase().replace('-', ''));
    assert.equal(said.code, 0, said.stderr);
    assert.match(said.stdout, /five minutes\. .*Define an agent/);
    assert.equal((await one.call('POST', '/api/agents', agent())).status, 201);
    const { confirmed_for_s: left } = (await one.call('GET', '/api/session')).body;
    assert.ok(left > 200 && left <= 300, `${left}`);
    refused(await other.call('POST', '/api/agents', agent()), 403, 'CONFIRMATION_REQUIRED');
    const again = await h.cli('confirm', code);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /No browser waits for this code/);
    await one.call('DELETE', '/api/session');
});

test('a browser confirms neither itself nor another, and no key or app does', async () => {
    const [one, other] = [await signIn(h), await signIn(h)];
    const code = (await one.call('POST', '/api/agents', agent())).body.confirm.replace('hearth confirm ', '');
    for (const { call } of [one, other])
        refused(await call('POST', '/api/session/confirm', { code }), 403, 'TERMINAL_REQUIRED', /terminal/);
    refused(await h.api('POST', '/api/session/confirm', { code }), 401, 'ADMIN_REQUIRED');
    refused(await (await h.asKey())('POST', '/api/session/confirm', { code }), 401, 'ADMIN_REQUIRED');
    for (const wrong of ['AAAA-AAAA', '-', ' ', code.slice(0, -1), `${code}A`])
        refused(await h.socket('POST', '/api/session/confirm', { code: wrong }), 404, 'CONFIRMATION_NOT_FOUND');
    assert.equal((await h.socket('POST', '/api/session/confirm', { code })).status, 200);
});

test('a request that is refused for its body asks for no confirmation', async () => {
    const { call } = await signIn(h);
    refused(await call('POST', '/api/agents', { name: 'x' }), 400, 'VALIDATION_ERROR');
});

test('an agent is audited with its whole definition, secrets masked', async () => {
    const definition = agent({ args: ['-c', 'echo hi'], env: { MODE: 'fast', LD_PRELOAD: '/tmp/x.so', API_KEY: 'sk-1', MY_TOKEN: 'sk-2', DATABASE_URL: 'postgres://u:sk-3@db/x' } });
    await admin(h, 'POST', '/api/agents', definition);
    const entry = await newest();
    assert.deepEqual([entry.action, entry.subject, entry.actor], ['agent.put', definition.name, 'admin']);
    assert.deepEqual(entry.detail, { ...definition, env: { MODE: 'fast', LD_PRELOAD: '/tmp/x.so', API_KEY: '****', MY_TOKEN: '****', DATABASE_URL: 'postgres://****@db/x' } });
    await admin(h, 'DELETE', `/api/agents/${definition.name}`);
    const removed = await newest();
    assert.deepEqual([removed.action, removed.detail.command], ['agent.remove', '/bin/true']);
});

test('in an address the password and the query are masked, in a command nothing is', async () => {
    const args = ['https://u:p@h/x?token=s', 'https://h/?a', 'https://h/?', 'curl https://h/?a;rm -rf /', 'curl http://u:p@h/ && rm', 'a@b', '://', 'x://@'];
    await admin(h, 'POST', '/api/agents', agent({ args }));
    assert.deepEqual((await newest()).detail.args,
        ['https://****@h/x?****', 'https://h/?****', 'https://h/?', 'curl https://h/?a;rm -rf /', 'curl http://****@h/ && rm', 'a@b', '://', 'x://****@']);
});

test('apps, providers, settings and backups are audited with their values, secrets masked', async () => {
    const app = await newApp(h, { config: { command: '/bin/sleep', args: ['9'] } });
    const made = (await admin(h, 'GET', '/api/audit?limit=5')).entries.find((entry) => entry.action === 'app.new');
    assert.equal(made.subject, app);
    assert.deepEqual(made.detail.config, { command: '/bin/sleep', args: ['9'] });
    await admin(h, 'POST', '/api/providers', { preset: 'openai', name: 'far', api_key: 'sk-secret', base_url: 'http://127.0.0.1:9/v1', headers: { 'x-org': 'sk-org' } });
    const added = await newest();
    assert.deepEqual([added.action, added.subject, added.detail.base_url, added.detail.api_key, added.detail.headers],
        ['provider.add', 'far', 'http://127.0.0.1:9/v1', '****', { 'x-org': '****' }]);
    await admin(h, 'PUT', '/api/settings/net.private_hosts', { value: 'nas.lan' });
    assert.deepEqual((await newest()).detail, { value: 'nas.lan' });
    const path = h.file('x', '').replace(/x$/, 'b.tar.gz');
    await admin(h, 'POST', '/api/backup', { path });
    assert.deepEqual((await newest()).detail, { path });
});

test('of a definition larger than an entry the beginning and a hash are kept', async () => {
    const definition = agent({ args: Array.from({ length: 20 }, () => 'x'.repeat(10_000)) });
    await admin(h, 'POST', '/api/agents', definition);
    const { detail } = await newest();
    assert.ok(detail.bytes > 200_000);
    assert.match(detail.blake2b, /^[0-9a-f]{64}$/);
    assert.equal(detail.begins, JSON.stringify(definition).slice(0, 16384));
});
