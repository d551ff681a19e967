// What an app asks of /rest/v1 through the official client of the hosted service, one request after the other, for any server that speaks it. Every
// answer comes back in words that do not depend on the server: ids are the script's own, times are masked.
//
//     const answers = await play(server);       // server: {url, publishable, secret, jwt_secret}; Map of name -> {status, data, count, error, headers}
import { createClient } from '@supabase/supabase-js';
import { token } from '../api/realtime.mjs';

const id = (n) => `0000000${n}-0000-4000-8000-00000000000${n}`;
const anna = 'aaaaaaaa-0000-4000-8000-00000000000a', ben = 'bbbbbbbb-0000-4000-8000-00000000000b';
const table = 'svc_activities';
const short = 'id,status,raw_data';
const shownHeaders = ['content-range', 'preference-applied', 'location'];

function client(server, key, jwt) {
    const seen = {};
    const made = createClient(server.url, key, {
        auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
        global: {
            headers: jwt ? { Authorization: `Bearer ${jwt}` } : {},
            fetch: async (...request) => {
                const reply = await fetch(...request);
                seen.headers = Object.fromEntries(shownHeaders.map((name) => [name, reply.headers.get(name)]));
                return reply;
            },
        },
    });
    return Object.assign(made, { seen });
}

const row = (n, more = {}) => ({ id: id(n), raw_data: { n, name: `row ${n}`, tags: ['x', `t${n}`] }, status: 'kept', ...more });

