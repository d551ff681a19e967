// The official `ollama` package against Hearth, unchanged but for its host, with providers of every protocol behind.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Ollama } from 'ollama';
import { until } from '../api/harness.mjs';
import { admin, newKey } from '../api/kit.mjs';
import { long, modelOf, providers, startBoth, text, weather } from './double.mjs';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } }, additionalProperties: false };
let both, client;

before(async () => {
    both = await startBoth();
    both.mock.serverInstance.server.prependListener('request', (incoming) => {
        const pieces = [];
        incoming.on('data', (piece) => pieces.push(piece));
        incoming.on('end', () => pieces.length && bodies.push(JSON.parse(Buffer.concat(pieces))));
    });
    const { key } = await newKey(both.h);
    client = new Ollama({ host: both.h.url, headers: { authorization: `Bearer ${key}` } });
});
after(() => both?.stop());

const says = (content) => [{ role: 'user', content }];
const tools = [{ type: 'function', function: { name: 'weather', description: 'Tells it', parameters: weather } }];
const bodies = [];      // what the providers were sent, as it came
const sent = () => bodies.at(-1);

async function linesOf(stream) {
    const lines = [];
    for await (const line of stream)
        lines.push(line);
    return lines;
}

function checkDone(answer) {
    assert.equal(answer.done, true);
    assert.ok(!Number.isNaN(Date.parse(answer.created_at)));
    for (const name of ['total_duration', 'load_duration', 'prompt_eval_count', 'prompt_eval_duration', 'eval_count', 'eval_duration'])
        assert.ok(Number.isInteger(answer[name]) && answer[name] >= 0, `${name}: ${answer[name]}`);
    assert.ok(answer.eval_duration > 0 && answer.total_duration >= answer.eval_duration && answer.eval_count > 0 && answer.prompt_eval_count > 0);
}

