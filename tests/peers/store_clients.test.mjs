// The official clients of Pinecone, Astra DB and Weaviate against the doubles that Hearth is held against: a double that its own client does not understand, or that
// refuses what its own client sends, is wrong. They also read what Hearth has stored.
import { DataAPIClient } from '@datastax/astra-db-ts';
import { Pinecone } from '@pinecone-database/pinecone';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import clients from 'weaviate-ts-client';
import { startAstraDouble } from './astra_double.mjs';
import { startPineconeDouble } from './pinecone_double.mjs';
import { base, registered } from './stores.mjs';
import { startWeaviateDouble } from './weaviate_double.mjs';

const weaviate = clients.default ?? clients;
const near = (got, wanted) => assert.ok(Math.abs(got - wanted) < 1e-6, `${got}, not ${wanted}`);

// Hearth stores one record there.
async function storeOne(t, store) {
    const { dev } = await registered(t, store);
    const reply = await dev('POST', `${base}/upsert`, { vectors: [{ id: 'note', vector: [3, 4], metadata: { page: 1 } }], workspaceId: 'W' });
    assert.equal(reply.status, 200, reply.text);
}

test("Pinecone's client and the double understand each other", async (t) => {
    const { url } = await startPineconeDouble(t, { dimension: 2 });
    const index = new Pinecone({ apiKey: 'pc-s3cret' }).index('any', url).namespace('ns');
    await index.upsert([{ id: 'a', values: [0.6, 0.8], metadata: { tags: ['x'], n: 1 } }, { id: 'b', values: [1, 0], metadata: { tags: ['y'] } }]);
    const { matches } = await index.query({ vector: [0, 1], topK: 3, includeMetadata: true, includeValues: true, filter: { $and: [{ tags: { $in: ['x'] } }] } });
    assert.deepEqual(matches.map(({ id, metadata }) => [id, metadata]), [['a', { tags: ['x'], n: 1 }]]);
    near(matches[0].score, 0.8);
    near(matches[0].values[1], 0.8);
    const page = await index.listPaginated({ limit: 1 });
    assert.deepEqual(page.vectors.map((one) => one.id), ['a']);
    const rest = await index.listPaginated({ limit: 1, paginationToken: page.pagination.next });
    assert.deepEqual(rest.vectors.map((one) => one.id), ['b']);
    assert.deepEqual((await index.fetch(['a'])).records.a.metadata, { tags: ['x'], n: 1 });
    const { dimension, namespaces } = await index.describeIndexStats();
    assert.deepEqual([dimension, namespaces.ns.recordCount], [2, 2]);
    await index.deleteMany(['a']);
    assert.deepEqual((await index.listPaginated()).vectors.map((one) => one.id), ['b']);
    await index.deleteAll();
    assert.equal((await index.describeIndexStats()).totalRecordCount, 0);
});

test("Pinecone's client reads what Hearth has stored", async (t) => {
    const store = await startPineconeDouble(t, { dimension: 2 });
    await storeOne(t, store);
    const index = new Pinecone({ apiKey: 'pc-s3cret' }).index('any', store.url);
    const { namespaces } = await index.describeIndexStats();
    const [match] = (await index.namespace(Object.keys(namespaces)[0]).query({ vector: [3, 4], topK: 1, includeMetadata: true })).matches;
    near(match.score, 1);
    assert.deepEqual([match.metadata.hearth_id, JSON.parse(match.metadata.hearth_json)], ['note', { page: 1 }]);
});

const allOf = (collection, filter, options) => collection.find(filter, options).toArray();

