// Approvals: the questions of agents for a person, and decisions that are kept (docs/approvals.md).
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { binary, sharedHearth, startHearth, until } from './harness.mjs';
import { admin, changes, newKey, nobodysId, refused, refusedFields, timeForm, unique } from './kit.mjs';
import { scriptedProvider } from './scripted.mjs';

const shared = sharedHearth();
// Decisions are about agents and servers that exist.
async function newAgent(h, name) {
    await admin(h, 'POST', '/api/agents', { kind: 'model', name }, 201);
    return name;
}
async function newServer(h, name) {
    await admin(h, 'POST', '/api/mcp/servers', { name, command: 'true' }, 201);
    return name;
}
const rulesOf = async (h, agent) => (await admin(h, 'GET', '/api/approvals/rules')).rules.filter((one) => one.agent === agent);

test('a decision is kept before the first call, changed and taken back', async (t) => {
    const h = await shared(t), agent = await newAgent(h, unique('agent')), server = await newServer(h, unique('files'));
    await admin(h, 'POST', '/api/approvals/rules', { agent, server, tool: 'write_file', decision: 'always' });
    await admin(h, 'POST', '/api/approvals/rules', { agent, tool: 'write_file', decision: 'always' });
    await admin(h, 'POST', '/api/approvals/rules', { agent, tool: 'write_file', decision: 'never' });
    const [own, other] = await rulesOf(h, agent);
    assert.deepEqual([own.server, own.tool, own.decision], [null, 'write_file', 'never']);
    assert.deepEqual([other.server, other.decision], [server, 'always']);
    assert.match(own.decided_at, timeForm);
    await admin(h, 'POST', '/api/approvals/rules/forget', { agent, tool: 'write_file' });
    assert.equal((await rulesOf(h, agent)).length, 1);
    refused(await h.socket('POST', '/api/approvals/rules/forget', { agent, tool: 'write_file' }), 404, 'RULE_NOT_FOUND');
});

test('decisions are in the audit log', async (t) => {
    const h = await shared(t), agent = await newAgent(h, unique('agent')), server = await newServer(h, unique('files'));
    await admin(h, 'POST', '/api/approvals/rules', { agent, server, tool: 'write_file', decision: 'never' });
    const entry = (await admin(h, 'GET', '/api/audit')).entries.find((one) => one.subject === agent);
    assert.equal(entry.action, 'approval.deny');
    assert.deepEqual([entry.detail.server, entry.detail.tool, entry.detail.scope], [server, 'write_file', 'always']);
});

test('what was allowed for good goes with the server and with the agent, what was denied stays', async (t) => {
    const h = await shared(t), server = unique('files'), agent = unique('clerk');
    const allow = (tool, decision, more = { server }) => admin(h, 'POST', '/api/approvals/rules', { agent, tool, decision, ...more });
    const keeps = async () => (await rulesOf(h, agent)).map((one) => `${one.server}/${one.tool} ${one.decision}`);
    await newAgent(h, agent);
    await newServer(h, server);
    await allow('write', 'always');
    await allow('delete', 'never');
    await allow('now', 'always', {});
    await admin(h, 'DELETE', `/api/mcp/servers/${server}`);
    assert.deepEqual(await keeps(), ['null/now always', `${server}/delete never`]);
    await admin(h, 'DELETE', `/api/agents/${agent}`);
    assert.deepEqual(await keeps(), [`${server}/delete never`]);
});

test('only the administrator decides', async (t) => {
    const h = await shared(t), { call } = await newKey(h);
    for (const [method, path, body] of [['GET', '/api/approvals'], ['POST', `/api/approvals/${nobodysId}`, { allow: true }], ['POST', '/api/approvals/rules', { agent: 'a', tool: 't', decision: 'always' }]])
        refused(await call(method, path, body), 401, 'ADMIN_REQUIRED');
});

test('an answer to a question that nobody put is refused, and a decision needs its fields', async (t) => {
    const h = await shared(t);
    refused(await h.socket('POST', `/api/approvals/${nobodysId}`, { allow: true }), 404, 'APPROVAL_NOT_FOUND');
    refusedFields(await h.socket('POST', `/api/approvals/${nobodysId}`, { scope: 'forever' }), 'allow', 'scope');
    refusedFields(await h.socket('POST', '/api/approvals/rules', { agent: '', decision: 'maybe' }), 'agent', 'tool', 'decision');
});