for (const provider of providers)
    describe(`with ${provider} behind`, () => {
        const model = modelOf(provider);

        test('a chat', async () => {
            const answer = await client.chat({ model, messages: says('say it') });
            assert.deepEqual(answer.message, { role: 'assistant', content: text });
            assert.equal(answer.done_reason, 'stop');
            checkDone(answer);
        });

        test('a chat in a stream', async () => {
            const lines = await linesOf(await client.chat({ model, messages: says('say it'), stream: true }));
            assert.equal(lines.map((line) => line.message.content).join(''), text);
            assert.ok(lines.length > 2 && lines.slice(0, -1).every((line) => line.done === false && line.message.role === 'assistant'));
            checkDone(lines.at(-1));
            assert.equal(lines.at(-1).done_reason, 'stop');
        });

        test('a prompt, whole and streamed', async () => {
            const answer = await client.generate({ model, system: 'Be brief.', prompt: 'say it', options: { temperature: 0.25, num_predict: 77 } });
            assert.equal(answer.response, text);
            checkDone(answer);
            assert.match(JSON.stringify(sent()), /Be brief/);
            assert.match(JSON.stringify(sent()), /"(max_tokens|max_output_tokens|num_predict)":77/);
            const lines = await linesOf(await client.generate({ model, prompt: 'say it', stream: true }));
            assert.equal(lines.map((line) => line.response).join(''), text);
            checkDone(lines.at(-1));
        });

        test('a tool, called and answered', async () => {
            for (const stream of [false, true]) {
                const first = await client.chat({ model, messages: says('the weather'), tools, stream });
                const lines = stream ? await linesOf(first) : [first];
                const calls = lines.flatMap((line) => line.message.tool_calls ?? []);
                assert.deepEqual(calls.map((one) => one.function.arguments), [{ city: 'Bern', days: 2 }]);
                assert.equal(calls[0].function.name, 'weather');
                assert.equal(lines.at(-1).done_reason, 'stop');
                const message = { role: 'assistant', content: '', tool_calls: calls };
                const messages = [...says('say it'), message, { role: 'tool', tool_name: 'weather', content: '21 degrees' }, ...says('say it')];
                const second = await client.chat({ model, messages, tools });
                assert.ok(second.message.content.length > 0);
                assert.match(JSON.stringify(sent()), /21 degrees/);
            }
        });

        test('json and a schema', async () => {
            assert.deepEqual(JSON.parse((await client.chat({ model, messages: says('give json'), format: 'json' })).message.content), { n: 1 });
            assert.deepEqual(JSON.parse((await client.generate({ model, prompt: 'give json', format: schema })).response), { n: 1 });
            const lines = await linesOf(await client.chat({ model, messages: says('give json'), format: schema, stream: true }));
            assert.deepEqual(JSON.parse(lines.map((line) => line.message.content).join('')), { n: 1 });
        });

        test('an image', async () => {
            const answer = await client.chat({ model, messages: [{ role: 'user', content: 'look at this', images: [Buffer.from(png, 'base64')] }] });
            assert.equal(answer.message.content, 'A red dot.');
            assert.ok(JSON.stringify(sent()).includes(png));
        });

        test('thoughts, and none when they are not wanted', async () => {
            const { message } = await client.chat({ model, messages: says('think') });
            assert.equal(message.content, '42');
            if (message.thinking !== undefined)
                assert.equal(message.thinking, 'Six times seven.');
            const lines = await linesOf(await client.chat({ model, messages: says('think'), think: false, stream: true }));
            assert.ok(lines.every((line) => line.message.thinking === undefined));
            assert.equal(lines.map((line) => line.message.content).join(''), '42');
        });

        test('a client that aborts cancels the provider', async () => {
            const before_ = both.nBrokenOff();
            const stream = await client.chat({ model, messages: says('go on and on'), stream: true });
            await assert.rejects(async () => {
                for await (const line of stream)
                    if (line.message.content)
                        stream.abort();
            }, { name: 'AbortError' });
            await until(() => both.nBrokenOff() > before_, { what: 'the double sees its client leave' });
        });

        test('errors are told with their status, and within a stream', async () => {
            await assert.rejects(client.chat({ model, messages: says('be busy') }), { name: 'ResponseError', status_code: 429 });
            await assert.rejects(client.chat({ model, messages: says('lack a model') }), { name: 'ResponseError', status_code: 404 });
            await assert.rejects(client.chat({ model, messages: says('be tired'), stream: true }), { name: 'ResponseError', status_code: 502 });
            const stream = await client.chat({ model, messages: says('hang up'), stream: true });
            let seen = '';
            await assert.rejects(async () => {
                for await (const line of stream)
                    seen += line.message.content;
            }, /ended its answer|closed|cut/);
            assert.ok(long.startsWith(seen) && seen.length > 0);
        });
    });

test('options and thinking of Ollama reach an Ollama as they are', async () => {
    await client.chat({ model: modelOf('ollama'), messages: says('say it'), think: false,
        options: { seed: 7, top_k: 20, num_ctx: 8192, repeat_penalty: 1.2, stop: ['END'], top_p: 0.5, num_gpu: 99 } });
    assert.deepEqual(sent().options, { seed: 7, top_k: 20, num_ctx: 8192, repeat_penalty: 1.2, stop: ['END'], top_p: 0.5 });
    assert.equal(sent().think, false);
});

test('embeddings, in both forms', async () => {
    const { embeddings, model, prompt_eval_count: n } = await client.embed({ model: 'lexical-384', input: ['red apples', 'green pears'] });
    assert.equal(model, 'lexical-384');
    assert.deepEqual(embeddings.map((one) => one.length), [384, 384]);
    assert.ok(n > 0);
    assert.deepEqual((await client.embed({ model: 'lexical-384:latest', input: 'red apples' })).embeddings, [embeddings[0]]);
    assert.deepEqual((await client.embeddings({ model: 'lexical-384', prompt: 'red apples' })).embedding, embeddings[0]);
    assert.deepEqual((await client.embed({ model: 'lexical-384', input: [] })).embeddings, []);
});

