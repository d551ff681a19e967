// Limits of requests and tokens, and what was used (issue 3, section 2; docs/usage.md). The provider is a double of this file: it tells what it
// used, and holds back what a test wants held back.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { sharedHearth, startHearth, until } from './harness.mjs';
import { admin, awayFromMidnight, isRestOfMinute, newApp, newKey, nobodysId, refused, refusedFields, sqlite, storeFile } from './kit.mjs';

// ---- the provider: "use 30 12" is answered with that usage; "hold" waits for release(); "say nothing of usage" leaves it out ----

let held = [];
let arrivals = 0;
const release = () => held.splice(0).forEach((go) => go());

function usageOf(text) {
    const [, prompt, completion] = /use (\d+) (\d+)/.exec(text) ?? [null, 3, 2];
    return text.includes('nothing of usage') ? undefined : { prompt_tokens: Number(prompt), completion_tokens: Number(completion) };
}

async function answerChat(body, outgoing) {
    const text = body.messages.at(-1).content;
    const chunk = (delta, more = {}) => `data: ${JSON.stringify({ model: body.model, choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`;
    outgoing.setHeader('content-type', body.stream ? 'text/event-stream' : 'application/json');
    if (body.stream)
        outgoing.write(chunk({ content: 'Hello, ' }));
    if (text.includes('hold'))
        await new Promise((go) => held.push(go));
    if (text.includes('fail'))
        return outgoing.writeHead(400).end('{"error":{"message":"no"}}');
    if (!body.stream)
        return outgoing.end(JSON.stringify({ model: body.model, choices: [{ message: { content: 'Hello.' }, finish_reason: 'stop' }], usage: usageOf(text) }));
    outgoing.write(chunk({ content: 'world.' }) + chunk({}, { finish_reason: 'stop' }));
    if (usageOf(text))
        outgoing.write(`data: ${JSON.stringify({ model: body.model, choices: [], usage: usageOf(text) })}\n\n`);
    outgoing.end('data: [DONE]\n\n');
}

async function answer(incoming, outgoing) {
    const pieces = [];
    for await (const piece of incoming)
        pieces.push(piece);
    const body = pieces.length ? JSON.parse(Buffer.concat(pieces)) : {};
    arrivals++;
    if (incoming.url.endsWith('/models'))
        outgoing.end(JSON.stringify({ data: [{ id: 'said-model' }, { id: 'other-model' }] }));
    else if (incoming.url.endsWith('/embeddings'))
        outgoing.end(JSON.stringify({ data: [body.input].flat().map((_, index) => ({ index, embedding: [1, 2, 3] })), model: body.model, usage: { prompt_tokens: 17 } }));
    else
        await answerChat(body, outgoing);
}

const provider = http.createServer(answer).listen(0, '127.0.0.1').unref();
await once(provider, 'listening');
before(() => awayFromMidnight());
after(() => provider.closeAllConnections());
const env = { GENERIC_OPENAI_BASE_URL: `http://127.0.0.1:${provider.address().port}/v1`, GENERIC_OPENAI_MODEL: 'said-model' };
const start = (t, settings = {}) => startHearth({ t, env, settings });
const shared = sharedHearth({ env });

const say = (text, more = {}) => ({ messages: [{ role: 'user', content: text }], ...more });
const chat = (call, text = 'hi', more) => call('POST', '/sdk/llm/chat', say(text, more));
const usage = async (h, query = '') => admin(h, 'GET', `/api/usage?${query}`);
const today = () => new Date().toISOString().slice(0, 10);
const streamed = (text) => text.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)));

function limited(reply, text) {
    const body = refused(reply, 429, 'RATE_LIMIT', text);
    const seconds = Number(reply.headers['retry-after']);
    assert.ok(Number.isInteger(seconds) && seconds >= 1, `Retry-After is ${reply.headers['retry-after']}`);
    assert.match(body.error, new RegExp(`try again in ${seconds} second`));
    return seconds;
}

