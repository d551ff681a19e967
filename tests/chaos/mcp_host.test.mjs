// The host of MCP servers in a storm: six servers of both eras over stdio and HTTP, callers over REST, over /mcp and in turns of model agents, while
// servers are killed, servers are disabled, removed and changed, and the service itself is stopped and killed. No call reaches a server twice, a
// call that was answered was carried out once, a call of a server that dies fails and says so, nothing is left behind, and everything works again.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startHearth, until } from '../api/harness.mjs';
import { admin, isAlive, newKey } from '../api/kit.mjs';
import { session } from '../api/mcp.mjs';
import { scriptedProvider } from '../api/scripted.mjs';
import { descriptorsByKind, threadsOf } from '../hostile/kit.mjs';
import { assertIntact, assertNoChildren, Chance, children, databases, Ledger } from './chaos.mjs';
import { marksOverHttp } from './mcp_marker.mjs';

const stormMs = 6000;                   // of each of the two storms
const marker = join(import.meta.dirname, 'mcp_marker.mjs');
const official = (name) => join(import.meta.dirname, '../node_modules/@modelcontextprotocol', name, 'dist/index.js');

// What a caller may be told. Before: the call never left the service. Lost: it may have been carried out, once.
const fates = {
    before: ['SERVER_NOT_FOUND', 'SERVER_DISABLED', 'SERVER_NOT_TRUSTED', 'TOOL_DISABLED', 'TOOL_NOT_FOUND', 'TOO_MANY_CALLS', 'NOT_READY', 'OVERLOADED', 'INVALID_SESSION'],
    lost: ['MCP_SERVER_ERROR', 'SHUTTING_DOWN', 'no connection', 'interrupted'],
};

const marking = ['marks', 'modern', 'web'];
const others = {
    everything: () => ['echo', { message: 'hi' }, /Echo: hi/],
    files: (storm, id) => ['write_file', { path: join(storm.folder, id), content: id }, /Successfully wrote/],
    memory: () => ['read_graph', {}, /entities/],
};

class Storm {
    calls = [];                         // {id, how, server, fate, code}
    pidsKilled = new Map();             // pid of a server: when it was killed
    isOver = false;
    told = {};

    constructor(t) {
        this.t = t;
        this.chance = new Chance(t);
    }

