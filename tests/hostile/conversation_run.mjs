// Carries a conversation out against a service and judges every byte that comes back.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { withNames, withValues } from './conversation_grammar.mjs';
import { converse, takeResponse } from './kit.mjs';

const quietMs = 20, firstMs = 200, answerMs = 1500, writeMs = 300;
// OpenAI's and Anthropic's, Ollama's, and those of the hosted service.
const isForeignForm = (body) => (typeof body.error === 'object' && typeof body.error?.message === 'string') ||
    (typeof body.hearth_code === 'string' && [body.error, body.message, body.msg].some((sentence) => typeof sentence === 'string'));

function judgeResponse({ status, headers, bytes, text, body }) {
    const told = `${status} ${JSON.stringify(headers)} ${text.slice(0, 400)}`;
    if (status < 200)
        return;
    assert.notEqual(status, 500, told);
    assert.match(headers['x-request-id'] ?? '', /^[!-~]{1,200}$/, `x-request-id: ${told}`);
    if (bytes.length > 0 && headers['content-type']?.startsWith('application/json')) {     // rows over REST: what is not asked for is empty
        assert.ok(body !== null && typeof body === 'object', `an answer in JSON is an object: ${told}`);
        assert.ok(Buffer.from(text).equals(bytes), `an answer in JSON is UTF-8: ${told}`);
    }
    const isPage = headers['content-type']?.startsWith('text/html');        // the page of a one-time link
    if (status >= 400 && !isPage)
        assert.ok(body && (isForeignForm(body) || (body.success === false && typeof body.code === 'string' && typeof body.error === 'string')), `an error has its envelope: ${told}`);
}

// Answers that end with the connection may be cut off; what is there must be HTTP. The texts of compressed bodies are added to `unpacked`.
export function judgeReceived(received, isClosed, unpacked = []) {
    let rest = received, n = 0;
    for (let response; rest.length && (response = takeResponse(rest, { isClosed })); n++) {
        judgeResponse(response);
        if (response.headers['content-encoding'])
            unpacked.push(response.bytes);
        rest = response.rest;
    }
    const begun = rest.subarray(0, 9).toString('latin1');
    assert.ok('HTTP/1.1 '.startsWith(begun), `bytes that are no answer: ${JSON.stringify(rest.subarray(0, 200).toString('latin1'))}`);
    return n;
}

// What a connection never sent, it must not be shown, unless its caller is the owner.
export function judgeSecrets(source, sent, received) {
    const knowsVictim = sent.includes(source.victim.id) || sent.includes(source.values.cookie);
    for (const secret of [...source.secrets.always, ...knowsVictim ? [] : source.secrets.victims])
        assert.ok(!received.includes(secret, 0, 'latin1') || sent.includes(secret, 0, 'latin1'), `a secret came back: ${JSON.stringify(secret.slice(0, 40))}`);
}

class Line {
    sent = [];
    answers = Buffer.alloc(0);

    constructor(source) { this.source = source; }

    async open() { this.talk ??= await converse(this.source.h); }

    async act([what, value]) {
        await this.open();
        if (what === 'send') {
            this.sent.push(value);
            await Promise.race([this.talk.send(value), pause(writeMs)]);
        } else if (what === 'pause') {
            await pause(value);
        } else if (what === 'answer') {
            await this.settle();
        } else if (what === 'end') {
            this.talk.end();
        } else if (what === 'deaf') {
            this.talk.socket.pause();
        } else {
            this.talk.reset();
        }
    }

    // Until the service has said what it has to say; a request that is not whole has no answer, so silence ends the wait too.
    async settle() {
        const begun = performance.now(), before = this.settled ?? 0;
        for (let seen = -1; !this.talk.isClosed && performance.now() < begun + answerMs;) {
            const isSilent = this.talk.received.length === before;
            if (isSilent ? performance.now() > begun + firstMs : seen === this.talk.received.length)
                break;
            seen = this.talk.received.length;
            await pause(quietMs);
        }
        this.settled = this.talk.received.length;
    }

    judge() {
        const { received, isClosed } = this.talk;
        const unpacked = [], n = judgeReceived(received, isClosed, unpacked);
        judgeSecrets(this.source, Buffer.concat(this.sent), Buffer.concat([received, ...unpacked]));
        return n;
    }
}

// The number of answers. Throws when one is wrong.
export async function carryOut(source, conversation) {
    const lines = conversation.connections.map(() => new Line(source));
    const left = conversation.connections.map((actions) => [...actions]);
    try {
        for (const i of conversation.turns)
            await lines[i].act(left[i].shift());
        await Promise.all(lines.filter((one) => one.talk).map((line) => line.settle()));
        return lines.reduce((sum, line) => sum + (line.talk ? line.judge() : 0), 0);
    } finally {
        for (const line of lines)
            line.talk?.destroy();
    }
}

// ---- kept conversations ----

export function asKept(source, conversation) {
    const kept = (action) => action[0] === 'send' ? ['send', withNames(action[1].toString('latin1'), source.values)] : action;
    return { ...conversation, connections: conversation.connections.map((actions) => actions.map(kept)) };
}

export function fromKept(source, kept) {
    const live = (action) => action[0] === 'send' ? ['send', Buffer.from(withValues(action[1], source.values), 'latin1')] : action;
    const connections = kept.connections.map((actions) => actions.map(live));
    return { ...kept, connections, turns: kept.turns ?? connections.flatMap((actions, i) => actions.map(() => i)) };
}
