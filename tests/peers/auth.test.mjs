// Sign-up and sign-in at the face, driven by the official client of the hosted service.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { createClient } from '@supabase/supabase-js';
import { Arrivals, startHearth } from '../api/harness.mjs';
import { faceKeys, insertAs } from '../api/realtime.mjs';

const password = 'correct horse';
const address = () => `anna-${randomUUID()}@example.org`;

// A client of the official library that keeps its session in memory; ended with the test.
function client(t, h, key, auth = {}) {
    const made = createClient(h.url, key, { auth: { persistSession: true, autoRefreshToken: false, storage: memory(), ...auth } });
    t.after(() => made.realtime.disconnect());
    return made;
}

function memory() {
    const items = new Map();
    return { getItem: (name) => items.get(name) ?? null, setItem: (name, value) => void items.set(name, value), removeItem: (name) => void items.delete(name) };
}

function fine({ data, error }) {
    assert.equal(error, null, error?.message);
    return data;
}

function refusal({ error }, status, code) {
    assert.ok(error, 'an error is expected');
    assert.equal(error.status, status, error.message);
    assert.equal(error.code, code, error.message);
    return error;
}

test('a person signs up, signs out, signs in, and is told from others', async (t) => {
    const h = await startHearth({ t });
    const { publishable } = await faceKeys(h);
    const supabase = client(t, h, publishable), states = [];
    supabase.auth.onAuthStateChange((state) => { states.push(state); });
    const email = address();

    const { user, session } = fine(await supabase.auth.signUp({ email: email.toUpperCase(), password, options: { data: { name: 'Anna Grün', tags: ['a'] } } }));
    assert.equal(user.email, email);
    assert.equal(user.role, 'authenticated');
    assert.deepEqual(user.user_metadata, { name: 'Anna Grün', tags: ['a'] });
    assert.deepEqual(user.app_metadata, { provider: 'email', providers: ['email'] });
    assert.equal(user.identities[0].provider, 'email');
    assert.equal(session.token_type, 'bearer');
    assert.equal(session.expires_in, 3600);
    assert.deepEqual(fine(await supabase.auth.getUser()).user, user);
    const { claims } = fine(await supabase.auth.getClaims());
    assert.equal(claims.sub, user.id);
    assert.equal(claims.aud, 'authenticated');
    assert.equal(claims.email, email);
    assert.equal(claims.exp - claims.iat, 3600);
    assert.match(claims.session_id, /^[0-9a-f-]{36}$/);

    refusal(await client(t, h, publishable).auth.signUp({ email, password }), 422, 'user_already_exists');
    fine(await supabase.auth.signOut());
    assert.equal((await supabase.auth.getSession()).data.session, null);
    const again = fine(await supabase.auth.signInWithPassword({ email, password }));
    assert.equal(again.user.id, user.id);
    assert.ok(again.user.last_sign_in_at >= user.last_sign_in_at);
    assert.deepEqual(states.filter((state) => state !== 'INITIAL_SESSION'), ['SIGNED_IN', 'SIGNED_OUT', 'SIGNED_IN']);
});

test('what the auth service refuses is refused in its words', async (t) => {
    const h = await startHearth({ t });
    const { publishable } = await faceKeys(h);
    const { auth } = client(t, h, publishable), email = address();
    fine(await auth.signUp({ email, password }));

    assert.equal(refusal(await auth.signInWithPassword({ email, password: 'wrong' }), 400, 'invalid_credentials').message, 'Invalid login credentials');
    assert.equal(refusal(await auth.signInWithPassword({ email: address(), password }), 400, 'invalid_credentials').message, 'Invalid login credentials');
    const weak = refusal(await auth.signUp({ email: address(), password: 'short' }), 422, 'weak_password');
    assert.equal(weak.name, 'AuthWeakPasswordError');
    assert.deepEqual(weak.reasons, ['length']);
    refusal(await auth.signUp({ email: 'no address', password }), 400, 'validation_failed');
    refusal(await auth.signUp({ phone: '+491', password }), 400, 'phone_provider_disabled');
    refusal(await auth.signInAnonymously(), 422, 'anonymous_provider_disabled');
    refusal(await auth.refreshSession({ refresh_token: 'nonsense' }), 400, 'refresh_token_not_found');
    refusal(await auth.getUser('a.b.c'), 403, 'bad_jwt');
    assert.equal((await client(t, h, 'sb_publishable_wrong').auth.signInWithPassword({ email, password })).error.message, 'Invalid API key');
});

