// GET /api/events: the stream of changes of an administrator (issue, section 4).
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, changes, decide, insert, listeningApp, newApp, newKey, refused, rowBecomes, shellAgent, signIn, tasksOfRow } from './kit.mjs';

let h;
before(async () => { h = await startHearth(); });
after(() => h.stop());

test('the stream tells of a pending permission and of its answer', async (t) => {
    const stream = await changes(t, h);
    assert.equal(stream.status, 200);
    assert.match(stream.headers['content-type'], /^text\/event-stream/);
    const app = await newApp(h);
    await h.asApp(app)('GET', '/agents');
    await stream.next((event) => event.event === 'permission' && event.json.pending === 1);
    await decide(h, app, 'api.agents');
    await stream.next((event) => event.event === 'permission' && event.json.pending === 0);
});

test('the stream tells how a task goes', async (t) => {
    const stream = await changes(t, h);
    const { call } = await listeningApp(h, await shellAgent(h, 'echo {}'));
    const { id } = await insert(call, {});
    await rowBecomes(call, id, 'completed');
    const [{ uuid }] = await tasksOfRow(h, id);
    const of = (status) => (event) => event.event === 'task' && event.json.uuid === uuid && event.json.status === status;
    await stream.next(of('claimed'));
    await stream.next(of('completed'));
});

test('the stream tells how an app goes', async (t) => {
    const stream = await changes(t, h);
    const app = await newApp(h, { app_type: 'custom', config: { command: '/bin/sleep', args: ['600'] } });
    const becomes = (status) => stream.next((event) => event.event === 'app' && event.json.app_id === app && event.json.status === status);
    await admin(h, 'POST', `/api/apps/${app}/start`);
    await becomes('running');
    await admin(h, 'POST', `/api/apps/${app}/stop`);
    await becomes('stopped');
    await admin(h, 'DELETE', `/api/apps/${app}`);
    await becomes('removed');
});

test('every listener is told', async (t) => {
    const streams = await Promise.all(Array.from({ length: 20 }, () => changes(t, h)));
    const app = await newApp(h);
    await h.asApp(app)('GET', '/agents');
    await Promise.all(streams.map((stream) => stream.next((event) => event.event === 'permission')));
});

test('a listener that leaves is forgotten', async (t) => {
    const streams = async () => Number(/^hearth_http_streams (\d+)/m.exec((await h.api('GET', '/metrics')).text)[1]);
    await until(async () => await streams() === 0, { what: 'those of the tests before are gone' });
    const stream = await changes(t, h);
    assert.equal(await streams(), 1);
    stream.close();
    await until(async () => await streams() === 0, { what: 'the stream is gone' });
});

test('the stream is the administrator\'s', async () => {
    refused(await h.api('GET', '/api/events'), 401, 'ADMIN_REQUIRED');
    refused(await (await newKey(h)).call('GET', '/api/events'), 401, 'ADMIN_REQUIRED');
});

test('the cookie alone opens no stream, so an EventSource has none', async () => {
    const { cookie, call } = await signIn(h);
    refused(await h.api('GET', '/api/events', undefined, { cookie, accept: 'text/event-stream' }), 401, 'ADMIN_REQUIRED');
    assert.equal((await call('GET', '/api/session')).status, 200);
});

test('a page of another origin cannot listen', async () => {
    const { headers } = await signIn(h);
    refused(await h.api('GET', '/api/events', undefined, { ...headers, origin: 'https://example.org' }), 403, 'ORIGIN_NOT_ALLOWED');
});

test('the stream ends when the service stops', async (t) => {
    const closing = await startHearth({ t });
    const stream = await changes(t, closing);
    await closing.terminate();
    await stream.ended;
});

test('listeners that leave at once do no harm', async (t) => {
    const one = await startHearth({ t });
    const { cookie, proof } = await signIn(one);
    const request = `GET /api/events HTTP/1.1\r\nhost: localhost\r\ncookie: ${cookie}\r\nx-hearth-proof: ${proof}\r\n\r\n`;
    const leaveAtOnce = () => new Promise((done) => {
        const socket = net.connect(one.port, '127.0.0.1', () => socket.write(request, () => socket.resetAndDestroy()));
        socket.on('close', done).on('error', () => {});
    });
    for (let round = 0; round < 20; round++)
        await Promise.all(Array.from({ length: 20 }, leaveAtOnce));
    await until(async () => /^hearth_http_streams 0/m.test((await one.api('GET', '/metrics')).text), { what: 'all have left' });
});
