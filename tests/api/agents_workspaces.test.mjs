// Agents, workspaces and threads (specification, "Agent", "Workspace and thread"; decision D7; issue, section 7).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, newApp, newKey, nobodysId, refused, refusedFields, timeForm, unique } from './kit.mjs';

let h, app;
before(async () => {
    h = await startHearth();
    app = h.asApp(await newApp(h, {}, ['api.agents', 'api.workspaces', 'api.threads']));
});
after(() => h.stop());

const listed = async (name) => (await app('GET', '/agents')).body.agents.find((agent) => agent.name === name);
const define = (definition) => h.socket('POST', '/api/agents', definition);
const definition = (more) => ({ name: unique('agent'), command: 'true', ...more });

test('a defined agent is listed with the specified members', async () => {
    const { name } = await admin(h, 'POST', '/api/agents', definition({ display_name: 'Sorter', description: 'Sorts letters', hub_id: 'hub-7' }), 201);
    const agent = await listed(name);
    assert.deepEqual(agent, { slug: name, name, display_name: 'Sorter', description: 'Sorts letters', hub_id: 'hub-7' });
});

test('what is absent has a default', async () => {
    const { name } = await admin(h, 'POST', '/api/agents', definition());
    assert.deepEqual(await listed(name), { slug: name, name, display_name: name, description: '', hub_id: null });
});

test('a definition is shown as it was given, and replaced by another of its name', async () => {
    const first = definition({ args: ['a b', '"'], env: { KEY: 'value' }, timeout_s: 5 });
    await admin(h, 'POST', '/api/agents', first);
    assert.deepEqual((await admin(h, 'GET', `/api/agents/${first.name}`)).definition, first);
    const second = { ...first, args: [] };
    await admin(h, 'POST', '/api/agents', second);
    assert.deepEqual((await admin(h, 'GET', `/api/agents/${first.name}`)).definition, second);
    assert.equal((await app('GET', '/agents')).body.agents.filter((agent) => agent.name === first.name).length, 1);
});

test('a removed agent is gone', async () => {
    const { name } = await admin(h, 'POST', '/api/agents', definition());
    await admin(h, 'DELETE', `/api/agents/${name}`);
    assert.equal(await listed(name), undefined);
    refused(await h.socket('DELETE', `/api/agents/${name}`), 404, 'AGENT_NOT_FOUND');
    refused(await h.socket('GET', `/api/agents/${name}`), 404, 'AGENT_NOT_FOUND');
});

test('every broken field of a definition is told at once', async () => {
    refusedFields(await define({ name: '', command: '', args: 'x', env: { A: 1 }, timeout_s: 0, description: 3 }),
        'name', 'command', 'args', 'env.A', 'timeout_s', 'description');
    refusedFields(await define({}), 'name', 'command');
    refusedFields(await define(definition({ working_dir: 'relative/path' })), 'working_dir');
    refusedFields(await define(definition({ timeout_s: 86_401 })), 'timeout_s');
    refusedFields(await define(definition({ env: { 'A=B': 'x' } })), 'env');
});

test('a model agent is defined, shown as it was given, and listed like every agent', async () => {
    const given = { name: unique('model'), kind: 'model', instructions: 'Sort letters. Today is {date}.', tools: ['builtin/now', 'files/*'], approval: 'always', max_steps: 5, max_tokens_per_turn: 4000, temperature: 0, effort: 'low' };
    const { sandbox } = await admin(h, 'POST', '/api/agents', given, 201);
    assert.equal(sandbox, 'works with a model and may use builtin/now, files/*; a person is asked before each call; but: There is no MCP server named files');
    assert.deepEqual((await admin(h, 'GET', `/api/agents/${given.name}`)).definition, given);
    assert.deepEqual(await listed(given.name), { slug: given.name, name: given.name, display_name: given.name, description: '', hub_id: null });
    await admin(h, 'POST', '/api/agents', definition({ name: given.name }));
    assert.equal((await admin(h, 'GET', `/api/agents/${given.name}`)).definition.command, 'true', 'an agent may change its kind');
});