test('what the face lacks is named', async (t) => {
    const h = await startHearth({ t });
    const { publishable } = await faceKeys(h);
    const supabase = client(t, h, publishable), email = address();
    assert.match(refusal(await supabase.auth.signInWithOtp({ email }), 422, 'feature_not_supported').message, /by e-mail or SMS/);
    assert.match(refusal(await supabase.auth.resetPasswordForEmail(email), 422, 'feature_not_supported').message, /recovery of a password/);
    assert.match(refusal(await supabase.auth.signInWithSSO({ domain: 'example.org' }), 422, 'feature_not_supported').message, /SAML/);
    assert.match(refusal(await supabase.auth.admin.listUsers(), 422, 'feature_not_supported').message, /hearth user/);
    const { url } = fine(await supabase.auth.signInWithOAuth({ provider: 'github', options: { skipBrowserRedirect: true } }));
    const oauth = await fetch(url);
    assert.equal(oauth.status, 422);
    assert.match((await oauth.json()).msg, /OAuth/);
    assert.match((await supabase.storage.from('photos').list()).error.message, /no storage of files/);
    const { error } = await supabase.functions.invoke('hello');
    assert.equal(error.context.status, 501);
    assert.match((await error.context.json()).message, /no edge functions/);
    const graphql = await fetch(`${h.url}/graphql/v1`, { method: 'POST', headers: { apikey: publishable }, body: '{}' });
    assert.equal(graphql.status, 501);
    assert.match((await graphql.json()).errors[0].message, /no GraphQL/);
});

test('a session is refreshed, its last token once more when its answer was lost, and ends when an older one comes again', async (t) => {
    const h = await startHearth({ t });
    const { publishable } = await faceKeys(h);
    const { auth } = client(t, h, publishable);
    const { session: first } = fine(await auth.signUp({ email: address(), password }));
    const { session: second } = fine(await auth.refreshSession());
    assert.notEqual(second.refresh_token, first.refresh_token);
    assert.equal(second.user.id, first.user.id);

    const thief = client(t, h, publishable).auth;
    assert.equal(fine(await thief.refreshSession(first)).session.refresh_token, second.refresh_token, 'within ten seconds');
    const { session: third } = fine(await auth.refreshSession());
    assert.notEqual(third.refresh_token, second.refresh_token);
    refusal(await thief.refreshSession(first), 400, 'refresh_token_already_used');
    refusal(await client(t, h, publishable).auth.refreshSession(third), 400, 'refresh_token_not_found');
    assert.equal((await auth.getUser(third.access_token)).error.name, 'AuthSessionMissingError');
});

test('two tabs that refresh at once have one session', async (t) => {
    const h = await startHearth({ t });
    const { publishable } = await faceKeys(h);
    const { session } = fine(await client(t, h, publishable).auth.signUp({ email: address(), password }));
    const all = await Promise.all(Array.from({ length: 8 }, () => client(t, h, publishable).auth.refreshSession(session)));
    assert.equal(new Set(all.map((one) => fine(one).session.refresh_token)).size, 1);
});