// ---- limits ----

test('the third request of a minute is refused with the limit and the time until there is room', async (t) => {
    const h = await start(t, { 'limits.requests_a_minute': 2 });
    const { call } = await newKey(h);
    const began = performance.now();
    assert.equal((await chat(call)).status, 200);
    assert.equal((await chat(call)).status, 200);
    const before = arrivals;
    const seconds = limited(await chat(call), /^This developer key has reached its limit of 2 requests a minute; try again in \d+ seconds\.$/);
    assert.ok(isRestOfMinute(seconds, began), `${seconds} s`);
    limited(await call('POST', '/sdk/llm/chat/stream', say('hi')));
    limited(await call('POST', '/sdk/llm/embed', { input: 'x' }));
    assert.equal(arrivals, before, 'a refused request reaches no provider');
    assert.equal((await chat((await newKey(h)).call)).status, 200, 'another key has a limit of its own');
    const { totals } = await usage(h);
    assert.equal(totals.requests, 3, 'refused requests are not counted');
});

test('the answer of a refusal says which limit in members of its own', async (t) => {
    const h = await start(t, { 'limits.requests_a_day': 1 });
    const app = await newApp(h, {}, ['llm.chat']);
    await chat(h.asApp(app));
    const untilMidnight = (Date.parse(today()) + 86_400_000 - Date.now()) / 1000;
    const reply = await chat(h.asApp(app));
    const seconds = Number(reply.headers['retry-after']), passed = untilMidnight - (Date.parse(today()) + 86_400_000 - Date.now()) / 1000;
    assert.ok(seconds <= untilMidnight + 1 && seconds >= untilMidnight - passed, `${seconds} of ${untilMidnight}`);
    assert.equal(reply.body.limit, 'requests_a_day');
    assert.equal(reply.body.of, 'app');
    const { schemas, responses } = (await h.api('GET', '/openapi.json')).body.components;
    const told = [schemas.Error.allOf[0], ...['OpenAIError', 'AnthropicError'].map((name) => responses[name].content['application/json'].schema.properties.error)];
    for (const { properties, required } of told) {
        assert.equal(properties.limit?.type, 'string');
        assert.equal(properties.of?.type, 'string');
        assert.ok(!required.includes('limit') && !required.includes('of'));
    }
});

test('tokens count once they are known, and from the limit on the next request is refused', async (t) => {
    const h = await start(t, { 'limits.tokens_a_minute': 100 });
    const { call } = await newKey(h);
    assert.equal((await chat(call, 'use 50 49')).status, 200);
    assert.equal((await chat(call, 'use 60 70')).status, 200, '99 of 100 are used');
    limited(await chat(call), /This developer key has reached its limit of 100 tokens a minute/);
});

test('an app and a key have limits of their own, in force at once and taken back at once', async (t) => {
    const h = await start(t, { 'limits.requests_a_minute': 1 });
    const app = await newApp(h, {}, ['llm.chat']);
    const { id, key } = await newKey(h);
    await chat(h.asApp(app));
    limited(await chat(h.asApp(app)), /This app has/);
    const { limits } = await admin(h, 'PUT', `/api/limits/apps/${app}`, { requests_a_minute: 3 });
    assert.equal(limits.own.requests_a_minute, 3);
    assert.equal(limits.own.tokens_a_day, null);
    assert.equal(limits.in_force.requests_a_minute, 3);
    assert.equal(limits.used.requests_a_minute, 1);
    assert.equal((await chat(h.asApp(app))).status, 200);
    await admin(h, 'PUT', `/api/limits/keys/${id}`, { requests_a_minute: 0 });
    const both = h.as({ authorization: `Bearer ${key}`, 'x-app-id': app });
    assert.equal((await chat(both)).status, 200, 'with key and app both count');
    limited(await chat(both), /This app has reached its limit of 3/);
    for (let i = 0; i < 5; i++)
        assert.equal((await chat(h.as({ authorization: `Bearer ${key}` }))).status, 200);
    const list = await admin(h, 'GET', '/api/limits');
    assert.deepEqual(list.limits.map((one) => [one.of, one.id]), [['app', app], ['key', id]]);
    assert.equal(list.defaults.requests_a_minute, 1);
    await admin(h, 'DELETE', `/api/limits/keys/${id}`);
    limited(await chat(h.as({ authorization: `Bearer ${key}` })), /This developer key has reached its limit of 1/);
});