test('a decision about an agent, server or tool that does not exist is refused, and the nearest is named', async (t) => {
    const h = await shared(t), agent = await newAgent(h, 'triage'), server = await newServer(h, 'letters');
    const decide = (rule) => h.socket('POST', '/api/approvals/rules', { agent, tool: 'read', decision: 'never', ...rule });
    assert.match(refused(await decide({ agent: 'trige' }), 404, 'AGENT_NOT_FOUND').error, /did you mean triage\?/);
    assert.match(refused(await decide({ server: 'leters' }), 404, 'SERVER_NOT_FOUND').error, /did you mean letters\?/);
    assert.match(refused(await decide({ tool: 'write_fil' }), 404, 'TOOL_NOT_FOUND').error, /did you mean write_file\?/);
    assert.match((await h.cli('approval', 'set', 'trige', 'letters/read', 'never')).stderr, /did you mean triage\?/);
    assert.deepEqual(await rulesOf(h, agent), []);
    await admin(h, 'POST', '/api/approvals/rules', { agent, server, tool: 'read', decision: 'never' }); // a server's tools are known when it runs
});

test('an agent may be registered before its servers: what is not there is said', async (t) => {
    const h = await shared(t);
    await newServer(h, 'calendar');
    const add = async (tools, more = {}) => (await h.cli('agent', 'add', h.file('early.json', { kind: 'model', name: 'early', tools, ...more }))).stdout;
    assert.match(await add(['calender/*']), /registered: .*; but: There is no MCP server named calender; did you mean calendar\.\n/);
    assert.match(await add(['builtin/write_fil', 'nowhere/go']), /Hearth has no tool named write_fil; did you mean write_file; but: There is no MCP server named nowhere\.\n/);
    assert.match(await add(['builtin/*'], { provider: 'nobody' }), /; but: The provider nobody is not configured/);
    assert.doesNotMatch(await add(['*/*', 'builtin/write_*', 'builtin/now', 'calendar/read']), /but:/);
});

test('the commands keep, list and forget decisions', async (t) => {
    const h = await shared(t), agent = await newAgent(h, unique('agent'));
    assert.match((await h.cli('approval', 'list')).stdout, /No question of an agent waits/);
    assert.equal((await h.cli('approval', 'set', agent, 'builtin/write_file', 'always')).stdout, `${agent} calls builtin/write_file: always.\n`);
    assert.match((await h.cli('approval', 'rules')).stdout, new RegExp(`${agent} .*write_file .*always`));
    await h.cli('approval', 'forget', agent, 'builtin/write_file');
    assert.deepEqual(await rulesOf(h, agent), []);
});

// ---- turns that wait for a person ----

async function begin(t, agent = {}, settings = {}) {
    const h = await startHearth({ t, settings });
    const provider = await scriptedProvider(t, h);
    const { key, call } = await newKey(h), headers = { authorization: `Bearer ${key}` };
    const { name } = await admin(h, 'POST', '/api/agents', { kind: 'model', name: 'clerk', tools: ['builtin/*'], ...agent }, 201);
    const { body } = await call('POST', '/sdk/agent/session', { agent_name: name });
    const path = `/sdk/agent/session/${body.session.session_id}`;
    const chat = (message) => call('POST', `${path}/chat`, { message });
    return { h, provider, call, headers, path, chat, session: body.session.session_id };
}

const waiting = (h, count = 1) => until(async () => {
    const { approvals } = await admin(h, 'GET', '/api/approvals');
    return approvals.length === count && approvals;
}, { what: `${count} questions` });
const writes = (text, path = 'a.txt') => ['write_file', { path, content: text }];
const decide = (h, id, body) => admin(h, 'POST', `/api/approvals/${id}`, body);
const results = (asked) => asked.messages.filter(({ role }) => role === 'tool').map(({ content }) => content);

test('a call waits for a person, who sees its arguments in full, and is made once allowed', async (t) => {
    const { h, provider, chat, session } = await begin(t), changed = await changes(t, h);
    const answer = chat('Write it down.');
    (await provider.next()).call(writes('hello'));
    const [question] = await waiting(h);
    assert.deepEqual({ ...question, id: 0, asked_at: 0, text: null }, {
        id: 0, kind: 'tool', agent: 'clerk', server: null, tool: 'write_file', destructive: true, text: null, arguments: { path: 'a.txt', content: 'hello' },
        choices: null, schema: null, session_id: session, task_uuid: null, app_id: null, asked_at: 0,
    });
    await changed.next((event) => event.event === 'approval' && event.json.pending === 1);
    assert.equal((await h.cli('approval', 'allow', question.id.slice(0, 8))).stdout, 'Allowed.\n');
    const asked = await provider.next();
    assert.doesNotMatch(results(asked)[0], /^Error/);
    asked.call(['read_file', { path: 'a.txt' }]);
    const read = await provider.next();
    assert.match(results(read)[1], /hello/, 'a tool that only reads is not asked about');
    read.answer('Done.');
    assert.equal((await answer).body.response.text, 'Done.');
    await changed.next((event) => event.event === 'approval' && event.json.pending === 0);
});