    async begin() {
        const { t } = this;
        this.h = await startHearth({ t, settings: { 'log.level': 'warn', 'llm.retries': 0, 'shutdown.deadline_s': 1, 'mcp.ping_s': 1 } });
        this.ledger = new Ledger(join(this.h.home, 'ledger'));
        this.folder = join(this.h.home, 'docs');
        mkdirSync(this.folder);
        this.description = this.h.file('description', 'Marks, version 0');
        this.web = await marksOverHttp('web', this.ledger);
        t.after(() => this.web.close());
        this.definitions = {
            marks: this.#program(marker, 'stdio', 'marks', this.ledger.path, this.description),
            modern: this.#program(marker, 'stateless', 'modern', this.ledger.path),
            web: { url: this.web.url },
            everything: this.#program(official('server-everything')),
            files: this.#program(official('server-filesystem'), this.folder),
            memory: { ...this.#program(official('server-memory')), env: { MEMORY_FILE_PATH: join(this.folder, 'graph.json') } },
        };
        this.provider = await scriptedProvider(t, this.h);
        this.call = (await newKey(this.h)).call;
        await admin(this.h, 'POST', '/api/agents', { kind: 'model', name: 'worker', tools: ['marks/mark'], approval: 'never' }, 201);
        for (const name of Object.keys(this.definitions))
            await this.put(name);
    }

    #program(...args) { return { command: process.execPath, args }; }
    put(name, more = {}, accept = true) { return admin(this.h, 'POST', `/api/mcp/servers${accept ? '?accept=true' : ''}`, { name, timeout_s: 15, ...this.definitions[name], ...more }, 201); }
    show(name) { return admin(this.h, 'GET', `/api/mcp/servers/${name}`).then(({ server }) => server); }
    act(name, what, body = {}) { return admin(this.h, 'POST', `/api/mcp/servers/${name}/${what}`, body); }
    execute(server, tool, args) { return this.call('POST', `/sdk/mcp/servers/${server}/tools/${tool}/execute?provider=${server === 'web' ? 'remote' : 'local'}`, { arguments: args }); }

    // ---- callers ----

    newMark(how, server) {
        const call = { id: randomUUID(), how, server, at: Date.now() };
        this.calls.push(call);
        return { call, args: { id: call.id, wait_ms: this.chance.between(0, 120) } };
    }

    settle(call, code, text) {
        call.fate = code === undefined ? 'answered' : Object.keys(fates).find((fate) => fates[fate].includes(code));
        call.code = code;
        assert.ok(call.fate, `${call.how} ${call.server}: ${code} ${text}`);
        this.told[`${call.how} ${code ?? 'answered'}`] = (this.told[`${call.how} ${code ?? 'answered'}`] ?? 0) + 1;
    }

    // What went wrong with a request that has no answer: nothing listened, or the service ended with it.
    async attempt(call, request) {
        try {
            return await request();
        } catch (error) {
            assert.ok(error.code === 'ECONNREFUSED' || error.code === 'ECONNRESET' || error.code === 'EPIPE' || /socket hang up|aborted/.test(error.message), String(error.stack));
            if (call)
                this.settle(call, 'no connection');
            await pause(10);
            return null;
        }
    }

    async overRest() {
        while (!this.isOver) {
            const { call, args } = this.newMark('REST', this.chance.one(marking));
            const reply = await this.attempt(call, () => this.execute(call.server, 'mark', args));
            if (!reply)
                continue;
            if (reply.status === 200)
                assert.deepEqual(reply.body.result, { content: [{ type: 'text', text: `marked ${call.id}` }], isError: false });
            this.settle(call, reply.status === 200 ? undefined : reply.body.code, reply.text);
            await pause(reply.status === 200 ? 0 : 5);
        }
    }

    async overMcp() {
        for (let open = null; !this.isOver;) {
            open ??= await this.attempt(null, () => session(this.call));
            if (!open)
                continue;
            const { call, args } = this.newMark('/mcp', this.chance.one(marking));
            const reply = await this.attempt(call, () => open.raw({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: `${call.server}__mark`, arguments: args } }));
            if (reply?.status !== 200) {
                if (reply)
                    this.settle(call, reply.body?.error?.data?.hearth_code ?? `${reply.status}`, reply.text);
                open = null;
                continue;
            }
            // A stream that the end of the service cut has no response.
            const result = (reply.body ?? [...reply.text.matchAll(/^data: (.*)$/gm)].map((data) => JSON.parse(data[1])).find((frame) => frame.id === 7))?.result;
            this.settle(call, result === undefined ? 'no connection' : result._meta?.['hearth/error']?.code, reply.text);
            if (result && !result.isError)
                assert.equal(result.content[0].text, `marked ${call.id}`);
            await pause(result?.isError ? 5 : 0);
        }
    }

    async inTurns() {
        while (!this.isOver) {
            const opened = await this.attempt(null, () => this.call('POST', '/sdk/agent/session', { agent_name: 'worker' }));
            if (opened?.status === 201 || opened?.status === 200)
                await this.attempt(null, () => this.call('POST', `/sdk/agent/session/${opened.body.session.session_id}/chat`, { message: 'go on' }));
            else
                await pause(10);
        }
    }

    // The model: each turn calls `mark` twice at once, and reads what it was told.
    async answerUntil(isOver) {
        for (let n = this.provider.asked.length; !isOver();) {
            const asked = this.provider.asked[n];
            if (!asked) {
                await pause(5);
                continue;
            }
            n++;
            const results = asked.messages.filter((one) => one.role === 'tool');
            results.forEach((one) => this.#readResult(one));
            if (results.length > 0 || asked.tools.length === 0)
                asked.answer('done');
            else
                asked.call(...[1, 2].map(() => ['marks__mark', this.newMark('turn', 'marks').args]));
        }
    }

    #readResult({ content }) {
        const text = typeof content === 'string' ? content : content.map((block) => block.text ?? '').join('');
        const id = /^marked (\S+)/.exec(text)?.[1];
        if (id)
            this.settle(this.calls.find((call) => call.id === id));
    }

