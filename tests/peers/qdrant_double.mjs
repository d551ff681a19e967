// A double of Qdrant's REST interface, as its reference (api.qdrant.tech) describes it: collections, points, search, scroll, filters.
// No Qdrant server runs here; the double is strict where the server is: ids are UUIDs, unknown members and wrong sizes are refused,
// vectors of Cosine collections are kept at length one, numbers compare as doubles, a condition looks into arrays.
import http from 'node:http';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

// 64-bit integers stay what they are.
const parse = (text) => JSON.parse(text, (key, value, { source } = {}) => (typeof value === 'number' && /^-?\d+$/.test(source) && !Number.isSafeInteger(value) ? BigInt(source) : value));
const print = (value) => JSON.stringify(value, (key, one) => (typeof one === 'bigint' ? JSON.rawJSON(String(one)) : one));

class Refusal extends Error {
    constructor(status, text) {
        super(text);
        this.status = status;
    }
}

function check(condition, text, status = 400) {
    if (!condition)
        throw new Refusal(status, text);
}

function members(body, required, optional = []) {
    for (const name of required)
        check(body?.[name] !== undefined, `Format error in JSON body: missing field \`${name}\``);
    for (const name of Object.keys(body))
        check(required.includes(name) || optional.includes(name), `Format error in JSON body: unknown field \`${name}\``);
}

// metadata."a.b" -> ['metadata', 'a.b']
function pathOf(text) {
    const parts = [];
    let rest = text;
    do {
        const match = /^(?:([\p{L}\p{N}_-]+)|"([^"\\]*)")(\.|$)/u.exec(rest);
        check(match, `Validation error: invalid json path ${text}`);
        parts.push(match[1] ?? match[2]);
        rest = rest.slice(match[0].length);
    } while (rest);
    return parts;
}

const valueAt = (payload, path) => pathOf(path).reduce((value, part) => (value && typeof value === 'object' && !Array.isArray(value) ? value[part] : undefined), payload);
const each = (value) => (Array.isArray(value) ? value : [value]);

function meets(range, given) {
    const value = Number(given);
    return ['number', 'bigint'].includes(typeof given) && (range.gt === undefined || value > range.gt) && (range.gte === undefined || value >= range.gte)
        && (range.lt === undefined || value < range.lt) && (range.lte === undefined || value <= range.lte);
}

function holds(condition, payload, id) {
    if (condition.must || condition.should || condition.must_not)
        return passes(condition, payload, id);
    if (condition.is_empty) {
        members(condition, ['is_empty']);
        const value = valueAt(payload, condition.is_empty.key);
        return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
    }
    if (condition.has_id) {
        members(condition, ['has_id']);
        check(condition.has_id.every((one) => uuid.test(one)), 'Format error in JSON body: has_id takes point ids');
        return condition.has_id.includes(id);
    }
    members(condition, ['key'], ['match', 'range']);
    const values = each(valueAt(payload, condition.key));
    if (condition.range) {
        members(condition.range, [], ['gt', 'gte', 'lt', 'lte']);
        return values.some((value) => meets(condition.range, value));
    }
    members(condition.match, [], ['value', 'any']);
    if (condition.match.any) {
        check(new Set(condition.match.any.map((one) => typeof one)).size === 1, 'Format error in JSON body: data did not match any variant of untagged enum AnyVariants');
        return values.some((value) => condition.match.any.includes(value));
    }
    check(['string', 'boolean'].includes(typeof condition.match.value) || Number.isInteger(condition.match.value), 'Format error in JSON body: match takes no float');
    return values.some((value) => value === condition.match.value);
}

function passes(filter, payload, id) {
    members(filter, [], ['must', 'should', 'must_not']);
    return (filter.must ?? []).every((one) => holds(one, payload, id)) && (!filter.should || filter.should.some((one) => holds(one, payload, id)))
        && !(filter.must_not ?? []).some((one) => holds(one, payload, id));
}

function shown(point, { with_payload: wanted = false, with_vector: withVector = false }) {
    const payload = wanted === true ? point.payload : Array.isArray(wanted) ? Object.fromEntries(Object.entries(point.payload).filter(([key]) => wanted.includes(key))) : undefined;
    return { id: point.id, ...(payload && { payload }), ...(withVector && { vector: point.vector }) };
}

function unit(vector) {
    const length = Math.hypot(...vector);
    return vector.map((x) => Math.fround(length < Number.EPSILON ? x : x / length));
}

function search(collection, vector, body) {
    check(vector.length === collection.size, `Wrong input: Vector dimension error: expected dim: ${collection.size}, got ${vector.length}`);
    const query = unit(vector);
    return [...collection.points.values()].filter((point) => !body.filter || passes(body.filter, point.payload, point.id))
        .map((point) => ({ version: 0, score: point.vector.reduce((sum, x, k) => sum + x * query[k], 0), ...shown(point, body) }))
        .sort((a, b) => b.score - a.score).slice(0, body.limit ?? 10);
}