test('a setting that changes is in force for the next request', async (t) => {
    const h = await startHearth({ t, env });
    const { call } = await newKey(h);
    for (let i = 0; i < 3; i++)
        assert.equal((await chat(call)).status, 200);
    await admin(h, 'PUT', '/api/settings/limits.requests_a_minute', { value: 3 });
    limited(await chat(call));
    await admin(h, 'DELETE', '/api/settings/limits.requests_a_minute');
    assert.equal((await chat(call)).status, 200);
});

test('of 200 chats at a time exactly 50 pass a limit of 50', async (t) => {
    const h = await start(t, { 'limits.requests_a_minute': 50 });
    const { call } = await newKey(h);
    const replies = await Promise.all(Array.from({ length: 200 }, () => chat(call)));
    const count = (status) => replies.filter((reply) => reply.status === status).length;
    assert.deepEqual([count(200), count(429)], [50, 150]);
    assert.equal((await usage(h)).totals.requests, 50);
});

test('chats under way hold the tokens they may use: a crowd does not overrun the limit', async (t) => {
    const h = await start(t, { 'limits.tokens_a_minute': 1000 });
    const { call } = await newKey(h);
    const asked = Array.from({ length: 40 }, () => chat(call, 'hold, then use 10 90', { max_tokens: 90 }));
    await until(() => held.length >= 8, { what: 'the first ones reach the provider' });
    const early = await Promise.race(asked);    // all that were admitted wait for the release
    assert.match(early.body.error, /under way may use up its limit of 1000 tokens a minute; try again in 1 second\./);
    const releasing = setInterval(release, 20); // some that were admitted may still be on their way
    const replies = await Promise.all(asked).finally(() => clearInterval(releasing));
    const n = replies.filter((reply) => reply.status === 200).length;
    assert.ok(n >= 8 && n <= 11, `${n} passed`);
    assert.ok((await usage(h)).totals.total_tokens <= 1100, 'the limit and the last one');
});

test('the administrator is counted and not limited', async (t) => {
    const h = await start(t, { 'limits.requests_a_minute': 1 });
    for (let i = 0; i < 3; i++)
        assert.equal((await h.socket('POST', '/sdk/llm/chat', say('use 1 1'))).status, 200);
    const { usage: rows } = await usage(h, 'group=app,key');
    assert.deepEqual(rows.map((row) => [row.app, row.key, row.requests]), [['', '', 3]]);
});

test('limits of nobody are refused, and numbers that are none', async (t) => {
    const h = await shared(t);
    const app = await newApp(h);
    for (const method of ['GET', 'PUT', 'DELETE']) {
        refused(await h.socket(method, `/api/limits/apps/${nobodysId}`, method === 'PUT' ? {} : undefined), 404, 'APP_NOT_FOUND');
        refused(await h.socket(method, `/api/limits/keys/${nobodysId}`, method === 'PUT' ? {} : undefined), 404, 'KEY_NOT_FOUND');
    }
    refusedFields(await h.socket('PUT', `/api/limits/apps/${app}`, { requests_a_minute: -1, tokens_a_day: 1.5, requests_a_day: '7', tokens_a_minute: 1e13 }),
        'requests_a_minute', 'tokens_a_day', 'requests_a_day', 'tokens_a_minute');
    refused(await h.asApp(app)('GET', `/api/limits/apps/${app}`), 401, 'ADMIN_REQUIRED');
    refused(await h.asApp(app)('GET', '/api/usage'), 401, 'ADMIN_REQUIRED');
});

