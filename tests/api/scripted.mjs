// A provider in OpenAI's form whose answers a test gives one by one, so that a turn can be looked at in each of its moments.
import http from 'node:http';
import { Arrivals } from './harness.mjs';
import { admin } from './kit.mjs';

const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };

// One request of a model: `messages`, `tools`; answered by the test.
class Asked {
    constructor(body, res) {
        Object.assign(this, { body, res, messages: body.messages, tools: body.tools ?? [], isGone: false });
        res.on('close', () => { this.isGone = !res.writableEnded; });
    }

    text(n = -1) {
        const { content } = this.messages.at(n);
        return typeof content === 'string' ? content : content.map((block) => block.text ?? '').join('');
    }

    #event(delta, more = {}) {
        this.res.write(`data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', model: 'scripted', choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`);
    }

    // A piece of the answer; the stream stays open.
    say(content) {
        if (!this.res.headersSent)
            this.res.writeHead(200, { 'content-type': 'text/event-stream' });
        this.#event({ content });
        return this;
    }

    end(finish = 'stop') {
        if (!this.body.stream) {
            this.res.writeHead(200, { 'content-type': 'application/json' });
            this.res.end(JSON.stringify({ id: 'x', model: 'scripted', choices: [{ index: 0, finish_reason: finish, message: { role: 'assistant', content: this.whole ?? '' } }], usage }));
            return;
        }
        this.#event({}, { finish_reason: finish });
        this.res.write(`data: ${JSON.stringify({ choices: [], usage })}\n\n`);
        this.res.end('data: [DONE]\n\n');
    }

    answer(...pieces) {
        this.whole = pieces.join('');
        if (this.body.stream)
            pieces.forEach((piece) => this.say(piece));
        this.end();
    }

    // [[name, arguments]]
    call(...calls) { this.callRaw(...calls.map(([name, args]) => [name, JSON.stringify(args)])); }

    // [[name, arguments as they are written]]
    callRaw(...calls) {
        const toolCalls = calls.map(([name, args], index) => ({ index, id: `call-${index}-${Math.random().toString(36).slice(2)}`, type: 'function', function: { name, arguments: args } }));
        if (!this.body.stream) {
            this.res.writeHead(200, { 'content-type': 'application/json' });
            this.res.end(JSON.stringify({ id: 'x', model: 'scripted', choices: [{ index: 0, finish_reason: 'tool_calls', message: { role: 'assistant', content: null, tool_calls: toolCalls } }], usage }));
            return;
        }
        this.res.writeHead(200, { 'content-type': 'text/event-stream' });
        this.#event({ tool_calls: toolCalls });
        this.end('tool_calls');
    }

    refuse(status, message, code) {
        this.res.writeHead(status, { 'content-type': 'application/json' });
        this.res.end(JSON.stringify({ error: { message, code, type: 'invalid_request_error' } }));
    }

    break() { this.res.destroy(); }
}

// Starts it and makes it the only provider of h. `next()` waits for the next request.
export async function scriptedProvider(t, h, { model = 'scripted', ...more } = {}) {
    const asked = new Arrivals();
    const server = http.createServer((req, res) => {
        const pieces = [];
        req.on('data', (piece) => pieces.push(piece));
        req.on('end', () => {
            if (req.method === 'GET') {
                res.writeHead(200, { 'content-type': 'application/json' });
                res.end(JSON.stringify({ data: [{ id: model, object: 'model' }] }));
                return;
            }
            asked.push(new Asked(JSON.parse(Buffer.concat(pieces)), res));
        });
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    t.after(() => { server.closeAllConnections(); server.close(); });
    await admin(h, 'POST', '/api/providers', { preset: 'generic-openai', name: 'scripted', base_url: `http://127.0.0.1:${server.address().port}/v1`, api_key: 'a-key', model, ...more }, 201);
    let n = 0;
    return {
        asked: asked.items,
        next: () => asked.wait(() => true, { from: n++, what: `request ${n} to the model` }),
        skip: () => { n = asked.items.length; },            // what was asked until now is not answered any more
    };
}