test('a person changes data, address and password; a new password ends the other sessions', async (t) => {
    const h = await startHearth({ t });
    const { publishable } = await faceKeys(h);
    const { auth } = client(t, h, publishable), other = client(t, h, publishable).auth;
    const email = address(), newEmail = address();
    fine(await auth.signUp({ email, password, options: { data: { a: 1, b: 2 } } }));
    fine(await other.signInWithPassword({ email, password }));

    assert.deepEqual(fine(await auth.updateUser({ data: { b: null, c: [3] } })).user.user_metadata, { a: 1, c: [3] });
    assert.equal(fine(await auth.updateUser({ email: newEmail })).user.email, newEmail);
    refusal(await auth.updateUser({ password }), 422, 'same_password');
    fine(await auth.updateUser({ password: 'another horse' }));
    fine(await auth.refreshSession());
    assert.equal((await other.getUser()).error.name, 'AuthSessionMissingError');
    refusal(await other.signInWithPassword({ email, password: 'another horse' }), 400, 'invalid_credentials');
    refusal(await other.signInWithPassword({ email: newEmail, password }), 400, 'invalid_credentials');
    fine(await other.signInWithPassword({ email: newEmail, password: 'another horse' }));
    const third = client(t, h, publishable).auth;
    fine(await third.signUp({ email, password }));
    refusal(await third.updateUser({ email: newEmail }), 422, 'email_exists');
});

test('signing out ends this session, the others, or all', async (t) => {
    const h = await startHearth({ t });
    const { publishable } = await faceKeys(h);
    const email = address();
    const [one, two, three] = Array.from({ length: 3 }, () => client(t, h, publishable).auth);
    fine(await one.signUp({ email, password }));
    const sessions = [(await one.getSession()).data.session];
    for (const auth of [two, three])
        sessions.push(fine(await auth.signInWithPassword({ email, password })).session);
    const alive = async () => Promise.all(sessions.map(async ({ access_token: token }) => !(await client(t, h, publishable).auth.getUser(token)).error));

    fine({ data: null, ...await one.signOut({ scope: 'local' }) });
    assert.deepEqual(await alive(), [false, true, true]);
    fine({ data: null, ...await two.signOut({ scope: 'others' }) });
    assert.deepEqual(await alive(), [false, true, false]);
    fine({ data: null, ...await two.signOut() });
    assert.deepEqual(await alive(), [false, false, false]);
});

test('the rows of a signed-in user come over realtime to that user alone', async (t) => {
    const h = await startHearth({ t });
    const { publishable } = await faceKeys(h);
    const [anna, ben] = [client(t, h, publishable), client(t, h, publishable)];
    const [annasId, bensId] = await Promise.all([anna, ben].map(async ({ auth }) => fine(await auth.signUp({ email: address(), password })).user.id));
    const watch = async (supabase) => {
        const got = new Arrivals(), system = new Arrivals();
        supabase.channel('rows').on('system', {}, (m) => system.push(m))
            .on('postgres_changes', { event: '*', schema: 'public', table: 'svc_activities' }, (e) => got.push(e)).subscribe();
        assert.equal((await system.wait((m) => m.extension === 'postgres_changes')).status, 'ok');
        return got;
    };
    const [forAnna, forBen] = await Promise.all([anna, ben].map(watch));
    const ids = [insertAs(h, annasId), insertAs(h, bensId), insertAs(h, annasId), insertAs(h, bensId)];
    await forAnna.wait((e) => e.new.id === ids[2]);
    await forBen.wait((e) => e.new.id === ids[3]);
    assert.deepEqual(forAnna.items.map((e) => e.new.id), [ids[0], ids[2]]);
    assert.deepEqual(forBen.items.map((e) => e.new.id), [ids[1], ids[3]]);
});

test('health and settings say how one signs in', async (t) => {
    const h = await startHearth({ t });
    const { publishable } = await faceKeys(h);
    const get = async (path) => (await fetch(`${h.url}/auth/v1/${path}`, { headers: { apikey: publishable } })).json();
    assert.equal((await get('health')).name, 'Hearth');
    const settings = await get('settings');
    assert.equal(settings.external.email, true);
    assert.equal(settings.external.phone, false);
    assert.equal(settings.disable_signup, false);
});
