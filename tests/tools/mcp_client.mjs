// The MCP client of src/mcp on a server over stdio, through tests/unit/mcp/client_cases.c: operations as lines of JSON.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

const program = join(dirname(process.env.HEARTH_BIN), 'tests/unit/client_cases');
const mostMs = 60000;

// Resolves with the first line of `seen` that fits, now or later; rejects when no line can come any more.
function waiter(seen) {
    const waiting = new Set();
    let why;
    return {
        end(reason) {
            why = reason;
            waiting.forEach((w) => w.reject());
        },
        take(line) {
            seen.push(line);
            for (const w of waiting)
                if (w.fits(line)) {
                    waiting.delete(w);
                    w.resolve(line);
                }
        },
        wait(fits, what) {
            const known = seen.find(fits);
            if (known)
                return Promise.resolve(known);
            return new Promise((resolve, reject) => {
                const fail = () => { clearTimeout(timer); reject(new Error(`no ${what} among ${JSON.stringify(seen).slice(0, 2000)}${why ?? ''}`)); };
                const timer = setTimeout(fail, mostMs);
                waiting.add({ fits, resolve: (line) => { clearTimeout(timer); resolve(line); }, reject: fail });
                if (why)
                    fail();
            });
        },
    };
}

// Opens the server `argv` (Node runs it when it is a script). Ends with the test; the program must end with 0 and without a sanitizer's report.
export async function openMcp(t, argv, { env = {} } = {}) {
    const command = /\.m?js$/.test(argv[0]) ? [process.execPath, ...argv] : argv;
    const child = spawn(program, command, { env: { PROBE_MS: '30000', ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
    const lines = [];
    const waits = waiter(lines);
    let words = '';
    let n = 0;
    child.stderr.on('data', (data) => { words += data; });
    createInterface({ input: child.stdout }).on('line', (line) => waits.take(JSON.parse(line)));
    const ended = once(child, 'close');
    ended.then(([code, signal]) => waits.end(`; the client ended with ${signal ?? code}: ${words}`));
    t.after(async () => {
        child.stdin.end();
        const [code] = await ended;
        assert.equal(code, 0, words);
        assert.equal(words, '');
    });
    const opened = await waits.wait((line) => line.op === 'open', 'opening');
    return {
        opened, lines, pid: child.pid,
        events: (name) => lines.filter((line) => line.event === name),
        event: (name, fits = () => true) => waits.wait((line) => line.event === name && fits(line), name),
        // The id keeps apart operations that run at the same time.
        op(name, params = {}) {
            const id = ++n;
            child.stdin.write(`${JSON.stringify({ op: name, id, ...params })}\n`);
            return waits.wait((line) => line.op === name && line.id === id, `answer to ${name}`);
        },
    };
}

export const textOf = (result) => result.content.map((block) => block.text ?? '').join('\n');
