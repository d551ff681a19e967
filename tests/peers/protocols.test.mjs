// The four protocols beside each other through the real service, whole and streamed: what goes up is as each service's documentation says, what
// comes down is the same for every caller. Against @copilotkit/aimock (no one here wrote it), and, for what it cannot do, against recorded
// sequences of the real services (recorded.mjs says which).
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import { startHearth, until } from '../api/harness.mjs';
import { newKey, refused } from '../api/kit.mjs';
import { envOf, startRecorded } from './recorded.mjs';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const dataUrl = `data:image/png;base64,${png}`;
const pdf = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0xLjQ=' };
const hows = ['whole', 'streamed'];
const pathOf = { whole: '/sdk/llm/chat', streamed: '/sdk/llm/chat/stream' };
const schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } }, additionalProperties: false };
const tools = [
    { type: 'function', function: { name: 'weather', description: 'Tells it', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } } },
    { type: 'function', function: { name: 'time' } },
];

// One row a protocol: where it is spoken, and where in its words a thing must stand.
const rows = [
    {
        provider: 'openai', path: '/v1/responses',
        tools: (body) => body.tools.map((one) => [one.name, one.parameters?.properties?.city?.type]),
        system: (body) => body.input.filter((one) => one.role === 'system').map((one) => one.content[0].text),
        image: { type: 'input_image', image_url: dataUrl },
        file: { type: 'input_file', filename: 'a.pdf', file_data: pdf.file_data },
        content: (body) => body.input.at(-1).content,
        format: (body) => body.text.format, formats: [{ type: 'json_object' }, { type: 'json_schema', name: 'count', schema, strict: true }],
        limits: { max_output_tokens: 321, temperature: 0.5, top_p: 0.25, store: false },
        results: (body) => body.input.filter((one) => one.type === 'function_call_output').map((one) => [one.call_id, one.output]),
    },
    {
        provider: 'anthropic', path: '/v1/messages',
        tools: (body) => body.tools.map((one) => [one.name, one.input_schema?.properties?.city?.type]),
        system: (body) => [body.system],
        image: { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
        file: { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0xLjQ=' }, title: 'a.pdf' },
        content: (body) => body.messages.at(-1).content,
        limits: { max_tokens: 321, temperature: 0.5, stop_sequences: ['END'] },
        results: (body) => body.messages.at(-1).content.map((one) => [one.tool_use_id, one.content]),
    },
    {
        provider: 'ollama', path: '/api/chat',
        tools: (body) => body.tools.map((one) => [one.function.name, one.function.parameters?.properties?.city?.type]),
        system: (body) => body.messages.filter((one) => one.role === 'system').map((one) => one.content),
        image: png,
        content: (body) => [{ type: 'text', text: body.messages.at(-1).content }, ...body.messages.at(-1).images ?? []],
        format: (body) => body.format, formats: ['json', schema],
        limits: { options: { temperature: 0.5, num_predict: 321, top_p: 0.25, stop: ['END'] } },
        results: (body) => body.messages.filter((one) => one.role === 'tool').map((one) => [one.tool_name, one.content]),
    },
    {
        provider: 'generic-openai', path: '/v1/chat/completions',
        tools: (body) => body.tools.map((one) => [one.function.name, one.function.parameters?.properties?.city?.type]),
        system: (body) => body.messages.filter((one) => one.role === 'system').map((one) => one.content),
        image: { type: 'image_url', image_url: { url: dataUrl } },
        file: { type: 'file', file: { filename: 'a.pdf', file_data: pdf.file_data } },
        content: (body) => body.messages.at(-1).content,
        format: (body) => body.response_format, formats: [{ type: 'json_object' }, { type: 'json_schema', json_schema: { name: 'count', schema, strict: true } }],
        limits: { max_tokens: 321, temperature: 0.5, top_p: 0.25, stop: ['END'] },
        results: (body) => body.messages.filter((one) => one.role === 'tool').map((one) => [one.tool_call_id, one.content]),
    },
];

let mock, upstream, atMock, atRecorded, soonMute, soonIdle;
const sent = [];             // every body the double got, as it came

const error = (message, type = 'server_error', code = 'x') => ({ error: { message, type, code } });

function teach() {
    mock.on({ toolResultContains: 'noon' }, { content: 'It rains at noon.' });
    mock.on({ userMessage: 'rain in Bern', hasToolResult: false }, { toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{"city":"Bern"}' }, { id: 'call_2', name: 'time', arguments: '{}' }] });
    mock.on({ userMessage: 'give prose' }, { content: 'Certainly! One.' });
    mock.on({ userMessage: 'give wrong json' }, { content: '{"n":"one"}' });
    mock.on({ userMessage: 'give json' }, { content: '{"n":1}' });
    mock.on({ userMessage: 'never well' }, { ...error('Overloaded'), status: 503 });
    for (const { provider } of rows)
        for (const how of hows) {
            mock.on({ userMessage: `be patient ${provider} ${how}`, sequenceIndex: 0 }, { ...error('Slow down', 'rate_limit_error', 'rate_limit'), status: 429, retryAfter: 1 });
            mock.on({ userMessage: `be patient ${provider} ${how}`, sequenceIndex: 1 }, { content: 'Thanks.' });
        }
    mock.on({ userMessage: 'look' }, { content: 'Seen.' });
}

// A Hearth, and its caller: ask(provider, how, body) -> {status, response | reply, events, text}.
async function open(options) {
    const h = await startHearth(options);
    const { key } = await newKey(h);
    const headers = { 'x-api-key': key };
    async function ask(provider, how, more) {
        const body = { provider, ...typeof more === 'string' ? { messages: [{ role: 'user', content: more }] } : more };
        if (how === 'whole') {
            const reply = await h.api('POST', pathOf.whole, body, headers);
            return { ...reply, reply, text: reply.body?.response?.content, last: reply.body?.response, thoughts: reply.body?.response?.reasoning ?? '' };
        }
        const opened = await h.sse(pathOf.streamed, { method: 'POST', body, headers });
        await opened.ended;
        const chunks = opened.events.filter((event) => event.event === 'message' && event.json).map((event) => event.json);
        const json = opened.status === 200 ? undefined : JSON.parse(opened.text());
        return { status: opened.status, reply: { status: opened.status, headers: opened.headers, body: json, text: opened.text() }, events: opened.events, last: chunks.at(-1),
            text: chunks.map((one) => one.textResponse).join(''), thoughts: chunks.map((one) => one.reasoning ?? '').join('') };
    }
    return { h, ask, headers };
}

before(async () => {
    mock = new LLMock({ port: 0, chunkSize: 8 });
    teach();
    await mock.start();
    mock.serverInstance.server.prependListener('request', (incoming) => {
        const pieces = [];
        incoming.on('data', (piece) => pieces.push(piece));
        incoming.on('end', () => pieces.length && sent.push({ path: incoming.url, headers: incoming.headers, body: JSON.parse(Buffer.concat(pieces)) }));
    });
    upstream = await startRecorded();
    atMock = await open({ env: envOf(mock.url), settings: { 'llm.rest_after': 0 } });
    atRecorded = await open({ env: envOf(upstream.url), settings: { 'llm.rest_after': 0 } });
    soonMute = await open({ env: envOf(upstream.url), settings: { 'llm.rest_after': 0, 'llm.first_byte_s': 0.3 } });
    soonIdle = await open({ env: envOf(upstream.url), settings: { 'llm.rest_after': 0, 'llm.idle_s': 0.3 } });
});
after(async () => {
    for (const one of [atMock, atRecorded, soonMute, soonIdle])
        await one?.h.stop();
    await mock?.stop();
    upstream?.stop();
});

for (const row of rows)
    for (const how of hows)
        describe(`${row.provider}, ${how}`, () => {
            const { provider } = row;

            test('tools: definitions go up, calls come down, results go up', async () => {
                const messages = [{ role: 'user', content: 'rain in Bern?' }];
                const first = await atMock.ask(provider, how, { messages, tools });
                assert.equal(first.status, 200, first.reply.text);
                assert.deepEqual(row.tools(sent.at(-1).body), [['weather', 'string'], ['time', undefined]]);
                assert.equal(first.last.finish_reason, 'tool_calls');
                const calls = first.last.tool_calls;
                assert.deepEqual(calls.map((one) => [one.type, one.function.name, JSON.parse(one.function.arguments)]), [['function', 'weather', { city: 'Bern' }], ['function', 'time', {}]]);
                assert.equal(new Set(calls.map((one) => one.id)).size, 2);
                messages.push({ role: 'assistant', content: null, tool_calls: calls }, { role: 'tool', tool_call_id: calls[0].id, content: 'rain' },
                    { role: 'tool', tool_call_id: calls[1].id, content: 'noon' });
                const second = await atMock.ask(provider, how, { messages, tools });
                assert.equal(second.text, 'It rains at noon.', second.reply.text);
                const names = provider === 'ollama' ? ['weather', 'time'] : calls.map((one) => one.id);
                assert.deepEqual(row.results(sent.at(-1).body), [[names[0], 'rain'], [names[1], 'noon']]);
            });

            test('system messages, limits and stops stand where the protocol has them', async () => {
                const body = { messages: [{ role: 'system', content: 'One.' }, { role: 'user', content: 'look' }, { role: 'developer', content: 'Two.' }, { role: 'user', content: 'look' }],
                    temperature: 0.5, top_p: 0.25, max_tokens: 321, ...provider !== 'openai' && { stop: 'END' } };
                assert.equal((await atMock.ask(provider, how, body)).text, 'Seen.');
                const { body: told, path } = sent.at(-1);
                assert.equal(path, row.path);
                assert.deepEqual(row.system(told).join('\n\n'), 'One.\n\nTwo.');
                assert.equal(told.stream, how === 'streamed');
                for (const [name, value] of Object.entries(row.limits))
                    assert.deepEqual(told[name], value, name);
            });

            test('images and files by data URL', async () => {
                const say = (block) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'look' }, block] }] });
                const cases = [[{ type: 'image_url', image_url: { url: dataUrl } }, row.image], [pdf, row.file]];
                for (const [block, wanted] of cases) {
                    const { status, reply } = await atMock.ask(provider, how, say(block));
                    if (wanted) {
                        assert.equal(status, 200, reply.text);
                        assert.deepEqual(row.content(sent.at(-1).body).at(-1), wanted);
                    } else {
                        refused(reply, 400, 'UNSUPPORTED_CONTENT', /`messages\[0\]`/);
                    }
                }
                const note = { type: 'input_file', filename: 'a.txt', file_data: `data:text/plain;base64,${Buffer.from('Grüße').toString('base64')}` };
                assert.equal((await atMock.ask(provider, how, say(note))).text, 'Seen.');
                assert.match(JSON.stringify(sent.at(-1).body), /\[a\.txt\]\\nGrüße/);
            });

            test('JSON is asked for by the protocol, or by instruction and then checked', async () => {
                const formats = [{ type: 'json_object' }, { type: 'json_schema', json_schema: { name: 'count', schema } }];
                for (const [n, response_format] of formats.entries()) {
                    const said = await atMock.ask(provider, how, { messages: [{ role: 'user', content: 'give json' }], response_format });
                    assert.deepEqual(JSON.parse(said.text), { n: 1 });
                    if (row.format)
                        assert.deepEqual(row.format(sent.at(-1).body), row.formats[n]);
                    else
                        assert.match(row.system(sent.at(-1).body)[0], n ? /JSON Schema:\n\{"type":"object","required":\["n"\]/ : /one JSON object and nothing else/);
                }
                if (row.format)
                    return;
                for (const [wish, words] of [['give prose', /not the JSON that response_format asks for/], ['give wrong json', /`n` must be an integer/]]) {
                    const { reply, events } = await atMock.ask(provider, how, { messages: [{ role: 'user', content: wish }], response_format: formats[1] });
                    if (how === 'whole')
                        refused(reply, 502, 'LLM_ERROR', words);
                    else
                        assert.match(events.at(-1).json.error, words);
                }
            });

            test('a limit that passes soon is waited for, as long as it says', async () => {
                const began = performance.now();
                const said = await atMock.ask(provider, how, `be patient ${provider} ${how}`);
                assert.equal(said.text, 'Thanks.', said.reply.text);
                assert.ok(performance.now() - began > 950);
                assert.equal(mock.getRequests().filter((one) => JSON.stringify(one.body).includes(`be patient ${provider} ${how}`)).length, 2);
            });

            test('what does not pass is asked three times', async () => {
                const count = () => mock.getRequests().filter((one) => one.path === row.path && JSON.stringify(one.body).includes('never well')).length;
                const had = count();
                refused((await atMock.ask(provider, how, 'never well')).reply, 502, 'LLM_ERROR', new RegExp(`^${provider} fails \\(503\\): Overloaded$`));
                assert.equal(count() - had, 3);
            });

            const recorded = (name, reply, at = atRecorded) => {
                const model = `${name} ${provider} ${how}`;
                upstream.say(model, reply);
                return { model, ask: () => (at ?? atRecorded).ask(provider, how, { model, messages: [{ role: 'user', content: 'hi' }] }), asked: () => upstream.askedFor(model) };
            };
            const parts = (wire, body, pieces, whole) => (body.stream ? pieces : [whole]);

            test('thoughts stay apart from the answer', async () => {
                if (how === 'whole')
                    return;             // their places in whole answers differ most: tests/unit/llm
                const said = await recorded('thoughts', (wire) => [wire.thought('Six times '), wire.thought('seven.'), wire.text('42'), wire.end([1, 2])]).ask();
                assert.deepEqual([said.text, said.thoughts], ['42', 'Six times seven.']);
            });

            test('a stop sequence ends the answer, whoever keeps to it', async () => {
                const model = `stop ${provider} ${how}`;
                const takesStops = provider !== 'openai';       // Responses has no word for it: the service cuts
                upstream.say(model, (wire, body) => parts(wire, body, [wire.text('one E'), wire.text('ND'), ...takesStops ? [] : [wire.text(' two')], wire.end([1, 2])],
                    wire.whole(takesStops ? 'one END' : 'one END two', [1, 2])));
                const said = await atRecorded.ask(provider, how, { model, stop: ['END'], messages: [{ role: 'user', content: 'hi' }] });
                assert.equal(JSON.stringify(upstream.askedFor(model)[0].body).includes('"END"'), takesStops);
                assert.equal(said.text, takesStops ? 'one END' : 'one ');
                assert.equal(said.last.finish_reason, 'stop');
            });

            test('what a model goes on saying behind a stop of this service is not waited for', async () => {
                if (provider !== 'openai' || how === 'whole')
                    return;
                const going = `going on ${provider}`;
                upstream.say(going, (wire) => [wire.text('one END'), 50, wire.text(' two'), 'hang']);
                const said = await atRecorded.ask(provider, how, { model: going, stop: ['END'], messages: [{ role: 'user', content: 'hi' }] });
                assert.deepEqual([said.text, said.last.metrics.estimated, said.events.at(-1).data], ['one ', true, '[DONE]']);
                await until(() => upstream.askedFor(going)[0].isGone, { what: 'the upstream is let go' });
            });

            test('usage is what the provider says, else an estimate that says so', async () => {
                const told = await recorded('counted', (wire, body) => parts(wire, body, [wire.text('Hello'), wire.end([7, 9])], wire.whole('Hello', [7, 9]))).ask();
                assert.deepEqual([told.last.metrics.prompt_tokens, told.last.metrics.completion_tokens, told.last.metrics.estimated], [7, 9, undefined], told.reply.text);
                const guessed = await recorded('uncounted', (wire, body) => parts(wire, body, [wire.text('Hello'), wire.end()], wire.whole('Hello'))).ask();
                assert.equal(guessed.last.metrics.estimated, true);
                assert.ok(guessed.last.metrics.prompt_tokens > 0 && guessed.last.metrics.completion_tokens === 2);
                assert.equal(guessed.last.model, 'said-model');
            });

            test('characters cut in two arrive whole', async () => {
                const text = 'Grüße, 世界 😀';
                const said = await recorded('cut', (wire, body) => [...Buffer.from(body.stream ? wire.text(text) + wire.end() : wire.whole(text))].map((byte) => Buffer.of(byte))).ask();
                assert.equal(said.text, text);
            });

            test('an answer that cannot be read is an error, before or behind its first word', async () => {
                const said = await recorded('garbled', () => ['data: {malformed json: <<<chaos>>>\n\n']).ask();
                refused(said.reply, 502, 'LLM_ERROR', /./);
                assert.equal(said.reply.body.reason, 'UPSTREAM_INVALID', said.reply.text);
                if (how === 'whole')
                    return;
                const late = await recorded('garbled late', (wire) => [wire.text('Hel'), `${provider === 'ollama' ? '' : 'data: '}{"a":\n\n`, wire.end()]).ask();
                assert.equal(late.text, 'Hel');
                assert.equal(late.events.at(-1).event, 'error');
                assert.deepEqual(Object.keys(late.events.at(-1).json), ['error', 'code']);
            });

            test('an error told inside an answer is told, and tried again when it may pass', async () => {
                if (how === 'whole')
                    return;
                refused((await recorded('inner', (wire) => [wire.error('No such luck')]).ask()).reply, 502, 'LLM_ERROR', /No such luck/);
                const passing = recorded('overload', (wire, _, nth) => (nth === 1 ? [wire.overload('Overloaded'), 'hang'] : [wire.text('Well.'), wire.end()]));
                assert.equal((await passing.ask()).text, 'Well.');
                assert.equal(passing.asked().length, 2);
                const late = await recorded('late', (wire) => [wire.text('Hel'), wire.error('Broken')]).ask();
                assert.match(late.events.at(-1).json.error, /Broken/);
                assert.ok(!late.reply.text.includes('[DONE]'));
            });

            test('silence ends at its time limit, before the first byte and between bytes', async () => {
                const mute = `mute ${provider} ${how}`;
                upstream.say(mute, 'silence');
                const { reply } = await soonMute.ask(provider, how, { model: mute, messages: [{ role: 'user', content: 'hi' }] });
                refused(reply, 502, 'LLM_ERROR', /did not begin its answer/);
                assert.equal(reply.body.reason, 'UPSTREAM_TIMEOUT');
                const [asked] = upstream.askedFor(mute);
                await until(() => asked.isGone, { what: 'the upstream is let go' });
                if (how === 'whole')
                    return;
                const halting = recorded('halt', (wire) => [wire.text('Hel'), 'hang'], soonIdle);
                const said = await halting.ask();
                assert.equal(said.text, 'Hel');
                assert.equal(said.events.at(-1).event, 'error', said.reply.text);
                await until(() => halting.asked()[0].isGone, { what: 'the upstream is let go' });
            });

            test('a client that leaves ends the request to the provider, before and behind the first word', async () => {
                for (const name of how === 'whole' ? ['before'] : ['before', 'behind']) {
                    const model = `leave ${name} ${provider} ${how}`;
                    upstream.say(model, name === 'before' ? 'silence' : (wire) => [wire.text('Hel'), 'hang']);
                    const gone = new AbortController();
                    const left = fetch(`${atRecorded.h.url}${pathOf[how]}`, { method: 'POST', signal: gone.signal, headers: { ...atRecorded.headers, 'content-type': 'application/json' },
                        body: JSON.stringify({ provider, model, messages: [{ role: 'user', content: 'hi' }] }) });
                    left.catch(() => {});
                    await until(() => upstream.askedFor(model).length === 1, { what: 'the upstream is asked' });
                    if (name === 'behind')
                        await left;
                    gone.abort();
                    await until(() => upstream.askedFor(model)[0].isGone, { what: 'the upstream is let go' });
                }
            });
        });

