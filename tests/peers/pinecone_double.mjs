// A double of an index of Pinecone, as the reference of its data plane (docs.pinecone.io, 2025-01) describes it: flat metadata of at most 40 KB, requests of at most
// 2 MB and 1,000 vectors, no zero vectors, pages of 100 ids.
import { check, cosine, members, pick, serve } from './rest_double.mjs';

const versions = /^20\d\d-(01|04|07|10)$/;

function checkVector({ id, values, metadata, ...more }, dimension) {
    members(more, []);
    check(/^[\x20-\x7e]{1,512}$/.test(id), 'Vector ID must be ASCII');
    check(values.length === dimension, `Vector dimension ${values.length} does not match the dimension of the index ${dimension}`);
    check(values.some((x) => x !== 0), 'Dense vectors must contain at least one non-zero value');
    for (const [name, value] of Object.entries(metadata))
        check(['string', 'number', 'boolean'].includes(typeof value) || (Array.isArray(value) && value.every((one) => typeof one === 'string')), `Metadata value must be a string, number, boolean or list of strings, got ${name}`);
    check(Buffer.byteLength(JSON.stringify(metadata)) <= 40960, 'metadata size is larger than the maximum of 40960 bytes');
}

function passes(filter, metadata) {
    return Object.entries(filter).every(([name, condition]) => {
        if (name === '$and')
            return condition.every((one) => passes(one, metadata));
        members(condition, ['$in']);
        check(condition.$in.length <= 10_000, 'the $in operator takes at most 10000 values');
        return (Array.isArray(metadata[name]) ? metadata[name] : [metadata[name]]).some((value) => condition.$in.includes(value));
    });
}

export async function startPineconeDouble(t, { key = 'pc-s3cret', dimension = 3, metric = 'cosine' } = {}) {
    const spaces = new Map();
    const space = (name) => spaces.get(name) ?? new Map();
    const verbs = {
        'POST /describe_index_stats': ({ body }) => {
            members(body, [], ['filter']);
            const namespaces = Object.fromEntries([...spaces].filter(([, vectors]) => vectors.size).map(([name, vectors]) => [name, { vectorCount: vectors.size }]));
            return { namespaces, dimension, indexFullness: 0, totalVectorCount: [...spaces.values()].reduce((n, one) => n + one.size, 0), metric, vectorType: 'dense' };
        },
        'POST /vectors/upsert': ({ body, size }) => {
            members(body, ['vectors', 'namespace']);
            check(body.vectors.length <= 1000 && size <= 2 << 20, 'Request size exceeds the maximum');
            body.vectors.forEach((vector) => checkVector(vector, dimension));
            spaces.set(body.namespace, space(body.namespace));
            body.vectors.forEach((vector) => space(body.namespace).set(vector.id, { ...vector, values: vector.values.map(Math.fround) }));
            return { upsertedCount: body.vectors.length };
        },
        'POST /vectors/delete': ({ body }) => {
            members(body, ['namespace'], ['ids', 'deleteAll']);
            check((body.ids === undefined) !== (body.deleteAll === undefined) && (body.ids ?? []).length <= 1000, 'exactly one of ids and deleteAll');
            check(spaces.has(body.namespace), 'Namespace not found', 404);
            if (body.deleteAll)
                spaces.delete(body.namespace);
            else
                body.ids.forEach((id) => space(body.namespace).delete(id));
            return {};
        },
        'POST /query': ({ body }) => {
            members(body, ['namespace', 'vector', 'topK'], ['filter', 'includeValues', 'includeMetadata']);
            check(body.vector.length === dimension && body.vector.some((x) => x !== 0), 'Vector dimension does not match the dimension of the index');
            check(body.topK <= 1000, 'topK with metadata must be at most 1000');
            const found = [...space(body.namespace).values()].filter((vector) => !body.filter || passes(body.filter, vector.metadata))
                .map((vector) => ({ ...vector, score: cosine(vector.values, body.vector) })).sort((a, b) => b.score - a.score).slice(0, body.topK);
            return { matches: found.map((one) => ({ values: [], ...pick(one, ['id', 'score', ...(body.includeValues ? ['values'] : []), ...(body.includeMetadata ? ['metadata'] : [])]) })),
                namespace: body.namespace, usage: { readUnits: 5 } };
        },
        'GET /vectors/list': ({ query }) => {
            const limit = Number(query.get('limit') ?? 100), token = query.get('paginationToken');
            check(limit >= 1 && limit <= 100, 'limit must be at most 100');
            const ids = [...space(query.get('namespace')).keys()].sort().filter((id) => !token || id > Buffer.from(token, 'base64').toString());
            const page = ids.slice(0, limit);
            return { vectors: page.map((id) => ({ id })), ...(ids.length > limit && { pagination: { next: Buffer.from(page.at(-1)).toString('base64') } }), namespace: query.get('namespace'), usage: { readUnits: 1 } };
        },
        'GET /vectors/fetch': ({ query }) => {
            const known = space(query.get('namespace')), ids = query.getAll('ids').filter((id) => known.has(id));
            return { vectors: Object.fromEntries(ids.map((id) => [id, known.get(id)])), namespace: query.get('namespace'), usage: { readUnits: 1 } };
        },
    };
    const server = await serve(t, (one) => {
        check(one.headers['api-key'] === key, 'Invalid API Key', 401);
        check(versions.test(one.headers['x-pinecone-api-version']), 'X-Pinecone-Api-Version is required');
        const verb = verbs[`${one.method} ${one.path}`];
        check(verb, 'Not found', 404);
        return verb(one);
    }, { refuse: (error) => [error.status ?? 500, { code: 3, message: error.message, details: [] }] });
    return Object.assign(server, { spaces, provider: 'pinecone', config: { url: server.url, apiKey: key } });
}