// [name, who asks, the request]; in order.
const steps = [
    ['insert one', 'service', (s) => s.from(table).insert(row(1))],
    ['insert one and read it', 'service', (s) => s.from(table).insert(row(2, { user_id: anna })).select(short).single()],
    ['insert several', 'service', (s) => s.from(table).insert([row(3, { status: 'pending', retry_count: 3 }), row(4, { status: 'failed', retry_count: 1 })]).select('id,status,retry_count')],
    ['insert several with defaults', 'service', (s) => s.from(table).insert([row(5, { retry_count: 5 }), row(6)], { defaultToNull: false }).select('id,retry_count')],
    ['the same for every server', 'service', (s) => s.from(table).update({ retry_count: 0, raw_data: { n: 6 } }).in('id', [id(5), id(6)])],
    ['insert counts', 'service', (s) => s.from(table).insert(row(7), { count: 'exact' })],
    ['insert a key that is there', 'service', (s) => s.from(table).insert(row(1))],
    ['insert an unknown column', 'service', (s) => s.from(table).insert({ raw_data: {}, nope: 1 })],
    ['insert a missing value as null', 'service', (s) => s.from(table).insert([{ id: id(8), status: 'x' }, { id: id(9), raw_data: {}, status: 'x' }])],
    ['insert a wrong value', 'service', (s) => s.from(table).insert({ id: 'x', raw_data: {} })],
    ['insert nothing', 'service', (s) => s.from(table).insert([])],

    ['select columns', 'service', (s) => s.from(table).select(short).order('id')],
    ['select with alias, cast and path', 'service', (s) => s.from(table).select('key:id,retry_count::text,raw_data->n,name:raw_data->>name,raw_data->tags->>1').eq('id', id(3))],
    ['select an unknown column', 'service', (s) => s.from(table).select('nope')],
    ['select from an unknown table', 'service', (s) => s.from('nope').select('*')],
    ['count with rows', 'service', (s) => s.from(table).select('id', { count: 'exact' }).order('id')],
    ['count alone', 'service', (s) => s.from(table).select('*', { count: 'exact', head: true })],
    ['head of an unknown table', 'service', (s) => s.from('nope').select('*', { head: true })],
    ['range', 'service', (s) => s.from(table).select('id', { count: 'exact' }).order('id').range(2, 3)],
    ['range without count', 'service', (s) => s.from(table).select('id').order('id').range(2, 3)],
    ['range behind the end', 'service', (s) => s.from(table).select('id', { count: 'exact' }).order('id').range(20, 29)],
    ['range behind the end without count', 'service', (s) => s.from(table).select('id').order('id').range(20, 29)],
    ['limit', 'service', (s) => s.from(table).select('id').order('id').limit(2)],
    ['limit 0', 'service', (s) => s.from(table).select('id').limit(0)],
    ['single', 'service', (s) => s.from(table).select(short).eq('id', id(1)).single()],
    ['single of none', 'service', (s) => s.from(table).select(short).eq('status', 'none').single()],
    ['single of several', 'service', (s) => s.from(table).select(short).eq('status', 'kept').single()],
    ['maybeSingle of one', 'service', (s) => s.from(table).select(short).eq('id', id(1)).maybeSingle()],
    ['maybeSingle of none', 'service', (s) => s.from(table).select(short).eq('status', 'none').maybeSingle()],
    ['csv', 'service', (s) => s.from(table).select('id').limit(1).csv()],

    ['eq', 'service', (s) => s.from(table).select('id').eq('status', 'pending').order('id')],
    ['neq', 'service', (s) => s.from(table).select('id').neq('status', 'kept').order('id')],
    ['gt and lte', 'service', (s) => s.from(table).select('id').gt('retry_count', 0).lte('retry_count', 1)],
    ['gte and lt', 'service', (s) => s.from(table).select('id').gte('retry_count', 1).lt('retry_count', 3)],
    ['in', 'service', (s) => s.from(table).select('id').in('status', ['pending', 'failed', 'a,b', 'c"d']).order('id')],
    ['in of nothing', 'service', (s) => s.from(table).select('id').in('status', [])],
    ['not in', 'service', (s) => s.from(table).select('id').not('status', 'in', '(kept,failed)').order('id')],
    ['is null', 'service', (s) => s.from(table).select('id').is('user_id', null).order('id').limit(1)],
    ['is not null', 'service', (s) => s.from(table).select('id').not('user_id', 'is', null)],
    ['is true of a text', 'service', (s) => s.from(table).select('id').is('status', true)],
    ['like', 'service', (s) => s.from(table).select('id').like('status', 'k%t').order('id').limit(1)],
    ['ilike', 'service', (s) => s.from(table).select('id').ilike('status', 'K_P*').order('id').limit(1)],
    ['not like', 'service', (s) => s.from(table).select('id').not('status', 'like', 'k*').order('id')],
    ['isdistinct', 'service', (s) => s.from(table).select('id').filter('user_id', 'isdistinct', anna).order('id').limit(2)],
    ['match of columns', 'service', (s) => s.from(table).select('id').match({ status: 'failed', retry_count: 1 })],
    ['contains in an array', 'service', (s) => s.from(table).select('id').contains('attempted_by', ['m1'])],
    ['not contains in an array', 'service', (s) => s.from(table).select('id').not('attempted_by', 'cs', '{m1}').order('id').limit(1)],
    ['overlaps', 'service', (s) => s.from(table).select('id').overlaps('attempted_by', ['m1', 'm2'])],
    ['containedBy in an array', 'service', (s) => s.from(table).select('id').containedBy('attempted_by', ['m1']).order('id').limit(1)],
    ['contains in jsonb', 'service', (s) => s.from(table).select('id').contains('raw_data', { n: 3, tags: ['x'] })],
    ['containedBy in jsonb', 'service', (s) => s.from(table).select('id').containedBy('raw_data', { n: 6, more: 1 })],
    ['filter by a path', 'service', (s) => s.from(table).select('id').eq('raw_data->>name', 'row 3')],
    ['filter by a path as JSON', 'service', (s) => s.from(table).select('id').eq('raw_data->n', 4)],
    ['or', 'service', (s) => s.from(table).select('id').or('status.eq.pending,status.eq.failed').order('id')],
    ['or and and', 'service', (s) => s.from(table).select('id').or(`and(status.eq.kept,id.eq.${id(1)}),not.and(status.neq.failed,retry_count.lt.9)`).order('id')],
    ['or with quotes and lists', 'service', (s) => s.from(table).select('id').or('status.in.("a,b",failed),raw_data->>name.eq."row 3",attempted_by.cs.{m9}').order('id')],
    ['not or', 'service', (s) => s.from(table).select('id').not('or', 'x', 'y')],
    ['order by several', 'service', (s) => s.from(table).select('id').order('retry_count', { ascending: false }).order('id', { ascending: false }).limit(4)],
    ['order with nulls', 'service', (s) => s.from(table).select('id').order('user_id', { nullsFirst: false }).order('id').limit(2)],
    ['order by a path', 'service', (s) => s.from(table).select('id').order('raw_data->>n', { ascending: false }).limit(2)],
    ['a wrong uuid', 'service', (s) => s.from(table).select('id').eq('id', 'x')],
    ['a wrong number', 'service', (s) => s.from(table).select('id').gt('retry_count', 'many')],
    ['like of a uuid', 'service', (s) => s.from(table).select('id').like('id', 'x%')],
    ['an unknown column in a filter', 'service', (s) => s.from(table).select('id').eq('nope', 1)],
    ['an unknown operator', 'service', (s) => s.from(table).select('id').filter('status', 'nope', 'x')],
    ['an embedded table', 'service', (s) => s.from(table).select('id,orders(id)')],
    ['full text search', 'service', (s) => s.from(table).select('id').textSearch('status', 'kept').limit(1)],
    ['another schema', 'service', (s) => s.schema('auth').from(table).select('id')],

    ['update', 'service', (s) => s.from(table).update({ retry_count: 2 }).eq('id', id(1))],
    ['update and read', 'service', (s) => s.from(table).update({ status: 'changed', result: { ok: [1, null] } }).eq('id', id(1)).select('id,status,result,retry_count')],
    ['update of none', 'service', (s) => s.from(table).update({ status: 'changed' }).eq('status', 'none').select('id')],
    ['update counts', 'service', (s) => s.from(table).update({ error_message: 'e' }, { count: 'exact' }).in('id', [id(3), id(4)])],
    ['update with nothing', 'service', (s) => s.from(table).update({}).eq('id', id(1)).select('id')],
    ['update to null', 'service', (s) => s.from(table).update({ error_message: null }).eq('id', id(3)).select('error_message').single()],
    ['update of an unknown column', 'service', (s) => s.from(table).update({ nope: 1 }).eq('id', id(1))],
    ['update a key to one that is there', 'service', (s) => s.from(table).update({ id: id(2) }).eq('id', id(1))],
    ['update a required column to null', 'service', (s) => s.from(table).update({ status: null }).eq('id', id(1))],
    ['update several as one', 'service', (s) => s.from(table).update({ error_message: 'undone' }).in('id', [id(3), id(4)]).select('id').single()],
    ['max-affected', 'service', (s) => s.from(table).update({ error_message: 'undone' }).in('id', [id(3), id(4)]).maxAffected(1)],
    ['what is undone', 'service', (s) => s.from(table).select('id', { count: 'exact' }).eq('error_message', 'undone')],

    ['upsert a new row', 'service', (s) => s.from(table).upsert(row(8)).select(short)],
    ['upsert a row that is there', 'service', (s) => s.from(table).upsert(row(8, { status: 'merged' })).select('id,status')],
    ['upsert several', 'service', (s) => s.from(table).upsert([row(8, { status: 'again' }), row(9)]).select('id,status').order('id')],
    ['upsert ignores', 'service', (s) => s.from(table).upsert(row(8, { status: 'ignored' }), { ignoreDuplicates: true }).select('id')],
    ['upsert on a column', 'service', (s) => s.from(table).upsert(row(9, { status: 'on id' }), { onConflict: 'id' }).select('status')],
    ['upsert on a column that is not unique', 'service', (s) => s.from(table).upsert(row(9), { onConflict: 'status' })],

    ['a user reads own rows', 'anna', (s) => s.from(table).select(short)],
    ['another user reads none', 'ben', (s) => s.from(table).select(short)],
    ['a user inserts for another', 'anna', (s) => s.from(table).insert({ raw_data: {}, user_id: ben })],
    ['a user inserts for nobody', 'anna', (s) => s.from(table).insert({ raw_data: {} })],
    ['a user inserts', 'ben', (s) => s.from(table).insert({ id: 'cccccccc-0000-4000-8000-00000000000c', raw_data: { of: 'ben' }, user_id: ben }).select('raw_data').single()],
    ['a user changes another\'s row', 'ben', (s) => s.from(table).update({ status: 'taken' }).eq('id', id(2)).select('id')],
    ['a user gives a row away', 'anna', (s) => s.from(table).update({ user_id: ben }).eq('id', id(2))],
    ['a user deletes another\'s row', 'ben', (s) => s.from(table).delete().eq('id', id(2)).select('id')],
    ['a user upserts another\'s row', 'ben', (s) => s.from(table).upsert({ id: id(2), raw_data: {}, user_id: ben })],
    ['anonymous select', 'anon', (s) => s.from(table).select('id')],
    ['anonymous insert', 'anon', (s) => s.from(table).insert({ raw_data: {} })],
    ['anonymous update', 'anon', (s) => s.from(table).update({ status: 'x' }).eq('id', id(1))],
    ['anonymous delete', 'anon', (s) => s.from(table).delete().eq('id', id(1))],
    ['a token too old', 'expired', (s) => s.from(table).select('id')],
    ['a token of another key', 'forged', (s) => s.from(table).select('id')],
    ['no key that is known', 'unknown', (s) => s.from(table).select('id')],

    ['rpc claim', 'service', (s) => s.rpc('svc_fn_claim_task', { task_id: id(3), machine_id: 'm1' })],
    ['rpc claim again', 'service', (s) => s.rpc('svc_fn_claim_task', { task_id: id(3), machine_id: 'm2' })],
    ['rpc claim of no row', 'service', (s) => s.rpc('svc_fn_claim_task', { task_id: anna, machine_id: 'm1' })],
    ['rpc fail', 'service', (s) => s.rpc('svc_fn_fail_task', { task_id: id(3), machine_id: 'm1', error: 'oh' })],
    ['contains after a failure', 'service', (s) => s.from(table).select('id,attempted_by').contains('attempted_by', ['m1'])],
    ['rpc claim by its other name', 'service', (s) => s.rpc('svc_fn_claim_task', { target_task_id: id(4), machine_id: 'm1', table_name: table })],
    ['rpc complete', 'service', (s) => s.rpc('svc_fn_complete_task', { task_id: id(4), machine_id: 'm1', result: { done: true } })],
    ['rpc leaves the result', 'service', (s) => s.from(table).select('status,result,locked_by').eq('id', id(4)).single()],
    ['rpc of another\'s row', 'ben', (s) => s.rpc('svc_fn_claim_task', { task_id: id(2), machine_id: 'm1' })],
    ['rpc without arguments', 'service', (s) => s.rpc('svc_fn_claim_task', {})],
    ['rpc with an unknown argument', 'service', (s) => s.rpc('svc_fn_claim_task', { task_id: id(3), force: true })],
    ['rpc unknown', 'service', (s) => s.rpc('nope', { a: 1 })],
    ['rpc by GET of a writing function', 'service', (s) => s.rpc('svc_fn_claim_task', { task_id: id(1), machine_id: 'm1' }, { get: true })],
    ['rpc by GET', 'service', (s) => s.rpc('get_publications_full', {}, { get: true })],
    ['rpc publications', 'service', (s) => s.rpc('get_publications_full')],
    ['rpc head', 'service', (s) => s.rpc('get_publications_full', {}, { head: true })],

    ['delete', 'service', (s) => s.from(table).delete().eq('id', id(5))],
    ['delete and read', 'service', (s) => s.from(table).delete().eq('id', id(6)).select(short)],
    ['delete counts', 'service', (s) => s.from(table).delete({ count: 'exact' }).in('id', [id(7), id(8)])],
    ['delete of none', 'service', (s) => s.from(table).delete().eq('status', 'none').select('id')],
    ['what remains', 'service', (s) => s.from(table).select('id').order('id')],
    ['update without a filter', 'service', (s) => s.from(table).update({ status: 'all' })],
    ['delete without a filter', 'service', (s) => s.from(table).delete()],
];

const times = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d/;
const masked = (value) => typeof value === 'string' && times.test(value) ? '<time>'
    : Array.isArray(value) ? value.map(masked)
        : value !== null && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, masked(one)])) : value;

export async function play(server) {
    const jwt = (user, more) => token(server.jwt_secret, user, more);
    const clients = {
        service: client(server, server.secret), anon: client(server, server.publishable), unknown: client(server, 'sb_publishable_x'),
        anna: client(server, server.publishable, jwt(anna)), ben: client(server, server.publishable, jwt(ben)),
        expired: client(server, server.publishable, jwt(anna, { iat: 1, exp: 1000 })), forged: client(server, server.publishable, token('another secret', anna)),
    };
    const answers = new Map();
    for (const [name, who, ask] of steps) {
        const { status, data, count, error } = await ask(clients[who]);
        answers.set(name, { status, data: masked(data), count, code: error?.code ?? null, message: error?.message ?? null, headers: clients[who].seen.headers });
    }
    return answers;
}