const verbs = {
    'PUT /points': ({ points }, collection, body) => {
        members(body, ['points']);
        for (const point of points) {
            members(point, ['id', 'vector', 'payload']);
            check(uuid.test(point.id), `Format error in JSON body: value ${point.id} is not a valid point ID`);
            check(point.vector.length === collection.size, `Wrong input: Vector dimension error: expected dim: ${collection.size}, got ${point.vector.length}`);
        }
        for (const { id, vector, payload } of points)
            collection.points.set(id, { id, vector: unit(vector), payload });
        return { operation_id: 1, status: 'completed' };
    },
    'POST /points': ({ ids }, collection, body) => {
        members(body, ['ids'], ['with_payload', 'with_vector']);
        return [...new Set(ids)].filter((id) => collection.points.has(id)).map((id) => shown(collection.points.get(id), body));
    },
    'POST /points/query': ({ query }, collection, body) => {
        members(body, ['query'], ['filter', 'limit', 'with_payload', 'with_vector', 'params', 'score_threshold']);
        return { points: search(collection, query, body) };
    },
    'POST /points/search': ({ vector }, collection, body) => {
        members(body, ['vector', 'limit'], ['filter', 'with_payload', 'with_vector', 'params', 'score_threshold']);
        return search(collection, vector, body);
    },
    'POST /points/scroll': ({ limit = 10, offset, filter }, collection, body) => {
        members(body, [], ['limit', 'offset', 'filter', 'with_payload', 'with_vector']);
        const rest = [...collection.points.values()].sort((a, b) => (a.id < b.id ? -1 : 1)).filter((point) => (!offset || point.id >= offset) && (!filter || passes(filter, point.payload, point.id)));
        return { points: rest.slice(0, limit).map((point) => shown(point, { with_payload: true, ...body })), next_page_offset: rest[limit]?.id ?? null };
    },
    'POST /points/count': (_, collection, body) => {
        members(body, [], ['exact', 'filter']);
        return { count: collection.points.size };
    },
    'POST /points/delete': ({ points }, collection, body) => {
        members(body, ['points']);
        points.forEach((id) => collection.points.delete(id));
        return { operation_id: 2, status: 'completed' };
    },
    'PUT /index': (_, collection, body) => {
        members(body, ['field_name', 'field_schema']);
        pathOf(body.field_name);
        return { operation_id: 3, status: 'completed' };
    },
};

function onCollection(method, name, collections, body) {
    const collection = collections.get(name);
    if (method === 'PUT') {
        check(!collection, `Wrong input: Collection \`${name}\` already exists!`, 409);
        check(/^[^<>:"/\\|?*\0]{1,255}$/.test(name), 'Validation error: collection name cannot contain these characters');
        members(body, ['vectors']);
        members(body.vectors, ['size', 'distance']);
        collections.set(name, { size: body.vectors.size, distance: body.vectors.distance, points: new Map() });
        return true;
    }
    if (method === 'DELETE')
        return collections.delete(name);
    check(collection, `Not found: Collection \`${name}\` doesn't exist!`, 404);
    return { status: 'green', points_count: collection.points.size, config: { params: { vectors: { size: collection.size, distance: collection.distance } } } };
}

// options: port (0: any), key (asked for in `api-key`), unknown (paths answered 404 as older servers do), forward (method, path, text) -> reply or null.
export async function startQdrantDouble(t, { port = 0, key, unknown = [], forward } = {}) {
    const collections = new Map(), journal = [];

    function answer(method, path, body, headers) {
        check(!key || headers['api-key'] === key, 'Must provide an API key or an Authorization bearer token', 401);
        if (path === '/collections')
            return { collections: [...collections.keys()].map((name) => ({ name })) };
        const [, name, verb] = /^\/collections\/([^/]+)(\/.*)?$/.exec(path) ?? [];
        check(name, 'Not found', 404);
        if (!verb)
            return onCollection(method, decodeURIComponent(name), collections, body);
        check(verbs[`${method} ${verb}`] && !unknown.includes(verb), 'Not found', 404);
        const collection = collections.get(decodeURIComponent(name));
        check(collection, `Not found: Collection \`${name}\` doesn't exist!`, 404);
        return verbs[`${method} ${verb}`](body, collection, body);
    }

    const server = http.createServer(async (req, res) => {
        let text = '';
        for await (const piece of req.setEncoding('utf8'))
            text += piece;
        const { pathname, search: query } = new URL(req.url, 'http://x');
        journal.push({ method: req.method, path: pathname, query, body: text && parse(text), headers: req.headers });
        const say = (status, value) => res.writeHead(status, { 'content-type': 'application/json' }).end(print(value));
        try {
            const forwarded = await forward?.(req.method, req.url, text);
            if (forwarded)
                return say(forwarded.status, forwarded.body);
            say(200, { result: answer(req.method, pathname, text ? parse(text) : undefined, req.headers), status: 'ok', time: 0.001 });
        } catch (error) {
            say(error.status ?? 500, { status: { error: error.message }, time: 0 });
        }
    });
    await new Promise((done) => server.listen(port, '127.0.0.1', done));
    const stop = () => new Promise((done) => { server.close(done); server.closeAllConnections(); });
    t.after(stop);
    const url = `http://127.0.0.1:${server.address().port}`;
    return { url, provider: 'qdrant', config: { url, ...(key && { apiKey: key }) }, collections, journal, stop };
}
