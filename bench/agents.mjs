// Agents that use tools: what the loop adds to a step, and the memory of turns and sessions. The model is a program of this file that answers at once; the time
// of a step is that from its answer to the next request, tool call and durable storing included.
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { emit, quantile } from './lib/measure.mjs';
import { atEnd, bench, hearth, residentBytes } from './lib/programs.mjs';

const rounds = 7;
const stepsPerTurn = 16;
const turnsPerRound = 10;
const settleMs = 700;
const now = () => Number(process.hrtime.bigint()) / 1e6;

const answer = (message, reason) => ({ id: 'x', object: 'chat.completion', created: 0, model: 'quick', usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: reason }] });

function chunks(body) {
    const { message, finish_reason } = body.choices[0];
    const delta = { ...message, tool_calls: message.tool_calls?.map((call, index) => ({ index, ...call })) };
    const chunk = (choice) => `data: ${JSON.stringify({ ...body, object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }] })}\n\n`;
    return chunk({ delta, finish_reason: null }) + chunk({ delta: {}, finish_reason }) + 'data: [DONE]\n\n';
}

// A model that calls a tool until it has n results, then says "done"; `hold` keeps every answer back until release().
class Model {
    steps = [];
    #answered = 0;
    #held = [];
    hold = false;

    async start() {
        this.server = createServer((incoming, outgoing) => this.#take(incoming, outgoing));
        await new Promise((done) => this.server.listen(0, '127.0.0.1', done));
        atEnd(() => { this.server.closeAllConnections(); this.server.close(); });
        return `http://127.0.0.1:${this.server.address().port}/v1`;
    }

    get nHeld() { return this.#held.length; }

    release() {
        this.hold = false;
        this.#held.splice(0).forEach((reply) => reply());
    }

    async #take(incoming, outgoing) {
        if (this.#answered && incoming.url.endsWith('/chat/completions'))
            this.steps.push(now() - this.#answered);
        const pieces = [];
        for await (const piece of incoming)
            pieces.push(piece);
        if (!incoming.url.endsWith('/chat/completions'))
            return outgoing.end(JSON.stringify({ object: 'list', data: [{ id: 'quick', object: 'model' }] }));
        const reply = () => this.#reply(JSON.parse(Buffer.concat(pieces)), outgoing);
        if (this.hold)
            this.#held.push(reply);
        else
            reply();
    }

    #reply({ messages, stream }, outgoing) {
        const turn = messages.slice(messages.findLastIndex((message) => message.role === 'user'));
        const n = turn.filter((message) => message.role === 'tool').length, isLast = n >= stepsPerTurn;
        const call = { id: `call_${n}`, type: 'function', function: { name: 'read_file', arguments: JSON.stringify({ path: `none-${n}.txt` }) } };
        const body = isLast ? answer({ content: 'done' }, 'stop') : answer({ content: null, tool_calls: [call] }, 'tool_calls');
        outgoing.setHeader('content-type', stream ? 'text/event-stream' : 'application/json');
        outgoing.end(stream ? chunks(body) : JSON.stringify(body));
        this.#answered = isLast ? 0 : now();
    }
}

async function begin(model) {
    const url = await model.start();
    const h = await hearth({ env: { GENERIC_OPENAI_BASE_URL: url, GENERIC_OPENAI_MODEL: 'quick' }, settings: { 'llm.retries': 0 } });
    return { h, dev: await h.asKey() };
}

async function session(dev) {
    const { body, text } = await dev('POST', '/sdk/agent/session', { agent_name: '@agent' });
    if (!body.session)
        throw new Error(text);
    return body.session.session_id;
}

async function chat(dev, id) {
    const { status, text } = await dev('POST', `/sdk/agent/session/${id}/chat`, { message: 'go on' });
    if (status !== 200)
        throw new Error(text);
}

async function loopOverhead() {
    const model = new Model();
    const { dev } = await begin(model);
    const samples = [];
    await chat(dev, await session(dev));
    for (let round = 0; round < rounds; round++) {
        model.steps = [];
        const id = await session(dev);
        for (let i = 0; i < turnsPerRound; i++)
            await chat(dev, id);
        samples.push(model.steps);
    }
    const each = (q) => samples.map((steps) => quantile(steps, q));
    emit({ what: 'the loop a step, model and tool instant, p50', unit: 'ms', better: 'less', hearth: each(0.5), target: { of: 'value', at: 1 } });
    emit({ what: 'the loop a step, model and tool instant, p99', unit: 'ms', better: 'less', hearth: each(0.99) });
}

// A process gives memory back late, so each sample is of a fresh one.
async function memoryOfTurns(n) {
    const model = new Model();
    const { h, dev } = await begin(model);
    const ids = await Promise.all(Array.from({ length: n }, () => session(dev)));
    await pause(settleMs);
    const before = residentBytes(h.pid);
    model.hold = true;
    const turns = ids.map((id) => chat(dev, id));
    while (model.nHeld < n)
        await pause(10);
    await pause(settleMs);
    const bytes = residentBytes(h.pid) - before;
    model.release();
    await Promise.all(turns);
    return bytes / n / 1024;
}

async function memoryOfSessions(n) {
    const { h, dev } = await begin(new Model());
    await session(dev);
    await pause(settleMs);
    const before = residentBytes(h.pid);
    for (let i = 0; i < n; i++)
        await session(dev);
    await pause(settleMs);
    return (residentBytes(h.pid) - before) / n / 1024;
}

await bench(async () => {
    await loopOverhead();
    const turns = [], sessions = [];
    for (let i = 0; i < 3; i++) {
        turns.push(await memoryOfTurns(64));
        sessions.push(await memoryOfSessions(1000));
    }
    emit({ what: 'a running turn, 64 of them', unit: 'KiB', better: 'less', hearth: turns });
    emit({ what: 'an idle session, 1,000 of them', unit: 'KiB', better: 'less', hearth: sessions });
});