// Decision D1: the variable has two names.
for (const name of ['GENERIC_LLM_STREAMING_DISABLED', 'GENERIC_OPENAI_STREAMING_DISABLED'])
    test(`${name}: the generic provider is asked for whole answers, streams get one chunk`, async (t) => {
        const one = await open({ t, env: { ...envOf(upstream.url), [name]: 'true' } });
        const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
        upstream.say('unstreamed', (wire, body) => [body.stream ? 'it must not stream' : JSON.stringify({ choices: [{ finish_reason: 'tool_calls',
            message: { content: 'All at once.', reasoning_content: 'Hm.', tool_calls: [call] } }] })]);
        const said = await one.ask('generic-openai', 'streamed', { model: 'unstreamed', messages: [{ role: 'user', content: 'hi' }] });
        assert.deepEqual(said.events.map((event) => event.json?.textResponse).filter((text) => text), ['All at once.'], said.reply.text);
        assert.deepEqual([said.thoughts, said.last.tool_calls, said.events.at(-1).data], ['Hm.', [call], '[DONE]']);
        upstream.say('streamed', (wire, body) => (body.stream ? [wire.text('a'), wire.text('b'), wire.end()] : ['{}']));
        const other = await one.ask('openai', 'streamed', { model: 'streamed', messages: [{ role: 'user', content: 'hi' }] });
        assert.equal(other.events.length, 4, 'the others stream as ever');
    });

test(`GENERIC_LLM_STREAMING_DISABLED=TRUE is not exactly the word`, async (t) => {
    const one = await open({ t, env: { ...envOf(upstream.url), GENERIC_LLM_STREAMING_DISABLED: 'TRUE' } });
    upstream.say('streamed', (wire, body) => (body.stream ? [wire.text('a'), wire.text('b'), wire.end()] : ['{}']));
    const said = await one.ask('generic-openai', 'streamed', { model: 'streamed', messages: [{ role: 'user', content: 'hi' }] });
    assert.equal(said.text, 'ab');
});
