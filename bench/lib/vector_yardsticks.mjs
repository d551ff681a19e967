// Embedded vector stores that developers of apps use today, in this process: sqlite-vec (exact), LanceDB without and with its index, hnswlib.
// A yardstick is {name, query(vector) -> ids, addsPerSecond, close()}, built over rows numbered from 0.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { diskFolder, root } from './programs.mjs';

export const dimensions = 384;
export const topK = 10;

const modules = join(root, 'bench/node_modules');
const headers = existsSync('/usr/include/node/node_api.h') ? { npm_config_nodedir: '/usr' } : {};
const blob = (vector) => Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
const perSecond = (n, began) => n / (performance.now() - began) * 1000;
const rowOf = (rows, i) => rows.subarray(i * dimensions, (i + 1) * dimensions);

export async function sqliteVec(rows, n) {
    const { DatabaseSync } = await import('node:sqlite');
    const extension = await import('sqlite-vec');
    const db = new DatabaseSync(join(diskFolder('sqlite-vec'), 'rows.db'), { allowExtension: true });
    extension.load(db);
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE VIRTUAL TABLE rows USING vec0(vector float[${dimensions}] distance_metric=cosine)`);
    const insert = db.prepare('INSERT INTO rows (rowid, vector) VALUES (?, ?)');
    const began = performance.now();
    for (let from = 0; from < n; from += 1000) {
        db.exec('BEGIN');
        for (let i = from; i < Math.min(n, from + 1000); i++)
            insert.run(BigInt(i), blob(rowOf(rows, i)));
        db.exec('COMMIT');
    }
    const addsPerSecond = perSecond(n, began);
    const select = db.prepare(`SELECT rowid FROM rows WHERE vector MATCH ? AND k = ${topK} ORDER BY distance`);
    return { name: 'sqlite-vec', addsPerSecond, query: (vector) => select.all(blob(vector)).map((row) => row.rowid), close: () => db.close() };
}

async function lanceTable(rows, n) {
    process.env.LANCE_LOG = 'off';      // before its library is loaded
    const { connect, Index } = await import('@lancedb/lancedb');
    const db = await connect(diskFolder('lancedb'));
    const began = performance.now();
    let table;
    for (let from = 0; from < n; from += 10_000) {
        const part = Array.from({ length: Math.min(n - from, 10_000) }, (_, i) => ({ id: from + i, vector: rowOf(rows, from + i) }));
        if (table)
            await table.add(part);
        else
            table = await db.createTable('rows', part);
    }
    return { db, table, Index, addsPerSecond: perSecond(n, began) };
}

const askLance = ({ table }) => async (vector) =>
    (await table.query().nearestTo(vector).distanceType('cosine').limit(topK).select(['id', '_distance']).toArray()).map((row) => row.id);

// Twice the same table: as it is, and with the index its makers propose.
export async function lance(rows, n) {
    const lance = await lanceTable(rows, n);
    return { name: 'LanceDB', addsPerSecond: lance.addsPerSecond, query: askLance(lance), close: () => lance.db.close(), table: lance };
}

export async function indexLance({ table: lance }) {
    await lance.table.createIndex('vector', { config: lance.Index.ivfPq({ distanceType: 'cosine' }) });
    return { name: 'LanceDB IVF-PQ', query: askLance(lance), close: () => {} };
}

const graph = { m: 16, efConstruction: 200 };
const soonBuilt = 100_000 * 384;        // numbers, in a minute or two

const compiledFor = join(modules, 'hnswlib-node/build/compiled-for-this-processor');

// Its binding is compiled here, once: its package brings none, and its inner loops use AVX only when they are compiled for it. Where that cannot be (no
// headers of Node), null and a word why.
async function hnswlibModule() {
    if (!existsSync(compiledFor))
        try {
            const env = { ...process.env, ...headers, CXXFLAGS: '-O3 -march=native' };
            execFileSync('npm', ['rebuild', 'hnswlib-node'], { cwd: join(root, 'bench'), stdio: 'pipe', env });
            writeFileSync(compiledFor, '');
        } catch (error) {
            console.error(`bench: hnswlib-node cannot be compiled here and is left out (${String(error.stderr).trim().split('\n').at(-1)})`);
            return null;
        }
    return (await import('hnswlib-node')).default;
}

// Where the index of these rows is kept: its name says rows, parameters and version of the package.
function keptPath(rows, n, dimensions) {
    const folder = join(root, 'build/hnswlib');
    const { version } = createRequire(import.meta.url)('hnswlib-node/package.json');
    const hash = createHash('sha256').update(Buffer.from(rows.buffer, rows.byteOffset, n * dimensions * rows.BYTES_PER_ELEMENT)).digest('hex').slice(0, 16);
    mkdirSync(folder, { recursive: true });
    return join(folder, `${n}x${dimensions}-${hash}-m${graph.m}-ef${graph.efConstruction}-${version}`);
}

// The index is written under another name first, so that a build that was ended leaves none.
function build(index, rows, n, dimensions, path) {
    const began = performance.now();
    index.initIndex({ maxElements: n, ...graph });
    for (let i = 0; i < n; i++)
        index.addPoint(Array.from(rows.subarray(i * dimensions, (i + 1) * dimensions)), i);
    writeFileSync(`${path}.json`, JSON.stringify({ addsPerSecond: perSecond(n, began) }));
    index.writeIndexSync(`${path}.part`);
    renameSync(`${path}.part`, `${path}.index`);
}

const mayBuild = (n, dimensions) => process.env.BENCH_HNSWLIB === 'all' || process.env.BENCH_ONLY === 'indexes' || n * dimensions <= soonBuilt;

// {index, addsPerSecond}; the index takes minutes to build, so it is kept in build/hnswlib for later runs. Null for a large one that is not there.
export async function hnswlibIndex(rows, n, dimensions) {
    const hnswlib = await hnswlibModule();
    if (!hnswlib)
        return null;
    const path = keptPath(rows, n, dimensions);
    const index = new hnswlib.HierarchicalNSW('cosine', dimensions);
    if (existsSync(`${path}.index`)) {
        index.readIndexSync(`${path}.index`);
    } else if (mayBuild(n, dimensions)) {
        build(index, rows, n, dimensions, path);
    } else {
        console.error(`bench: hnswlib is left out beside ${n} x ${dimensions}: BENCH_HNSWLIB=all builds its index`);
        return null;
    }
    return { index, ...JSON.parse(readFileSync(`${path}.json`, 'utf8')) };
}

export async function hnswlib(rows, n) {
    const built = await hnswlibIndex(rows, n, dimensions);
    if (!built)
        return null;
    built.index.setEf(100);
    return { name: 'hnswlib M=16 ef=100', addsPerSecond: built.addsPerSecond, query: (vector) => built.index.searchKnn(Array.from(vector), topK).neighbors, close: () => {} };
}
