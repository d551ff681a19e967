// Vectors that were acknowledged are there after SIGKILL in the middle of upserts and deletions, never half a call, and are found as a naive
// search finds them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startHearth, until } from '../api/harness.mjs';
import { assertIntact, Chance, databases } from './chaos.mjs';

const base = '/sdk/llm/vectors';
const writers = 6;
const rowsOfCall = 20;
const topK = 10;

// Kinds of vectors. Large ones have sketches; they lie near a few directions, as data whose sketches leave out rows does.
const small = (chance) => Array.from({ length: 8 }, () => chance.between(-1000, 1000));
const directions = Array.from({ length: 6 }, (_, k) => Array.from({ length: 64 }, (_, i) => Math.sin((k + 1) * (i + 1) * 1.7)));
function large(chance) {
    const shares = directions.map(() => chance.between(-1000, 1000));
    return directions[0].map((_, i) => shares.reduce((sum, share, k) => sum + share * directions[k][i], chance.between(-300, 300)));
}

// What one writer did to its groups of ids, one call after the other: a call writes all of a group, or deletes all of it.
class Writer {
    groups = new Map();                 // group -> {now: generation or null, next: what the call on its way makes of it}
    n = 0;
    refusals = [];
    nAcknowledged = 0;

    constructor(number, chance, makeVector) {
        this.number = number;
        this.chance = chance;
        this.makeVector = makeVector;
    }

    // Many groups, before anything is killed.
    async fill(api, nGroups) {
        const vectors = [];
        for (let i = 0; i < nGroups; i++) {
            const group = this.n++;
            this.groups.set(group, { now: group });
            vectors.push(...this.vectors(group, group));
        }
        assert.equal((await api('POST', `${base}/upsert`, { vectors })).status, 200);
    }

    // A new group, mostly; else one that is there is replaced or deleted.
    #pick() {
        const { chance } = this;
        const generation = this.n++;
        if (this.groups.size < 2 || chance.between(0, 9) < 6)
            return { group: generation, generation };
        const group = [...this.groups.keys()][chance.between(0, this.groups.size - 1)];
        return { group, generation: chance.between(0, 2) === 0 ? null : generation };
    }

    ids(group) { return Array.from({ length: rowsOfCall }, (_, i) => `${this.number}-${group}-${i}`); }

    vectors(group, generation) {
        return this.ids(group).map((id) => ({ id, vector: this.makeVector(this.chance), metadata: { group: `${this.number}-${group}`, generation, parity: generation % 2 } }));
    }

    async call(api) {
        const { group, generation } = this.#pick();
        const state = this.groups.get(group) ?? { now: null };
        this.groups.set(group, { ...state, next: generation });
        const reply = generation === null ? await api('POST', `${base}/delete`, { ids: this.ids(group) })
            : await api('POST', `${base}/upsert`, { vectors: this.vectors(group, generation) });
        if (reply.status !== 200)
            return void this.refusals.push(reply.text);
        this.groups.set(group, { now: generation });
        this.nAcknowledged++;
    }

    async work(api, stop) {
        while (!stop.aborted) {
            try {
                await this.call(api);
            } catch {
                return;                 // the service is gone: this call was not acknowledged
            }
        }
    }

    // Every group is as its last acknowledged call left it, or as the one on its way would have.
    settle(rowsByGroup) {
        for (const [group, state] of this.groups) {
            const rows = rowsByGroup.get(`${this.number}-${group}`) ?? [];
            const generations = [...new Set(rows.map((row) => row.metadata.generation))];
            assert.ok(generations.length <= 1, `half a call of writer ${this.number}, group ${group}: ${generations}`);
            const seen = generations[0] ?? null;
            assert.equal(rows.length, seen === null ? 0 : rowsOfCall, `half a call of writer ${this.number}, group ${group}`);
            assert.ok(seen === state.now || ('next' in state && seen === state.next), `group ${group} is ${seen}, was acknowledged as ${state.now}`);
            this.groups.set(group, { now: seen });
        }
    }
}

async function listAll(api) {
    const rows = [];
    for (;;) {
        const { body } = await api('GET', `${base}/list?limit=500&includeVectors=true&offset=${rows.length}`);
        rows.push(...body.vectors);
        if (body.vectors.length < 500)
            return rows;
    }
}

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const cosine = (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)) || 0;

