// The largest bodies of the shapes that take most memory: answered or refused, and the service goes on. One request's memory has a limit
// (LIMIT_ARENA_BYTES) beyond which the process would abort, and one JSON text may have so many values (LIMIT_JSON_VALUES): 413.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth } from './harness.mjs';

const mib = 2 ** 20;
const chat = 32 * mib;
const vectors = 96 * mib;               // of an upsert; the shape that takes most of the arena fills it

// A body of exactly `size` bytes: head, as many items as fit, tail, spaces.
function filled(size, head, item, tail) {
    const n = Math.floor((size - head.length - tail.length - item.length) / (item.length + 1));
    const body = Buffer.alloc(size, ' ');
    const items = Buffer.alloc(n * (item.length + 1), `${item},`);
    body.write(head, 0, 'latin1');
    items.copy(body, head.length);
    body.write(item + tail, head.length + items.length, 'latin1');
    return body;
}

// One row of 8,192 tiny numbers.
const row = (n) => `{"id":"a","vector":[${'0,'.repeat(n - 1)}0]}`;

const shapes = [
    ['blocks that are numbers', '/sdk/llm/chat', () => filled(chat, '{"messages":[{"role":"user","content":[', '0', ']}]}'), 400],
    ['blocks of many messages', '/sdk/llm/chat',
        () => filled(chat, '{"messages":[', `{"role":"user","content":[${Array(1000).fill('""')}]}`, ']}'), 400],
    ['stop words', '/sdk/llm/chat', () => filled(chat, '{"messages":[{"role":"user","content":"x"}],"stop":[', '0', ']}'), 400],
    ['messages', '/sdk/llm/chat/stream', () => filled(chat, '{"messages":[', '{}', ']}'), 413],
    ['tools', '/sdk/llm/chat', () => filled(chat, '{"messages":[{"role":"user","content":"x"}],"tools":[', '{}', ']}'), 413],
    ['depth', '/sdk/llm/chat', () => Buffer.alloc(chat, '['), 413],
    ['texts', '/sdk/llm/embed', () => filled(chat, '{"input":[', '0', ']}'), 400],
    ['blocks, in OpenAI\'s form', '/v1/chat/completions', () => filled(chat, '{"messages":[{"role":"user","content":[', '0', ']}]}'), 400],
    ['blocks, in Anthropic\'s form', '/v1/messages', () => filled(chat, '{"max_tokens":9,"messages":[{"role":"user","content":[', '0', ']}]}'), 400],
    ['blocks of many messages, in Anthropic\'s form', '/v1/messages',
        () => filled(chat, '{"max_tokens":9,"messages":[', `{"role":"user","content":[${Array(1000).fill('0')}]}`, ']}'), 400],
    ['blocks of tools\' results', '/v1/messages',
        () => filled(chat, '{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[', '0', ']}]}]}'), 400],
    ['system blocks', '/v1/messages/count_tokens', () => filled(chat, '{"messages":[{"role":"user","content":"x"}],"system":[', '0', ']}'), 400],
    ['items of a response', '/v1/responses', () => filled(chat, '{"input":[', '{}', ']}'), 413],
    ['blocks of a response\'s item', '/v1/responses', () => filled(chat, '{"input":[{"role":"user","content":[', '0', ']}]}'), 413],
    ['blocks of the assistant\'s items', '/v1/responses',
        () => filled(chat, '{"input":[', `{"role":"assistant","content":[${Array(1000).fill('"a text of a block"')}]}`, ',{"type":"none"}]}'), 413],
    ['tokens', '/v1/completions', () => filled(chat, '{"prompt":[', '0', ']}'), 400],
    ['texts, in OpenAI\'s form', '/v1/embeddings', () => filled(chat, '{"input":[', '""', ']}'), 400],
    ['ids', '/sdk/llm/vectors/delete', () => filled(chat, '{"ids":[', '""', ']}'), 400],
    ['a filter', '/sdk/llm/vectors/delete', () => filled(chat, '{"filter":{"a":{"$in":[', '0', ']}}}'), 400],
    ['rows', '/sdk/llm/vectors/upsert', () => filled(chat, '{"vectors":[', '{}', ']}'), 413],
    ['rows of tiny numbers', '/sdk/llm/vectors/upsert', () => filled(vectors, '{"vectors":[', row(8192), ']}'), 413],
    ['metadata', '/sdk/llm/vectors/upsert', () => filled(chat, '{"vectors":[{"id":"a","vector":[1],"metadata":{"a":[', '1e9', ']}}]}'), 400],
    ['rows of small numbers, the last too short', '/sdk/llm/vectors/upsert', () => filled(vectors, '{"vectors":[', `{"id":"a","vector":[${Array(8192).fill('0.125')}]}`, ',{"id":"b","vector":[1]}]}'), 400],
    ['rows of large metadata', '/sdk/llm/vectors/upsert',
        () => filled(vectors, '{"vectors":[', `{"id":"a","vector":[1],"metadata":{"documentId":"${'x'.repeat(65500)}"}}`, ',{"id":"b","vector":[1,2]}]}'), 400],
];

test('the largest bodies of the worst shapes are refused in words', async (t) => {
    const h = await startHearth({ t });
    const dev = await h.asKey();
    for (const [what, path, make, status] of shapes) {
        const reply = await dev('POST', path, make(), { 'content-type': 'application/json' }, { timeoutMs: 900_000 });
        assert.equal(reply.status, status, `${what}: ${reply.text.slice(0, 300)}`);
        assert.match(reply.body.error.message ?? reply.body.error, /^.{10,}$/s, what);
        assert.equal((await h.api('GET', '/healthz')).status, 200, what);
    }
});

test('a call of many rows of tiny numbers is stored', async (t) => {
    const h = await startHearth({ t });
    const dev = await h.asKey();
    const body = filled(16 * mib, '{"vectors":[', row(8192), ']}');
    const reply = await dev('POST', '/sdk/llm/vectors/upsert', body, { 'content-type': 'application/json' }, { timeoutMs: 900_000 });
    assert.equal(reply.status, 200, reply.text);
    assert.equal((await dev('GET', '/sdk/llm/vectors/count')).body.count, 1, 'of equal ids the last counts');
});
