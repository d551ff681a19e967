// An upstream that says, byte for byte, what a test gives it: the sequences of the real services' documentation, and what no double can be
// made to do (@copilotkit/aimock tells no usage by halves, thinks not in Ollama's words, never falls silent). Four protocols on one port.
//
//     const upstream = await startRecorded();                  upstream.url, upstream.asked: [{path, headers, body, isGone}]
//     upstream.say('any model', (wire, body) => [wire.text('Hel'), 50, wire.text('lo'), wire.end()]);     // numbers are pauses in ms
import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const event = (json) => `event: ${json.type}\ndata: ${JSON.stringify(json)}\n\n`;
const data = (json) => `data: ${JSON.stringify(json)}\n\n`;
const line = (json) => `${JSON.stringify(json)}\n`;
const model = 'said-model';
const choice = (delta, finish_reason = null) => data({ model, choices: [{ index: 0, delta, finish_reason }] });
const spoken = (message, more = {}) => line({ model, message: { role: 'assistant', content: '', ...message }, done: false, ...more });

// What each protocol's service says: parts of a stream, a whole answer, an error inside an answer. usage: [prompt, completion] or nothing.
export const wires = {
    '/v1/responses': {
        text: (delta) => event({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta }),
        thought: (delta) => event({ type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: 0, delta }),
        end: (usage) => event({ type: 'response.completed', response: { model, status: 'completed', error: null, ...usage && { usage: { input_tokens: usage[0], output_tokens: usage[1] } } } }),
        error: (message) => event({ type: 'error', code: 'bad', message, param: null }),
        overload: (message) => event({ type: 'response.failed', response: { error: { code: 'server_error', message } } }),
        whole: (text, usage) => JSON.stringify({ model, status: 'completed', error: null, output: [{ type: 'message', content: [{ type: 'output_text', text }] }],
            ...usage && { usage: { input_tokens: usage[0], output_tokens: usage[1] } } }),
    },
    '/v1/messages': {
        text: (text) => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
        thought: (thinking) => event({ type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking } }),
        end: (usage) => event({ type: 'message_start', message: { model, ...usage && { usage: { input_tokens: usage[0], output_tokens: 1 } } } })
            + event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, ...usage && { usage: { output_tokens: usage[1] } } }) + event({ type: 'message_stop' }),
        error: (message) => event({ type: 'error', error: { type: 'invalid_request_error', message } }),
        overload: (message) => event({ type: 'error', error: { type: 'overloaded_error', message } }),
        whole: (text, usage) => JSON.stringify({ model, content: [{ type: 'text', text }], stop_reason: 'end_turn',
            ...usage && { usage: { input_tokens: usage[0], output_tokens: usage[1] } } }),
    },
    '/api/chat': {
        text: (content) => spoken({ content }),
        thought: (thinking) => spoken({ thinking }),
        end: (usage) => spoken({}, { done: true, done_reason: 'stop', ...usage && { prompt_eval_count: usage[0], eval_count: usage[1] } }),
        error: (error) => line({ error }),
        overload: (message) => line({ error: { type: 'server_error', message } }),
        whole: (content, usage) => JSON.stringify({ model, message: { role: 'assistant', content }, done: true, ...usage && { prompt_eval_count: usage[0], eval_count: usage[1] } }),
    },
    '/v1/chat/completions': {
        text: (content) => choice({ content }),
        thought: (reasoning_content) => choice({ reasoning_content }),
        end: (usage) => choice({}, 'stop') + (usage ? data({ choices: [], usage: { prompt_tokens: usage[0], completion_tokens: usage[1] } }) : '') + 'data: [DONE]\n\n',
        error: (message) => data({ error: { message, code: 400 } }),
        overload: (message) => data({ error: { message, code: 502 } }),
        whole: (content, usage) => JSON.stringify({ model, choices: [{ message: { role: 'assistant', content }, finish_reason: 'stop' }],
            ...usage && { usage: { prompt_tokens: usage[0], completion_tokens: usage[1] } } }),
    },
};

async function readBody(incoming) {
    const pieces = [];
    for await (const piece of incoming)
        pieces.push(piece);
    return pieces.length ? JSON.parse(Buffer.concat(pieces)) : null;
}

// {status, headers, pieces} or pieces alone. An element: text, bytes, a pause in ms, 'hang' (silence for good), 'cut' (the connection ends).
async function answer(outgoing, reply, isStreamed) {
    const { status = 200, headers = {}, pieces = [] } = Array.isArray(reply) ? { pieces: reply } : reply;
    outgoing.writeHead(status, { 'content-type': isStreamed && status === 200 ? 'text/event-stream' : 'application/json', ...headers });
    for (const piece of pieces) {
        if (piece === 'hang')
            return;
        if (piece === 'cut')
            return void outgoing.destroy();
        if (typeof piece === 'number') {
            outgoing.flushHeaders();
            await pause(piece);
        } else if (!outgoing.destroyed) {
            await new Promise((sent) => outgoing.write(piece, sent));
        }
    }
    outgoing.end();
}

export async function startRecorded() {
    const replies = new Map();
    const asked = [];
    const server = http.createServer(async (incoming, outgoing) => {
        const body = await readBody(incoming);
        const { pathname: path } = new URL(incoming.url, 'http://double'); // a proxy is asked for whole URLs
        const entry = { path, headers: incoming.headers, body, isGone: false };
        asked.push(entry);
        outgoing.on('close', () => { entry.isGone = !outgoing.writableFinished; });
        const reply = replies.get(body?.model);
        if (reply === 'silence')
            return;
        const told = reply?.(wires[path], body, asked.filter((one) => one.body?.model === body?.model).length) ?? { status: 404, pieces: ['{"error":"nobody taught me this"}'] };
        await answer(outgoing, told, body?.stream === true);
    }).listen(0, '127.0.0.1').unref();
    await once(server, 'listening');
    return {
        url: `http://127.0.0.1:${server.address().port}`,
        asked,
        askedFor: (name) => asked.filter((one) => one.body?.model === name),
        say: (name, reply) => replies.set(name, reply),
        stop() {
            server.closeAllConnections();
            server.close();
        },
    };
}

// Every provider at one upstream: each protocol has its own path there.
export const envOf = (url) => ({
    OPENAI_API_KEY: 'sk-test-0123456789', OPENAI_BASE_URL: `${url}/v1`, ANTHROPIC_API_KEY: 'sk-ant-test-0123456789', ANTHROPIC_BASE_URL: url,
    OLLAMA_HOST: url, OLLAMA_MODEL: 'llama3.2', GENERIC_OPENAI_BASE_URL: `${url}/v1`, GENERIC_OPENAI_MODEL: 'gpt-4o', GENERIC_OPENAI_API_KEY: 'generic-0123456789',
});
