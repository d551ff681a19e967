// The built-in tools of model agents, each called by a model through a session (docs/agents.md, "Built-in tools").
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, decide, newApp, shellAgent, unique } from './kit.mjs';
import { scriptedProvider } from './scripted.mjs';

// An app with these grants, and a session of an agent that may use every built-in tool.
async function begin(t, { permissions = [], settings = {}, agent = {} } = {}) {
    const h = await startHearth({ t, settings });
    const provider = await scriptedProvider(t, h);
    const name = unique('helper');
    await admin(h, 'POST', '/api/agents', { name, kind: 'model', instructions: 'Help.', tools: ['builtin/*'], approval: 'never', ...agent });
    const id = await newApp(h, {}, ['agent.chat', ...permissions]);
    const app = h.asApp(id);
    const { body: { session } } = await app('POST', '/sdk/agent/session', { agent_name: name });
    return { h, provider, app, id, session };
}

// One turn in which the model calls the tools in order, one a step: what each of them gave, as the model saw it.
async function callTools({ provider, app, session }, ...calls) {
    const turn = app('POST', `/sdk/agent/session/${session.session_id}/chat`, { message: 'go on' });
    const given = [];
    for (const call of calls) {
        (await provider.next()).call(call);
        given.push(null);
    }
    const last = await provider.next();
    const results = last.messages.filter((one) => one.role === 'tool').slice(-calls.length);
    last.answer('done');
    const { status, text, body } = await turn;
    assert.equal(status, 200, text);
    assert.equal(body.response.text, 'done');
    return results.map(({ content }) => (typeof content === 'string' ? content : content.map((block) => block.text ?? '').join('')));
}

async function pages(t, answer) {
    const server = http.createServer(answer).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    return server.address().port;
}

test('an app without the grants is neither shown the tools that need them nor can it call them', async (t) => {
    const it = await begin(t);
    const turn = it.app('POST', `/sdk/agent/session/${it.session.session_id}/chat`, { message: 'go on' });
    const first = await it.provider.next();
    const names = first.tools.map((tool) => tool.function.name);
    for (const name of ['search_vectors', 'embed', 'list_activities', 'add_activity', 'update_activity', 'trigger_agent', 'task_status', 'run_command'])
        assert.ok(!names.includes(name), name);
    for (const name of ['fetch_url', 'read_file', 'write_file', 'list_files', 'edit_file', 'ask_person', 'now'])
        assert.ok(names.includes(name), name);
    first.call(['list_activities', {}], ['search_vectors', { query: 'x' }]);
    const second = await it.provider.next();
    const results = second.messages.filter((one) => one.role === 'tool').map((one) => one.content);
    assert.equal(results.length, 2);
    for (const one of results)
        assert.doesNotMatch(JSON.stringify(one), /"data"|"results"/);
    second.answer('done');
    assert.equal((await turn).status, 200);
});

test('activities and tasks are the app\'s own', async (t) => {
    const it = await begin(t, { permissions: ['activities.read', 'activities.write', 'webhook.trigger', 'api.task'] });
    const other = await newApp(it.h, {}, ['activities.write', 'activities.read']);
    const { body: { data: foreign } } = await it.h.asApp(other)('POST', '/activities', { raw_data: { secret: 'of another app' } });
    const worker = await shellAgent(it.h, 'echo \'{"n":42}\'');

    const [added, listed, foreignly] = await callTools(it, ['add_activity', { raw_data: { n: 1 } }], ['list_activities', { limit: 10 }],
        ['update_activity', { id: foreign.id, status: 'completed' }]);
    const { data: row } = JSON.parse(added);
    assert.deepEqual(row.raw_data, { n: 1 });
    assert.deepEqual(JSON.parse(listed).data.map((one) => one.id), [row.id]);
    assert.match(foreignly, /not found/i);
    const [changed, triggered] = await callTools(it, ['update_activity', { id: row.id, status: 'completed', result: { ok: true } }],
        ['trigger_agent', { agent_name: worker, prompt: 'work' }]);
    assert.equal(JSON.parse(changed).data.status, 'completed');
    assert.equal((await it.app('GET', `/activities/${row.id}`)).body.data.status, 'completed');
    const { task_uuid: uuid } = JSON.parse(triggered);
    await until(async () => (await it.app('GET', `/task/${uuid}`)).body.task.status === 'completed');
    const [status] = await callTools(it, ['task_status', { uuid }]);
    assert.deepEqual(JSON.parse(status).task.result, { n: 42 });
});

test('vectors are searched and texts embedded with the routes\' grants', async (t) => {
    const it = await begin(t, { permissions: ['vectors.read', 'vectors.write', 'llm.embed'] });
    const vectors = [{ id: 'cat', text: 'a cat sleeps on the mat' }, { id: 'car', text: 'a car needs new tyres' }];
    assert.equal((await it.app('POST', '/sdk/llm/vectors/upsert', { vectors })).status, 200);
    const [found, made] = await callTools(it, ['search_vectors', { query: 'a sleeping cat', top_k: 1 }], ['embed', { input: ['x'] }]);
    assert.deepEqual(JSON.parse(found).results.map((one) => one.id), ['cat']);
    assert.match(made, /"dimensions":384/);
});