    async ofOthers() {
        while (!this.isOver) {
            const server = this.chance.one(Object.keys(others)), id = randomUUID();
            const [tool, args, says] = others[server](this, id);
            const reply = await this.attempt(null, () => this.execute(server, tool, args));
            if (reply?.status === 200 && !reply.body.result.isError)
                assert.match(JSON.stringify(reply.body.result), says);
            if (reply?.status === 200 && server === 'files' && !reply.body.result.isError)
                assert.equal(readFileSync(join(this.folder, id), 'utf8'), id);
            if (reply && reply.status !== 200)
                assert.ok(Object.values(fates).flat().includes(reply.body.code), reply.text);
            await pause(20);
        }
    }

    // ---- what goes wrong ----

    // SIGKILL of its process group: what it had in flight fails, and it is not shown as running any more.
    async killServer() {
        const name = this.chance.one(['marks', 'marks', 'modern', ...Object.keys(others)]);
        const { pid, status } = await this.show(name);
        if (status !== 'running')
            return;
        this.pidsKilled.set(pid, name);
        process.kill(-pid, 'SIGKILL');
        await until(() => !isAlive(pid), { what: `${pid} ends` });
        await until(async () => (await this.show(name)).pid !== pid, { what: `${name} is not shown as running` });
    }

    async closeWeb() {
        await this.web.close();
        await pause(this.chance.between(0, 150));
        await this.web.open();
    }

    async disable() {
        const name = this.chance.one(Object.keys(this.definitions));
        await this.act(name, 'disable');
        await pause(this.chance.between(0, 100));
        await this.act(name, 'enable');
    }

    async disableTool() {
        const name = this.chance.one(marking);
        await this.act(name, 'disable', { tool: 'mark' });
        await pause(this.chance.between(0, 100));
        await this.act(name, 'enable', { tool: 'mark' });
    }

    async remove() {
        const name = this.chance.one(marking);
        await admin(this.h, 'DELETE', `/api/mcp/servers/${name}`);
        await pause(this.chance.between(0, 100));
        await this.put(name);
    }

    // Another command runs only when a person has accepted it.
    async change() {
        await this.put('marks', { env: { VERSION: String(this.chance.between(1, 1e9)) } }, false);
        assert.equal((await this.show('marks')).pid, null);
        await pause(this.chance.between(0, 50));
        await this.act('marks', 'accept');
    }

    // Another definition of a tool turns it off until a person has accepted it.
    async changeTool() {
        writeFileSync(this.description, `Marks, version ${this.chance.between(1, 1e9)}`);
        await this.execute('marks', 'announce', {});
        await pause(this.chance.between(0, 400));
        await this.act('marks', 'accept');
    }

    async restartServer() { await this.act(this.chance.one(Object.keys(this.definitions)), 'restart'); }
    async stopService() { await this.h.terminate(); await assertNoChildren(this.h.dataDir); await this.h.start(); }

    async killService() {
        await this.h.kill();
        if (this.chance.unit() < 0.5)
            await assertNoChildren(this.h.dataDir);
        await this.h.start();
    }

    // The requests of the administrator are answered unless the service ends, which only this loop does.
    async rage(weights) {
        const end = performance.now() + stormMs;
        for (let did = ''; performance.now() < end;) {
            await pause(this.chance.between(0, 150));
            did = this.chance.weighted(weights);
            await this[did]();
            this.told[did] = (this.told[did] ?? 0) + 1;
        }
    }

    async rageAmongCallers(weights) {
        let areGone = false;
        this.isOver = false;
        const model = this.answerUntil(() => areGone);
        const callers = [...[1, 2, 3, 4, 5, 6].map(() => this.overRest()), ...[1, 2, 3].map(() => this.overMcp()), this.inTurns(), this.inTurns(), this.ofOthers(), this.ofOthers()];
        const all = Promise.all(callers);
        await Promise.race([this.rage(weights), all.then(() => assert.fail('the callers ended'))]).finally(() => { this.isOver = true; });
        await all;
        areGone = true;
        await model;
    }

    // ---- what must hold ----

