// A double of the Data API of Astra DB, as its reference (docs.datastax.com) describes it: commands, 20 documents a page, 100 a list of ids, 1,000 of a vector search
// and of a count, 10 collections, errors with status 200, filters on indexed fields only, no zero vectors.
import { check, cosine, members, pick, serve } from './rest_double.mjs';

const page = 20, most = 1000;

class Collection {
    constructor(options) {
        this.options = options;
        this.documents = new Map();
    }

    indexes(name) {
        return name === '_id' || !this.options.indexing || this.options.indexing.allow.includes(name);
    }

    // A vector is a list of numbers or float32 in base64, most significant byte first.
    check(document) {
        document.$vector = vectorOf(document.$vector);
        check(typeof document._id === 'string', 'a document needs an _id');
        const { dimension } = this.options.vector ?? {};
        if (dimension) {
            check(document.$vector.length === dimension, `Length of vector parameter different from declared '$vector' dimension: root cause = expected ${dimension}`, 200, 'VECTOR_SIZE_MISMATCH');
            check(document.$vector.some((x) => x !== 0), 'Zero vectors cannot be indexed with cosine similarity', 200, 'INVALID_VECTOR');
        }
        for (const [name, value] of Object.entries(document)) {
            check(/^(_id|\$vector|[A-Za-z_]\w{0,99})$/.test(name), `Document field name invalid: ${name}`);
            check(!this.indexes(name) || typeof value !== 'string' || Buffer.byteLength(value) <= 8000, `Document size limitation violated: indexed String value (field '${name}')`, 200, 'SHRED_DOC_LIMIT_VIOLATION');
            check(!Array.isArray(value) || name === '$vector' || value.length <= 1000, `too many elements in ${name}`, 200, 'SHRED_DOC_LIMIT_VIOLATION');
        }
    }

    passes(filter, document) {
        return Object.entries(filter).every(([name, condition]) => {
            if (name === '$and' || name === '$or')
                return condition[name === '$and' ? 'every' : 'some']((one) => this.passes(one, document));
            check(this.indexes(name), `The filter path ('${name}') is not indexed`, 200, 'UNINDEXED_FILTER_PATH');
            if (typeof condition === 'string')
                return document[name] === condition;
            if (condition.$all)
                return Array.isArray(document[name]) && condition.$all.every((one) => document[name].includes(one));
            members(condition, ['$in']);
            check(name === '_id' && condition.$in.length <= 100, '$in operator must have at most 100 values', 200, 'INVALID_FILTER_EXPRESSION');
            return condition.$in.includes(document[name]);
        });
    }

    found(filter) {
        return [...this.documents.values()].filter((document) => this.passes(filter ?? {}, document));
    }
}

function vectorOf(value) {
    const bytes = value?.$binary && Buffer.from(value.$binary, 'base64');
    return bytes ? Array.from({ length: bytes.length / 4 }, (_, k) => bytes.readFloatBE(4 * k)) : value;
}

const project = (document, projection) => (projection ? pick(document, ['_id', ...Object.keys(projection)]) : document);