test('a denial is told to the model, and "never" is kept', async (t) => {
    const { h, provider, chat } = await begin(t);
    const answer = chat('Write it down.');
    (await provider.next()).call(writes('hello'));
    const [question] = await waiting(h);
    await h.cli('approval', 'deny', question.id, '--never');
    const second = await provider.next();
    assert.match(results(second)[0], /A person denied this call/);
    second.call(writes('again'));
    const third = await provider.next();
    assert.match(results(third)[1], /A person denied this call/);
    third.answer('I may not.');
    await answer;
    assert.deepEqual((await rulesOf(h, 'clerk')).map(({ tool, decision }) => [tool, decision]), [['write_file', 'never']]);
});

test('"for this session" holds in this session alone', async (t) => {
    const { h, provider, chat, call } = await begin(t);
    const answer = chat('Write it down.');
    (await provider.next()).call(writes('one'), writes('two', 'b.txt'));
    const [question] = await waiting(h, 2);
    await decide(h, question.id, { allow: true, scope: 'session' });
    const asked = await provider.next();
    assert.equal(results(asked).length, 2, 'the decision answers both');
    asked.call(writes('three', 'c.txt'));
    (await provider.next()).answer('Done.');
    await answer;
    const { body } = await call('POST', '/sdk/agent/session', { agent_name: 'clerk' });
    const other = call('POST', `/sdk/agent/session/${body.session.session_id}/chat`, { message: 'And here.' });
    (await provider.next()).call(writes('four'));
    await decide(h, (await waiting(h))[0].id, { allow: false });
    (await provider.next()).answer('Denied.');
    await other;
});

test('a question that nobody answers is denied after the setting', async (t) => {
    const { provider, chat } = await begin(t, {}, { 'approvals.wait_s': 1 });
    const answer = chat('Write it down.');
    (await provider.next()).call(writes('hello'));
    const asked = await provider.next();
    assert.match(results(asked)[0], /Nobody answered/);
    asked.answer('Nobody is there.');
    await answer;
});

test('the time of the person does not count for the turn', async (t) => {
    const { h, provider, chat } = await begin(t, { timeout_s: 5 });
    const answer = chat('Write it down.'), began = performance.now();
    (await provider.next()).call(writes('hello'));
    const [question] = await waiting(h);
    await until(() => performance.now() - began > 5500, { what: 'more than the time of the turn' });
    await decide(h, question.id, { allow: true });
    (await provider.next()).answer('Done.');
    assert.equal((await answer).body.response.text, 'Done.');
});

test('a cancelled turn takes its question along', async (t) => {
    const { h, provider, chat, call, path } = await begin(t);
    const answer = chat('Write it down.');
    (await provider.next()).call(writes('hello'));
    const [question] = await waiting(h);
    assert.equal((await call('POST', `${path}/cancel`)).status, 200);
    await waiting(h, 0);
    refused(await h.socket('POST', `/api/approvals/${question.id}`, { allow: true }), 404, 'APPROVAL_NOT_FOUND');
    assert.notEqual((await answer).status, 200);
});

test('a call that was allowed is not made when the turn is cancelled before it', async (t) => {
    const { h, provider, chat, call, path } = await begin(t);
    const answer = chat('Write both down.');
    (await provider.next()).call(writes('one', 'one.txt'), writes('two', 'two.txt'));
    const [first] = await waiting(h, 2);
    await decide(h, first.id, { allow: true });
    await waiting(h, 1);
    assert.equal((await call('POST', `${path}/cancel`)).status, 200);
    assert.notEqual((await answer).status, 200);
    const { turns } = (await call('GET', `${path}/messages`)).body;
    const said = turns.at(-1).messages.filter((one) => one.role === 'tool').map((one) => JSON.stringify(one.message.content));
    assert.equal(said.length, 2);
    said.forEach((text) => assert.match(text, /The call was not made/));
    const folders = join(h.dataDir, 'threads');
    assert.deepEqual(existsSync(folders) ? readdirSync(folders, { recursive: true }).filter((name) => name.endsWith('.txt')) : [], []);
});

test('arguments with two members of one name are not shown to anybody, and not used', async (t) => {
    const { h, provider, chat } = await begin(t, { tools: ['builtin/write_file'] });
    const answer = chat('Write it down.');
    (await provider.next()).callRaw(['write_file', '{"path":"a.txt","content":"shown","content":"sent"}']);
    const asked = await provider.next();
    assert.match(results(asked)[0], /`content` twice/);
    assert.deepEqual((await admin(h, 'GET', '/api/approvals')).approvals, []);
    asked.answer('No.');
    await answer;
});

