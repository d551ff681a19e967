// What a configured MCP server may want of a model: every rule about the params, and which model its hints choose (docs/mcp.md, "What a server may want").
// The whole way, with the protocol's own server: tests/peers/mcp_sampling.test.mjs.
import assert from 'node:assert/strict';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { startHearth, until } from './harness.mjs';
import { admin, newKey } from './kit.mjs';
import { scriptedProvider } from './scripted.mjs';

const script = fileURLToPath(new URL('./mcp_sampling_server.mjs', import.meta.url));
const said = (content, role = 'user') => ({ role, content });
const hello = { messages: [said({ type: 'text', text: 'Hello' })], maxTokens: 10 };

async function begin(t, more) {
    const h = await startHearth({ t });
    const provider = await scriptedProvider(t, h, more);
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name: 'wants', command: process.execPath, args: [script] }, 201);
    const { call } = await newKey(h);
    const want = async (params) => {
        const { status, body, text } = await call('POST', '/sdk/mcp/servers/wants/tools/want/execute', { arguments: params });
        assert.equal(status, 200, text);
        return JSON.parse(body.result.content[0].text);
    };
    return { h, provider, want };
}

async function allow(h) {
    const question = await until(async () => (await admin(h, 'GET', '/api/approvals')).approvals[0], { what: 'a question' });
    await admin(h, 'POST', `/api/approvals/${question.id}`, { allow: true });
}

test('params that break a rule are refused with its name, and nobody is asked', async (t) => {
    const { h, provider, want } = await begin(t);
    const block = { type: 'text', text: 'x' };
    for (const [name, more] of [
        ['messages', { messages: [] }], ['messages', { messages: 'x' }], ['messages', { messages: Array.from({ length: 2001 }, () => said(block)) }],
        ['messages[].role', { messages: [said(block, 'system')] }], ['messages[].content', { messages: [said([])] }],
        ['messages[].content', { messages: [said(Array.from({ length: 1001 }, () => block))] }],
        ['messages[].content.type', { messages: [said({ type: 'audio', data: 'AAAA', mimeType: 'audio/wav' })] }],
        ['messages[].content', { messages: [said({ type: 'image', data: '%', mimeType: 'image/png' })] }],
        ['messages[].content.text', { messages: [said({ type: 'text' })] }], ['systemPrompt', { systemPrompt: 7 }],
        ['maxTokens', { maxTokens: 0 }], ['maxTokens', { maxTokens: 'many' }], ['temperature', { temperature: 2.1 }],
        ['stopSequences', { stopSequences: Array.from({ length: 17 }, () => 'x') }], ['stopSequences', { stopSequences: ['x'.repeat(257)] }],
        ['tools', { tools: [] }], ['toolChoice', { toolChoice: { mode: 'none' } }],
    ]) {
        const { code, message } = await want({ ...hello, ...more });
        assert.equal(code, -32602, JSON.stringify(more).slice(0, 200));
        assert.ok(message.startsWith(`\`${name}\` must be`), message);
    }
    assert.deepEqual((await admin(h, 'GET', '/api/approvals')).approvals, []);
    assert.equal(provider.asked.length, 0);
});

test('hints choose among the models there are, the first that one fits; others leave the default', async (t) => {
    const { h, provider, want } = await begin(t, { models: ['big-sonnet-9', 'text-embedding-haiku', 'small-haiku-3'] });
    for (const [hints, model] of [[['Nobody', 'HAIKU', 'sonnet'], 'small-haiku-3'], [['nobody'], 'scripted'], [[], 'scripted']]) {
        const answer = want({ ...hello, includeContext: 'allServers', modelPreferences: { hints: hints.map((name) => ({ name })) }, stopSequences: ['END'] });
        await allow(h);
        const asked = await provider.next();
        assert.deepEqual([asked.body.model, asked.messages.length, asked.body.stop], [model, 1, ['END']]);
        asked.whole = 'cut';
        asked.end('length');
        const { role, content, stopReason } = await answer;
        assert.deepEqual([role, content.text, stopReason], ['assistant', 'cut', 'maxTokens']);
    }
});

test('eight hints are read (LIMIT_MCP_SAMPLE_HINTS), and a wish for more than 8192 tokens counts as that (LIMIT_MCP_SAMPLE_TOKENS)', async (t) => {
    const { h, provider, want } = await begin(t, { models: ['small-haiku-3'] });
    const hintsOf = (n) => ({ hints: [...Array.from({ length: n - 1 }, (_, i) => ({ name: `nobody-${i}` })), { name: 'haiku' }] });
    for (const [n, maxTokens, model, tokens] of [[8, 8191, 'small-haiku-3', 8191], [8, 8192, 'small-haiku-3', 8192], [9, 8193, 'scripted', 8192]]) {
        const answer = want({ ...hello, maxTokens, modelPreferences: hintsOf(n) });
        await allow(h);
        const asked = await provider.next();
        assert.deepEqual([asked.body.model, asked.body.max_tokens ?? asked.body.max_completion_tokens], [model, tokens]);
        asked.answer('x');
        assert.equal((await answer).content.text, 'x');
    }
});

test('a model that fails is the server\'s error', async (t) => {
    const { h, provider, want } = await begin(t);
    const answer = want(hello);
    await allow(h);
    (await provider.next()).refuse(400, 'no such thing');
    const { code, message } = await answer;
    assert.equal(code, -32603);
    assert.match(message, /no such thing/);
});
