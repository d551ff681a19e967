// Web pages in the person's own browser, a real Chromium: only Hearth's own page is the administrator, whatever other pages, ports and names try.
// The first of them is the attack of issue 7: a page on another port of 127.0.0.1 gets the cookie and replays it.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from 'playwright-core';
import { startHearth, until } from '../api/harness.mjs';
import { admin, confirm, unique } from '../api/kit.mjs';
import { faceKeys, handshake } from '../api/realtime.mjs';
import { isRoot } from './kit.mjs';

const executablePath = '/usr/bin/chromium';
const skip = !existsSync(executablePath) && 'needs Chromium (script/bootstrap installs it)';
const args = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--host-resolver-rules=MAP rebound.example 127.0.0.1,MAP *.rebound.example 127.0.0.1', ...isRoot ? ['--no-sandbox'] : []];

// A browser with a profile of its own; its own handle closes it.
async function openBrowser(preferences) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-browser-'));
    if (preferences) {
        mkdirSync(join(folder, 'Default'));
        writeFileSync(join(folder, 'Default', 'Preferences'), JSON.stringify(preferences));
    }
    const browser = await chromium.launchPersistentContext(folder, { executablePath, args, headless: true });
    browser.setDefaultTimeout(60_000);
    return { browser, close: () => browser.close().finally(() => rmSync(folder, { recursive: true, force: true })) };
}

