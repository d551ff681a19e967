// What a person does through the sign-in of the hosted service's official client, one request after the other, for any server that speaks it. Every answer
// comes back in words that do not depend on the server: ids, times and tokens are masked.
//
//     const answers = await play(server);       // server: {url, publishable, secret}; Map of name -> {data, error}
import { createClient } from '@supabase/supabase-js';

const password = 'correct horse', email = 'anna@example.org';

function client(server, key) {
    const items = new Map();
    const storage = { getItem: (name) => items.get(name) ?? null, setItem: (name, value) => void items.set(name, value), removeItem: (name) => void items.delete(name) };
    return createClient(server.url, key, { auth: { persistSession: true, autoRefreshToken: false, detectSessionInUrl: false, storage } });
}

const masks = [[/^[0-9a-f]{8}-[0-9a-f-]{27}$/, 'id'], [/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d/, 'time'], [/^ey[\w-]+\.[\w-]+\.[\w-]+$/, 'token']];

// The original repeats members of the user in what the user says of itself, and that in the identity.
const repeated = ['email', 'email_verified', 'phone_verified', 'sub'];

function shown(name, member) {
    return name === 'user_metadata' ? !repeated.includes(member) : name !== 'identity_data' || ['email', 'sub'].includes(member);
}

function mask(value, name) {
    if (Array.isArray(value))
        return value.map((item) => mask(item));
    if (value && typeof value === 'object')
        return Object.fromEntries(Object.entries(value).filter(([member]) => shown(name, member)).map(([member, inner]) => [member, mask(inner, member)]));
    if (['refresh_token', 'expires_at'].includes(name))
        return typeof value;
    return masks.find(([pattern]) => typeof value === 'string' && pattern.test(value))?.[1] ?? value;
}

// [name, who, the request]; in order. `s` is the client, `seen` what earlier steps left.
const steps = [
    ['sign up', 'anna', (s) => s.auth.signUp({ email, password, options: { data: { name: 'Anna' } } })],
    ['the user of the session', 'anna', (s) => s.auth.getUser()],
    ['sign up again', 'other', (s) => s.auth.signUp({ email, password })],
    ['sign up with a short password', 'other', (s) => s.auth.signUp({ email: 'ben@example.org', password: 'x' })],
    ['sign up without a password', 'other', (s) => s.auth.signUp({ email: 'ben@example.org', password: '' })],
    ['sign up with no address', 'other', (s) => s.auth.signUp({ email: 'nobody', password })],
    ['sign in with a wrong password', 'other', (s) => s.auth.signInWithPassword({ email, password: 'wrong one' })],
    ['sign in as nobody', 'other', (s) => s.auth.signInWithPassword({ email: 'ben@example.org', password })],
    ['sign in', 'other', (s) => s.auth.signInWithPassword({ email: email.toUpperCase(), password })],
    ['refresh', 'anna', (s) => s.auth.refreshSession()],
    ['refresh with a token that is none', 'stranger', (s) => s.auth.refreshSession({ refresh_token: 'abcdefghijkl' })],
    ['a session of a forged token', 'stranger', (s) => s.auth.getUser(`eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.${Buffer.from(JSON.stringify({ sub: 'x', role: 'authenticated', exp: 4e9 })).toString('base64url')}.AAAA`)],
    ['a token that is none', 'stranger', (s) => s.auth.getUser('abc')],
    ['change data', 'anna', (s) => s.auth.updateUser({ data: { name: 'Anna Grün', n: 1 } })],
    ['change to a short password', 'anna', (s) => s.auth.updateUser({ password: 'x' })],
    ['change to the same password', 'anna', (s) => s.auth.updateUser({ password })],
    ['change the password', 'anna', (s) => s.auth.updateUser({ password: 'battery staple' })],
    ['sign in with the old password', 'stranger', (s) => s.auth.signInWithPassword({ email, password })],
    ['sign in with the new password', 'stranger', (s) => s.auth.signInWithPassword({ email, password: 'battery staple' })],
    ['sign out', 'stranger', (s) => s.auth.signOut({ scope: 'local' })],
    ['the user after signing out', 'stranger', (s) => s.auth.getUser()],
    ['change data without a session', 'stranger', (s) => s.auth.updateUser({ data: {} })],
    ['sign out everywhere', 'anna', (s) => s.auth.signOut({ scope: 'global' })],
    ['sign in by a token of another service', 'stranger', (s) => s.auth.signInWithIdToken({ provider: 'google', token: 'x' })],
];

export async function play(server) {
    const clients = {}, answers = new Map();
    for (const [name, who, request] of steps) {
        const { data, error } = await request(clients[who] ??= client(server, server.publishable));
        answers.set(name, { data: mask(data), status: error?.status, code: error?.code, message: error?.message });
    }
    return answers;
}
