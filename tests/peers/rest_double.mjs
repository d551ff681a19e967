// What the doubles of vector stores share: a server that reads and prints JSON, and refusals of what their references do not know.
//
//     const { url, journal, stop } = await serve(t, ({ method, path, query, body, headers, size }) => reply, { refuse: (error) => [status, value] });
//
// store.lie(request, reply), when a test sets it, gives another reply: a value, or a text that is sent as it is.
import http from 'node:http';

export class Refusal extends Error {
    constructor(status, text, code) {
        super(text);
        Object.assign(this, { status, code });
    }
}

export function check(condition, text, status = 400, code) {
    if (!condition)
        throw new Refusal(status, text, code);
}

// Exactly these members.
export function members(body, required, optional = []) {
    check(body && typeof body === 'object' && !Array.isArray(body), 'an object is wanted');
    for (const name of required)
        check(body[name] !== undefined, `missing field ${name}`);
    for (const name of Object.keys(body))
        check(required.includes(name) || optional.includes(name), `unknown field ${name}`);
}

export const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const dot = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0);
export const cosine = (a, b) => dot(a, b) / (Math.hypot(...a) * Math.hypot(...b) || 1);
export const pick = (object, names) => Object.fromEntries(names.filter((name) => object[name] !== undefined).map((name) => [name, object[name]]));

export async function serve(t, answer, { refuse }) {
    const journal = [], double = { journal, lie: null };
    const server = http.createServer(async (req, res) => {
        let text = '';
        for await (const piece of req.setEncoding('utf8'))
            text += piece;
        const { pathname, searchParams } = new URL(req.url, 'http://x');
        const one = { method: req.method, path: pathname, query: searchParams, headers: req.headers, body: text ? JSON.parse(text) : undefined, size: Buffer.byteLength(text) };
        journal.push(one);
        const say = (status, value) => res.writeHead(status, { 'content-type': 'application/json' }).end(typeof value === 'string' ? value : JSON.stringify(value));
        try {
            const reply = answer(one);
            say(200, double.lie ? double.lie(one, reply) : reply);
        } catch (error) {
            say(...refuse(error));
        }
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    const stop = () => new Promise((done) => { server.close(done); server.closeAllConnections(); });
    t.after(stop);
    return Object.assign(double, { url: `http://127.0.0.1:${server.address().port}`, stop });
}