test('files lie in the thread\'s folder and nowhere else, and outlive the session', async (t) => {
    const it = await begin(t);
    const results = await callTools(it, ['write_file', { path: 'notes/a.txt', content: 'one two' }], ['edit_file', { path: 'notes/a.txt', old_text: 'two', new_text: '2' }],
        ['read_file', { path: 'notes/a.txt' }], ['list_files', { recursive: true }], ['read_file', { path: '../../hearth.db' }], ['write_file', { path: '/etc/x', content: 'x' }]);
    assert.equal(results[2], 'one 2');
    assert.deepEqual(JSON.parse(results[3]).files.map((one) => one.path), ['notes', 'notes/a.txt']);
    assert.match(results[4], /FILE_NAME/);
    assert.match(results[5], /FILE_NAME/);
    const [file] = readdirSync(it.h.dataDir, { recursive: true }).filter((path) => path.endsWith('notes/a.txt'));
    assert.equal(readFileSync(join(it.h.dataDir, file), 'utf8'), 'one 2');
    symlinkSync('/etc/passwd', join(it.h.dataDir, file.replace('a.txt', 'link')));
    const [link] = await callTools(it, ['read_file', { path: 'notes/link' }]);
    assert.match(link, /FILE_REFUSED/);
    const { body: { session: other } } = await it.app('POST', '/sdk/agent/session', { agent_name: it.session.agent.name });
    const [foreign] = await callTools({ ...it, session: other }, ['read_file', { path: 'notes/a.txt' }]);
    assert.match(foreign, /FILE_NOT_FOUND/);
    const { body: { session: again } } = await it.app('POST', '/sdk/agent/session', { agent_name: it.session.agent.name, thread_slug: it.session.thread.slug });
    assert.deepEqual(await callTools({ ...it, session: again }, ['read_file', { path: 'notes/a.txt' }]), ['one 2']);
});

test('a page is fetched as text; what is private is refused, at a redirect too', async (t) => {
    const port = await pages(t, (req, res) => {
        if (req.url === '/away')
            res.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data' }).end();
        else
            res.writeHead(200, { 'content-type': 'text/html; charset=iso-8859-1' }).end(Buffer.from('<title>Caf\xe9</title><script>no</script><h1>Men\xfc</h1><a href="/x">more</a>', 'latin1'));
    });
    const it = await begin(t, { settings: { 'net.private_hosts': `127.0.0.1:${port}` } });
    const own = it.h.port;
    const [page, away, service, metadata] = await callTools(it, ['fetch_url', { url: `http://127.0.0.1:${port}/` }], ['fetch_url', { url: `http://127.0.0.1:${port}/away` }],
        ['fetch_url', { url: `http://127.0.0.1:${own}/healthz` }], ['fetch_url', { url: 'http://169.254.169.254/' }]);
    assert.match(page, /Title: Café/);
    assert.match(page, /# Menü\n*\[more\]\(\/x\)/);
    assert.match(page, /not instructions/);
    for (const refused of [away, service, metadata])
        assert.match(refused, /ADDRESS_REFUSED|CONNECT_FAILED/);
});

test('the model learns the time', async (t) => {
    const it = await begin(t);
    const [utc, wrong] = await callTools(it, ['now', { timezone: 'UTC' }], ['now', { timezone: '../../etc/passwd' }]);
    assert.ok(Math.abs(Date.parse(JSON.parse(utc).time) - Date.now()) < 60_000, utc);
    assert.match(wrong, /VALIDATION_ERROR/);
});

test('a question waits until the person answers', async (t) => {
    const it = await begin(t);
    const turn = callTools(it, ['ask_person', { question: 'Which colour?', choices: ['red', 'blue'] }]);
    const pending = async () => (await admin(it.h, 'GET', '/api/approvals')).approvals[0];
    await until(async () => await pending() !== undefined);
    const asked = await pending();
    assert.equal(asked.kind, 'question');
    assert.equal(asked.text, 'Which colour?');
    await admin(it.h, 'POST', `/api/approvals/${asked.id}`, { allow: true, reply: 'blue' });
    assert.deepEqual(await turn, ['blue']);
});

test('a command runs only when a person turned it on and allowed it', async (t) => {
    const it = await begin(t, { settings: { 'tools.run_command': true } });
    const turn = callTools(it, ['run_command', { command: 'echo hello > made; cat made; cat /proc/net/route | wc -l' }]);
    const pending = async () => (await admin(it.h, 'GET', '/api/approvals')).approvals[0];
    await until(async () => await pending() !== undefined);
    const asked = await pending();
    assert.equal(asked.tool, 'run_command');
    assert.ok(!readdirSync(it.h.dataDir, { recursive: true }).some((path) => path.endsWith('/made')));
    await admin(it.h, 'POST', `/api/approvals/${asked.id}`, { allow: true });
    const [output] = await turn;
    assert.match(output, /^\[exit code 0\]\nhello\n1\n$|SANDBOX_UNAVAILABLE/);
});
