// The account at the hosted service: login, projects, keys, and services that break the rules (docs/hosted.md, "Account and set-up").
import assert from 'node:assert/strict';
import { createECDH, randomBytes } from 'node:crypto';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { accountDouble, aProject, encryptToken, newToken, someKeys } from '../peers/account_double.mjs';
import { coldHearth, startHearth } from './harness.mjs';
import { refused } from './kit.mjs';
import { inTerminal } from './terminal.mjs';

const settingsOf = (service) => ({ HEARTH_BACKEND_ACCOUNT_API: service.url, HEARTH_BACKEND_ACCOUNT_PAGE: `${service.url}/dashboard` });
const withService = async (t, service) => startHearth({ t, env: settingsOf(service) });
const secretKey = someKeys.at(-1).api_key;

async function beginLogin(h) {
    const { status, body, text } = await h.socket('POST', '/api/backend/account/login');
    assert.equal(status, 200, text);
    return body.url;
}

const giveCode = (h, code) => h.socket('POST', '/api/backend/account/code', { code });

async function logIn(h, service) {
    const { status, text, body } = await giveCode(h, service.visit(await beginLogin(h)));
    assert.equal(status, 200, text);
    return body;
}

function* filesOf(folder) {
    for (const name of readdirSync(folder, { recursive: true }))
        if (statSync(join(folder, name)).isFile())
            yield join(folder, name);
}