test('lists, one model, what runs, the version', async () => {
    const { models } = await client.list();
    const names = models.map((one) => one.name);
    assert.ok(names.includes('lexical-384') && names.includes('llama3.2') && new Set(names).size === names.length, names.join());
    for (const one of models) {
        assert.equal(one.name, one.model);
        assert.match(one.digest, /^[0-9a-f]{64}$/);
        assert.ok(one.details.family && !Number.isNaN(Date.parse(one.modified_at)));
    }
    const shown = await client.show({ model: 'llama3.2' });
    assert.equal(shown.details.family, 'ollama');
    assert.ok(shown.capabilities.includes('completion') && shown.capabilities.includes('tools'));
    assert.deepEqual((await client.show({ model: 'lexical-384' })).capabilities, ['embedding']);
    assert.equal((await client.show({ model: 'llama3.2:latest' })).details.family, 'ollama');
    await assert.rejects(client.show({ model: 'nobodys-model' }), { status_code: 404, message: /'nobodys-model' not found/ });
    assert.deepEqual((await client.ps()).models, []);
    assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
});

test('a name with and without its tag is one model, and finds its provider', async () => {
    for (const model of ['llama3.2', 'llama3.2:latest']) {
        const answer = await client.chat({ model, messages: says('say it') });
        assert.equal(answer.message.content, text);
        assert.ok('options' in sent(), 'it went to Ollama');
    }
    assert.equal((await client.chat({ model: 'default', messages: says('say it') })).message.content, text);
});

test('what is there needs no pulling, and what is not done says what to do instead', async () => {
    assert.equal((await client.pull({ model: 'llama3.2' })).status, 'success');
    assert.deepEqual(await linesOf(await client.pull({ model: 'llama3.2', stream: true })), [{ status: 'success' }]);
    await assert.rejects(client.pull({ model: 'nobodys-model' }), { status_code: 404, message: /hearth provider add/ });
    for (const refused of [() => client.push({ model: 'llama3.2' }), () => client.create({ model: 'mine', from: 'llama3.2' }),
        () => client.copy({ source: 'llama3.2', destination: 'mine' }), () => client.delete({ model: 'llama3.2' })])
        await assert.rejects(refused, { status_code: 501, message: /hearth provider list/ });
});

test('an empty prompt loads a model, and ends it with keep_alive 0', async () => {
    const n = bodies.length;
    assert.equal((await client.generate({ model: 'llama3.2', prompt: '' })).done_reason, 'load');
    assert.equal((await client.chat({ model: 'llama3.2', messages: [], keep_alive: 0 })).done_reason, 'unload');
    assert.deepEqual((await linesOf(await client.generate({ model: 'llama3.2', prompt: '', stream: true }))).map((line) => [line.done, line.done_reason]), [[true, 'load']]);
    assert.equal(bodies.length, n, 'no provider is asked');
});

test('a client without a key is refused, until the person lets such programs in', async () => {
    const bare = new Ollama({ host: both.h.url });
    const value = (is) => admin(both.h, 'PUT', '/api/settings/llm.ollama_open', { value: is });
    await assert.rejects(bare.list(), { status_code: 401, message: /llm\.ollama_open true/ });
    await value(true);
    assert.ok((await bare.list()).models.length > 0);
    assert.equal((await bare.chat({ model: modelOf('ollama'), messages: says('say it') })).message.content, text);
    assert.equal((await linesOf(await bare.chat({ model: modelOf('ollama'), messages: says('say it'), stream: true }))).at(-1).done, true);
    assert.equal((await bare.embed({ model: 'lexical-384', input: 'red apples' })).embeddings.length, 1);
    await value(false);
    await assert.rejects(bare.chat({ model: modelOf('ollama'), messages: says('say it') }), { status_code: 401 });
});