test('ask_person waits for one of its choices', async (t) => {
    const { h, provider, chat } = await begin(t);
    const answer = chat('Ask me.');
    (await provider.next()).call(['ask_person', { question: 'Which colour?', choices: ['red', 'blue'] }]);
    const [question] = await waiting(h);
    assert.deepEqual([question.kind, question.text, question.choices], ['question', 'Which colour?', ['red', 'blue']]);
    refusedFields(await h.socket('POST', `/api/approvals/${question.id}`, { allow: true, reply: 'green' }), 'reply');
    await h.cli('approval', 'allow', question.id, '--reply', 'blue');
    const asked = await provider.next();
    assert.match(results(asked)[0], /blue/);
    asked.answer('Blue it is.');
    await answer;
});

test('the policies never and always', async (t) => {
    const { h, provider, chat } = await begin(t, { approval: 'never' });
    const free = chat('Write it down.');
    (await provider.next()).call(writes('hello'));
    (await provider.next()).answer('Done.');
    assert.equal((await free).status, 200);
    await admin(h, 'POST', '/api/agents', { kind: 'model', name: 'clerk', tools: ['builtin/*'], approval: 'always' });
    const strict = chat('And the time?');
    (await provider.next()).call(['now', {}]);
    await decide(h, (await waiting(h))[0].id, { allow: true });
    (await provider.next()).answer('Now.');
    assert.equal((await strict).status, 200);
});

// ---- in a terminal: script(1) of util-linux makes one ----

const hasTerminal = spawnSync('sh', ['-c', 'command -v script']).status === 0;

function watchInTerminal(t, h) {
    const child = spawn('script', ['-qefc', `'${binary}' approval watch --data '${h.dataDir}'`, '/dev/null'], { env: { ...h.env, TERM: 'dumb' }, stdio: ['pipe', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (piece) => { text += piece; });
    return {
        type: (line) => child.stdin.write(line),
        shows: (pattern) => until(() => text.match(pattern), { what: `the terminal shows ${pattern}, it shows ${text}` }),
    };
}

test('approval watch asks as agents ask, with the arguments in full', { skip: !hasTerminal }, async (t) => {
    const { h, provider, chat } = await begin(t), terminal = watchInTerminal(t, h);
    await terminal.shows(/Watching/);
    const answer = chat('Write it down.');
    (await provider.next()).call(writes('all of \u001b[31mit'));
    await terminal.shows(/clerk wants to call write_file\. It may destroy something/);
    await terminal.shows(/"content": *"all of \\u001b\[31mit"/);
    terminal.type('yes\n');
    await terminal.shows(/for this \[s\]ession[^]*for this \[s\]ession/);
    terminal.type('o\n');
    await terminal.shows(/allowed once/);
    (await provider.next()).call(['ask_person', { question: 'Which colour?', choices: ['red', 'blue'] }]);
    await terminal.shows(/Which colour\?[^]*2\. blue/);
    terminal.type('2\n');
    const asked = await provider.next();
    assert.match(results(asked)[1], /blue/);
    asked.answer('Done.');
    assert.equal((await answer).body.response.text, 'Done.');
});

test('approval watch without a terminal refuses and says what to use', async (t) => {
    const result = await (await shared(t)).cli('approval', 'watch');
    assert.equal(result.code, 1);
    assert.match(result.stderr, /terminal.*approval list/);
});

test('what was allowed for good ends with the agent or the server, what was forbidden stays', async (t) => {
    const h = await shared(t), agent = unique('clerk'), server = unique('files');
    const decide = (tool, decision, more = {}) => admin(h, 'POST', '/api/approvals/rules', { agent, server, tool, decision, ...more });
    const kept = async () => (await rulesOf(h, agent)).map((one) => `${one.tool} ${one.decision}`);
    await admin(h, 'POST', '/api/mcp/servers', { name: server, command: 'true' }, 201);
    await admin(h, 'POST', '/api/agents', { name: agent, kind: 'model' }, 201);
    await decide('write_file', 'always');
    await decide('move_file', 'never');
    await decide('now', 'always', { server: undefined });
    await admin(h, 'DELETE', `/api/mcp/servers/${server}`);
    assert.deepEqual(await kept(), ['now always', 'move_file never']);
    await admin(h, 'DELETE', `/api/agents/${agent}`);
    assert.deepEqual(await kept(), ['move_file never']);
});
