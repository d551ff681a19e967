// An app in Custom Mode: the table of its orders has columns of its own, and the app itself locks and finishes its rows.
//
// The rows are reached at the service's /rest/v1, over the embedded backend and over PostgreSQL alike. The app keeps nothing in memory,
// so it may be stopped and started at any time, and may run on several machines.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const { SERVER_URL, REST_KEY, SVC_WEBHOOK_SECRET, SVC_PORT } = process.env;

// Changes or reads the rows that the query names; returns them as they now are.
async function orders(method, query, change) {
  const reply = await fetch(`${SERVER_URL}/rest/v1/orders?${new URLSearchParams(query)}`, {
    method,
    headers: { apikey: REST_KEY, authorization: `Bearer ${REST_KEY}`, 'content-type': 'application/json', prefer: 'return=representation' },
    body: change && JSON.stringify(change),
  });
  if (!reply.ok) throw new Error(`/rest/v1: ${reply.status} ${await reply.text()}`);
  return reply.json();
}

// One conditional change decides: of all machines that want the order, one finds it free.
async function lock({ task_id, machine_id }) {
  const locked_at = new Date().toISOString();
  const taken = await orders('PATCH', { id: `eq.${task_id}`, status: 'in.(pending,failed)' }, { status: 'claimed', locked_by: machine_id, locked_at });
  if (taken.length) return [200, { success: true, locked_by: machine_id, locked_at: taken[0].locked_at }];
  const [order] = await orders('GET', { id: `eq.${task_id}` });
  return [409, { success: false, reason: 'already_locked', locked_by: order?.locked_by ?? '' }];
}

// Only the machine that holds the lock may finish the order. A repeat finds it finished and is a success.
async function finish({ task_id, machine_id, action, data }) {
  const end = action === 'complete'
    ? { status: 'completed', price: data.result.price, problem: null }
    : { status: 'failed', problem: data.error.message };
  const done = await orders('PATCH', { id: `eq.${task_id}`, locked_by: `eq.${machine_id}`, status: 'in.(claimed,processing)' }, { ...end, locked_by: null, locked_at: null });
  if (done.length) return [200, { success: true }];
  const [order] = await orders('GET', { id: `eq.${task_id}` });
  return order?.status === end.status ? [200, { success: true, repeated: true }] : [409, { success: false, reason: 'not_locked' }];
}

// Requests of the service are signed (Standard Webhooks 1.0.0).
function isSigned(headers, body) {
  const key = Buffer.from(SVC_WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64');
  const right = createHmac('sha256', key).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`).digest();
  const given = Buffer.from(String(headers['webhook-signature']).replace(/^v1,/, ''), 'base64');
  const age_s = Math.abs(Date.now() / 1000 - Number(headers['webhook-timestamp']));
  return given.length === right.length && timingSafeEqual(given, right) && age_s < 300;
}

const routes = { 'POST /api/task-lock': lock, 'POST /api/task-webhook': finish };

async function answer(request, body) {
  const route = routes[`${request.method} ${request.url}`];
  if (!route) return request.method === 'GET' ? [200, await orders('GET', { order: 'article' })] : [404, { error: 'no such route' }];
  if (!isSigned(request.headers, body)) return [401, { error: 'the signature is wrong' }];
  return route(JSON.parse(body));
}

const server = createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const [status, value] = await answer(request, Buffer.concat(pieces).toString()).catch((error) => [500, { error: error.message }]);
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(value)}\n`);
});
server.listen(Number(SVC_PORT), '127.0.0.1', () => console.log(`orders at http://127.0.0.1:${SVC_PORT}/`));
