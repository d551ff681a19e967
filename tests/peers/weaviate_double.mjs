// A double of Weaviate's REST and GraphQL interfaces, as their references (docs.weaviate.io) describe them: classes, batches, the cursor over objects,
// nearVector, where, Aggregate. Strict: names, properties, at most 10,000 results.
import { check, dot, members, pick, serve, uuid } from './rest_double.mjs';

const most = 10_000;

// A query of GraphQL as a tree: {name: {args, fields}}. Words without quotes are operators.
function parse(text) {
    const tokens = text.match(/[A-Za-z_]\w*|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[^\s,]/g);
    const take = (token) => check(tokens.shift() === token, `Syntax Error: ${token} is missing`);
    const until = (end, read) => {
        const all = [];
        while (tokens[0] !== end)
            all.push(read());
        take(end);
        return all;
    };
    const pair = () => {
        const name = tokens.shift();
        take(':');
        return [name, value()];
    };
    function value() {
        const token = tokens.shift();
        if (token === '[')
            return until(']', value);
        return token === '{' ? Object.fromEntries(until('}', pair)) : /^\w+$/.test(token) && !/^\d/.test(token) ? token : JSON.parse(token);
    }
    const selection = () => (take('{'), Object.fromEntries(until('}', () => {
        const name = tokens.shift();
        const args = tokens[0] === '(' ? (take('('), Object.fromEntries(until(')', pair))) : {};
        return [name, { args, fields: tokens[0] === '{' ? selection() : {} }];
    })));
    const tree = selection();
    check(tokens.length === 0, 'Syntax Error');
    return tree;
}

function passes(where, object) {
    if (where.operator === 'And') {
        members(where, ['operator', 'operands']);
        return where.operands.every((one) => passes(one, object));
    }
    const values = where.valueText ?? where.valueTextArray;
    check(where.operator === 'ContainsAny' && where.path.length === 1 && Array.isArray(values), `invalid where: ${JSON.stringify(where)}`);
    check(object.class.filterable.includes(where.path[0]), `property ${where.path[0]} is not filterable`);
    return object.properties[where.path[0]].some((value) => values.includes(value));
}

function get(one, { args, fields: { _additional: extra, ...properties } }) {
    members(args, ['limit'], ['nearVector', 'where']);
    check(args.limit <= most, 'limit');
    const near = args.nearVector?.vector, names = Object.keys(properties);
    check(names.every((name) => one.properties.some((property) => property.name === name)), 'Cannot query field');
    let found = [...one.objects.values()].filter((object) => !args.where || passes(args.where, { ...object, class: one }));
    if (near) {
        check(found.every((object) => object.vector.length === near.length), `vector lengths don't match: ${near.length}`);
        found = found.map((object) => ({ ...object, distance: -dot(object.vector, near) })).sort((a, b) => a.distance - b.distance);
    }
    return found.slice(0, args.limit).map((object) => ({ ...pick(object.properties, names), ...(extra && { _additional: pick(object, Object.keys(extra.fields)) }) }));
}

function graphql(classes, { query }) {
    const [[verb, { fields }]] = Object.entries(parse(query)), [[name, wanted]] = Object.entries(fields);
    check(classes.has(name), `Cannot query field "${name}"`);
    if (verb === 'Get')
        return { Get: { [name]: get(classes.get(name), wanted) } };
    check(verb === 'Aggregate' && JSON.stringify(wanted) === '{"args":{},"fields":{"meta":{"args":{},"fields":{"count":{"args":{},"fields":{}}}}}}', 'Syntax Error');
    return { Aggregate: { [name]: [{ meta: { count: classes.get(name).objects.size } }] } };
}