test("Astra's client and the double understand each other", async (t) => {
    const { url } = await startAstraDouble(t);
    const db = new DataAPIClient('AstraCS:s3cret').db(url);
    const notes = await db.createCollection('notes', { vector: { dimension: 2, metric: 'cosine' }, indexing: { allow: ['space', 'tags'] } });
    assert.deepEqual(await db.listCollections({ nameOnly: true }), ['notes']);
    const { insertedCount } = await notes.insertMany([{ _id: 'a', $vector: [0.6, 0.8], space: 'n', tags: ['x'] }, { _id: 'b', $vector: [1, 0], space: 'n', tags: ['y'] }], { ordered: false });
    assert.equal(insertedCount, 2);
    const found = await allOf(notes, { space: 'n' }, { sort: { $vector: [0, 1] }, limit: 2, includeSimilarity: true, projection: { space: 1 } });
    assert.deepEqual(found.map(({ _id, space }) => [_id, space]), [['a', 'n'], ['b', 'n']]);
    near(found[0].$similarity, 0.9);
    assert.deepEqual((await allOf(notes, { tags: { $all: ['y'] } }, { projection: { space: 1 } })).map((one) => one._id), ['b']);
    assert.equal(await notes.countDocuments({ space: 'n' }, 1000), 2);
    await notes.findOneAndReplace({ _id: 'c' }, { _id: 'c', $vector: [1, 1], space: 'n', tags: [] }, { upsert: true, projection: { _id: 1 } });
    assert.equal((await notes.findOne({ _id: 'c' }))._id, 'c');
    assert.equal((await notes.deleteMany({ _id: { $in: ['a', 'c'] } })).deletedCount, 2);
    assert.equal((await notes.deleteOne({ _id: 'b' })).deletedCount, 1);
});

test("Astra's client reads what Hearth has stored", async (t) => {
    const store = await startAstraDouble(t);
    await storeOne(t, store);
    const notes = new DataAPIClient('AstraCS:s3cret').db(store.url).collection('hearth_vectors_2');
    const [note] = await allOf(notes, {}, { sort: { $vector: [3, 4] }, limit: 1, includeSimilarity: true });
    near(note.$similarity, 1);
    assert.deepEqual([note.hearth_id, JSON.parse(note.hearth_json)], ['note', { page: 1 }]);
});

const id = '00000000-0000-4000-8000-000000000001';
const connect = ({ url }, key) => weaviate.client({ scheme: 'http', host: new URL(url).host, apiKey: new weaviate.ApiKey(key) });
const tagged = { operator: 'ContainsAny', path: ['tags'], valueTextArray: ['x'] };

test("Weaviate's client and the double understand each other", async (t) => {
    const client = connect(await startWeaviateDouble(t, { key: 'k' }), 'k');
    assert.equal((await client.misc.metaGetter().do()).version, '1.30.0');
    const properties = [{ name: 'title', dataType: ['text'] }, { name: 'tags', dataType: ['text[]'], tokenization: 'field', indexFilterable: true }];
    await client.schema.classCreator().withClass({ class: 'Notes', description: 'of a test', vectorizer: 'none', vectorIndexType: 'hnsw', vectorIndexConfig: { distance: 'dot' }, properties }).do();
    assert.deepEqual((await client.schema.getter().do()).classes.map((one) => one.class), ['Notes']);
    const [{ result }] = await client.batch.objectsBatcher().withObject({ class: 'Notes', id, vector: [0.6, 0.8], properties: { title: 'a', tags: ['x'] } }).do();
    assert.equal(result.status, 'SUCCESS');
    const { data } = await client.graphql.get().withClassName('Notes').withFields('title _additional { distance id }').withNearVector({ vector: [0, 1] }).withWhere(tagged).withLimit(3).do();
    assert.equal(data.Get.Notes[0].title, 'a');
    near(data.Get.Notes[0]._additional.distance, -0.8);
    const counted = await client.graphql.aggregate().withClassName('Notes').withFields('meta { count }').do();
    assert.equal(counted.data.Aggregate.Notes[0].meta.count, 1);
    const listed = await client.data.getter().withClassName('Notes').withLimit(10).withAfter('00000000-0000-0000-0000-000000000000').do();
    assert.deepEqual(listed.objects.map((one) => one.id), [id]);
    const removed = await client.batch.objectsBatchDeleter().withClassName('Notes').withWhere(tagged).withOutput('minimal').do();
    assert.equal(removed.results.successful, 1);
    await client.schema.classDeleter().withClassName('Notes').do();
    assert.deepEqual((await client.schema.getter().do()).classes, []);
});

test("Weaviate's client reads what Hearth has stored", async (t) => {
    const store = await startWeaviateDouble(t, { key: 'w-s3cret' });
    await storeOne(t, store);
    const client = connect(store, 'w-s3cret');
    const [{ class: name }] = (await client.schema.getter().do()).classes;
    const { data } = await client.graphql.get().withClassName(name).withFields('hearth_id hearth_json _additional { distance }').withNearVector({ vector: [0.6, 0.8] }).withLimit(1).do();
    const [note] = data.Get[name];
    near(note._additional.distance, -1);
    assert.deepEqual([note.hearth_id, JSON.parse(note.hearth_json)], ['note', { page: 1 }]);
});
