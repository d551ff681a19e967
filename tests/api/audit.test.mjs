// The audit log (decision D4; issue, section 4): every decision and every use of a dangerous permission, append-only, hash-chained.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { sharedHearth, startHearth } from './harness.mjs';
import { admin, decide, newApp, newKey, refused, sqlite, storeFile, timeForm } from './kit.mjs';

const shared = sharedHearth();
const entries = async (h, query = '?limit=500') => (await admin(h, 'GET', `/api/audit${query}`)).entries;

test('decisions and revocations are in the log, newest first, and the chain is whole', async (t) => {
    const h = await startHearth({ t });
    const app = await newApp(h);
    await decide(h, app, 'api.agents');
    await decide(h, app, 'llm.chat', { allow: false });
    await admin(h, 'POST', '/api/permissions/revoke', { app_id: app, permission: 'api.agents' });
    await admin(h, 'POST', '/api/permissions/reset', { app_id: app });
    const log = await entries(h);
    assert.deepEqual(log.map((entry) => entry.seq), [...log.map((entry) => entry.seq)].sort((a, b) => b - a));
    const mine = log.filter((entry) => entry.action.startsWith('permission.')).reverse();
    assert.deepEqual(mine.map((entry) => entry.action), ['permission.allow', 'permission.deny', 'permission.revoke', 'permission.reset']);
    for (const entry of log) {
        assert.match(entry.at, timeForm);
        assert.ok(entry.actor.length > 0);
        assert.ok(entry.hash.length >= 43);
    }
    const verdict = await admin(h, 'GET', '/api/audit/verify');
    assert.equal(verdict.whole, true);
    assert.equal(verdict.entries, log.length);
});

test('each use of a dangerous permission is in the log', async (t) => {
    const h = await shared(t);
    const app = await newApp(h, {}, ['webhook.trigger']);
    const uses = async () => (await entries(h)).filter((entry) => entry.action === 'permission.use' && JSON.stringify(entry).includes(app));
    assert.equal((await uses()).length, 0);
    for (let i = 1; i <= 2; i++) {
        await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: app, payload: { raw_data: {} } });
        assert.equal((await uses()).length, i);
    }
});

test('a call of a tool that was answered is in the log, also when the service is killed at once', async (t) => {
    const h = await startHearth({ t });
    const { call } = await newKey(h);
    const server = fileURLToPath(new URL('./mcp_tool_server.mjs', import.meta.url));
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name: 'tools', command: process.execPath, args: [server] }, 201);
    const path = '/sdk/mcp/servers/tools/tools/count/execute';
    for (let i = 0; i < 3; i++)
        assert.equal((await call('POST', path, { arguments: {} })).status, 200);
    const replies = await Promise.all(Array.from({ length: 16 }, () => call('POST', path, { arguments: {} })));
    await h.kill();
    assert.deepEqual(replies.map(({ status }) => status), Array(16).fill(200));
    await h.start();
    assert.equal((await entries(h)).filter((entry) => entry.action === 'permission.use').length, 19);
    assert.equal((await admin(h, 'GET', '/api/audit/verify')).whole, true);
});

test('before and limit page through the log', async (t) => {
    const h = await startHearth({ t });
    for (let i = 0; i < 5; i++)
        await newKey(h);
    const all = await entries(h);
    const [first, second] = [await entries(h, '?limit=2'), await entries(h, `?limit=2&before=${all[1].seq}`)];
    assert.deepEqual([...first, ...second], all.slice(0, 4));
    refused(await h.socket('GET', '/api/audit?limit=501'), 400, 'VALIDATION_ERROR');
    refused(await h.socket('GET', '/api/audit?limit=0'), 400, 'VALIDATION_ERROR');
});

for (const [what, sql] of [
    ['an entry that was changed', "UPDATE audit SET actor = 'somebody else' WHERE seq = 3"],
    ['an entry that was taken out', 'DELETE FROM audit WHERE seq = 3'],
    ['an entry that was changed together with its hash', "UPDATE audit SET subject = 'x', hash = (SELECT hash FROM audit WHERE seq = 2) WHERE seq = 3"],
    ['the newest entry taken off', 'DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)'],
    ['all entries gone', 'DELETE FROM audit'],
])
    test(`verify finds ${what}`, async (t) => {
        const h = await startHearth({ t });
        for (let i = 0; i < 5; i++)
            await newKey(h);
        assert.equal((await admin(h, 'GET', '/api/audit/verify')).whole, true);
        await h.terminate();
        // Triggers may guard the table: whoever owns the file can take them away.
        const triggers = await sqlite(storeFile(h), "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit'");
        await sqlite(storeFile(h), [...triggers.map(({ name }) => `DROP TRIGGER "${name}"`), sql].join(';'));
        await h.start();
        const verdict = await admin(h, 'GET', '/api/audit/verify');
        assert.equal(verdict.whole, false, JSON.stringify(verdict));
        assert.ok(verdict.bad_seq > 0);
        assert.ok(verdict.reason.length > 0);
    });

test('the table itself takes no change and no deletion', async (t) => {
    const h = await startHearth({ t });
    await newKey(h);
    await assert.rejects(sqlite(storeFile(h), "UPDATE audit SET actor = 'x'"), /append|audit/i);
    await assert.rejects(sqlite(storeFile(h), 'DELETE FROM audit'), /append|audit/i);
});

test('the log is the administrator\'s', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    refused(await call('GET', '/api/audit'), 401, 'ADMIN_REQUIRED');
    refused(await call('GET', '/api/audit/verify'), 401, 'ADMIN_REQUIRED');
});
