// /rest/v1 of the face, driven by the official client of the hosted service, and compared, answer by answer, with the hosted service's own small server
// (@supabase/lite) over PostgreSQL. What differs is listed with its reason; anything else that differs, or no longer differs, fails.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coldHearth, startHearth } from '../api/harness.mjs';
import { postgresPrograms, startPostgres } from '../api/postgres_server.mjs';
import { faceKeys } from '../api/realtime.mjs';
import { assertDiffer } from './answers.mjs';
import { startLite } from './lite_server.mjs';
import { play } from './rest_script.mjs';

const skip = postgresPrograms ? false : 'no PostgreSQL is installed';

async function hearth(t, settings = {}) {
    const h = await startHearth({ t, settings });
    return { url: h.url, ...await faceKeys(h) };
}

async function database(t) {
    const pg = await startPostgres(t);
    const cold = coldHearth({ t });
    pg.psql((await cold.cli('backend', 'sql', { env: { HEARTH_BACKEND_KIND: 'postgres', HEARTH_BACKEND_URL: pg.url() } })).stdout);
    return pg;
}

// The roles of the hosted service, with the rule that the face has. lite makes the schema auth when it starts.
const roles = `CREATE ROLE anon NOLOGIN; CREATE ROLE authenticated NOLOGIN; CREATE ROLE service_role NOLOGIN BYPASSRLS;
    GRANT USAGE ON SCHEMA public TO anon, authenticated, service_role;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO authenticated, service_role;
    GRANT ALL ON svc_activities TO authenticated, service_role;
    ALTER TABLE svc_activities ENABLE ROW LEVEL SECURITY;`;
const policy = `GRANT USAGE ON SCHEMA auth TO authenticated, service_role;
    CREATE POLICY own ON svc_activities TO authenticated USING (user_id = auth.uid()) WITH CHECK (user_id = auth.uid())`;

async function lite(t) {
    const pg = await database(t);
    pg.psql(roles, 'root');
    const server = await startLite(t, pg);
    pg.psql(policy, 'root');
    return server;
}

const notServed = 'not served here, and said so', ownWords = 'the same error in our own words';
const guarded = 'the hosted service loads safeupdate, lite does not';
const grants = 'lite answers as if anon had been granted the table; here, as with the grants of the set-up, it has no right';
const onPostgres = { 'like of a uuid': ['message', 'the embedded backend names the type of the value unknown, the statement for PostgreSQL sends a text'] };

const ofLite = {
    'insert several with defaults': ['data', 'lite ignores missing=default; PostgREST inserts the default'],
    'csv': ['status data code message headers', notServed],
    'is true of a text': ['status code message', 'BAD_OPERATOR is 42883 here, 42804 there'],
    'not or': ['message', ownWords],
    'an unknown operator': ['message', ownWords],
    'an embedded table': ['code message', 'no table is embedded here, so none is looked for'],
    'full text search': ['status data code message headers', notServed],
    'update counts': ['headers', 'PostgREST tells the range of the rows of an update, lite leaves it out when it counts'],
    'what is undone': ['data count headers', 'lite keeps the rows of an update that it refuses as no single object; PostgREST undoes it'],
    'a user upserts another\'s row': ['message', 'PostgreSQL names the expression that failed'],
    'anonymous select': ['status data code message headers', grants],
    'anonymous insert': ['message', grants],
    'anonymous update': ['status code message headers', grants],
    'anonymous delete': ['status code message headers', grants],
    'a token of another key': ['message', ownWords],
    'rpc leaves the result': ['data', 'lite hands a jsonb argument to PostgreSQL as a text within JSON'],
    'rpc without arguments': ['message', ownWords],
    'rpc with an unknown argument': ['message', 'the names stand in the order in which they came, there in that of the alphabet'],
    'rpc by GET': ['data', 'the embedded backend publishes its tables; the database of lite has no publication'],
    'rpc publications': ['data', 'as above'],
    'update without a filter': ['status code message headers', guarded],
    'delete without a filter': ['status code message headers', guarded],
};

test('the embedded backend answers the official client as lite does over PostgreSQL, but for what is listed', { skip }, async (t) => {
    const [ours, theirs] = await Promise.all([hearth(t).then(play), lite(t).then(play)]);
    assert.equal(ours.size, theirs.size);
    assertDiffer(ours, theirs, ofLite);
});

test('the official client finds what it asked for', async (t) => {
    const answers = await play(await hearth(t));
    const ids = (name) => answers.get(name).data.map(({ id }) => Number(id[7]));
    const expected = { 'eq': [3], 'neq': [3, 4], 'gt and lte': [4], 'gte and lt': [4], 'in': [3, 4], 'in of nothing': [], 'not in': [3], 'is not null': [2], 'like': [1], 'ilike': [1], 'not like': [3, 4],
        'match of columns': [4], 'contains in an array': [], 'overlaps': [], 'contains in jsonb': [3], 'filter by a path': [3], 'filter by a path as JSON': [4], 'or': [3, 4], 'or with quotes and lists': [3, 4],
        'contains after a failure': [3], 'a user reads own rows': [2], 'another user reads none': [], 'what is undone': [], 'what remains': [1, 2, 3, 4, 9] };
    for (const [name, found] of Object.entries(expected))
        assert.deepEqual(ids(name).slice(0, found.length + 1), found.concat(name === 'what remains' ? NaN : []).slice(0, found.length + 1), name);
    assert.deepEqual(answers.get('select with alias, cast and path').data, [{ key: '00000003-0000-4000-8000-000000000003', retry_count: '3', n: 3, name: 'row 3', tags: 't3' }]);
    assert.equal(answers.get('count alone').count, 7);
    assert.equal(answers.get('range').status, 206);
    assert.equal(answers.get('rpc publications').data[0].tables.some(({ table }) => table === 'svc_activities'), true);
});

test('the PostgreSQL backend answers the official client as the embedded one does, but for what is listed', { skip }, async (t) => {
    const pg = await database(t);
    const [ours, theirs] = await Promise.all([hearth(t).then(play), hearth(t, { 'backend.kind': 'postgres', 'backend.url': pg.url() }).then(play)]);
    assertDiffer(ours, theirs, onPostgres);
});