async function compareWithNaive(api, rows, vector, filter, matches) {
    const expected = rows.filter(matches).map((row) => cosine(row.vector, vector)).sort((a, b) => b - a).slice(0, topK);
    const { body } = await api('POST', `${base}/query`, { vector, topK, filter });
    assert.equal(body.results.length, expected.length);
    const byId = new Map(rows.map((row) => [row.id, row]));
    body.results.forEach((hit, i) => {
        assert.ok(Math.abs(hit.score - expected[i]) < 1e-6, `hit ${i}: ${hit.score}, expected ${expected[i]}`);
        assert.ok(Math.abs(hit.score - cosine(byId.get(hit.id).vector, vector)) < 1e-6);
        assert.ok(matches(byId.get(hit.id)));
    });
}

async function compareAll(api, rows, makeVector) {
    assert.equal((await api('GET', `${base}/count`)).body.count, rows.length);
    for (let i = 0; i < 5; i++)
        await compareWithNaive(api, rows, makeVector(), undefined, () => true);
    await compareWithNaive(api, rows, makeVector(), { parity: 1 }, (row) => row.metadata.parity === 1);
    if (rows.length)
        await compareWithNaive(api, rows, makeVector(), { group: rows[0].metadata.group }, (row) => row.metadata.group === rows[0].metadata.group);
}

// The writers work until some of their calls are acknowledged; then the service is killed in the middle of others, and started again.
async function workAndKill(h, api, all, chance) {
    const nAcknowledged = () => all.reduce((sum, writer) => sum + writer.nAcknowledged, 0);
    const stop = new AbortController();
    const before = nAcknowledged();
    const working = Promise.all(all.map((writer) => writer.work(api, stop.signal)));
    await until(() => nAcknowledged() > before + writers, { what: 'some are acknowledged' });
    await pause(chance.between(100, 500));
    await h.kill();
    stop.abort();
    await working;
    await h.start();
    return nAcknowledged();
}

async function settled(api, all) {
    const rows = await listAll(api);
    const byGroup = Map.groupBy(rows, (row) => row.metadata.group);
    all.forEach((writer) => writer.settle(byGroup));
    return rows;
}

async function finish(t, h, all, nAcknowledged) {
    assert.deepEqual(all.flatMap((writer) => writer.refusals), []);
    t.diagnostic(`${nAcknowledged} calls acknowledged`);
    await h.terminate();
    databases(h.dataDir).forEach(assertIntact);
}

test('calls that were acknowledged survive SIGKILL whole, and what is there is found', async (t) => {
    const chance = new Chance(t);
    const h = await startHearth({ t, settings: { 'log.level': 'warn' } });
    const api = h.as({ authorization: `Bearer ${await h.key()}` });
    const all = Array.from({ length: writers }, (_, number) => new Writer(number, chance, small));
    let nAcknowledged;
    for (let round = 0; round < 6; round++) {
        nAcknowledged = await workAndKill(h, api, all, chance);
        await compareAll(api, await settled(api, all), () => small(chance));
    }
    await finish(t, h, all, nAcknowledged);
});

// Sketches are made of 4,096 rows each, in the background: while rows come and go, and again after each start. With five deviations an answer
// without the right rows comes once in millions.
test('sketches find what is there after SIGKILL', async (t) => {
    const chance = new Chance(t);
    const h = await startHearth({ t, settings: { 'log.level': 'warn', 'vectors.sketch_deviations': 5 } });
    const api = h.as({ authorization: `Bearer ${await h.key()}` });
    const all = Array.from({ length: writers }, (_, number) => new Writer(number, chance, large));
    const rowsBySketches = async () => Number(/^hearth_vector_sketch_rows_total (\d+)/m.exec((await h.api('GET', '/metrics')).text)[1]);
    let nAcknowledged;
    for (let i = 0; i < 10; i++)
        for (const writer of all)
            await writer.fill(api, 10);
    for (let round = 0; round < 3; round++) {
        nAcknowledged = await workAndKill(h, api, all, chance);
        const rows = await settled(api, all);
        await until(async () => {
            await api('POST', `${base}/query`, { vector: large(chance), topK });
            return await rowsBySketches() >= 8192;
        }, { what: 'sketches are read' });
        await compareAll(api, rows, () => large(chance));
    }
    await finish(t, h, all, nAcknowledged);
});