test('fields of the other kind are refused by name', async () => {
    refusedFields(await define({ name: 'x', kind: 'model', command: 'true', sandbox: { profile: 'strict' }, tools: ['noslash'] }), 'command', 'sandbox', 'tools[0]');
    refusedFields(await define(definition({ instructions: 'x', tools: ['a/b'], approval: 'never' })), 'instructions', 'tools', 'approval');
    refusedFields(await define({ name: 'x', kind: 'model', max_steps: 201, temperature: 3, approval: 'maybe', effort: 'huge' }), 'max_steps', 'temperature', 'approval', 'effort');
});

test('@agent is always there, may be defined otherwise and cannot be removed', async (t) => {
    const cold = await startHearth({ t });
    const caller = cold.asApp(await newApp(cold, {}, ['api.agents']));
    const find = async () => (await caller('GET', '/agents')).body.agents.filter((agent) => agent.name === '@agent');
    assert.deepEqual((await find()).map((agent) => [agent.slug, agent.display_name, agent.hub_id]), [['@agent', 'Agent', null]]);
    const { definition: first } = await admin(cold, 'GET', '/api/agents/@agent');
    assert.equal(first.kind, 'model');
    assert.equal(first.provider, undefined);
    refused(await cold.socket('DELETE', '/api/agents/@agent'), 409, 'AGENT_ALWAYS_EXISTS');
    refusedFields(await cold.socket('POST', '/api/agents', { name: '@agent', command: 'true' }), 'kind');
    await admin(cold, 'POST', '/api/agents', { name: '@agent', kind: 'model', display_name: 'Mine', tools: [] });
    assert.deepEqual((await find()).map((agent) => agent.display_name), ['Mine']);
    refused(await cold.socket('DELETE', '/api/agents/@agent?force=true'), 409, 'AGENT_ALWAYS_EXISTS', /@agent/);
    assert.deepEqual((await find()).map((agent) => agent.display_name), ['Mine']);
});

test('names are up to 128 characters and arguments up to 256', async () => {
    await admin(h, 'POST', '/api/agents', definition({ name: 'n'.repeat(128), args: Array(256).fill('x') }));
    refusedFields(await define(definition({ name: 'n'.repeat(129) })), 'name');
    refusedFields(await define(definition({ args: Array(257).fill('x') })), 'args');
});

test('a default workspace is there from the start', async () => {
    const { status, body } = await app('GET', '/workspaces');
    assert.equal(status, 200);
    assert.equal(body.success, true);
    const [first] = body.workspaces;
    assert.ok(Number.isInteger(first.id));
    assert.ok(first.slug.length > 0);
    assert.ok(first.name.length > 0);
    assert.equal(first.type, 'default');
    assert.match(first.created_at, timeForm);
});

test('a workspace is made with the slug given or one made from its name', async () => {
    const { workspace } = await admin(h, 'POST', '/api/workspaces', { name: 'Küche & Garten 2', slug: 'kitchen' }, 201);
    assert.deepEqual([workspace.slug, workspace.name, workspace.type], ['kitchen', 'Küche & Garten 2', 'default']);
    const made = (await admin(h, 'POST', '/api/workspaces', { name: 'Sales & Support', type: 'team' })).workspace;
    assert.match(made.slug, /^[a-z0-9][a-z0-9_-]*$/);
    assert.equal(made.type, 'team');
    const all = (await app('GET', '/workspaces')).body.workspaces;
    assert.ok(all.some((one) => one.slug === 'kitchen') && all.some((one) => one.slug === made.slug));
    refused(await h.socket('POST', '/api/workspaces', { name: 'Other', slug: 'kitchen' }), 409, 'WORKSPACE_EXISTS');
});