test('an app that is removed takes its limits along', async (t) => {
    const h = await shared(t);
    const app = await newApp(h);
    await admin(h, 'PUT', `/api/limits/apps/${app}`, { requests_a_minute: 1 });
    await admin(h, 'DELETE', `/api/apps/${app}`);
    assert.ok(!(await admin(h, 'GET', '/api/limits')).limits.some(({ id }) => id === app));
});

// ---- usage ----

test('usage is the sum of what the answers said: whole, streamed, embedded', async (t) => {
    const h = await start(t);
    const app = await newApp(h, {}, ['llm.chat', 'llm.embed']);
    const { id, key } = await newKey(h, 'the key');
    const calls = [h.asApp(app), h.as({ authorization: `Bearer ${key}` }), h.as({ authorization: `Bearer ${key}`, 'x-app-id': app })];
    const sum = { prompt_tokens: 0, completion_tokens: 0, estimated: 0, requests: 0 };
    const add = (metrics) => {
        sum.prompt_tokens += metrics.prompt_tokens;
        sum.completion_tokens += metrics.completion_tokens;
        sum.estimated += metrics.estimated ? 1 : 0;
        sum.requests++;
    };
    for (const call of calls) {
        add((await chat(call, 'use 30 12')).body.response.metrics);
        add((await chat(call, 'say nothing of usage')).body.response.metrics);
        add((await chat(call, 'use 5 6', { model: 'other-model' })).body.response.metrics);
        for (const text of ['use 100 200', 'say nothing of usage']) {
            const { text: sse } = await call('POST', '/sdk/llm/chat/stream', say(text));
            add(streamed(sse).find((one) => one.close).metrics);
        }
    }
    const { totals, usage: [day] } = await usage(h);
    assert.equal(day.day, today());
    assert.deepEqual({ ...sum }, { requests: totals.requests, estimated: totals.estimated, prompt_tokens: totals.prompt_tokens, completion_tokens: totals.completion_tokens });
    assert.equal(totals.failed, 0);
    assert.equal(totals.total_tokens, totals.prompt_tokens + totals.completion_tokens);

    assert.equal((await calls[0]('POST', '/sdk/llm/embed', { input: ['one', 'two'], provider: 'generic-openai', model: 'e' })).status, 200);
    assert.equal((await calls[0]('POST', '/sdk/llm/embed', { input: 'twelve bytes' })).status, 200);
    const kinds = (await usage(h, 'group=kind,provider,model')).usage.filter((row) => row.kind === 'embed');
    assert.deepEqual(kinds.map((row) => [row.provider, row.model, row.prompt_tokens, row.estimated]),
        [['generic-openai', 'e', 17, 0], ['builtin', 'lexical-384', 3, 1]]);

    const groups = (await usage(h, 'group=app,key&kind=chat')).usage.map((row) => [row.app, row.key, row.requests, row.key_name]);
    assert.deepEqual(groups.sort(), [['', id, 5, 'the key'], [app, '', 5, null], [app, id, 5, 'the key']].sort());
    assert.equal((await usage(h, `app=${app}&key=&kind=chat`)).totals.requests, 5);
    assert.equal((await usage(h, 'model=other-model')).totals.prompt_tokens, 15);
    assert.equal((await usage(h, 'provider=nobody')).totals.requests, 0);
    const page = await usage(h, 'group=app,key,model&limit=2&offset=1');
    assert.equal(page.usage.length, 2);
    assert.ok(page.rows > 3);
});