// A page of somebody else: an HTTP server on another port of 127.0.0.1; `requests` is what the browser sent it.
async function hostilePage() {
    const requests = [];
    const server = http.createServer((request, response) => {
        requests.push(request);
        const type = request.url.endsWith('.js') ? 'text/javascript' : 'text/html';
        response.writeHead(200, { 'content-type': type, 'service-worker-allowed': '/' });
        response.end(type === 'text/html' ? '<!doctype html><title>evil</title>' : 'addEventListener("fetch", (event) => event.respondWith(new Response("evil")));');
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    return { requests, url: `http://127.0.0.1:${server.address().port}`, close: () => new Promise((done) => { server.closeAllConnections(); server.close(done); }) };
}

describe('a page in the person\'s browser', { skip, concurrency: false }, () => {
    let h, evil, browser, close, page;
    const newLink = async () => (await admin(h, 'POST', '/api/session/link')).url;
    const shows = (where, id) => where.locator(`section#${id}:visible`).waitFor();
    const state = async () => ({
        agents: (await h.socket('GET', '/agents')).body.agents, keys: (await admin(h, 'GET', '/api/keys')).keys,
        apps: (await admin(h, 'GET', '/api/apps')).apps, entries: (await admin(h, 'GET', '/api/audit/verify')).entries,
        settings: (await admin(h, 'GET', '/api/settings')).settings,
    });
    // Runs in a page of the hostile server; what it did must have changed nothing, and the person is still signed in.
    const attack = async (script, argument = h.url) => {
        const tab = await browser.newPage();
        await tab.goto(evil.url);
        const before = await state();
        const result = await tab.evaluate(script, argument);
        assert.deepEqual(await state(), before);
        await tab.close();
        await page.reload();
        await shows(page, 'in');
        return result;
    };

    before(async () => {
        h = await startHearth();
        evil = await hostilePage();
        ({ browser, close } = await openBrowser());
        page = await browser.newPage();
        await page.goto(await newLink());
        await shows(page, 'in');
    });
    after(async () => {
        await close?.();
        await evil?.close();
        await h?.stop();
    });

    test('the link signs the person in; the proof is in the storage of this origin and in no address', async () => {
        assert.equal(page.url(), `${h.url}/session`);
        assert.equal(await page.title(), 'You are signed in - Hearth');
        assert.match(await page.evaluate(() => localStorage.getItem('hearth.proof')), /^[\w-]{43}$/);
        assert.deepEqual(await page.evaluate(() => [document.referrer, window.name, document.cookie, sessionStorage.length]), ['', '', '', 0]);
        await page.reload();
        await shows(page, 'in');
        const tab = await browser.newPage();
        await tab.goto(`${h.url}/session`);
        await shows(tab, 'in');
        await tab.close();
    });

    test('the cookie that a page on another port gets is no session', async () => {
        const tab = await browser.newPage();
        await tab.goto(evil.url);
        const { cookie } = evil.requests.at(-1).headers;
        assert.match(cookie, /hearth_session=/, 'browsers send a cookie to every port of a host');
        for (const headers of [{ cookie }, { cookie, origin: h.url }, { cookie, 'x-hearth-proof': cookie.split('=')[1] }]) {
            assert.equal((await h.api('GET', '/api/session', undefined, headers)).status, 401);
            assert.equal((await h.api('POST', '/api/agents', { name: unique('evil'), command: '/bin/sh' }, headers)).status, 401);
            assert.equal((await h.api('POST', '/api/session/link', undefined, headers)).status, 401);
            assert.equal((await h.api('GET', '/api/events', undefined, headers)).status, 401);
        }
        assert.ok(evil.requests.every((request) => !request.headers['x-hearth-proof'] && !request.headers.referer?.includes('proof') && !request.url.includes('proof')));
        await tab.close();
    });

    test('storage, workers and cookies of another port are not those of Hearth', async () => {
        assert.equal(await attack(async () => {
            await navigator.serviceWorker.register('/worker.js', { scope: '/' });
            await navigator.serviceWorker.ready;
            return localStorage.getItem('hearth.proof');
        }), null);
        assert.equal(await page.evaluate(() => navigator.serviceWorker.controller), null);
        const tab = await browser.newPage();
        await tab.goto(evil.url);
        assert.equal(await tab.evaluate(async () => (await (await fetch('/x')).text())), 'evil', 'the worker is in force on its own origin');
        await tab.evaluate(async () => (await navigator.serviceWorker.getRegistration('/')).unregister());
        await tab.goto('about:blank');
        await tab.goto(evil.url);
        await tab.evaluate(() => { document.cookie = 'hearth_session=planted; path=/session'; });
        await page.reload();
        assert.ok(await page.locator('section#in:visible, section#out:visible').first().waitFor().then(() => true));
        await tab.evaluate(() => { document.cookie = 'hearth_session=; path=/session; max-age=0'; });
        await page.goto(await newLink());
        await shows(page, 'in');
        await tab.close();
    });

    test('a page on another port opens no WebSocket, though it has a key', async () => {
        const { publishable } = await faceKeys(h);
        const open = (address) => new Promise((done) => {
            const socket = new WebSocket(address);
            socket.onopen = () => done('open');
            socket.onerror = () => done('refused');
        });
        const address = `${h.url.replace('http:', 'ws:')}/realtime/v1/websocket?apikey=${publishable}`;
        assert.equal(await attack(open, address), 'refused');
        const reply = await h.raw(handshake(h, `/realtime/v1/websocket?apikey=${publishable}`, { Origin: new URL(evil.url).origin }), { quietMs: 300 });
        assert.match(reply, /^HTTP\/1\.1 403 /, 'for its Origin');
    });

    test('requests of a page on another port, in every way it can send them, do nothing and tell nothing', async () => {
        const results = await attack(async (url) => {
            const body = JSON.stringify({ name: 'evil', command: '/bin/sh' });
            const ways = [
                { method: 'POST', body, headers: { 'content-type': 'application/json' }, credentials: 'include' },
                { method: 'POST', body, credentials: 'include' },
                { method: 'POST', body, credentials: 'include', mode: 'no-cors' },
                { method: 'POST', body: new URLSearchParams({ name: 'evil' }), credentials: 'include', mode: 'no-cors' },
                { method: 'POST', body, credentials: 'include', mode: 'no-cors', keepalive: true },
                { method: 'POST', body, credentials: 'include', headers: { 'x-hearth-proof': 'x' } },
                { method: 'DELETE', credentials: 'include' },
                { credentials: 'include' },
            ];
            const read = [];
            for (const path of ['/api/agents', '/api/keys', '/api/session', '/api/session/link', '/api/settings/llamacpp.server'])
                for (const way of ways)
                    read.push(await fetch(url + path, way).then((reply) => (reply.type === 'opaque' ? 'opaque' : reply.text()), () => 'refused'));
            navigator.sendBeacon(`${url}/api/keys`, body);
            return read;
        });
        assert.ok(results.length >= 40 && results.every((result) => ['opaque', 'refused'].includes(result)), results.join());
    });

    test('images, scripts and forms that name routes do nothing', async () => {
        await attack(async (url) => {
            const loads = ['/api/session/link', '/api/keys', '/session/open?token=x', '/api/tasks/sweep'].flatMap((path) => ['img', 'script'].map((tag) => {
                const element = document.createElement(tag);
                element.src = url + path;
                document.body.append(element);
                return new Promise((done) => { element.onload = element.onerror = done; });
            }));
            const forms = ['/api/agents', '/api/keys', '/api/session/link', '/api/session/confirm'].flatMap((path) =>
                ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'].map((type, i) => {
                    const frame = document.createElement('iframe');
                    frame.name = `frame-${path}-${i}`;
                    document.body.append(frame);
                    const form = Object.assign(document.createElement('form'), { method: 'post', action: url + path, enctype: type, target: frame.name });
                    const input = Object.assign(document.createElement('input'), { name: '{"name":"evil","command":"/bin/sh","x":"', value: '"}' });
                    form.append(input);
                    document.body.append(form);
                    const loaded = new Promise((done) => { frame.onload = done; });
                    form.submit();
                    return loaded;
                }));
            await Promise.all([...loads, ...forms]);
        });
    });

    test('a form that navigates there as a page is refused', async () => {
        const tab = await browser.newPage();
        await tab.goto(evil.url);
        const before = await state();
        const [reply] = await Promise.all([tab.waitForNavigation(), tab.evaluate((url) => {
            const form = Object.assign(document.createElement('form'), { method: 'post', action: `${url}/api/keys`, enctype: 'text/plain' });
            document.body.append(form);
            form.submit();
        }, h.url)]);
        assert.equal(reply.status(), 403);
        assert.deepEqual(await state(), before);
        await tab.close();
    });

    test('no page frames it', async () => {
        const tab = await browser.newPage();
        await tab.goto(evil.url);
        await tab.evaluate((url) => new Promise((done) => {
            const frame = Object.assign(document.createElement('iframe'), { src: `${url}/session`, onload: done });
            document.body.append(frame);
        }), h.url);
        const [frame] = tab.frames().filter((one) => one !== tab.mainFrame());
        assert.match(frame.url(), /^chrome-error:/);
        assert.equal(await frame.locator('section').count(), 0);
        await tab.close();
    });

    test('who opened it has no handle on it, and where it goes next learns nothing', async () => {
        const tab = await browser.newPage();
        await tab.goto(evil.url);
        const [opened] = await Promise.all([browser.waitForEvent('page'), tab.evaluate((url) => { window.handle = window.open(`${url}/session`, 'mine'); }, h.url)]);
        await shows(opened, 'in');
        assert.equal(await opened.evaluate(() => window.opener), null);
        assert.equal(await tab.evaluate(() => window.handle.closed), true);
        assert.equal(await tab.evaluate(() => { try { return window.handle.location.href; } catch (error) { return error.name; } }).then((name) => name !== `${h.url}/session`), true);
        await opened.goto(await newLink());
        await shows(opened, 'in');
        await Promise.all([opened.waitForURL(`${evil.url}/**`), opened.evaluate((url) => { location.href = `${url}/next`; }, evil.url)]);
        assert.equal(evil.requests.findLast((request) => request.url === '/next').headers.referer, undefined);
        assert.deepEqual(await opened.evaluate(() => [document.referrer, window.name]), ['', '']);
        await opened.goBack();
        await shows(opened, 'in');
        assert.equal(opened.url(), `${h.url}/session`);
        await opened.close();
        await tab.close();
        await page.reload();
        await shows(page, 'in');
    });

    test('a page that sends the person to the session page with a proof of its own changes nothing', async () => {
        const kept = await page.evaluate(() => localStorage.getItem('hearth.proof'));
        const tab = await browser.newPage();
        await tab.goto(evil.url);
        await Promise.all([tab.waitForURL(`${h.url}/session`), tab.evaluate((url) => { location.href = `${url}/session#proof=${'A'.repeat(43)}`; }, h.url)]);
        await shows(tab, 'in');
        await tab.evaluate(() => { location.hash = '#proof=B'; });
        await tab.waitForURL(`${h.url}/session`);
        await shows(tab, 'in');
        assert.equal(await tab.evaluate(() => localStorage.getItem('hearth.proof')), kept);
        await tab.close();
    });

    test('a name that was rebound to this machine is refused, and the other loopback name is not signed in', async () => {
        const tab = await browser.newPage();
        for (const name of ['rebound.example', 'hearth.rebound.example']) {
            const reply = await tab.goto(`http://${name}:${h.port}/session`);
            assert.equal(reply.status(), 403);
            assert.equal((await reply.json()).code, 'HOST_NOT_ALLOWED');
            assert.equal(await tab.evaluate(async () => (await fetch('/api/session')).status), 403);
        }
        await tab.goto(`http://localhost:${h.port}/session`);
        await shows(tab, 'out');
        await tab.close();
    });

    test('EventSource and WebSocket have no session, from another port or from its own; a stream by fetch has', async () => {
        const listen = async (url) => ({
            events: await new Promise((done) => {
                const source = new EventSource(`${url}/api/events`, { withCredentials: true });
                source.onopen = () => done('open');
                source.onerror = () => { source.close(); done('refused'); };
            }),
            socket: await new Promise((done) => {
                try {
                    const socket = new WebSocket(`${url.replace('http', 'ws')}/api/events`);
                    socket.onopen = () => done('open');
                    socket.onerror = () => done('refused');
                } catch { done('refused'); }
            }),
        });
        assert.deepEqual(await attack(listen), { events: 'refused', socket: 'refused' });
        assert.equal((await page.evaluate(listen, h.url)).events, 'refused');
        assert.match(await page.evaluate(async () => {
            const reply = await fetch('/api/events', { headers: { 'x-hearth-proof': localStorage.getItem('hearth.proof') } });
            const reader = reply.body.getReader();
            const { value } = await reader.read();
            await reader.cancel();
            return new TextDecoder().decode(value);
        }), /event: ?hello/);
    });

    test('even the person\'s own page changes what runs only after a confirmation in a terminal', async () => {
        const add = () => page.evaluate(async (name) => {
            const headers = { 'x-hearth-proof': localStorage.getItem('hearth.proof'), 'content-type': 'application/json' };
            const reply = await fetch('/api/agents', { method: 'POST', headers, body: JSON.stringify({ name, command: '/bin/true' }) });
            return { status: reply.status, body: await reply.json(), text: '', headers: Object.fromEntries(reply.headers) };
        }, unique('wished'));
        await confirm(h, await add());
        assert.equal((await add()).status, 201);
    });

    test('a link that was used says so, and what to do', async () => {
        const tab = await browser.newPage();
        const link = await newLink();
        await tab.goto(link);
        await shows(tab, 'in');
        const reply = await tab.goto(link);
        assert.equal(reply.status(), 403);
        assert.match(await tab.locator('main').innerText(), /no longer valid[^]*hearth open/);
        await tab.getByRole('link').click();
        await shows(tab, 'in');
        await tab.close();
    });

    test('a browser that keeps nothing says so, and the proof is out of its address all the same', async () => {
        const blocking = await openBrowser({ profile: { default_content_setting_values: { cookies: 2 } } });
        try {
            const tab = await blocking.browser.newPage();
            await tab.goto(await newLink());
            await shows(tab, 'blocked');
            assert.equal(tab.url(), `${h.url}/session`);
            assert.match(await tab.locator('section:visible').innerText(), /Allow site data[^]*hearth open/);
        } finally {
            await blocking.close();
        }
    });

    test('signing out ends the session and takes the proof out of the storage, in every tab', async () => {
        const tab = await browser.newPage();
        await tab.goto(await newLink());
        await shows(tab, 'in');
        const proof = await tab.evaluate(() => localStorage.getItem('hearth.proof'));
        const [{ name, value }] = (await browser.cookies(h.url)).filter((one) => one.name === 'hearth_session');
        await page.goto(`${h.url}/session`);
        await shows(page, 'in');
        await tab.getByRole('button', { name: 'Sign out' }).click();
        await shows(tab, 'ended');
        await shows(page, 'out');
        assert.equal(await tab.evaluate(() => localStorage.getItem('hearth.proof')), null);
        assert.deepEqual(await browser.cookies(h.url), []);
        await until(async () => (await h.api('GET', '/api/session', undefined, { cookie: `${name}=${value}`, 'x-hearth-proof': proof })).status === 401);
    });
});