test('a workspace of a name without letters has a slug all the same', async () => {
    const { workspace } = await admin(h, 'POST', '/api/workspaces', { name: '漢字' });
    assert.ok(workspace.slug.length > 0);
    assert.equal((await app('GET', `/workspaces/${workspace.slug}/threads`)).status, 200);
});

test('threads belong to their workspace', async () => {
    await admin(h, 'POST', '/api/workspaces', { slug: 'one', name: 'One' });
    await admin(h, 'POST', '/api/workspaces', { slug: 'two', name: 'Two' });
    const { thread } = await admin(h, 'POST', '/api/workspaces/one/threads', { slug: 'talk', name: 'Talk' }, 201);
    const { status, body } = await app('GET', '/workspaces/one/threads');
    assert.equal(status, 200);
    assert.equal(body.success, true);
    assert.deepEqual(Object.keys(body.workspace).sort(), ['id', 'name', 'slug']);
    assert.equal(body.workspace.slug, 'one');
    assert.deepEqual(body.threads, [thread]);
    assert.match(thread.created_at, timeForm);
    assert.deepEqual((await app('GET', '/workspaces/two/threads')).body.threads, []);
    assert.equal((await admin(h, 'POST', '/api/workspaces/two/threads', { slug: 'talk', name: 'Talk' })).thread.slug, 'talk', 'another workspace may have the slug too');
    refused(await h.socket('POST', '/api/workspaces/one/threads', { slug: 'talk', name: 'Again' }), 409, 'THREAD_EXISTS');
});

test('threads are listed newest first, a page at a time', async () => {
    await admin(h, 'POST', '/api/workspaces', { slug: 'paged', name: 'Paged' });
    for (const slug of ['a', 'b', 'c'])
        await admin(h, 'POST', '/api/workspaces/paged/threads', { slug, name: slug });
    const slugs = async (query) => (await app('GET', `/workspaces/paged/threads${query}`)).body.threads.map((thread) => thread.slug);
    assert.deepEqual(await slugs(''), ['c', 'b', 'a']);
    assert.deepEqual(await slugs('?limit=2'), ['c', 'b']);
    assert.deepEqual(await slugs('?limit=500&offset=1'), ['b', 'a']);
    for (const limit of [0, 501, 'x'])
        refusedFields(await app('GET', `/workspaces/paged/threads?limit=${limit}`), 'limit');
    refusedFields(await app('GET', '/workspaces/paged/threads?offset=-1'), 'offset');
});

test('an unknown workspace is 404', async () => {
    refused(await app('GET', '/workspaces/nowhere/threads'), 404, 'WORKSPACE_NOT_FOUND');
    refused(await h.socket('POST', '/api/workspaces/nowhere/threads', { name: 'x' }), 404, 'WORKSPACE_NOT_FOUND');
    refused(await app('GET', `/workspaces/${nobodysId}/threads`), 404, 'WORKSPACE_NOT_FOUND');
});

test('names and slugs have their rules', async () => {
    refusedFields(await h.socket('POST', '/api/workspaces', {}), 'name');
    refusedFields(await h.socket('POST', '/api/workspaces', { name: 'x'.repeat(129) }), 'name');
    for (const slug of ['Has Blanks', '../up', 'UPPER', ''])
        refusedFields(await h.socket('POST', '/api/workspaces', { name: 'x', slug }), 'slug');
    refusedFields(await h.socket('POST', '/api/workspaces/default/threads', { name: '' }), 'name');
});

test('agents, workspaces and threads need their own permission each', async () => {
    for (const [path, permission] of [['/agents', 'api.agents'], ['/workspaces', 'api.workspaces'], ['/workspaces/default/threads', 'api.threads']]) {
        const others = ['api.agents', 'api.workspaces', 'api.threads'].filter((one) => one !== permission);
        const poor = h.asApp(await newApp(h, {}, others));
        assert.equal(refused(await poor('GET', path), 403, 'PERMISSION_REQUIRED').permission, permission);
        assert.equal((await (await newKey(h)).call('GET', path)).status, 200);
    }
});
