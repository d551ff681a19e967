// hearth status, chat, embed and search: what a person does first.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import http from 'node:http';
import { test } from 'node:test';
import { coldHearth, sharedHearth, startHearth, until } from './harness.mjs';
import { env } from './provider.mjs';
import { inTerminal } from './terminal.mjs';

const shared = sharedHearth();

async function said(h, ...args) {
    const result = await h.cli(...args);
    assert.equal(result.code, 0, `hearth ${args.join(' ')}: ${result.stderr}`);
    return result.stdout;
}

// A provider that keeps what it was asked, and answers with `pieces`; after those it waits when `isSlow`.
async function provider(t, { pieces = ['Hel', 'lo.'], isSlow = false } = {}) {
    const asked = [];
    const server = http.createServer(async (incoming, outgoing) => {
        const body = [];
        for await (const piece of incoming)
            body.push(piece);
        if (incoming.url.endsWith('/models'))
            return outgoing.end(JSON.stringify({ data: [{ id: 'slow-model' }] }));
        asked.push(JSON.parse(Buffer.concat(body)));
        outgoing.setHeader('content-type', 'text/event-stream');
        for (const content of pieces)
            outgoing.write(`data: ${JSON.stringify({ model: 'slow-model', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`);
        if (!isSlow)
            outgoing.end(`data: ${JSON.stringify({ model: 'slow-model', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
        server.closeAllConnections();
        server.close();
    });
    return { asked, env: { GENERIC_OPENAI_BASE_URL: `http://127.0.0.1:${server.address().port}/v1`, GENERIC_OPENAI_MODEL: 'slow-model' } };
}

test('a question is answered as it comes, and piped text follows the question', async (t) => {
    const { asked, env: its } = await provider(t);
    const h = await startHearth({ t, env: its });
    assert.equal(await said(h, 'chat', 'say', 'hello'), 'Hello.\n');
    assert.equal(await said(h, 'chat', 'summarise', { input: 'a long text\n' }), 'Hello.\n');
    assert.equal(await said(h, 'chat', '-m', 'slow-model', '--system', 'be brief', { input: 'what?' }), 'Hello.\n');
    assert.deepEqual(asked.map((one) => one.messages.map((message) => [message.role, message.content])), [
        [['user', 'say hello']], [['user', 'summarise\n\na long text\n']], [['system', 'be brief'], ['user', 'what?']],
    ]);
});

test('chat --json prints the whole answer', async (t) => {
    const h = await startHearth({ t, env });
    const answer = await h.cliJson('chat', 'hello');
    assert.deepEqual([answer.content, answer.model, answer.finish_reason], ['Hello.', 'said-model', 'stop']);
});

test('what is missing is said: a model, a service, a question', async (t) => {
    const h = await shared(t);
    const noModel = await h.cli('chat', 'hello');
    assert.equal(noModel.code, 1);
    assert.match(noModel.stderr, /^hearth: No provider of language models is configured.*`hearth provider add openai --api-key -`/);
    const nothing = await h.cli('chat');
    assert.equal(nothing.code, 2);
    assert.match(nothing.stderr, /What is the question\?/);
    const binary = await h.cli('chat', { input: Buffer.from([0xff, 0xfe]) });
    assert.match(binary.stderr, /must be UTF-8/);
    const cold = coldHearth({ t, isBare: true });
    const noService = await cold.cli('chat', 'hello');
    assert.equal(noService.code, 1);
    assert.match(noService.stderr, /No service runs on .*; start one with `hearth serve`/);
    assert.ok(!existsSync(cold.dataDir), 'no data folder was made');
});

test('a conversation remembers what was said, and Ctrl-D ends it', async (t) => {
    const { asked, env: its } = await provider(t);
    const h = await startHearth({ t, env: its });
    const terminal = inTerminal(t, h, 'chat');
    await terminal.seen(/> /);
    terminal.type('one\r');
    await terminal.seen(/Hello\.\r?\n> /);
    terminal.type('two\r');
    await terminal.seen(/Hello\.\r?\n> /);
    terminal.type('\x04');
    assert.match(await terminal.ended, /code 0/);
    assert.deepEqual(asked[1].messages.map((message) => message.content), ['one', 'Hello.', 'two']);
});

test('Ctrl-C cancels the answer that comes, and a second one ends', async (t) => {
    const { asked, env: its } = await provider(t, { pieces: ['I think'], isSlow: true });
    const h = await startHearth({ t, env: its });
    const terminal = inTerminal(t, h, 'chat');
    await terminal.seen(/> /);
    terminal.type('one\r');
    await terminal.seen(/I think/);
    terminal.type('\x03');
    await terminal.seen(/\(canceled\)\r?\n> /);
    terminal.type('two\r');
    await terminal.seen(/I think/);
    assert.deepEqual(asked[1].messages.map((message) => message.content), ['one', 'I think', 'two']);
    terminal.type('\x03');
    await terminal.seen(/\(canceled\)\r?\n> /);
    terminal.type('\x03');
    assert.match(await terminal.ended, /code 130/);
});

test('embed prints one vector a line', async (t) => {
    for (const h of [await shared(t), coldHearth({ t })]) {
        await said(h, 'key', 'new');
        const lines = (await said(h, 'embed', 'one text', 'another')).trim().split('\n').map((line) => JSON.parse(line));
        assert.deepEqual(lines.map((one) => one.length), [384, 384]);
        assert.deepEqual(JSON.parse(await said(h, 'embed', { input: 'one text' })), lines[0]);
        const whole = await h.cliJson('embed', 'one text', '-m', 'lexical-384');
        assert.deepEqual([whole.model, whole.dimensions, whole.embeddings.length], ['lexical-384', 384, 1]);
    }
    const nothing = await coldHearth({ t }).cli('embed');
    assert.deepEqual([nothing.code, /What is to be embedded\?/.test(nothing.stderr)], [2, true]);
});

test('search finds what an app has stored, by its text', async (t) => {
    const h = await shared(t);
    const app = await h.app({ name: 'notes' }, ['vectors.write', 'llm.embed']);
    const vectors = [{ id: 'cat', text: 'the cat sleeps on the sofa' }, { id: 'tax', text: 'the tax office wants a form', metadata: { documentId: 'letters' } }];
    assert.equal((await h.asApp(app)('POST', '/sdk/llm/vectors/upsert', { vectors })).status, 200);
    assert.match(await said(h, 'search', 'tax form', '--app', 'notes', '--top', '1'), /^SCORE +ID +DOCUMENT +TEXT\n\S+ +tax +letters +the tax office wants a form\n$/);
    assert.deepEqual((await h.cliJson('search', 'sleeping cats', '--app', app)).map((hit) => hit.id), ['cat', 'tax']);
    assert.deepEqual((await h.cliJson('search', 'sofa', '--app', 'notes', '--words')).map((hit) => hit.id), ['cat']);
    assert.equal(await said(h, 'search', 'sofa', '--app', 'notes', '--workspace', 'none', '--words'), 'Nothing was found.\n');
    const whose = await h.cli('search', 'x');
    assert.deepEqual([whose.code, whose.stderr.split('\n')[0]], [2, 'hearth: Whose vectors? --app APP, or --key KEY for those of a developer key']);
    assert.match((await h.cli('search', 'x', '--app', 'note')).stderr, /^hearth: There is no app note; did you mean notes\?\n/);
    assert.match((await h.cli('search', 'x', '--app', 'nobody')).stderr, /nobody[^]*`hearth app list` shows what there is/);
    assert.match((await h.cli('search', 'x', '--app', 'notes', '--top', 'many')).stderr, /^hearth: --top must be/);
});

test('search finds what a developer key has stored, by its id, fingerprint or name', async (t) => {
    const h = await shared(t);
    const other = await h.cliJson('key', 'new', '--name', 'two-of-a-name'), { id, key } = await h.cliJson('key', 'new', '--name', 'two-of-a-name');
    const vectors = [{ id: 'web', text: 'The site is down' }];
    assert.equal((await h.api('POST', '/sdk/llm/vectors/upsert', { vectors }, { 'x-api-key': key })).status, 200);
    const { fingerprint } = (await h.cliJson('key', 'list')).find((row) => row.id === id);
    for (const name of [id, fingerprint, 'two-of-a-name'])
        assert.deepEqual((await h.cliJson('search', 'site', '--key', name)).map((hit) => hit.id), ['web'], name);
    assert.deepEqual(await h.cliJson('search', 'site', '--key', other.id), []);
    assert.match((await h.cli('search', 'x', '--key', 'nope')).stderr, /^hearth: There is no developer key nope\.\nhearth: `hearth key list` shows what there is\.\n$/);
    assert.match((await h.cli('search', 'x', '--key', id, '--app', 'notes')).stderr, /^hearth: --key must not be given together with `app`/);
});

test('status shows the service, models, apps, what waits and what failed', async (t) => {
    const h = await startHearth({ t, env });
    await h.app({ name: 'reader', permissions: ['llm.chat'] });
    await h.agent({ name: 'worker', command: '/bin/sh', args: ['-c', 'exit 3'] });
    const app = await h.app({ name: 'doer', config: { agentHandlers: [{ tableName: 'svc_activities', agentId: 'worker', eventTypes: ['INSERT'] }], backend: { enabled: true } } }, ['activities.write']);
    await h.asApp(app)('POST', '/activities', { raw_data: {} });
    const { failures: [failed] } = await until(async () => {
        const status = await h.cliJson('status');
        return status.failures.length && status;
    }, { what: 'the task fails', everyMs: 50 });
    const text = await said(h, 'status');
    assert.match(text, new RegExp(`^service +Hearth \\S+ runs at ${h.url}\ndata +${h.dataDir}\nchats +generic-openai with said-model\nembeddings +builtin`, 'm'));
    assert.match(text, /^apps +(reader|doer): stopped$/m);
    assert.match(text, /^waits +reader asks for llm\.chat: `hearth permission grant reader llm\.chat`$/m);
    assert.match(text, new RegExp(`^failed .*\\(\`hearth task show ${failed.uuid.slice(0, 8)}\`\\)$`, 'm'));
    const json = await h.cliJson('status');
    assert.deepEqual([json.running, json.url, json.providers[0].name, json.waiting.length, json.apps.length], [true, h.url, 'generic-openai', 1, 2]);
    await h.terminate();
    const stopped = await h.cli('status');
    assert.equal(stopped.code, 1);
    assert.match(stopped.stdout, /^service +not running; `hearth serve` starts it\n[^]*^apps +(reader|doer): stopped$/m);
});

test('status where nothing ever ran says so and makes nothing', async (t) => {
    const h = coldHearth({ t, isBare: true });
    const { code, stdout } = await h.cli('status');
    assert.equal(code, 1);
    assert.match(stdout, /^service +not running, and none has ever run on /);
    assert.equal((await h.cli('status', '--json')).json.running, false);
    assert.ok(!existsSync(h.dataDir));
});
