// `hearth provider …`, with a service and without one.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { hostileHttp, responseBytes } from '../hostile/kit.mjs';
import { binary, coldHearth, startHearth, stoppedHearth, until } from './harness.mjs';
import { newApp, newKey } from './kit.mjs';
import { env } from './provider.mjs';

const secret = 'sk-very-secret-key-0123456789';
const url = env.GENERIC_OPENAI_BASE_URL;

async function said(h, ...args) {
    const result = await h.cli(...args);
    assert.equal(result.code, 0, `hearth ${args.join(' ')}: ${result.stderr}`);
    return result.stdout;
}

async function complains(h, code, text, ...args) {
    const result = await h.cli(...args);
    assert.equal(result.code, code, `hearth ${args.join(' ')}: ${result.stdout}${result.stderr}`);
    assert.match(result.stderr, text);
}

for (const [where, begin] of [['with a service', startHearth], ['without a service', stoppedHearth]])
    describe(where, () => {
        test('a provider is added, listed, tested, made the default and removed', async (t) => {
            const h = await begin({ t });
            assert.match(await said(h, 'provider', 'list'), /No provider is configured; `hearth provider add ID` adds one/);
            assert.match(await said(h, 'provider', 'add', 'generic-openai', '--name', 'mine', '--base-url', url, '--api-key', '-', '--model', 'said-model',
                '--embed-model', 'vec', '--header', 'X-One: 1', '--header', 'X-Two:2', '--models', 'a, b,,c', { input: `${secret}\n` }),
            /^The provider mine is added; `hearth provider test mine` makes a call.*Nothing is embedded yet: embeddings that name no provider are made by mine from now on\.\n$/s);
            const list = await said(h, 'provider', 'list');
            assert.match(list, /^mine +OpenAI-compatible service +stored +\*\*\*\*6789 +said-model +vec +models +chat, embed +ok +http/m);
            assert.match(list, /^chats +mine \(the first that is configured\)$/m);
            assert.match(list, /^embeddings +mine$/m);
            assert.match(list, /^fallbacks +none/m);
            const providers = await h.cliJson('provider', 'list');
            assert.deepEqual(providers[0].headers.map((one) => one.name), ['X-One', 'X-Two']);
            assert.deepEqual(providers[0].models, ['a', 'b', 'c']);
            assert.match(await said(h, 'provider', 'test', 'mine'), /^mine works: said-model answered in \d+ ms; 3 tokens were sent and 2 came back\.\n$/);
            assert.match(await said(h, 'provider', 'default', 'mine', '--model', 'b'), /^Chats that name no provider go to mine with b\.\n$/);
            assert.match(await said(h, 'provider', 'list'), /^chats +mine with b$/m);
            assert.match(await said(h, 'provider', 'default', 'mine', '--for', 'embed', '--model', 'a'), /^Embeddings that name no provider go to mine with a\./);
            assert.match(await said(h, 'provider', 'default', '--clear', '--for', 'embed'), /^Embeddings that name no provider go to builtin\.\n$/);
            assert.match(await said(h, 'provider', 'remove', 'mine'), /^The provider mine is removed\. It was the default of chats, and no other provider is left\.\n$/);
            await complains(h, 1, /The provider mine is not configured.*\n.*`hearth provider list` shows what there is/, 'provider', 'remove', 'mine');
        });
    });

test('an app gets its own default by its name', async (t) => {
    const h = await startHearth({ t, env });
    await newApp(h, { name: 'reader' });
    assert.match(await said(h, 'provider', 'default', 'generic-openai', '--app', 'reader'), /^Chats of reader that name no provider go to generic-openai\.\n$/);
    assert.match(await said(h, 'provider', 'list'), /^reader +chat +generic-openai +- +yes$/m);
    assert.match(await said(h, 'provider', 'default', '--clear', '--app', 'reader'), /^Chats of reader/);
    assert.doesNotMatch(await said(h, 'provider', 'list'), /^reader/m);
});