test('a request that came to no provider is not counted, and takes no room of a limit', async (t) => {
    const h = await start(t, { 'limits.requests_a_minute': 1, 'limits.tokens_a_day': 5000 });
    const { id, call } = await newKey(h);
    for (const path of ['/sdk/llm/chat', '/sdk/llm/chat/stream'])
        refused(await call('POST', path, say('hi', { provider: 'nobody' })), 400, 'PROVIDER_UNAVAILABLE');
    refused(await call('POST', '/sdk/llm/embed', { input: 'x', provider: 'nobody' }), 400, 'PROVIDER_UNAVAILABLE');
    refused(await call('POST', '/sdk/llm/embed', { input: 'x', provider: 'builtin', model: 'none' }), 400, 'INVALID_MODEL');
    assert.equal((await usage(h)).rows, 0);
    const { used } = (await admin(h, 'GET', `/api/limits/keys/${id}`)).limits;
    assert.deepEqual(used, { requests_a_minute: 0, tokens_a_minute: 0, requests_a_day: 0, tokens_a_day: 0, characters_a_minute: 0, characters_a_day: 0 });
    assert.equal((await chat(call, 'hi', { max_tokens: 4900 })).status, 200);
    limited(await chat(call));
    assert.equal((await usage(h)).totals.failed, 0);
});

test('a chat that failed and a stream that was left are counted as failed', async (t) => {
    const h = await start(t);
    const { call, key } = await newKey(h);
    assert.equal((await chat(call, 'fail')).status, 502);
    const stream = await h.sse('/sdk/llm/chat/stream', { method: 'POST', body: say('hold'), headers: { authorization: `Bearer ${key}` } });
    await stream.next();
    stream.close();
    const totals = await until(async () => {
        const answer = await usage(h);
        return answer.totals.requests === 2 && answer.totals;
    }, { what: 'the stream that was left is counted' });
    release();
    assert.equal(totals.failed, 2);
    assert.equal(totals.estimated, 1);
    assert.ok(totals.completion_tokens > 0, 'what came until then');
    const providers = (await usage(h, 'group=provider')).usage.map((row) => [row.provider, row.requests]);
    assert.deepEqual(providers.sort(), [['generic-openai', 2]]);
});

test('usage and the limits of the day survive a restart', async (t) => {
    const h = await start(t, { 'limits.requests_a_day': 3 });
    const { call } = await newKey(h);
    await chat(call, 'use 1 2');
    await chat(call, 'use 3 4');
    const before = await usage(h);
    await h.terminate();
    await h.start();
    assert.deepEqual(await usage(h), before);
    assert.equal((await chat(call)).status, 200);
    limited(await chat(call), /3 requests a day/);
});

test('what was written is there after kill -9, and it is written within seconds', async (t) => {
    const h = await start(t);
    const { call } = await newKey(h);
    await chat(call, 'use 20 30');
    await until(async () => (await sqlite(storeFile(h), 'SELECT sum(prompt_tokens) AS n FROM usage'))[0]?.n === 20, { what: 'a row of usage' });
    await h.kill();
    await h.start();
    assert.equal((await usage(h)).totals.total_tokens, 50);
});

test('days that are to be kept no longer go', async (t) => {
    const h = await start(t, { 'usage.keep_days': 2 });
    const day = (ago) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
    await h.terminate();
    for (let ago = 1; ago < 4; ago++)
        await sqlite(storeFile(h), `INSERT INTO usage VALUES ('${day(ago)}', '', '', 'p', 'm', 'chat', ${ago}, 0, 0, 0, 0, 0, 0)`);
    await h.start();
    await until(async () => (await usage(h)).totals.requests === 3, { what: 'two days are left' });
    assert.equal((await usage(h, `from=${day(1)}&to=${day(1)}`)).totals.requests, 1);
});

