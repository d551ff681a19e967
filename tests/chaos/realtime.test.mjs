// Activities, three services of backend.kind = hosted as three machines over the face of a fourth, each behind a proxy of its own: changes and
// broadcasts are lost and come twice, connections end while a claim is answered, machines come and go from the presence, the services and the server of
// the face are killed. What is true at the end is read from the file behind the face.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { coldHearth, startHearth } from '../api/harness.mjs';
import { faceKeys, frameReader, text } from '../api/realtime.mjs';
import { badWeather, startTcpProxy } from '../tools/tcp_proxy.mjs';
import { assertIntact, assertNoChildren, databases } from './chaos.mjs';
import { fileHistory, fileRows, Fleet, insertMs, keepHistory, nMachines, Outcome } from './fleet.mjs';

const isWhole = process.env.TEST_ALL === '1';
const nActivities = Number(process.env.CHAOS_ROWS ?? (isWhole ? 300 : 150));
const stormMs = Number(process.env.CHAOS_STORM_MS ?? (isWhole ? 30_000 : 15_000));
const settleMs = 420_000;
const staleS = 5;                       // beyond what a busy machine delays a thread or an agent's start by

// What a server may lose, or send twice. A lost presence_diff is not among them: the protocol has no word by which a client could notice it.
const fates = {
    postgres_changes: { kept: 5, lost: 3, doubled: 2 },
    broadcast: { kept: 5, lost: 3, doubled: 2 },
    presence_diff: { kept: 5, doubled: 5 },
};

// What reads along one connection: hints on a WebSocket are lost or come twice, answers to claims are cut off. weather.isBad: only then.
function meddler(chance, weather, counts) {
    const note = (what) => { counts[what] = (counts[what] ?? 0) + 1; };
    return (cut) => {
        let head = Buffer.alloc(0), isSocket = null, isClaim = false, out = [];
        const fateOf = (frame) => {
            if (!weather.isBad || frame.opcode !== text || !frame.fin)
                return 'kept';
            return chance.weighted(fates[JSON.parse(frame.payload)[3]] ?? { kept: 1 });
        };
        const read = frameReader((frame) => {
            const fate = fateOf(frame);
            if (fate !== 'kept')
                note(fate);
            out.push(...{ kept: [frame.bytes], lost: [], doubled: [frame.bytes, frame.bytes] }[fate]);
        });
        const framed = (bytes) => {
            out = [];
            read(bytes);
            return Buffer.concat(out);
        };
        return {
            toServer(bytes) {
                isClaim = weather.isBad && /svc_fn_claim_task|"status":"claimed"/.test(bytes.toString('latin1'));
                if (isClaim && chance.unit() < 0.1) {
                    note('claim cut');
                    cut();
                }
                return bytes;
            },
            toClient(bytes) {
                if (isClaim && chance.unit() < 0.15) {
                    note('answer cut');
                    cut();
                }
                if (isSocket)
                    return framed(bytes);
                if (isSocket === false)
                    return bytes;
                head = Buffer.concat([head, bytes]);
                const at = head.indexOf('\r\n\r\n');
                if (at < 0)
                    return Buffer.alloc(0);
                isSocket = head.subarray(0, 12).toString() === 'HTTP/1.1 101';
                return isSocket ? Buffer.concat([head.subarray(0, at + 4), framed(head.subarray(at + 4))]) : head;
            },
        };
    };
}

class HostedFleet extends Fleet {
    agent = { command: '/usr/bin/env', args: ['bash', `${import.meta.dirname}/agent.sh`] };
    agentTimeoutS = 60;
    isFencedByTime = true;              // and a stale lease that is taken over leaves no line in the history: status and attempt stay
    weather = { isBad: false };
    counts = {};
    #t;

    constructor(t) {
        super(t);
        this.#t = t;
    }

    get file() { return join(this.home, 'face', 'data', 'backend.db'); }

    options(machine) {
        return { settings: {
            'identity.machine_id': machine, 'backend.kind': 'hosted', 'backend.call_s': 3, 'tasks.heartbeat_s': 0.5, 'tasks.stale_after_s': staleS,
            'tasks.sweep_s': 1, 'tasks.presence_s': 2, 'shutdown.deadline_s': 5, 'log.level': 'warn',
        } };
    }

