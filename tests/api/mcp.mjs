// Speaks /mcp for the tests: frames as they are, in both eras.
import assert from 'node:assert/strict';

export const latest = '2025-11-25';
export const stateless = '2026-07-28';
const accept = 'application/json, text/event-stream';

export const meta = (more = {}) => ({
    'io.modelcontextprotocol/protocolVersion': stateless, 'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' }, ...more,
});

// The frames of an answer, whichever of the two forms it has.
export function framesOf(reply) {
    if (reply.headers['content-type']?.startsWith('text/event-stream'))
        return reply.text.split('\n').filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6)));
    return reply.text === '' ? [] : [reply.body].flat();
}

// A header that is undefined is left out.
export const post = (call, body, headers = {}) =>
    call('POST', '/mcp', body, Object.fromEntries(Object.entries({ accept, 'content-type': 'application/json', ...headers }).filter(([, value]) => value !== undefined)));

// {id, version, send(method, params), notify, raw, call, headers}: one session of the handshake era; call: h.as(...), h.asApp(app), h.asKey()
export async function session(call, version = latest, capabilities = {}) {
    let n = 0;
    const begun = await post(call, { jsonrpc: '2.0', id: n, method: 'initialize', params: { protocolVersion: version, capabilities, clientInfo: { name: 'test', version: '1' } } });
    assert.equal(begun.status, 200, begun.text);
    const headers = { 'mcp-session-id': begun.headers['mcp-session-id'] };
    if (version >= '2025-06-18')
        headers['mcp-protocol-version'] = begun.body.result.protocolVersion;
    const raw = (body, more = {}) => post(call, body, { ...headers, ...more });
    const notify = (method, params) => raw({ jsonrpc: '2.0', method, params });
    const send = async (method, params) => {
        const frames = framesOf(await raw({ jsonrpc: '2.0', id: ++n, method, params }));
        assert.equal(frames.at(-1)?.id, n, JSON.stringify(frames));
        return frames.at(-1);
    };
    const result = async (method, params) => {
        const frame = await send(method, params);
        assert.ok(frame.result, JSON.stringify(frame));
        return frame.result;
    };
    await notify('notifications/initialized');
    return { begun: begun.body.result, id: headers['mcp-session-id'], headers, raw, notify, send, result, call,
        tool: (name, args, more = {}) => result('tools/call', { name, arguments: args, ...more }) };
}

// One request of the stateless era, with the headers that belong to it.
export function ask(call, method, params = {}, { headers = {}, id = 1, envelope = meta() } = {}) {
    const name = { 'tools/call': params.name, 'resources/read': params.uri }[method];
    return post(call, { jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...envelope, ...params._meta } } },
        { 'mcp-protocol-version': stateless, 'mcp-method': method, ...name !== undefined && { 'mcp-name': name }, ...headers });
}