test('a question about usage that breaks a rule is refused with its field', async (t) => {
    const h = await shared(t);
    const ask = (query) => h.socket('GET', `/api/usage?${query}`);
    refusedFields(await ask('from=yesterday'), 'from');
    refusedFields(await ask('from=2026-02-30'), 'from');
    refusedFields(await ask('to=20261120'), 'to');
    refusedFields(await ask('from=2026-11-20&to=2026-11-19'), 'from');
    refusedFields(await ask('group=hour'), 'group');
    refusedFields(await ask('group=day,'), 'group');
    refusedFields(await ask('group='), 'group');
    refusedFields(await ask('kind=thought'), 'kind');
    refusedFields(await ask('limit=0&offset=-1&days=0'), 'limit', 'offset', 'days');
    refusedFields(await ask('limit=501&from=x&group=y'), 'limit');
    refusedFields(await ask('from=x&group=y'), 'from', 'group');
    assert.equal((await ask('from=2026-01-01&to=2026-01-01&group=day,app,key,provider,model,kind&limit=500')).status, 200);
});

test('metrics count requests, tokens and refusals', async (t) => {
    const h = await start(t, { 'limits.requests_a_minute': 1 });
    const { call } = await newKey(h);
    await chat(call, 'use 11 22');
    await chat(call);
    const { text } = await h.api('GET', '/metrics');
    assert.match(text, /^hearth_model_requests_total\{provider="generic-openai",kind="chat",result="whole"\} 1$/m);
    assert.match(text, /^hearth_model_tokens_total\{provider="generic-openai",kind="chat",direction="prompt"\} 11$/m);
    assert.match(text, /^hearth_model_tokens_total\{provider="generic-openai",kind="chat",direction="completion"\} 22$/m);
    assert.match(text, /^hearth_model_refused_total\{limit="requests_a_minute"\} 1$/m);
});

// ---- the command line ----

test('the command line sets, shows and clears limits and shows usage', async (t) => {
    const h = await start(t);
    const app = await newApp(h, { name: 'limited-app' }, ['llm.chat']);
    const set = await h.cli('limit', 'set', 'app', 'limited-app', '--requests-a-minute', '1', '--tokens-a-day=500');
    assert.equal(set.code, 0, set.stderr);
    assert.equal(set.stdout, 'The limits of the app limited-app are in force.\n');
    await chat(h.asApp(app), 'use 8 9');
    limited(await chat(h.asApp(app)));
    assert.match((await h.cli('limit', 'list')).stdout, /^app +limited-app +1 +- +- +500 /m);
    assert.equal((await h.cliJson('limit', 'show', 'app', app)).own.tokens_a_day, 500);
    assert.match((await h.cli('limit', 'show', 'app', app)).stdout, /^LIMIT +OWN +IN FORCE +USED NOW\nrequests_a_minute +1 +1 +1\ntokens_a_minute +- +any +17\n/);
    const table = (await h.cli('usage', '--by', 'app,model', '--days', '7')).stdout;
    assert.match(table, /^APP +APP ID +MODEL +REQUESTS +FAILED +PROMPT TOKENS +ANSWER TOKENS +TOKENS +CHARACTERS\nlimited-app +\S+ +said-model +1 +0 +8 +9 +17 +0\n/);
    assert.match(table, /: 1 requests, 0 of them failed, 17 tokens\.\n$/);
    assert.equal((await h.cliJson('usage', '--by', 'kind')).usage[0].kind, 'chat');
    assert.equal((await h.cli('limit', 'clear', 'app', app)).code, 0);
    assert.equal((await chat(h.asApp(app))).status, 200);
    const wrong = await h.cli('limit', 'set', 'agent', 'x', '--tokens-a-day', '1');
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /`app` or `key`/);
    const unknown = await h.cli('limit', 'set', 'key', nobodysId, '--tokens-a-day', '1');
    assert.equal(unknown.code, 1);
    assert.match((await h.cli('limit', 'set', 'app', app, '--tokens-a-day', 'many')).stderr, /^hearth: --tokens-a-day must be an integer from 0 to 1000000000000$/m);
});
