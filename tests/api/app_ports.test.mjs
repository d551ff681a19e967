// config.port and config.home_url of an app (issue, section 2).
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, newApp, refused, refusedFields, unique } from './kit.mjs';
import { freePort } from '../tools/ports.mjs';

let h;
before(async () => { h = await startHearth({ settings: { 'apps.restart_backoff_ms': 20 } }); });
after(() => h.stop());

const state = async (app) => (await admin(h, 'GET', `/api/apps/${app}`)).app;
const sleeper = (more) => ({ name: unique('fixed'), app_type: 'custom', config: { command: '/bin/sh', args: ['-c', 'echo "port $SVC_PORT {port}"; exec sleep 600'], ...more } });

test('an app with a port of its own gets that port, and its home is shown with it', async () => {
    const port = await freePort();
    const app = await newApp(h, sleeper({ port, home_url: 'http://localhost:{port}/dashboard?from={port}' }));
    assert.equal((await state(app)).home_url, `http://localhost:${port}/dashboard?from=${port}`, 'known before it runs');
    await admin(h, 'POST', `/api/apps/${app}/start`);
    assert.equal((await state(app)).port, port);
    await until(async () => (await admin(h, 'GET', `/api/apps/${app}/logs`)).lines.some((line) => line.text === `port ${port} ${port}`));
    const listed = (await admin(h, 'GET', '/api/apps')).apps.find((one) => one.app_id === app);
    assert.equal(listed.home_url, `http://localhost:${port}/dashboard?from=${port}`);
    const opened = await h.cli('app', 'open', app);
    assert.deepEqual([opened.code, opened.stdout], [0, `http://localhost:${port}/dashboard?from=${port}\n`]);
});

test('who has the port is said, by name', async () => {
    const port = await freePort();
    const first = sleeper({ port }), second = sleeper({ port });
    const one = await newApp(h, first), two = await newApp(h, second);
    await admin(h, 'POST', `/api/apps/${one}/start`);
    assert.match(refused(await h.socket('POST', `/api/apps/${two}/start`), 409, 'PORT_IN_USE').error, new RegExp(`${port}.*${first.name}`));
    assert.equal((await state(two)).status, 'error');
    assert.match((await state(two)).message, new RegExp(first.name));
    await admin(h, 'POST', `/api/apps/${one}/stop`);
    await admin(h, 'POST', `/api/apps/${two}/start`);
    await admin(h, 'POST', `/api/apps/${two}/stop`);
    const server = net.createServer().listen(port, '127.0.0.1');
    await new Promise((done) => server.once('listening', done));
    assert.match(refused(await h.socket('POST', `/api/apps/${two}/start`), 409, 'PORT_IN_USE').error, /another program/);
    await new Promise((done) => server.close(done));
});

test('a port that an app fixes is given to no other', async (t) => {
    const port = await freePort(), other = await startHearth({ t, settings: { 'apps.port_min': port, 'apps.port_max': port } });
    await newApp(other, sleeper({ port }));
    const free = await newApp(other, sleeper());
    refused(await other.socket('POST', `/api/apps/${free}/start`), 503, 'NO_FREE_PORT');
});

test('the home of an app whose port is chosen at its start is known while it runs', async () => {
    const app = await newApp(h, sleeper({ home_url: 'http://127.0.0.1:{port}/' }));
    assert.equal((await state(app)).home_url, null);
    const refusal = await h.cli('app', 'open', app);
    assert.equal(refusal.code, 1);
    assert.match(refusal.stderr, /home_url/);
    await admin(h, 'POST', `/api/apps/${app}/start`);
    const { port, home_url: home } = await state(app);
    assert.equal(home, `http://127.0.0.1:${port}/`);
});

test('what no browser should be sent to is refused', async () => {
    const put = (config) => h.socket('POST', '/api/apps', { name: unique('bad'), config });
    for (const home of ['javascript:alert(1)', 'file:///etc/passwd', 'localhost:3000', '-x', 'http://user:secret@host/', 'http://host/a b', 'http://host/\u001b[31m', 'http://'])
        refusedFields(await put({ home_url: home }), 'config.home_url');
    for (const port of [0, -1, 65536, 1.5, '3000'])
        refusedFields(await put({ port }), 'config.port');
});