    async works() {
        for (const name of marking)
            await until(async () => {
                const id = randomUUID(), reply = await this.execute(name, 'mark', { id });
                if (reply.body.code === 'TOOL_DISABLED')    // the change of the tool was not listed before the storm's end
                    await this.act(name, 'accept');
                return reply.status === 200 && reply.body.result.content[0].text === `marked ${id}`;
            }, { what: `${name} answers again`, everyMs: 100 });
        for (const [name, make] of Object.entries(others)) {
            const [tool, args, says] = make(this, randomUUID());
            const reply = await until(async () => {
                const given = await this.execute(name, tool, args);
                return given.status === 200 && given;
            }, { what: `${name} answers again`, everyMs: 100 });
            if (name !== 'memory')      // its file may be torn: it writes without care
                assert.match(reply.text.replaceAll('\\"', '"'), says);
        }
        for (const { name, status, pid, error } of (await admin(this.h, 'GET', '/api/mcp/servers')).servers) {
            assert.deepEqual([name, status, error], [name, 'running', null]);
            assert.ok(name === 'web' || isAlive(pid), name);
        }
    }

    assertEachOnce() {
        const reached = Map.groupBy(this.ledger.read(), ({ id }) => id);
        for (const { id, how, server, fate = 'lost', code } of this.calls) {
            const entries = reached.get(id) ?? [], what = `${how} ${server} ${code ?? fate}: ${JSON.stringify(entries)}`;
            const begun = entries.filter((one) => !one.is_done).length, done = entries.length - begun;
            assert.ok(begun <= 1, `a call was repeated: ${what}`);
            assert.ok(fate !== 'answered' || done === 1, `an answered call was not carried out once: ${what}`);
            assert.ok(fate !== 'before' || begun === 0, `a refused call reached its server: ${what}`);
        }
        for (const { pid, id } of [...reached.values()].filter((entries) => entries.length === 1).map(([one]) => one)) {
            const call = this.calls.find((one) => one.id === id);
            if (this.pidsKilled.has(pid) && call && call.how !== 'turn')
                assert.ok(['MCP_SERVER_ERROR', 'no connection', 'SHUTTING_DOWN'].includes(call.code), `${call.how} of a killed server: ${call.code ?? call.fate}`);
        }
    }

    // Without the idle threads of pools, which are kept for a minute, each with its own descriptors of the store.
    async holds() {
        const { text } = await this.h.api('GET', '/metrics');
        const pooled = [...text.matchAll(/^hearth_pool_threads\{.*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0);
        const { socket: sockets = 0, ...kinds } = descriptorsByKind(this.h.pid);
        const descriptors = Object.entries(kinds).reduce((sum, [what, n]) => sum + (/\.db(-wal|-shm)?$/.test(what) ? 0 : n), 0);
        return { sockets, descriptors, threads: threadsOf(this.h.pid) - pooled, children: children(this.h.dataDir).length };
    }

    async holdsNoMoreThan(before) {
        const slack = { sockets: 48 /* idle connections, kept for a minute */, descriptors: 4, threads: 2, children: 0 };
        let now;
        await until(async () => Object.entries(now = await this.holds()).every(([what, n]) => n <= before[what] + slack[what]), { everyMs: 100 })
            .catch(() => assert.fail(`before the storm ${JSON.stringify(before)}, after it ${JSON.stringify(now)}: ${JSON.stringify(descriptorsByKind(this.h.pid))}`));
    }
}

const toServers = { killServer: 6, closeWeb: 3, disable: 2, disableTool: 1, remove: 2, change: 1, changeTool: 2, restartServer: 1 };

test('servers and the service are killed, stopped and changed under load: each call is carried out at most once, and everything works again', async (t) => {
    const storm = new Storm(t);
    await storm.begin();
    await storm.rageAmongCallers({ ...toServers, stopService: 1.5, killService: 2.5 });
    await storm.works();
    const before = await storm.holds();
    await storm.rageAmongCallers(toServers);
    await storm.works();
    await storm.holdsNoMoreThan(before);
    storm.assertEachOnce();
    t.diagnostic(JSON.stringify(storm.told));
    await storm.h.terminate();
    await assertNoChildren(storm.h.dataDir);
    databases(storm.h.dataDir).forEach(assertIntact);
});