function makeClass(classes, body) {
    members(body, ['class', 'description', 'vectorizer', 'vectorIndexType', 'vectorIndexConfig', 'properties']);
    check(/^[A-Z][_0-9A-Za-z]{0,254}$/.test(body.class), `'${body.class}' is not a valid class name`, 422);
    check(!classes.has(body.class), `class name ${body.class} already exists`, 422);
    for (const property of body.properties) {
        members(property, ['name', 'dataType'], ['tokenization', 'indexFilterable', 'indexSearchable']);
        check(['text', 'text[]'].includes(property.dataType[0]) || property.tokenization === undefined, 'Tokenization is not allowed for this data type', 422);
    }
    classes.set(body.class, { ...body, filterable: body.properties.filter((property) => property.indexFilterable).map((property) => property.name), objects: new Map() });
    return body;
}

function shown(one) {
    const { objects, filterable, ...rest } = one;
    return rest;
}

function putObject(classes, object) {
    members(object, ['class', 'id', 'vector', 'properties']);
    const one = classes.get(object.class);
    check(one, `class ${object.class} not found`);
    check(uuid.test(object.id), `invalid UUID ${object.id}`);
    members(object.properties, one.properties.map((property) => property.name));
    const [other] = one.objects.values();
    if (other && other.vector.length !== object.vector.length)
        return { ...object, result: { status: 'FAILED', errors: { error: [{ message: `new node has a vector with length ${object.vector.length}. Existing nodes have vectors with length ${other.vector.length}` }] } } };
    one.objects.set(object.id, { ...object, vector: object.vector.map(Math.fround) });
    return { ...object, result: { status: 'SUCCESS' } };
}

function deleteObjects(classes, body) {
    members(body, ['match'], ['output', 'dryRun']);
    members(body.match, ['class', 'where']);
    members(body.match.where, ['path', 'operator', 'valueTextArray']);
    const one = classes.get(body.match.class);
    const gone = [...one.objects.values()].filter((object) => passes(body.match.where, { ...object, class: one })).slice(0, most);
    gone.forEach((object) => one.objects.delete(object.id));
    return { match: body.match, output: body.output, results: { matches: gone.length, successful: gone.length, failed: 0, objects: null } };
}

function listObjects(classes, query) {
    const one = classes.get(query.get('class')), limit = Number(query.get('limit')), after = query.get('after');
    check(one && after !== null && limit >= 1 && limit <= most, 'invalid list', 422);
    const objects = [...one.objects.values()].sort((a, b) => (a.id < b.id ? -1 : 1)).filter((object) => object.id > after).slice(0, limit);
    return { objects: objects.map((object) => pick(object, ['class', 'id', 'properties'])), totalResults: objects.length, deprecations: null };
}

export async function startWeaviateDouble(t, { key } = {}) {
    const classes = new Map();
    const server = await serve(t, ({ method, path, query, body, headers }) => {
        check(!key || headers.authorization === `Bearer ${key}`, 'anonymous access not enabled, please provide an auth scheme', 401);
        const [, name] = /^\/v1\/schema\/(\w+)$/.exec(path) ?? [];
        if (name) {
            if (method === 'DELETE')
                return { deleted: classes.delete(name) };
            check(classes.has(name), '', 404);
            return shown(classes.get(name));
        }
        const handler = {
            'GET /v1/meta': () => ({ hostname: 'http://[::]:8080', version: '1.30.0', modules: {} }),
            'GET /v1/schema': () => ({ classes: [...classes.values()].map(shown) }),
            'POST /v1/schema': () => makeClass(classes, body),
            'POST /v1/graphql': () => ({ data: graphql(classes, body) }),
            'GET /v1/objects': () => listObjects(classes, query),
            'POST /v1/batch/objects': () => body.objects.map((object) => putObject(classes, object)),
            'DELETE /v1/batch/objects': () => deleteObjects(classes, body),
        }[`${method} ${path}`];
        check(handler, 'path not found', 404);
        return handler();
    }, { refuse: (error) => [error.status ?? 500, { error: [{ message: error.message }] }] });
    return Object.assign(server, { classes, provider: 'weaviate', config: { url: server.url, ...(key && { apiKey: key }) } });
}