    async start() {
        mkdirSync(join(this.home, 'face'));
        this.face = await startHearth({ dataDir: join(this.home, 'face', 'data'), settings: { 'identity.machine_id': 'face', 'backend.poll_ms': 20, 'tasks.presence_s': 2, 'log.level': 'warn' } });
        keepHistory(this.file);
        const { publishable, secret } = await faceKeys(this.face);
        this.proxies = await Promise.all(Array.from({ length: nMachines }, () => startTcpProxy(this.#t, () => this.face.port, { reader: meddler(this.chance, this.weather, this.counts) })));
        for (const [n, proxy] of this.proxies.entries()) {
            mkdirSync(join(this.home, `lin-${n}`));
            const cold = coldHearth({ dataDir: join(this.home, `lin-${n}`, 'data') });
            const used = await cold.cli('backend', 'use', `http://127.0.0.1:${proxy.port}`, '--key', publishable, '--secret', { input: `${secret}\n` });
            assert.equal(used.code, 0, used.stderr);
        }
        await super.start();
    }

    services() { return [...super.services(), ...this.face ? [this.face] : []]; }

    // By the administrator: an app is anonymous to the project, whose row-level security lets it write no row.
    post(member, row) { return member.h.socket('POST', '/activities', { ...row, app: this.appId }, {}, { timeoutMs: insertMs }); }

    // The face's tables have no attempt: the time of the claim stands for it.
    history() {
        const claimed = new Map();
        return fileHistory(this.file).map((entry) => {
            if (entry.locked_at)
                claimed.set(entry.row, Date.parse(entry.locked_at));
            return { ...entry, attempt: claimed.get(entry.row) };
        });
    }
    rows() {
        const newest = new Map(this.history().map((entry) => [entry.row, entry.attempt]));
        return fileRows(this.file).map((row) => ({ ...row, attempt: newest.get(row.id) }));
    }

    // ---- what happens to them ----

    async killFace() {
        await this.face.kill();
        await pause(this.chance.between(0, 600));
        await this.face.start();
    }

    // A machine comes and goes, faster than presence is allowed to follow.
    async flap() {
        const proxy = this.chance.one(this.proxies);
        for (let i = this.chance.between(2, 8); i > 0; i--) {
            proxy.cut();
            await pause(this.chance.between(10, 300));
        }
    }

    async isolate() {
        const proxy = this.chance.one(this.proxies);
        await proxy.close();
        await pause(this.chance.between(100, 2500));
        await proxy.open();
    }

    async storm() {
        this.weather.isBad = true;
        this.proxies.forEach((proxy) => proxy.storm(badWeather(this.chance)));
        const counts = await super.storm(stormMs, { killOne: 3, killFace: 2, flap: 4, isolate: 2 });
        this.weather.isBad = false;
        this.proxies.forEach((proxy) => proxy.calm());
        return counts;
    }
}

test(`${nActivities} activities over the realtime of a face that loses, doubles and ends are each finished exactly once`, { timeout: 900_000 }, async (t) => {
    const fleet = new HostedFleet(t), goodActs = { r: 5, p: 4, t: 2, c: 2, s: 2 }, badActs = { f: 4, x: 3, l: 2 };
    const makePlan = (chance) => {
        const kind = chance.weighted({ steady: 80, moody: 14, doomed: 6 }), good = () => chance.weighted(goodActs), bad = () => chance.weighted(badActs);
        const act = { steady: good, doomed: bad, moody: () => (chance.unit() < 0.5 ? good() : bad()) }[kind];
        return { kind, plan: Array.from({ length: 8 }, act).join('') };
    };
    await fleet.start();
    const late = fleet.reportLate(), began = Date.now();
    const [counts] = await Promise.all([fleet.storm(), fleet.insertAll(nActivities, makePlan, 2)]);
    const calm = Date.now();
    await fleet.settle(settleMs);
    fleet.isOver = true;
    await late;
    await fleet.runsEnd();

    const end = new Outcome(fleet);
    t.diagnostic(`${JSON.stringify(counts)} ${JSON.stringify(fleet.counts)} ${JSON.stringify(fleet.proxies.map((proxy) => proxy.counts))}, ${end.runs.length} runs, `
        + `${end.count('completed')} completed, ${end.count('failed')} quarantined; storm ${calm - began} ms, then ${Date.now() - calm} ms`);
    for (const what of ['lost', 'doubled', 'claim cut', 'answer cut'])
        assert.ok(fleet.counts[what], `nothing was ${what}`);

    await t.test('no activity that was acknowledged is lost', () => end.assertNoneIsLost(nActivities));
    await t.test('every row is completed once, or was failed by three machines', () => end.assertEachIsFinishedOnce());
    await t.test('an attempt ends once, and the newest one is the row', () => end.assertAttemptsEndOnce());
    await t.test('an agent that does its work completes its activity', () => end.assertTheSteadyAreCompleted());
    await t.test('what doomed activities wanted is done: quarantine', () => end.assertTheDoomedAreQuarantined(nActivities / 100));
    await t.test('a result that was acknowledged is the one that is stored', () => end.assertAcknowledgedResultsAreStored());
    await t.test('a stored result is of a run that was started', () => end.assertResultsAreOfRuns());
    await t.test('a failure after an acknowledged success is refused', () => end.assertNoAttemptHasTwoEnds());
    await t.test('an attempt is started once', () => end.assertAttemptsStartOnce());
    await t.test('each store says of a task what its row says', () => end.assertStoresAgree());
    await t.test('every machine sees each machine once', () => fleet.assertAllAreSeen(['face']));
    await t.test('the services end in peace, no process is left, every file is intact', async () => {
        for (const h of [...fleet.members.map((member) => member.h), fleet.face]) {
            await h.terminate();
            await assertNoChildren(h.dataDir);
            databases(h.dataDir).forEach(assertIntact);
        }
    });
});
