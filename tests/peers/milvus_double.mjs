// A double of Milvus' REST interface v2, as its reference (milvus.io/api-reference/restful) describes it, strict where the server is: schemas, lengths of
// VarChar, capacities, the window of 16,384 rows, a limit of 100 when none is given.
import { check, cosine, members, pick, serve } from './rest_double.mjs';

const window = 16384;

function parameterOf(field, name) {
    return Number(field.elementTypeParams?.[name]);
}

function checkValue(field, value) {
    const { fieldName: name, dataType: type } = field;
    check(value !== undefined, `field ${name} is missing`);
    if (type === 'VarChar')
        check(typeof value === 'string' && Buffer.byteLength(value) <= parameterOf(field, 'max_length'), `length of varchar field ${name} exceeds max length`);
    if (type === 'FloatVector')
        check(Array.isArray(value) && value.length === parameterOf(field, 'dim') && value.every(Number.isFinite), `the dim (${value.length}) of field ${name} is not its dim`);
    if (type === 'Double')
        check(Number.isFinite(value), `field ${name} is no double`);
    if (type === 'Array')
        check(Array.isArray(value) && value.length <= parameterOf(field, 'max_capacity') && value.every((one) => typeof one === 'string' && one.length <= parameterOf(field, 'max_length')), `field ${name} is no array of VarChar`);
}

// Filter expressions, as far as they are used.
function passes(filter, row) {
    return filter === '' || filter.split(' and ').every((part) => {
        let match;
        if ((match = /^id in (\[.*\])$/.exec(part)))
            return JSON.parse(match[1]).includes(row.id);
        if ((match = /^id (>=|<) "([0-9a-g]*)"$/.exec(part)))
            return match[1] === '<' ? row.id < match[2] : row.id >= match[2];
        match = /^array_contains_any\(hearth_tokens, (\[.*\])\)$/.exec(part);
        check(match, `cannot parse expression: ${part}`);
        const wanted = JSON.parse(match[1]);
        return row.hearth_tokens.some((token) => wanted.includes(token));
    });
}

const verbs = {
    'collections/list': (body, collections) => {
        members(body, [], ['dbName']);
        return [...collections.keys()];
    },
    'collections/describe': (body, collections, collection) => {
        members(body, ['collectionName'], ['dbName']);
        const fields = collection.schema.fields.map((field, id) => ({
            id, name: field.fieldName, type: field.dataType, primaryKey: Boolean(field.isPrimary),
            params: Object.entries(field.elementTypeParams ?? {}).map(([key, value]) => ({ key, value })),
        }));
        return { collectionName: body.collectionName, fields, indexes: collection.indexParams.map((index) => pick(index, ['fieldName', 'indexName', 'metricType'])), load: 'LoadStateLoaded' };
    },
    'collections/create': (body, collections) => {
        members(body, ['collectionName', 'schema', 'indexParams', 'params'], ['dbName']);
        check(/^[A-Za-z_][A-Za-z0-9_]{0,254}$/.test(body.collectionName), 'Invalid collection name');
        check(!collections.has(body.collectionName), 'create duplicate collection with different parameters');
        members(body.schema, ['autoID', 'enableDynamicField', 'fields']);
        for (const field of body.schema.fields)
            members(field, ['fieldName', 'dataType'], ['isPrimary', 'elementDataType', 'elementTypeParams']);
        for (const index of body.indexParams)
            members(index, ['fieldName', 'metricType'], ['indexName', 'params']);
        check(body.params.consistencyLevel === 'Strong', 'consistencyLevel');
        collections.set(body.collectionName, { schema: body.schema, indexParams: body.indexParams, rows: new Map() });
        return {};
    },
    'collections/drop': (body, collections) => {
        members(body, ['collectionName'], ['dbName']);
        collections.delete(body.collectionName);
        return {};
    },
    'entities/upsert': (body, collections, collection) => {
        members(body, ['collectionName', 'data'], ['dbName']);
        for (const row of body.data) {
            members(row, collection.schema.fields.map((field) => field.fieldName));
            collection.schema.fields.forEach((field) => checkValue(field, row[field.fieldName]));
        }
        body.data.forEach((row) => collection.rows.set(row.id, { ...row, vector: row.vector.map(Math.fround) }));
        return { upsertCount: body.data.length, upsertIds: body.data.map((row) => row.id) };
    },
    'entities/delete': (body, collections, collection) => {
        members(body, ['collectionName', 'filter'], ['dbName']);
        check(body.filter, 'a filter is required');
        [...collection.rows.values()].filter((row) => passes(body.filter, row)).forEach((row) => collection.rows.delete(row.id));
        return {};
    },
    'entities/query': ({ filter, limit = 100, outputFields, ...more }, collections, collection) => {
        members(more, ['collectionName'], ['dbName']);
        check(limit <= window, `invalid max query result window, (offset+limit) should be in range [1, ${window}]`, 400, 65535);
        const rows = [...collection.rows.values()].filter((row) => passes(filter, row));
        if (outputFields.includes('count(*)'))
            return [{ 'count(*)': rows.length }];
        return rows.slice(0, limit).map((row) => pick(row, ['id', ...outputFields]));
    },
    'entities/search': ({ data, annsField, filter, limit = 100, outputFields, ...more }, collections, collection) => {
        members(more, ['collectionName'], ['dbName']);
        check(annsField === 'vector' && data.length === 1 && limit <= window, 'invalid search');
        const [vector] = data, { dim } = collection.schema.fields.find((field) => field.fieldName === 'vector').elementTypeParams;
        check(vector.length === Number(dim), 'vector dimension mismatch');
        return [...collection.rows.values()].filter((row) => passes(filter, row))
            .map((row) => ({ distance: cosine(row.vector, vector), ...pick(row, ['id', ...outputFields]) }))
            .sort((a, b) => b.distance - a.distance).slice(0, limit);
    },
};

export async function startMilvusDouble(t, { token, database } = {}) {
    const collections = new Map();
    const server = await serve(t, ({ method, path, body, headers }) => {
        const verb = path.replace(/^\/v2\/vectordb\//, '');
        check(method === 'POST' && verbs[verb], 'not found', 404);
        check(!token || headers.authorization === `Bearer ${token}`, 'auth check failure, please check api key is correct', 200, 1800);
        check(body.dbName === database, `database not found[database=${body.dbName}]`, 200, 800);
        const collection = collections.get(body.collectionName);
        check(!body.collectionName || collection || /create|drop/.test(verb), `can't find collection[database=default][collection=${body.collectionName}]`, 200, 100);
        return { code: 0, data: verbs[verb](body, collections, collection), cost: 0 };
    }, { refuse: (error) => [error.status === 404 ? 404 : error.status ? 200 : 500, { code: error.code ?? 1100, message: error.message }] });
    return Object.assign(server, { collections, provider: 'milvus', config: { url: server.url, ...(token && { token }), ...(database && { database }) } });
}
