// Tables with columns of their own that an app's configuration declares (docs/local-apps.md).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, backendFile, sqlite } from './kit.mjs';
import { faceKeys, openSocket } from './realtime.mjs';

const columns = {
    id: { type: 'uuid', key: true, default: 'gen_random_uuid()' },
    user_id: { type: 'uuid', default: 'auth.uid()' },
    name: { type: 'text', nullable: false },
    done: { type: 'bool', nullable: false, default: false },
    level: { type: 'text', default: 'low', check: { in: ['low', 'high'] } },
};
const withSchema = (schema) => ({ name: 'shop', config: { backend: { schema } } });

test('a declared table is there when the app is registered, and its changes reach subscribers as its own columns', async (t) => {
    const h = await startHearth({ t, settings: { 'backend.poll_ms': 20 } });
    await admin(h, 'POST', '/api/apps', withSchema({ orders: { columns } }), 201);
    const socket = await openSocket(h, { key: (await faceKeys(h)).secret });
    t.after(() => socket.end());
    const topic = 'realtime:orders';
    const { status } = await socket.join(topic, { postgres_changes: [{ event: '*', schema: 'public', table: 'orders' }] });
    assert.equal(status, 'ok');
    const id = '6fa459ea-ee8a-4ca4-894e-db77e160355e';
    await sqlite(backendFile(h), `INSERT INTO orders (id, name) VALUES ('${id}', 'first')`);
    const [, , , , { data }] = await socket.next(topic, 'postgres_changes');
    assert.equal(data.type, 'INSERT');
    assert.equal(data.table, 'orders');
    assert.deepEqual(data.record, { id, user_id: null, name: 'first', done: false, level: 'low' });
    await assert.rejects(sqlite(backendFile(h), "INSERT INTO orders (name, level) VALUES ('second', 'other')"), /CHECK/);
});

test('a table is declared again with further columns, never with other types', async (t) => {
    const h = await startHearth({ t });
    await admin(h, 'POST', '/api/apps', withSchema({ orders: { columns } }), 201);
    await admin(h, 'POST', '/api/apps', withSchema({ orders: { columns: { ...columns, note: { type: 'text' } } } }), 201);
    const { status, body } = await h.socket('POST', '/api/apps', withSchema({ orders: { columns: { ...columns, name: { type: 'int4' } } } }));
    assert.equal(status, 409);
    assert.equal(body.code, 'TABLE_DIFFERS');
    const bad = await h.socket('POST', '/api/apps', withSchema({ orders: { columns: { id: { type: 'money' } } } }));
    assert.equal(bad.status, 400);
    assert.equal(bad.body.errors[0].field, 'config.backend.schema.orders.columns.id.type');
});