test('a login in a terminal: the page shows a code, the person types it, and the account is known', async (t) => {
    const service = await accountDouble(t);
    const h = coldHearth({ t, env: settingsOf(service) });
    const screen = inTerminal(t, h, 'backend', 'login', '--no-browser');
    const [url] = await screen.seen(/http:\/\/\S+/);
    const asked = new URL(url).searchParams;
    assert.match(asked.get('session_id'), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.match(asked.get('public_key'), /^04[0-9a-f]{128}$/);
    assert.match(asked.get('token_name'), /^hearth_.+@.+_\d+$/);
    const code = service.visit(url);
    await screen.seen(/Code: /);
    screen.type('00000000\n');                      // not the code
    await screen.seen(/does not know this code; look at the page again/);
    await screen.seen(/Code: /);
    screen.type(`  ${code.toUpperCase()} \n`);
    await screen.seen(/Logged in as ada@example\.org/);
    assert.match(await screen.ended, /code 0/);
    const { stdout } = await h.cli('backend', 'status');
    assert.match(stdout, /Logged in as ada@example\.org since .*\nNo project is chosen/);
});

test('three wrong codes end a login', async (t) => {
    const service = await accountDouble(t);
    const h = await withService(t, service);
    const code = service.visit(await beginLogin(h));
    for (const wrong of ['00000000', '00000001', '00000002'])
        refused(await giveCode(h, wrong), 400, 'HOSTED_CODE_REFUSED');
    refused(await giveCode(h, code), 404, 'HOSTED_NO_LOGIN');
});

test('a code of another form is refused before anything is asked', async (t) => {
    const service = await accountDouble(t);
    const h = await withService(t, service);
    await beginLogin(h);
    for (const code of ['', '1234567', '123456789', '1234567g', '12345678?x=1', '../../v1'])
        refused(await giveCode(h, code), 400, 'VALIDATION_ERROR');
    assert.deepEqual(service.requests, []);
});

test('the token is in no file as text, not in answers, logs and backups', async (t) => {
    const service = await accountDouble(t);
    const h = await withService(t, service);
    const token = newToken();
    const { status } = await giveCode(h, service.visit(await beginLogin(h), { token }));
    assert.equal(status, 200);
    assert.equal((await h.socket('PUT', '/api/backend/project', { project: 'Orders' })).status, 200);
    assert.equal(statSync(join(h.dataDir, 'backend.account')).mode & 0o777, 0o600);
    const { path } = await h.cliJson('backup', join(h.home, 'backup.tar.gz'));
    assert.ok(statSync(path).size > 0);
    await h.terminate();
    for (const file of filesOf(h.home))
        for (const secret of [token, secretKey])
            assert.ok(!readFileSync(file).includes(secret), `${file} holds a secret`);
    const { stdout } = await coldHearth({ t, dataDir: h.dataDir, env: settingsOf(service) }).cli('backend', 'status', '--json');
    assert.ok(!stdout.includes(token));
    assert.equal(JSON.parse(stdout).project.has_secret, true, 'and the service can open them');
});

test('a personal token is an alternative, read from standard input; one that the service does not know is not kept', async (t) => {
    const service = await accountDouble(t);
    const h = coldHearth({ t, env: settingsOf(service) });
    const unknown = await h.cli('backend', 'login', '--token', { input: newToken() });
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /does not accept the account's token/);
    const ill = await h.cli('backend', 'login', '--token', { input: 'sbp_XYZ' });
    assert.match(ill.stderr, /personal token: sbp_ and 40/);
    const { stdout, code } = await h.cli('backend', 'login', '--token', { input: `${service.newToken()}\n` });
    assert.equal(code, 0);
    assert.match(stdout, /Logged in as ada@example\.org/);
    assert.equal(service.requests.at(-1).path, '/v1/profile');
});

test('projects are listed, one is used by ref or name, and logging out forgets all', async (t) => {
    const service = await accountDouble(t, { projects: [aProject, { ...aProject, ref: 'bbbbbbbbbbbbbbbbbbbb', name: 'Twin' }, { ...aProject, ref: 'cccccccccccccccccccc', name: 'Twin' }] });
    const h = await withService(t, service);
    refused(await h.socket('GET', '/api/backend/projects'), 502, 'HOSTED_LOGIN_REQUIRED');
    await logIn(h, service);
    assert.deepEqual((await h.cliJson('backend', 'projects')).map((one) => [one.ref, one.name, one.chosen]),
        [['abcdefghijklmnopqrst', 'Orders', false], ['bbbbbbbbbbbbbbbbbbbb', 'Twin', false], ['cccccccccccccccccccc', 'Twin', false]]);
    assert.match((await h.cli('backend', 'use', 'Twin')).stderr, /2 projects have the name Twin: say its ref/);
    assert.match((await h.cli('backend', 'use', 'nothing')).stderr, /The account has no project nothing/);
    const used = await h.cli('backend', 'use', 'Orders');
    assert.match(used.stdout, /The project is https:\/\/abcdefghijklmnopqrst\.supabase\.co, with its publishable key and a secret key/);
    assert.equal((await h.cli('settings', 'backend.project')).stdout.includes('https://abcdefghijklmnopqrst.supabase.co'), true);
    assert.equal((await h.cli('settings', 'backend.project_key')).stdout.includes('sb_publishable_'), true);
    assert.equal((await h.cliJson('backend', 'projects'))[0].chosen, true);
    assert.equal((await h.cli('backend', 'logout')).code, 0);
    const after = (await h.socket('GET', '/api/backend/account')).body;
    assert.deepEqual([after.account.logged_in, after.account.email, after.project.has_secret], [false, null, false]);
});

test('a later login takes the place of the earlier account', async (t) => {
    const service = await accountDouble(t);
    const h = await withService(t, service);
    await logIn(h, service);
    service.profile = { gotrue_id: 'x', primary_email: 'bob@example.org', username: 'bob' };
    assert.equal((await logIn(h, service)).account.email, 'bob@example.org');
});

test('without a publishable key the legacy one is used; without the right to see secrets there is none', async (t) => {
    const service = await accountDouble(t, { keys: someKeys.slice(0, 2) });
    const h = await withService(t, service);
    await logIn(h, service);
    const { body } = await h.socket('PUT', '/api/backend/project', { project: aProject.ref });
    assert.deepEqual([body.legacy_key, body.has_secret], [true, true]);
    service.mayReveal = false;
    assert.equal((await h.socket('PUT', '/api/backend/project', { project: aProject.ref })).body.has_secret, true, 'the legacy one is shown without the right');
    assert.equal((await h.socket('PUT', '/api/backend/project', { project: aProject.ref, publishable_only: true })).body.has_secret, false);
});

test('a masked secret key is no key, and a project without any key is told', async (t) => {
    const service = await accountDouble(t, { keys: someKeys.slice(2) });
    const h = await withService(t, service);
    await logIn(h, service);
    service.mayReveal = false;
    assert.equal((await h.socket('PUT', '/api/backend/project', { project: 'Orders' })).body.has_secret, false);
    const bare = await accountDouble(t, { keys: [] });
    const other = await withService(t, bare);
    await logIn(other, bare);
    refused(await other.socket('PUT', '/api/backend/project', { project: 'Orders' }), 400, 'HOSTED_NO_KEY');
});

test('a project may be named by hand; a secret key is no publishable one, and its address is https or of this machine', async (t) => {
    const h = await startHearth({ t });
    const put = (body) => h.socket('PUT', '/api/backend/project', body);
    refused(await put({}), 400, 'VALIDATION_ERROR', /project/);
    refused(await put({ url: 'https://x.example' }), 400, 'VALIDATION_ERROR', /key/);
    refused(await put({ url: 'http://x.example', key: 'sb_publishable_x' }), 400, 'BAD_SETTING', /https/);
    const told = await put({ url: 'https://x.example', key: secretKey });
    refused(told, 400, 'BAD_SETTING', /secret/);
    assert.ok(!told.text.includes(secretKey) && !h.log.some((line) => line.includes(secretKey)), 'the key is not repeated');
    const { code, stdout } = await h.cli('backend', 'use', 'https://x.example/', '--key', 'sb_publishable_x', '--secret', { input: secretKey });
    assert.equal(code, 0);
    assert.match(stdout, /with its publishable key and a secret key/);
    assert.equal((await h.socket('GET', '/api/backend/account')).body.project.has_secret, true);
    await h.socket('PUT', '/api/settings/backend.project', { value: 'https://y.example' });
    assert.equal((await h.socket('GET', '/api/backend/account')).body.project.has_secret, false, 'a secret is for its own project');
});

for (const [how, choose, env] of [['stored setting', (h) => h.cli('settings', 'set', 'backend.kind', 'hosted'), {}], ['environment', () => {}, { HEARTH_BACKEND_KIND: 'hosted' }]])
    test(`an account is logged in and a project chosen after backend.kind is hosted: ${how}`, async (t) => {
        const service = await accountDouble(t), h = coldHearth({ t, env: { ...settingsOf(service), ...env } });
        const run = async (input, ...args) => {
            const done = await h.cli('backend', ...args, { input });
            assert.equal(done.code, 0, `${args}: ${done.stderr}`);
            return done.stdout;
        };
        await choose(h);
        assert.match(await run(`${service.newToken()}\n`, 'login', '--token'), /Logged in as ada/);
        const other = await h.cli('key', 'list');
        assert.notEqual(other.code, 0, 'other commands need the rows');
        assert.match(other.stderr, /No project of the hosted service is chosen/);
        const doctor = await h.cli('doctor');
        assert.equal(doctor.code, 1, 'what is no repair is not hidden');
        assert.match(doctor.stdout + doctor.stderr, /No project of the hosted service is chosen/);
        assert.match(await run('', 'projects'), /Orders/);
        assert.match(await run('', 'status'), /ada@example\.org/);
        assert.match(await run('', 'logout'), /forgotten/);
        assert.match(await run(`${service.newToken()}\n`, 'login', '--token'), /Logged in as ada/);
        assert.match(await run('', 'use', 'Orders'), /The project is https:\/\/abcdefghijklmnopqrst/);    // the last: what follows would look for it
    });

const otherPoint = `04${'11'.repeat(64)}`;
const shortOf = (hex) => hex.slice(2);
const flip = (hex) => `${hex.slice(0, -2)}${hex.endsWith('00') ? '01' : '00'}`;
const wrongAnswers = {
    'the nonce of another code': [(one) => ({ ...one, ...encryptToken(createPublic(), newToken()), nonce: randomBytes(12).toString('hex') }), /does not belong to the code/],
    'another tag': [(one) => ({ ...one, access_token: flip(one.access_token) }), /not encrypted for this login, or was changed/],
    'another key pair': [(one) => ({ ...one, public_key: createPublic() }), /not encrypted for this login/],
    'a short key': [(one) => ({ ...one, public_key: shortOf(one.public_key) }), /public_key/],
    'a compressed key': [(one) => ({ ...one, public_key: `02${one.public_key.slice(2, 66)}` }), /public_key/],
    'a point that is not on the curve': [(one) => ({ ...one, public_key: otherPoint }), /no point of the curve/],
    'the point at infinity': [(one) => ({ ...one, public_key: '00'.repeat(65) }), /no point of the curve/],
    'a long nonce': [(one) => ({ ...one, nonce: `${one.nonce}00` }), /nonce/],
    'a nonce that is no text': [(one) => ({ ...one, nonce: 5 }), /nonce/],
    'no token': [(one) => ({ ...one, access_token: '' }), /access_token/],
    'a tag alone': [(one) => ({ ...one, access_token: '00'.repeat(16) }), /not written in hexadecimal/],
    'a token of odd length': [(one) => ({ ...one, access_token: `${one.access_token}0` }), /not written in hexadecimal/],
    'a token with other characters': [(one) => ({ ...one, access_token: `zz${one.access_token}` }), /not written in hexadecimal/],
    'a huge token': [(one) => ({ ...one, access_token: 'ab'.repeat(5000) }), /access_token/],
};
function createPublic() {
    const pair = createECDH('prime256v1');
    return pair.generateKeys('hex');
}

for (const [what, [change, text]] of Object.entries(wrongAnswers))
    test(`a login that is answered with ${what} fails, and ends`, async (t) => {
        const service = await accountDouble(t);
        const h = await withService(t, service);
        const url = await beginLogin(h);
        let login;
        const code = service.visit(url, { change: (one) => { login = change(one); return one; } });
        service.answer = ({ path }) => path.startsWith('/platform') ? [200, login] : undefined;
        refused(await giveCode(h, code), 502, 'HOSTED_LOGIN_FAILED', text);
        refused(await giveCode(h, code), 404, 'HOSTED_NO_LOGIN');
        assert.equal((await h.socket('GET', '/api/backend/account')).body.account.logged_in, false);
    });

for (const [what, token] of [['another form', 'not-a-token'], ['capital letters', `sbp_${'A'.repeat(40)}`], ['a line feed', `sbp_${'a'.repeat(40)}\n`], ['200 characters', 'x'.repeat(200)], ['a NUL', `sbp_${'a'.repeat(40)}\0b`]])
    test(`a token of ${what} is refused`, async (t) => {
        const service = await accountDouble(t);
        const h = await withService(t, service);
        refused(await giveCode(h, service.visit(await beginLogin(h), { token })), 502, 'HOSTED_LOGIN_FAILED', /no token of an account/);
    });

test('answers that are no answers: not JSON, huge, redirects, other statuses', async (t) => {
    const service = await accountDouble(t);
    const h = await withService(t, service);
    const cases = [
        [[200, '<html>', {}], 502, 'HOSTED_LOGIN_FAILED'], [[200, [], {}], 502, 'HOSTED_LOGIN_FAILED'], [[302, '', { location: 'http://127.0.0.1:9/' }], 502, 'HOSTED_INVALID'],
        [[500, { message: 'boom' }], 502, 'HOSTED_REFUSED'], [[429, {}, { 'retry-after': '7' }], 503, 'HOSTED_BUSY'],
    ];
    for (const [answer, status, code] of cases) {
        const visited = service.visit(await beginLogin(h));
        service.answer = () => answer;
        refused(await giveCode(h, visited), status, code);
    }
    service.answer = () => [200, Buffer.alloc(5 << 20, 32)];
    const { status, body } = await giveCode(h, service.visit(await beginLogin(h)));
    assert.deepEqual([status, body.code], [502, 'UPSTREAM_TOO_LARGE']);
});

test('names cannot steer a terminal, and a ref cannot leave its place in an address', async (t) => {
    const evil = '\u001b]0;owned\u0007\u202eevil\r\n';
    const service = await accountDouble(t, { projects: [{ ...aProject, name: evil, region: evil, status: evil }] });
    const h = await withService(t, service);
    service.profile = { gotrue_id: 'x', primary_email: `${evil}@example.org`, username: evil };
    const token = service.newToken();
    const { stdout } = await h.cli('backend', 'login', '--token', { input: token });
    const shown = [stdout, ...await Promise.all([['backend', 'status'], ['backend', 'projects'], ['backend', 'use', aProject.ref]].map(async (args) => (await h.cli(...args)).stdout))];
    for (const text of shown)
        assert.ok(!/[\u0000-\u0008\u000b-\u001f\u007f\u202e]/.test(text), JSON.stringify(text));
    for (const ref of ['../../evil', 'a/b', 'A', 'a.b', 'x?y', '', 'é', 'a'.repeat(41), 5, null]) {
        service.answer = ({ path }) => path === '/v1/projects' ? [200, [{ ...aProject, ref }]] : undefined;
        refused(await h.socket('GET', '/api/backend/projects'), 502, 'HOSTED_INVALID');
    }
    for (const answer of [{}, [5], '[', [{ ...aProject, name: 'x'.repeat(300) }], Array(1001).fill(aProject)]) {
        service.answer = ({ path }) => path === '/v1/projects' ? [200, answer] : undefined;
        refused(await h.socket('GET', '/api/backend/projects'), 502, 'HOSTED_INVALID');
    }
    service.answer = ({ path }) => path === '/v1/projects' ? [200, Array(1000).fill(aProject)] : undefined;
    assert.equal((await h.socket('GET', '/api/backend/projects')).body.projects.length, 1000);
});

test('keys with blanks or line feeds are none', async (t) => {
    const service = await accountDouble(t, { keys: [{ name: 'default', type: 'publishable', api_key: 'sb_publishable_x\r\nx-evil: 1' }, { name: 'anon', type: 'legacy', api_key: 'eyJ.x.y' }] });
    const h = await withService(t, service);
    await logIn(h, service);
    assert.equal((await h.socket('PUT', '/api/backend/project', { project: 'Orders' })).body.legacy_key, true);
});

test('a service that never answers holds nobody: the request ends when its client leaves or Hearth stops', async (t) => {
    const service = await accountDouble(t);
    const h = await withService(t, service);
    await logIn(h, service);
    service.answer = () => null;
    const asked = h.socket('GET', '/api/backend/projects').catch(() => null);
    while (!service.requests.some(({ path }) => path === '/v1/projects'))
        await new Promise((done) => setImmediate(done));
    await h.terminate();
    await asked;
});

test('the token goes to the service that gave it, not to another address', async (t) => {
    const service = await accountDouble(t), other = await accountDouble(t);
    const h = await withService(t, service);
    await logIn(h, service);
    await h.terminate();
    const moved = coldHearth({ t, dataDir: h.dataDir, env: settingsOf(other) });
    assert.match((await moved.cli('backend', 'projects')).stderr, /Nobody is logged in at/);
    assert.deepEqual(other.requests, []);
});
