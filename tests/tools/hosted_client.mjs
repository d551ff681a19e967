// The realtime client of src/backend/hosted as a program (tests/unit/backend/hosted_client.c): commands as lines, reports as lines of JSON.
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Arrivals } from '../api/harness.mjs';

const program = join(dirname(process.env.HEARTH_BIN ?? 'build/debug/hearth'), 'tests/unit/hosted_client');

// {reports, run}: reports are everything it says; run(command) sends a line and gives the report of that command. `fast`: short waits.
export function hostedClient(t, url, key, vsn, { fast = true, env = {} } = {}) {
    const child = spawn(program, [url, key, vsn, ...fast ? ['fast'] : []], { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } });
    const reports = new Arrivals();
    let errors = '';
    createInterface({ input: child.stdout }).on('line', (line) => reports.push(JSON.parse(line)));
    child.stderr.on('data', (piece) => { errors += piece; });
    const ended = new Promise((done) => child.on('close', (code, signal) => {
        reports.end(`the client has ended (${code ?? signal}) ${errors}`);
        done({ code, signal, errors });
    }));
    const client = {
        reports, ended,
        // Fails when the command was refused; `refused` gives the refusal instead.
        async run(command, { refused = false } = {}) {
            const verb = command.split(' ')[0], from = reports.items.length;
            child.stdin.write(`${command}\n`);
            const report = await reports.wait((r) => r.is === verb, { from, what: `the report of ${command}` });
            if (report.r < 0 && !refused)
                throw new Error(`${command}: ${report.code} ${report.text}`);
            return report;
        },
        async quit() {
            child.stdin.end();
            return ended;
        },
    };
    t.after(async () => {
        const { code, signal, errors: said } = await client.quit();
        if (code !== 0)
            throw new Error(`the client ended with ${code ?? signal}: ${said}`);
    });
    return client;
}