const commands = {
    findOne: ({ filter, ...more }, collection) => {
        members(more, [], ['options']);
        return { data: { document: collection.found(filter)[0] ?? null } };
    },
    find: ({ filter, sort, projection, options = {}, ...more }, collection) => {
        members(more, []);
        members(options, [], ['limit', 'includeSimilarity', 'pageState']);
        const found = collection.found(filter);
        if (sort) {
            members(sort, ['$vector']);
            const wanted = vectorOf(sort.$vector);
            check(options.limit <= most && wanted.some((x) => x !== 0) && wanted.length === collection.options.vector.dimension, 'invalid vector search', 200, 'VECTOR_SIZE_MISMATCH');
            const scored = found.map((document) => ({ ...document, $similarity: (1 + cosine(document.$vector, wanted)) / 2 })).sort((a, b) => b.$similarity - a.$similarity);
            return { data: { documents: scored.slice(0, options.limit).map((one) => project(one, projection && { ...projection, ...(options.includeSimilarity && { $similarity: 1 }) })), nextPageState: null } };
        }
        const from = Number(options.pageState ?? 0);
        return { data: { documents: found.slice(from, from + page).map((one) => project(one, projection)), nextPageState: found.length > from + page ? String(from + page) : null } };
    },
    countDocuments: ({ filter, ...more }, collection) => {
        members(more, []);
        const { length } = collection.found(filter);
        return { status: { count: Math.min(length, most), ...(length > most && { moreData: true }) } };
    },
    insertMany: ({ documents, options, ...more }, collection) => {
        members(more, []);
        members(options, ['ordered', 'returnDocumentResponses']);
        check(documents.length <= 100, 'amount of documents to insert is over the max limit', 200, 'COMMAND_FIELD_INVALID');
        documents.forEach((document) => collection.check(document));
        const errors = [];
        const documentResponses = documents.map((document) => {
            if (collection.documents.has(document._id))
                return { _id: document._id, status: 'ERROR', errorsIdx: errors.push({ message: 'Document already exists', errorCode: 'DOCUMENT_ALREADY_EXISTS' }) - 1 };
            collection.documents.set(document._id, document);
            return { _id: document._id, status: 'OK' };
        });
        return { status: { documentResponses }, ...(errors.length && { errors }) };
    },
    findOneAndReplace: ({ filter, replacement, options, projection, ...more }, collection) => {
        members(more, []);
        check(options.upsert && filter._id === replacement._id, 'invalid replacement');
        collection.check(replacement);
        const before = collection.documents.get(filter._id);
        collection.documents.set(filter._id, replacement);
        return { data: { document: before ? project(before, projection) : null }, status: before ? { matchedCount: 1, modifiedCount: 1 } : { matchedCount: 0, modifiedCount: 0, upsertedId: filter._id } };
    },
    deleteMany: ({ filter, ...more }, collection) => {
        members(more, []);
        const found = collection.found(filter);
        found.slice(0, page).forEach((document) => collection.documents.delete(document._id));
        return { status: { deletedCount: Math.min(found.length, page), ...(found.length > page && { moreData: true }) } };
    },
    deleteOne: ({ filter, ...more }, collection) => {
        members(more, []);
        const [one] = collection.found(filter);
        return { status: { deletedCount: one && collection.documents.delete(one._id) ? 1 : 0 } };
    },
};

const ofKeyspace = {
    findCollections: (_, collections) => ({ status: { collections: [...collections.keys()] } }),
    createCollection: ({ name, options, ...more }, collections) => {
        members(more, []);
        members(options, [], ['vector', 'indexing']);
        check(/^[A-Za-z]\w{0,47}$/.test(name), `invalid name ${name}`, 200, 'INVALID_CREATE_COLLECTION_OPTIONS');
        const there = collections.get(name);
        check(!there || JSON.stringify(there.options) === JSON.stringify(options), 'Collection already exists with different settings', 200, 'EXISTING_COLLECTION_DIFFERENT_SETTINGS');
        check(there || collections.size < 10, 'Too many collections', 200, 'TOO_MANY_COLLECTIONS');
        collections.set(name, there ?? new Collection(options));
        return { status: { ok: 1 } };
    },
};

export async function startAstraDouble(t, { token = 'AstraCS:s3cret', keyspace = 'default_keyspace' } = {}) {
    const collections = new Map();
    const server = await serve(t, ({ method, path, body, headers }) => {
        check(method === 'POST', 'not found', 404);
        check(headers.token === token, 'Role unauthorized for operation: missing or invalid token', 401, 'UNAUTHENTICATED_REQUEST');
        const [, space, name] = /^\/api\/json\/v1\/(\w+)(?:\/(\w+))?$/.exec(path) ?? [];
        check(space === keyspace, `Unknown keyspace ${space}`, 200, 'KEYSPACE_DOES_NOT_EXIST');
        const [[command, given], ...others] = Object.entries(body);
        check(others.length === 0 && (name ? commands : ofKeyspace)[command], `No command ${command}`, 200, 'COMMAND_UNKNOWN');
        if (!name)
            return ofKeyspace[command](given, collections);
        check(collections.has(name), `Collection does not exist, collection name: ${name}`, 200, 'COLLECTION_NOT_EXIST');
        return commands[command](given, collections.get(name));
    }, { refuse: (error) => [error.code ? error.status : error.status ?? 500, { errors: [{ message: error.message, errorCode: error.code ?? 'INVALID_REQUEST' }] }] });
    return Object.assign(server, { collections, provider: 'astra', config: { url: server.url, token, ...(keyspace !== 'default_keyspace' && { keyspace }) } });
}
