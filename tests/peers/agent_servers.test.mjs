// A model agent (its model is @copilotkit/aimock) with tools of the protocol's authors' MCP servers: a file is listed and edited with an approval given on
// the command line, a form of a server is answered by the person.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import { startHearth, until } from '../api/harness.mjs';
import { admin, newKey } from '../api/kit.mjs';

const official = (name) => join(import.meta.dirname, '../node_modules/@modelcontextprotocol', name, 'dist/index.js');
const call = (id, name, args) => ({ toolCalls: [{ id, name, arguments: JSON.stringify(args) }] });
const pending = (h) => until(async () => (await admin(h, 'GET', '/api/approvals')).approvals[0], { what: 'a question' });

async function begin(t, { server, args = [], tools, teach, approval }) {
    const mock = new LLMock({ port: 0, chunkSize: 8 });
    const h = await startHearth({ t });
    const folder = join(h.home, 'docs');
    mkdirSync(folder);
    teach(mock, folder);
    await mock.start();
    t.after(() => mock.stop());
    await admin(h, 'POST', '/api/providers', { preset: 'generic-openai', name: 'double', base_url: `${mock.url}/v1`, api_key: 'sk-test', model: 'double-model' }, 201);
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name: 'given', command: process.execPath, args: [official(server), ...args.length ? [folder] : []], ...args.length && { folders: [folder] } }, 201);
    await admin(h, 'POST', '/api/agents', { name: 'helper', kind: 'model', tools, ...approval && { approval } });
    const { call: dev } = await newKey(h);
    const { body: { session } } = await dev('POST', '/sdk/agent/session', { agent_name: 'helper' });
    return { h, mock, folder, chat: (message) => dev('POST', `/sdk/agent/session/${session.session_id}/chat`, { message }) };
}

test('a conversation lists and edits a file of the filesystem server, with one approval', async (t) => {
    const { h, mock, folder, chat } = await begin(t, {
        server: 'server-filesystem', args: ['folder'], tools: ['given/*'],
        teach(mock, folder) {
            const path = join(folder, 'list.txt');
            mock.on({ toolCallId: 'call_2' }, { content: 'It says milk now.' });
            mock.on({ toolCallId: 'call_1' }, call('call_2', 'given__edit_file', { path, edits: [{ oldText: 'bread', newText: 'milk' }] }));
            mock.on({ userMessage: 'milk instead' }, call('call_1', 'given__list_directory', { path: folder }));
        },
    });
    writeFileSync(join(folder, 'list.txt'), 'buy bread\n');
    const answer = chat('milk instead');
    const question = await pending(h);
    assert.deepEqual([question.server, question.tool, question.arguments.edits[0].newText], ['given', 'edit_file', 'milk'], 'listing is not asked about');
    assert.match((await h.cli('approval', 'list')).stdout, /helper wants to call edit_file of the server given/);
    await h.cli('approval', 'allow', question.id);
    const { body, text } = await answer;
    assert.equal(body.response?.text, 'It says milk now.', text);
    assert.equal(readFileSync(join(folder, 'list.txt'), 'utf8'), 'buy milk\n');
    const names = mock.getRequests()[0].body.tools.map((tool) => tool.function.name);
    assert.ok(names.every((name) => /^given__[A-Za-z0-9_-]+$/.test(name)) && names.includes('given__read_text_file'));
});

test('a form of a server is answered by the person', async (t) => {
    const { h, chat } = await begin(t, {
        server: 'server-everything', tools: ['given/trigger-elicitation-request'], approval: 'never',
        teach(mock) {
            mock.on({ toolCallId: 'call_1' }, { content: 'Thank you.' });
            mock.on({ userMessage: 'the form' }, call('call_1', 'given__trigger-elicitation-request', {}));
        },
    });
    const answer = chat('the form');
    const question = await pending(h);
    assert.deepEqual([question.kind, question.server], ['elicitation', 'given']);
    assert.ok(question.schema.properties.name);
    await h.cli('approval', 'allow', question.id, '--reply', JSON.stringify({ name: 'Ada' }));
    const { body, text } = await answer;
    assert.equal(body.response?.text, 'Thank you.', text);
});
