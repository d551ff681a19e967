// The double of the hosted service's account is right where the service's own command line says so: it logs in, lists projects and keys and runs SQL against the
// double, and then Hearth does against the same one. Its profile for such a place has fixed addresses, the only fixed ports of these tests.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { coldHearth, runProgram, until } from '../api/harness.mjs';
import { inTerminal } from '../api/terminal.mjs';
import { accountDouble, aProject, someKeys } from './account_double.mjs';

const program = resolve(import.meta.dirname, '../hosted_cli/node_modules/.bin/supabase');

async function isFree(port) {
    const server = net.createServer().listen(port, '127.0.0.1');
    const free = await Promise.race([once(server, 'listening').then(() => true), once(server, 'error').then(() => false)]);
    server.close();
    return free;
}

async function whySkip() {
    if (!existsSync(program))
        return 'the service\'s own command line is not installed: script/bootstrap hosted';
    return await isFree(8080) && await isFree(8082) ? false : 'another program has port 8080 or 8082, which the profile demands';
}

test('the double: login, projects list, projects api-keys and db query of the service\'s own command line, then Hearth\'s login', { skip: await whySkip(), timeout: 120_000 }, async (t) => {
    const asked = [];
    const service = await accountDouble(t, { port: 8080, runSql: (sql) => { asked.push(sql); return [{ a: 1 }]; } });
    const home = mkdtempSync(join(tmpdir(), 'hosted-cli-'));
    t.after(() => rmSync(home, { recursive: true, force: true }));
    const env = { PATH: process.env.PATH, HOME: home, SUPABASE_PROFILE: 'supabase-local', SUPABASE_NO_KEYRING: '1', SUPABASE_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1', NO_COLOR: '1' };
    const run = async (...args) => {
        const result = await runProgram(program, [...args, '--profile', 'supabase-local'], { env, cwd: home });
        assert.equal(result.code, 0, `${args.join(' ')}: ${result.stdout} ${result.stderr}`);
        return result.stdout;
    };

    const screen = spawn('script', ['-qec', `'${program}' login --no-browser --profile supabase-local`, '/dev/null'], { env: { ...env, TERM: 'dumb' }, cwd: home, stdio: ['pipe', 'pipe', 'inherit'] });
    t.after(() => screen.kill('SIGKILL'));
    let text = '';
    screen.stdout.setEncoding('utf8').on('data', (piece) => { text += piece; });
    const shown = () => text.replace(/\u001b\[[0-9;?]*[a-zA-Z]/g, '');
    const address = await until(() => /http:\/\/(?:localhost|127\.0\.0\.1):8082\/\S*public_key=[0-9a-f]{130}\S*/.exec(shown())?.[0], { what: `an address in ${text}` });
    // What is typed before the question stands there is lost; a narrow terminal has one letter a line.
    await until(() => /Enteryourverificationcode:/.test(shown().replace(/\s/g, '')), { what: `the question in ${text}` });
    const code = service.visit(address);
    screen.stdin.write(`${code}\r`);
    const [exit] = await once(screen, 'close');
    assert.equal(exit, 0, text);

    assert.match(await run('projects', 'list'), /abcdefghijklmnopqrst/);
    const keys = await run('projects', 'api-keys', '--project-ref', aProject.ref);
    for (const key of [someKeys[0], someKeys[2]])
        assert.ok(keys.includes(key.api_key), keys);
    await run('db', 'query', 'select 1 as a', `--remote=${aProject.ref}`, '--yes');
    assert.ok(asked.includes('select 1 as a'), JSON.stringify(asked));

    const h = coldHearth({ t, env: { HEARTH_BACKEND_ACCOUNT_API: service.url, HEARTH_BACKEND_ACCOUNT_PAGE: 'http://127.0.0.1:8082' } });
    const own = inTerminal(t, h, 'backend', 'login', '--no-browser');
    const [url] = await own.seen(/http:\/\/127\.0\.0\.1:8082\/cli\/login\S+/);
    assert.deepEqual([...new URL(url).searchParams.keys()].sort(), [...new URL(address).searchParams.keys()].sort(), 'what both ask the page for');
    await own.seen(/Code: /);
    own.type(`${service.visit(url)}\n`);
    assert.match(await own.ended, /Logged in as ada@example\.org[^]*code 0/);
    assert.deepEqual((await h.cliJson('backend', 'projects')).map(({ ref }) => ref), [aProject.ref]);
});