test('what the command line adds counts in the running service at once', async (t) => {
    const h = await startHearth({ t });
    const key = await newKey(h);
    const ask = () => key.call('POST', '/sdk/llm/chat', { messages: [{ role: 'user', content: 'x' }] });
    const nothing = await ask();
    assert.equal(nothing.status, 503);
    assert.match(nothing.body.error, /^No provider of language models is configured.*`hearth provider add openai --api-key -` asks for its key/);
    await said(h, 'provider', 'add', 'generic-openai', '--base-url', url, '--model', 'said-model');
    assert.equal((await ask()).status, 200);
    await said(h, 'provider', 'remove', 'generic-openai');
    assert.equal((await ask()).status, 503);
});

test('wrong use is told', async (t) => {
    const h = coldHearth({ t });
    await complains(h, 2, /provider add needs ID/, 'provider', 'add');
    await complains(h, 1, /^hearth: --api-key is required for openai: An API key of platform\.openai\.com/, 'provider', 'add', 'openai');
    await complains(h, 1, /`preset` must be a provider that is known by name: `hearth provider presets`/, 'provider', 'add', 'acme');
    await complains(h, 1, /`preset` must be a provider that is known by name \(did you mean openai\?\): `hearth/, 'provider', 'add', 'opnai');
    await complains(h, 2, /nothing came/, 'provider', 'add', 'openai', '--api-key', '-', { input: '\n' });
    await complains(h, 2, /--header must be written as 'Name: value'/, 'provider', 'add', 'ollama', '--header', 'x');
    await complains(h, 1, /^hearth: --base-url must be an address like https:\/\/host\/v1, .*\nhearth: --header `x y` must be named by/, 'provider', 'add', 'ollama', '--base-url', 'x://y', '--header', 'x y: z');
    await complains(h, 1, /^hearth: --by must be day, app/, 'usage', '--by', 'moon');
    await complains(h, 1, /^hearth: --days must be an integer/, 'usage', '--days', 'many');
    await complains(h, 1, /^hearth: --name must be at most 128/, 'key', 'new', '--name', 'x'.repeat(129));
    await complains(h, 2, /Which provider\? NAME, or --clear/, 'provider', 'default');
    await complains(h, 2, /needs no NAME/, 'provider', 'default', 'x', '--clear');
    await complains(h, 1, /^hearth: --for must be one of chat, embed, speech/, 'provider', 'test', 'x', '--for', 'sight');
});

test('a dead default provider is told with its last error and time', async (t) => {
    const h = await startHearth({ t });
    await said(h, 'provider', 'add', 'ollama', '--base-url', '127.0.0.1:1', '--model', 'm');
    assert.equal((await h.cliJson('provider', 'list'))[0].last_error, null);
    const doctor = await h.cli('doctor');
    assert.match(doctor.stdout, /^FAIL {2}provider +ollama, a default, failed; the last error, at \d{4}-\S+Z: .*127\.0\.0\.1:1/m);
    assert.match(await said(h, 'provider', 'list'), /^failed +ollama at \d{4}-\d\d-\d\d \S+: .*127\.0\.0\.1:1/m);
    await h.cli('chat', 'hello');
    const [provider] = await h.cliJson('provider', 'list');
    assert.match(provider.last_error, /127\.0\.0\.1:1/);
    await said(h, 'provider', 'add', 'ollama', '--base-url', url.replace('/v1', ''), '--model', 'said-model');
    assert.doesNotMatch(await said(h, 'provider', 'list'), /^failed/m);
});

test('a default provider that takes the question and never answers is told after two seconds, and is not held against it', async (t) => {
    let isAwake = false;
    const closed = [];
    const peer = await hostileHttp(t, (request, socket) => {
        if (isAwake)
            socket.end(responseBytes({ object: 'list', data: [{ id: 'late-model' }] }));
        else
            socket.on('close', () => closed.push(performance.now())).on('end', () => socket.end());
    });
    const h = await startHearth({ t });
    const key = await newKey(h);
    await said(h, 'provider', 'add', 'generic-openai', '--name', 'mute', '--base-url', `${peer.url}/v1`, '--model', 'm');
    const began = performance.now(), doctor = await h.cli('doctor');
    assert.match(doctor.stdout, /^FAIL {2}provider +mute, a default, did not answer within 2 s$/m);
    await until(() => closed.length === 1, { what: 'the doctor has hung up' });
    assert.ok(closed[0] - began >= 1900, `the doctor waited ${closed[0] - began} ms`);
    assert.equal((await h.cliJson('provider', 'list'))[0].last_error, null);
    isAwake = true;
    const { body } = await key.call('GET', '/v1/models');
    assert.ok(body.data.some((model) => model.id.endsWith('late-model')), JSON.stringify(body));
    assert.doesNotMatch((await h.cli('doctor')).stdout, /mute, a default/);
});

test('a test that fails ends with code 1 and its sentence', async (t) => {
    const h = coldHearth({ t });
    await said(h, 'provider', 'add', 'ollama', '--base-url', '127.0.0.1:1', '--model', 'm');
    await complains(h, 1, /^hearth: ollama: 127\.0\.0\.1:1 takes no connection: is the server there running, and is the address right\?\n$/, 'provider', 'test', 'ollama');
    const json = await h.cli('provider', 'test', 'ollama', '--json');
    assert.equal(json.code, 1);
    assert.deepEqual([json.json.works, json.json.code, json.json.reason], [false, 'LLM_ERROR', 'CONNECT_FAILED']);
});

test('a backup takes providers along, and its restore opens them', async (t) => {
    const h = coldHearth({ t });
    const other = coldHearth({ t });
    await said(h, 'provider', 'add', 'generic-openai', '--base-url', url, '--model', 'said-model', '--api-key', '-', { input: secret });
    const archive = join(h.home, 'backup.tar.gz');
    await said(h, 'backup', archive);
    await said(other, 'restore', archive);
    assert.match(await said(other, 'provider', 'test', 'generic-openai'), /works/);
    assert.equal((await other.cliJson('provider', 'list'))[0].key, '****6789');
});

test('the presets are listed with what they need', async (t) => {
    const out = await said(await stoppedHearth({ t }), 'provider', 'presets');
    assert.match(out, /^anthropic +Anthropic +yes +no +no +no +api_key +https:\/\/api\.anthropic\.com/m);
    assert.match(out, /^ollama +Ollama +yes +yes +no +no +- /m);
});

test('the key that was typed is not in the data folder and not shown by help', async (t) => {
    const h = coldHearth({ t });
    await said(h, 'provider', 'add', 'openai', '--api-key', '-', { input: secret });
    for (const name of readdirSync(h.dataDir))
        assert.equal(readFileSync(join(h.dataDir, name)).includes(secret), false, name);
    assert.match(await said(h, 'help', 'provider', 'add'), /- \(recommended\) asks for it or reads standard input/);
});

// script(1) gives the command a terminal of its own, in which `typed` is typed. {code, seen}.
async function inTerminal(h, typed) {
    const command = `"${binary}" provider add openai --api-key - --data "${h.dataDir}"; echo "code $?"; stty -a`;
    const child = spawn('script', ['-qec', command, '/dev/null'], { env: h.env, stdio: ['pipe', 'pipe', 'inherit'] });
    let seen = '';
    let isTyped = false;
    child.stdout.setEncoding('utf8').on('data', (piece) => {
        seen += piece;
        if (!isTyped && seen.includes('API key: ')) {
            isTyped = true;
            child.stdin.write(typed);
        }
    });
    await new Promise((done) => child.on('close', done));
    assert.match(seen, / echo /, 'the terminal echoes again');
    return { code: Number(/code (\d+)/.exec(seen)[1]), seen };
}

test('a key that is asked for in a terminal is not echoed', async (t) => {
    const h = coldHearth({ t });
    const { code, seen } = await inTerminal(h, `${secret}x\x7f\r`);
    assert.equal(code, 0, seen);
    assert.match(seen, /API key: \r?\n+The provider openai is added/);
    assert.equal(seen.includes(secret), false);
    assert.equal((await h.cliJson('provider', 'list'))[0].key, '****6789');
});

test('Ctrl-C instead of a key changes nothing', async (t) => {
    const h = await stoppedHearth({ t });
    const { code, seen } = await inTerminal(h, 'sk-half\x03');
    assert.equal(code, 1, seen);
    assert.match(seen, /No key was given; nothing is changed/);
    assert.deepEqual((await h.cliJson('provider', 'list')), []);
});
